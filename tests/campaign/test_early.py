"""What is refused before anything is loaded, and what is left for later."""

import shutil
import types
from dataclasses import dataclass

import pytest

from data.errors import ConfigError, MissingDependencyError, MisuseError
from stp.campaign import SignalSettings, prepare, run_campaign, signals_campaign
from stp.campaign.early import check_engine, engine_is_needed, planned_units
from stp.campaign.lock import Part
from stp.campaign.run import run_campaign as run
from stp.campaign.store import Store
from stp.engines import vllm as vllm_engine
from tests.campaign.rows import rows_of


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("transformers", {"device": "cuda"}, "device is 'cuda', but PyTorch sees no GPU"),
        ("transformers", {"device": "abacus"}, "device is 'abacus'"),
        ("transformers", {"dtype": "int8"}, "dtype is 'int8'"),
        ("transformers", {"max_rows": 0}, "max_rows is 0"),
        ("transformers", {"max_row": 5}, "did you mean 'max_rows'"),
        ("transformers", {"name": "x"}, "has no option 'name'"),
        ("transformers", {"model_path": "x"}, "has no option 'model_path'"),
        ("transformers", {"self": 1}, "has no option 'self'"),
        ("transformers", {"threads": 1_000_000}, "threads is 1000000, but must be at most 1,024"),
        ("transformers", {"memory_bytes": 2**70}, "memory_bytes holds a number that no engine"),
        ("server", {"url": "http://[::1"}, "url is 'http://"),
        ("server", {"url": "http://localhost:99999"}, "url is 'http://localhost:99999'"),
        ("vllm", {"model_path": "x"}, "has no option 'model_path'"),
        ("vllm", {"self": 1}, "has no option 'self'"),
        ("vllm", {"max_num_seqs": 2**70}, "max_num_seqs holds a number that no engine"),
        ("transformers", {"threads": "two"}, "threads is 'two'"),
        ("server", {}, "needs the option 'url'"),
        ("server", {"url": "nowhere"}, "url is 'nowhere'"),
        ("server", {"url": "http://localhost:1", "attempts": 0}, "attempts is 0"),
        ("vllm", {"cache_share": 0.0}, "cache_share is 0"),
        ("vllm", {"max_model_len": 64}, "max_model_len cannot be set"),
        ("llamacpp", {}, "'llamacpp' is unknown"),
    ],
)
def test_options_that_no_engine_takes_are_refused(name, options, words, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=words):
        check_engine(name, options)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("transformers", {}),
        ("transformers", {"device": "cpu", "threads": 1, "dtype": "float32", "max_rows": 1}),
        # Nobody listens there: a server is asked nothing.
        ("server", {"url": "http://localhost:1", "attempts": 1}),
    ],
)
def test_options_that_an_engine_takes_pass(name, options):
    check_engine(name, options)


def test_a_library_that_is_missing_is_named():
    try:
        import vllm  # noqa: F401
    except ImportError:
        with pytest.raises(MissingDependencyError, match="stp-engine"):
            check_engine("vllm", {})
    else:
        with pytest.raises(ConfigError, match="did you mean 'max_num_seqs'"):
            check_engine("vllm", {"max_num_seq": 3})
        check_engine("vllm", {"max_num_seqs": 3})


@pytest.fixture
def scripted_vllm(monkeypatch):
    """Put a vLLM in place that takes options and can never start."""

    @dataclass
    class EngineArgs:
        max_num_seqs: int = 256

    class LLM:
        def __init__(self, model: str, *, dtype: str = "auto", **kwargs: object) -> None:
            raise TypeError("nothing can be started without a model")

    module = types.SimpleNamespace(__version__="0", LLM=LLM, EngineArgs=EngineArgs)
    monkeypatch.setattr(vllm_engine, "_import_vllm", lambda: module)
    monkeypatch.setattr(vllm_engine, "_is_cpu_build", lambda: False)


@pytest.mark.parametrize(
    "options", [{}, {"max_num_seqs": 3}, {"dtype": "half", "context_limit": 64, "cache_share": 0.5}]
)
def test_options_that_vllm_takes_pass_and_nothing_is_started(options, scripted_vllm):
    check_engine("vllm", options)


@pytest.mark.parametrize("name", ["max_num_seq", "MAX_NUM_SEQS"])
def test_options_that_vllm_has_not_are_refused(name, scripted_vllm):
    with pytest.raises(ConfigError, match=f"'{name}' is unknown .*; did you mean 'max_num_seqs'"):
        check_engine("vllm", {name: 3})


OPTIONS = "\n[engine.options]\n{}\n"


def test_nothing_is_read_for_a_run_that_could_not_begin(configure, tmp_path, monkeypatch):
    def locate(model):
        raise AssertionError("a model was looked for")

    monkeypatch.setattr(prepare, "locate_model", locate)
    with pytest.raises(ConfigError, match="'beams'"):
        run_campaign(configure(OPTIONS.format("beams = 3")), tmp_path / "c")
    assert not (tmp_path / "c").exists()


def test_a_run_without_work_for_an_engine_needs_none(configure, opener, tmp_path):
    run_campaign(configure(), tmp_path / "c", open_model=opener)
    wrong = configure(OPTIONS.format("max_rows = 0"))
    assert run_campaign(wrong, tmp_path / "c").finished
    # Grading is no work of an engine, and a part has work only in its own units.
    shutil.rmtree(tmp_path / "c" / "verdicts")
    assert run_campaign(wrong, tmp_path / "c").finished
    before = rows_of(tmp_path / "c")
    name = Store(tmp_path / "c").files("probes")[1]
    (tmp_path / "c" / name).unlink()
    assert run_campaign(wrong, tmp_path / "c", part=Part(1, 2)).units == 0
    for part in (None, Part(2, 2)):
        with pytest.raises(ConfigError, match="max_rows is 0"):
            run_campaign(wrong, tmp_path / "c", part=part)
    run_campaign(configure(), tmp_path / "c", open_model=opener)
    assert rows_of(tmp_path / "c") == before


def test_another_configuration_is_said_before_wrong_options(configure, opener, tmp_path):
    run_campaign(configure(), tmp_path / "c", open_model=opener)
    with pytest.raises(MisuseError, match="another configuration"):
        run_campaign(configure(OPTIONS.format("beams = 3"), probes=2), tmp_path / "c")


def test_an_engine_is_needed_where_a_shard_is_not_there(configure, opener, tmp_path):
    config, store = configure(), Store(tmp_path / "c")
    assert engine_is_needed(store, config, ("generate", "probe", "grade"))
    assert not engine_is_needed(store, config, ("probe", "grade"))
    run(config, tmp_path / "c", open_model=opener, stages=("generate",))
    assert engine_is_needed(store, config, ("probe",))
    assert not engine_is_needed(store, config, ("generate", "grade"))
    run(config, tmp_path / "c", open_model=opener)
    assert not engine_is_needed(store, config, ("generate", "probe", "grade"))
    assert engine_is_needed(store, config, ("signals",))
    units = list(planned_units(store, config, store.read_manifest()))
    for number, unit in enumerate(units):
        (tmp_path / "c" / unit.shard("trajectories")).rename(tmp_path / "aside")
        for part in (Part(1, 2), Part(2, 2)):
            own = number % 2 == part.number - 1
            assert engine_is_needed(store, config, ("generate",), part) == own
        # Without trajectories there is nothing to probe.
        assert not engine_is_needed(store, config, ("probe",))
        (tmp_path / "aside").rename(tmp_path / "c" / unit.shard("trajectories"))


def test_signals_are_refused_before_anything_is_read(configure, opener, tmp_path, monkeypatch):
    run_campaign(configure(), tmp_path / "c", open_model=opener)

    def locate(model):
        raise AssertionError("a model was looked for")

    monkeypatch.setattr(prepare, "locate_model", locate)
    for given, words in (
        ({"engine": "llamacpp"}, "'llamacpp' is unknown"),
        ({"engine": "transformers", "engine_options": {"max_rows": 0}}, "max_rows is 0"),
    ):
        with pytest.raises(ConfigError, match=words):
            signals_campaign(tmp_path / "c", SignalSettings(layers=()), **given)
    assert not (tmp_path / "c" / "signals.json").exists()
