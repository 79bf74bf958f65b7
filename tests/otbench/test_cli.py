"""The commands, as a person types them."""

import re
from types import SimpleNamespace

import pytest

from stp.cli.main import main
from tests.otbench.campaigns import campaign, with_signals


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
        (("release", "{url}", "--out", "{new}", "--train", "x"), "'x' is no fraction"),
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


class FakeHub:
    """Takes what would be sent, in the place of huggingface_hub's client."""

    sent: list

    def create_repo(self, repository, **options):
        self.sent.append(("create", repository, options))
        return SimpleNamespace(repo_id=repository, url=f"https://hub.example/{repository}")

    def upload_folder(self, **options):
        self.sent.append(("upload", options.pop("repo_id"), options))


def test_push_sends_a_verified_release(stp, url, tmp_path, monkeypatch):
    import huggingface_hub

    FakeHub.sent = []
    monkeypatch.setattr(huggingface_hub, "HfApi", FakeHub)
    made = stp("release", url, "--out", tmp_path / "r", "--push", "me/mine", "--private")
    assert made.code == 0, made.err
    assert "sent: https://hub.example/me/mine" in made.out
    create, upload = FakeHub.sent
    assert create == (
        "create",
        "me/mine",
        {"repo_type": "dataset", "private": True, "exist_ok": True},
    )
    assert upload[2]["folder_path"] == str(tmp_path / "r")
    assert upload[2]["repo_type"] == "dataset"
    again = stp("release", tmp_path / "r", "--push", "me/mine")
    assert (again.code, len(FakeHub.sent)) == (0, 4)
    (tmp_path / "r" / "README.md").write_text("changed")
    refused = stp("release", tmp_path / "r", "--push", "me/mine")
    assert (refused.code, len(FakeHub.sent)) == (1, 4)
    assert "README.md: changed" in refused.err


def test_push_without_a_hub_says_why(stp, url, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    made = stp("release", url, "--out", tmp_path / "r", "--push", "not a name!")
    assert made.code == 2
    assert "not a name!" in made.err
