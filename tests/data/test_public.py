"""Local copies and the hub: same files, same questions, and advice if there are none."""

import pytest

from data import MisuseError, get_benchmark, public
from data.errors import StoreError
from tests.data.made import gpqa_rows, livecodebench_rows, write_csv, write_jsonl, write_parquet
from tests.requirements import require_module

GSM8K_ROWS = [
    {"question": f"{n} + 1,000?", "answer": f"So <<{n}+1000={n + 1000}>>.\n#### {n + 1000:,}"}
    for n in range(1319)
]


@pytest.fixture(autouse=True)
def no_named_folder(monkeypatch, tmp_path):
    monkeypatch.delenv(public.DATA_DIR_VARIABLE, raising=False)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub-cache"))


def _hub_from(monkeypatch, tmp_path):
    """Let the hub's files be those below a local folder; ``datasets`` itself is the real one."""
    require_module("datasets")
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets-cache")
    folder = tmp_path / "hub"
    monkeypatch.setattr(
        public, "hub_url", lambda repository, revision, file: str(folder / repository / file)
    )
    return folder


def test_gsm8k_from_the_hub_and_from_files_is_the_same(monkeypatch, tmp_path):
    folder = _hub_from(monkeypatch, tmp_path)
    write_parquet(folder / "openai/gsm8k/main/test-00000-of-00001.parquet", GSM8K_ROWS)
    local = tmp_path / "local"
    write_jsonl(local / "gsm8k_test.jsonl", GSM8K_ROWS)
    from_hub = get_benchmark("gsm8k").load()
    assert from_hub == get_benchmark("gsm8k").load(local)
    assert from_hub[1].reference == "1001"


def test_gpqa_from_the_hub_keeps_options_that_look_like_missing_values(monkeypatch, tmp_path):
    folder = _hub_from(monkeypatch, tmp_path)
    write_csv(folder / "Idavidrein/gpqa/gpqa_diamond.csv", gpqa_rows())
    local = tmp_path / "local"
    write_csv(local / "gpqa_diamond.csv", gpqa_rows())
    assert get_benchmark("gpqa_diamond").load() == get_benchmark("gpqa_diamond").load(local)


def test_livecodebench_and_contests_from_the_hub(monkeypatch, tmp_path):
    folder, local = _hub_from(monkeypatch, tmp_path), tmp_path / "local"
    write_jsonl(folder / "livecodebench/code_generation_lite/test6.jsonl", livecodebench_rows())
    write_jsonl(local / "test6.jsonl", livecodebench_rows())
    assert get_benchmark("livecodebench").load() == get_benchmark("livecodebench").load(local)
    rows = [{"problem_idx": n, "answer": n, "problem": f"P{n}"} for n in range(1, 31)]
    write_parquet(folder / "MathArena/aime_2026/data/train-00000-of-00001.parquet", rows)
    assert get_benchmark("aime2026").load()[29].reference == "30"


def test_without_hub_and_file_the_message_says_what_to_download_where(tmp_path):
    require_module("datasets")
    with pytest.raises(MisuseError) as caught:
        get_benchmark("gpqa_diamond").load()
    message = str(caught.value)
    assert "\n" not in message
    for part in (
        "gpqa_diamond: cannot read Idavidrein/gpqa from the hub",
        "hf download Idavidrein/gpqa gpqa_diamond.csv --repo-type dataset "
        "--revision 633f5ee89ab8ad4522a9f850766b73f62147ffdd --local-dir DIR/gpqa_diamond",
        "accept its terms at https://huggingface.co/datasets/Idavidrein/gpqa",
        "STP_DATA_DIR=DIR",
    ):
        assert part in message


def test_a_folder_without_the_file_says_what_to_download_into_it(tmp_path):
    with pytest.raises(MisuseError) as caught:
        get_benchmark("livecodebench").load(tmp_path)
    assert f"no question file in {tmp_path}." in str(caught.value)
    assert "test6.jsonl --repo-type dataset" in str(caught.value)
    assert f"--local-dir {tmp_path}/livecodebench`" in str(caught.value)


def test_the_advised_download_is_found_where_it_lands(tmp_path):
    write_parquet(tmp_path / "gsm8k/main/test-00000-of-00001.parquet", GSM8K_ROWS)
    benchmark = get_benchmark("gsm8k")
    assert len(benchmark.load(tmp_path)) == 1319
    assert benchmark.source.available(tmp_path).endswith("test-00000-of-00001.parquet")


def test_a_wrong_number_of_rows_is_refused_even_with_a_limit(tmp_path):
    write_jsonl(tmp_path / "gsm8k.jsonl", GSM8K_ROWS[:-1])
    with pytest.raises(MisuseError, match="has 1318 rows, and 1319 are expected"):
        get_benchmark("gsm8k").load(tmp_path, limit=3)


def test_the_environment_names_a_folder(monkeypatch, tmp_path):
    write_jsonl(tmp_path / "gsm8k.jsonl", GSM8K_ROWS)
    monkeypatch.setenv(public.DATA_DIR_VARIABLE, str(tmp_path))
    assert get_benchmark("gsm8k").source.available(None) == str(tmp_path / "gsm8k.jsonl")
    assert len(get_benchmark("gsm8k").load()) == 1319
    monkeypatch.setenv(public.DATA_DIR_VARIABLE, str(tmp_path / "absent"))
    with pytest.raises(MisuseError, match=r"absent: no such folder.*STP_DATA_DIR"):
        get_benchmark("gsm8k").load()


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(MisuseError, match="--data-dir"):
        get_benchmark("gsm8k").load(tmp_path / "absent")


def test_a_file_in_the_hub_cache_is_available(tmp_path):
    source = get_benchmark("math500").source
    assert source.available(None) == ""
    snapshot = tmp_path / "hub-cache/datasets--HuggingFaceH4--MATH-500/snapshots"
    write_jsonl(snapshot / source.revision / "test.jsonl", [{"x": 1}])
    assert source.available(None) == "hub cache"


def test_a_gsm8k_solution_without_a_final_line_is_refused(tmp_path):
    rows = [*GSM8K_ROWS[:-1], {"question": "?", "answer": "seven"}]
    write_jsonl(tmp_path / "gsm8k.jsonl", rows)
    with pytest.raises(MisuseError, match=r"gsm8k\.jsonl, row 1319: no '#### answer'"):
        get_benchmark("gsm8k").load(tmp_path)


class TransportError(Exception):
    """As httpx's is called, of whichever version the hub's client uses."""


class LostConnectionError(TransportError):
    pass


TransportError.__module__ = "httpx2"


@pytest.mark.parametrize(
    ("raised", "kind", "code"),
    [
        (LostConnectionError("Name or service not known"), StoreError, 1),
        (ConnectionResetError("reset by peer"), StoreError, 1),
        (TimeoutError("timed out"), StoreError, 1),
        (PermissionError("gated"), MisuseError, 2),
        (ValueError("no such revision"), MisuseError, 2),
    ],
)
def test_a_hub_out_of_reach_is_a_failure_and_a_refusal_is_not(monkeypatch, raised, kind, code):
    require_module("datasets")
    import datasets

    def load(*arguments, **options):
        raise raised

    monkeypatch.setattr(datasets, "load_dataset", load)
    with pytest.raises(kind, match="hf download openai/gsm8k") as caught:
        get_benchmark("gsm8k").load()
    assert caught.value.exit_code == code
    assert str(raised) in str(caught.value)
