"""The commands, as a person types them."""

import re
from collections import Counter
from types import SimpleNamespace

import pytest

from evaluator.otbench import session
from evaluator.otbench.load import load_release
from evaluator.otbench.release import write_release
from stp.cli.main import main
from stp.cli.progress import Screen
from tests.evaluator.synthetic import undrawn
from tests.otbench.campaigns import campaign, with_signals
from tests.otbench.hub_server import Hub


@pytest.fixture(scope="module", autouse=True)
def _undrawn():
    with undrawn():
        yield


@pytest.fixture
def stp(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments):
        try:
            main([str(argument) for argument in arguments])
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        found = capsys.readouterr()
        return SimpleNamespace(code=code, out=found.out, err=found.err)

    return run


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    return campaign(tmp_path_factory.mktemp("cli") / "campaign", models=1, questions=(16, 14))


def test_from_campaign_to_comparison(stp, url, tmp_path, monkeypatch):
    with_signals(monkeypatch)
    made = stp("release", url, "--out", tmp_path / "r", "--train", "0.5", "--name", "mine")
    assert made.code == 0
    assert "questions: 15 train, 6 validation, 9 test" in made.out
    assert "signals: end_logprob, other_logprob" in made.out
    run = stp(
        "otbench",
        "run",
        tmp_path / "r",
        "-m",
        "think_brake",
        "-m",
        "deer",
        "--replicates",
        30,
        "--out",
        tmp_path / "o",
    )
    assert run.code == 0, run.err
    assert "mine, test questions: P(0)" in run.out
    assert "think_brake" in run.out
    assert "constant_cap *" in run.out
    assert f"Report: {tmp_path}/o/otbench.html" in run.out
    assert max(map(len, run.out.replace(str(tmp_path), "").splitlines())) <= 80
    compared = stp("otbench", "compare", tmp_path / "o", "-m", "deer", "--against", "constant_cap")
    assert compared.code == 0, compared.err
    assert re.search(r"deer +-?[\d.]+", compared.out)
    assert "Differences from constant_cap, paired, with 95 % intervals" in compared.out
    assert max(map(len, compared.out.splitlines())) <= 80
    again = stp("otbench", "regenerate", tmp_path / "o", tmp_path / "r", "-m", "think_brake")
    assert (again.code, again.out) == (0, "think_brake: the same\n")


@pytest.fixture(scope="module")
def ran(url, tmp_path_factory):
    """Return (release, folder of a run)."""
    root = tmp_path_factory.mktemp("ran")
    with pytest.MonkeyPatch.context() as patch:
        with_signals(patch)
        write_release([url], root / "r")
    methods = ["think_brake", "deer(mean='arithmetic')", "predictive_scheduling(epochs=5)"]
    session.run_methods(root / "r", methods, root / "o", replicates=30)
    return root / "r", root / "o"


def test_results_go_to_one_stream_and_progress_to_the_other(stp, ran, tmp_path):
    run = stp("otbench", "run", ran[0], "-m", "deer", "--replicates", 0, "--out", tmp_path / "o")
    assert run.code == 0
    assert run.out.startswith("synthetic, test questions: P(0)")
    assert run.err.splitlines()[0] == "starting"
    again = stp("otbench", "regenerate", tmp_path / "o", ran[0], "-m", "deer")
    assert again.out == "deer: the same\n"
    assert again.err.splitlines()[0] == "starting"


def test_several_rows_are_made_again_from_one_reading(stp, ran, monkeypatch):
    loaded, told = [], []
    load, evaluate = session.load_release, session.evaluate

    def counted(folder, **options):
        loaded.append(folder)
        return load(folder, **options)

    def watched(release, asked, *, progress):
        told.append("evaluated")
        return evaluate(release, asked, progress=progress)

    monkeypatch.setattr(session, "load_release", counted)
    monkeypatch.setattr(session, "evaluate", watched)
    monkeypatch.setattr(Screen, "show", lambda self, stage, done, total: told.append(stage))
    chosen = ("think_brake", "constant_cap", "never_think")
    again = stp("otbench", "regenerate", ran[1], ran[0], *(a for c in chosen for a in ("-m", c)))
    assert again.code == 0, again.err
    assert sorted(again.out.splitlines()) == sorted(f"{label}: the same" for label in chosen)
    assert len(loaded) == 1
    stages = list(dict.fromkeys(told))
    assert stages[:3] == ["starting", "checking the release", "reading the release"]
    for place, line in enumerate(again.out.splitlines(), start=1):
        which = f"row {place} of 3, {line.partition(':')[0]}, "
        mine = [stage.removeprefix(which) for stage in stages if stage.startswith(which)]
        assert mine == ["training", "deciding, model-0", "beside the frontier", "bootstrap"]


NEAR_DEER = r"no row is called 'deer'; there are .*; did you mean deer\(mean='arithmetic'\)\?$"


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        ("compare", ("--against", "constantcap"), "'constantcap'; .*; did you mean constant_cap"),
        ("compare", ("-m", "deer"), NEAR_DEER),
        ("compare", ("-m", "think_brake", "--against", "zzz"), "'zzz'; .*, think_brake[^;]*$"),
        ("compare", ("-m", "deer", "--against", "deer"), NEAR_DEER),
        ("compare", ("-m", "think_brake", "--against", "think_brake"), "think_brake is the only"),
        ("regenerate", ("-m", "think_brake", "-m", "deer"), NEAR_DEER),
    ],
)
def test_wrong_names_are_said_before_anything_is_printed(stp, ran, command, arguments, message):
    release = [ran[0]] if command == "regenerate" else []
    found = stp("otbench", command, ran[1], *release, *arguments)
    assert (found.code, found.out) == (2, "")
    error = found.err.splitlines()[-1]
    assert error.startswith("stp: error: ")
    assert re.search(message, error)


def test_rows_that_cannot_be_paired_are_said_before_anything_is_printed(stp, ran, tmp_path):
    stp("otbench", "run", ran[0], "-m", "dynasor", "--replicates", 10, "--out", tmp_path / "o")
    found = stp("otbench", "compare", ran[1], tmp_path / "o", "--against", "dynasor")
    assert (found.code, found.out) == (2, "")
    assert "have other replicates or another seed" in found.err


@pytest.mark.parametrize("command", ["release", "run", "compare"])
def test_no_word_is_cut_in_80_columns(stp, ran, url, tmp_path, monkeypatch, command):
    with_signals(monkeypatch)
    texts = []
    for columns in ("80", "400"):
        monkeypatch.setenv("COLUMNS", columns)
        place = tmp_path / columns / ("x" * 90)
        run = ("otbench", "run", ran[0], "-m", "think_brake", "-m", "deer(mean='arithmetic')")
        given = {
            "release": ("release", url, "--out", place),
            "run": (*run, "--replicates", 0, "--out", place),
            "compare": ("otbench", "compare", ran[1], "--against", "constant_cap"),
        }
        found = stp(*given[command])
        assert found.code == 0, found.err
        texts.append(found.out.replace(str(tmp_path / columns), "").replace("x" * 90, "x"))
    assert max(map(len, texts[0].splitlines())) <= 80
    # Where a table is wider than the terminal its parts stand one below the other.
    narrow, wide = (Counter(re.findall(r"[^\s\u2500]+", text)) for text in texts)
    assert narrow.keys() == wide.keys()
    numbers = [word for word in wide if re.fullmatch(r"[-+]?\d+\.\d", word)]
    assert {word: narrow[word] for word in numbers} == {word: wide[word] for word in numbers}


@pytest.mark.parametrize("command", ["status", "show", "report", "analyze", "signals", "run"])
def test_a_release_is_no_campaign(stp, ran, command):
    release, _ = ran
    before = sorted(release.rglob("*"))
    found = stp(command, release)
    said = f"{release}: a release, no campaign; give the campaign that it was made from"
    assert found.code == 2 and said in " ".join(found.err.split()), found.err
    assert not found.out and sorted(release.rglob("*")) == before


def test_no_release_is_made_of_a_release(stp, ran, tmp_path):
    release, _ = ran
    found = stp("release", release, "--out", tmp_path / "again")
    assert found.code == 2 and f"{release}: a release, no campaign; give" in found.err
    assert not (tmp_path / "again").exists()


def test_list_names_every_method(stp):
    listed = stp("otbench", "list")
    assert listed.code == 0
    for name in ("think_switcher", "predictive_scheduling", "think_brake", "dynasor", "deer"):
        assert name in listed.out
    assert max(map(len, listed.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("release", "{url}"), "say where the release goes"),
        (("release", "{url}", "--out", "{new}", "--train", "x"), "'x' is not a fraction"),
        (("release", "{tmp}/gone", "--out", "{new}"), "gone"),
        (("otbench", "run", "{tmp}"), "no release .manifest.json is missing."),
        (("otbench", "compare", "{tmp}"), "no leaderboard file"),
    ],
)
def test_misuse_is_one_line_and_exit_code_2(stp, url, tmp_path, arguments, message):
    given = [a.format(url=url, tmp=tmp_path, new=tmp_path / "new") for a in arguments]
    found = stp(*given)
    assert found.code == 2
    assert re.search(message, found.err)
    assert len(found.err.strip().splitlines()) == 1


def test_unknown_methods_are_named(stp, url, tmp_path, monkeypatch):
    with_signals(monkeypatch)
    stp("release", url, "--out", tmp_path / "r")
    found = stp("otbench", "run", tmp_path / "r", "-m", "nonsense")
    assert found.code == 2
    assert "there is no method 'nonsense'; there are think_switcher" in found.err


@pytest.fixture
def hub(monkeypatch):
    """A hub on this machine, and the real client turned to it."""
    import huggingface_hub

    client = huggingface_hub.HfApi
    # Tests are offline; this hub is on the same machine.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with Hub() as server:
        monkeypatch.setattr(
            huggingface_hub, "HfApi", lambda: client(endpoint=server.url, token="hf_right")
        )
        yield server


def test_push_sends_a_verified_release(stp, url, tmp_path, hub):
    made = stp("release", url, "--out", tmp_path / "r", "--push", "me/mine", "--private")
    assert made.code == 0, made.err
    assert f"sent: {hub.url}/datasets/me/mine" in made.out
    assert hub.created[0]["type"] == "dataset"
    assert "private" in (hub.created[0].get("visibility"), *hub.created[0])
    there = {
        path.relative_to(tmp_path / "r").as_posix(): path.read_bytes()
        for path in (tmp_path / "r").rglob("*")
        if path.is_file()
    }
    assert hub.files == there
    # What was sent is a release.
    for name, content in hub.files.items():
        (tmp_path / "back" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "back" / name).write_bytes(content)
    assert load_release(tmp_path / "back").checksum == load_release(tmp_path / "r").checksum


def test_a_release_that_is_there_is_sent_and_a_damaged_one_is_not(stp, url, tmp_path, hub):
    stp("release", url, "--out", tmp_path / "r")
    sent = stp("release", tmp_path / "r", "--push", "me/mine")
    assert (sent.code, len(hub.created)) == (0, 1)
    (tmp_path / "r" / "README.md").write_text("changed")
    refused = stp("release", tmp_path / "r", "--push", "me/mine")
    assert (refused.code, len(hub.created)) == (1, 1)
    assert "README.md: changed" in refused.err


def test_what_the_hub_refuses_is_one_line(stp, url, tmp_path, hub):
    stp("release", url, "--out", tmp_path / "r")
    hub.token = "hf_other"
    refused = stp("release", tmp_path / "r", "--push", "me/mine")
    assert refused.code == 2
    assert "stp: error: me/mine: the hub refuses: " in refused.err
    wrong = stp("release", tmp_path / "r", "--push", "not a name!")
    assert wrong.code == 2
    assert "not a name!" in wrong.err


def test_a_hub_that_is_not_there_is_one_line(stp, url, tmp_path, monkeypatch):
    import huggingface_hub

    client = huggingface_hub.HfApi
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr(
        huggingface_hub, "HfApi", lambda: client(endpoint="http://127.0.0.1:9", token="hf_x")
    )
    made = stp("release", url, "--out", tmp_path / "r", "--push", "me/mine")
    assert made.code == 1
    assert "stp: error: me/mine: the hub cannot be reached: " in made.err
