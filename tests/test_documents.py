"""What the documents promise: links, keys, campaign files, and commands that do what they say."""

import ast
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand
from typer.testing import CliRunner

from stp.campaign.config import CampaignConfig, parse_config
from stp.cli.lazily import app
from stp.cli.main import _arguments

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```([a-z]*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# After what a shell or a scheduler puts before it, up to a redirection.
COMMAND = re.compile(
    r"^(?:.*\b(?:srun|do) +|(?:[A-Z_]+=\S+ +)+|\s+CUDA\S+ \S+ \S+ )?(stp|python scripts/\S+) "
)
CAMPAIGN_BLOCK = re.compile(r"```toml\n((?:(?!```).)*?\[\[models\]\].*?)```", re.DOTALL)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(path):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_campaign_files_in_documents_are_read(path):
    for text in CAMPAIGN_BLOCK.findall(path.read_text(encoding="utf-8")):
        parse_config(text, source=str(path))


def test_every_key_of_a_campaign_file_is_documented_with_its_default():
    rows: dict[str, list[dict[str, str]]] = {"": []}
    section = ""
    text = (ROOT / "docs" / "campaigns.md").read_text(encoding="utf-8")
    for key, default in re.findall(r"^\| `([^`]+)` \|([^|]*)\|", text, re.MULTILINE):
        header = re.fullmatch(r"\[+(\w+)\]+", key)
        if header:
            section = header[1]
        rows.setdefault(section, []).append({key: default.strip(" `")})
    found = {
        name: {k: v for row in entries for k, v in row.items()} for name, entries in rows.items()
    }
    for name, field in CampaignConfig.model_fields.items():
        annotation = field.annotation
        if name in ("models", "benchmarks"):
            annotation = annotation.__args__[0]
        if not hasattr(annotation, "model_fields"):
            assert name in found[""], name
            continue
        assert name in found, name
        if name == "sampling":  # In one row.
            assert all(f"`{key}`" in text for key in annotation.model_fields)
            continue
        for key, setting in annotation.model_fields.items():
            assert key in found[name], f"[{name}] {key}"
            if isinstance(setting.default, int) and not isinstance(setting.default, bool):
                assert found[name][key] == str(setting.default), f"[{name}] {key}"


def commands(path):
    """Return the commands of ours in a page's blocks, as words: ``["stp", "run", ...]``."""
    found = []
    for language, block in BLOCK.findall(path.read_text(encoding="utf-8")):
        if language not in ("bash", ""):
            continue
        for line in block.replace("\\\n", " ").splitlines():
            at = COMMAND.search(line)
            if at:
                command = re.split(r" (?:[0-9]?>|&)", line[at.start(1) :])[0]
                found.append(shlex.split(command, comments=True))
    return found


@pytest.fixture
def understood(monkeypatch):
    """Return what parses a command as it is parsed when it is typed, and runs nothing."""
    monkeypatch.setattr(TyperCommand, "invoke", lambda command, context: None, raising=False)
    return lambda words: app(args=_arguments(words[1:]), prog_name="stp", standalone_mode=False)


LINES = [(path, words) for path in DOCUMENTS for words in commands(path)]


def test_there_are_commands(understood):
    assert len(LINES) > 70
    pages = {path.name for path, _ in LINES}
    assert {"README.md", "explorer.md", "live.md", "otbench.md", "one_gpu.md"} <= pages
    for wrong in ("explore x --no-such-option", "no-such-command", "think sho x", "live choose"):
        with pytest.raises(Exception, match=r"No such|Missing"):
            understood(["stp", *wrong.split()])


@pytest.mark.parametrize(
    ("path", "words"), LINES, ids=[f"{p.name}: {shlex.join(w)[:60]}" for p, w in LINES]
)
def test_every_command_is_understood(path, words, understood):
    if words[0] == "stp":
        understood(words)
    else:
        assert (ROOT / words[1]).is_file()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_code_in_documents_can_be_read(path):
    for language, block in BLOCK.findall(path.read_text(encoding="utf-8")):
        if language == "python":
            ast.parse(block)


def _reduced(folder):
    """Put campaign files of the documents there, for fewer questions than they ask."""
    examples = folder / "docs" / "examples"
    shutil.copytree(ROOT / "docs" / "examples", examples)
    for path in examples.glob("*.toml"):
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"^limit = \d+", "limit = 4", text, flags=re.MULTILINE)
        path.write_text(re.sub(r"^trajectories = \d+", "trajectories = 2", text, flags=re.M))
    for path in ("docs/campaigns.md", "README.md"):
        for text in CAMPAIGN_BLOCK.findall((ROOT / path).read_text(encoding="utf-8")):
            name = text.splitlines()[0].removeprefix("# ").split()[0]
            if name.endswith(".toml") and 'path = "demo"' in text:
                (folder / name).write_text(text)


def run_page(page, folder, monkeypatch, *, without=()):
    """Run the commands of a page in a folder; return those that were run."""
    monkeypatch.chdir(folder)
    done = []
    for words in commands(ROOT / page):
        line = shlex.join(words)
        stands_for = any(re.fullmatch("[A-Z][A-Z_]+", word) for word in words)
        if words[0] != "stp" or stands_for or any(part in line for part in without):
            continue
        if words[1] == "explore" and "--static" not in words:
            words = [*words, "--static", f"static-{len(done)}"]
        # Intervals of ten thousand replicates are tested where they are made.
        if words[1:3] == ["otbench", "run"] or words[1] in ("think", "analyze"):
            words = [*words, *(["--replicates", "20"] if _takes_replicates(words) else [])]
        result = CliRunner().invoke(app, _arguments(words[1:]), prog_name="stp")
        assert result.exit_code == 0, f"{line}: {result.output[-600:]} {result.exception!r}"
        done.append(line)
    return done


def _takes_replicates(words):
    command = typer.main.get_command(app)
    for name in words[1:]:
        if not hasattr(command, "resolve_command"):
            break
        command = command.get_command(command.context_class(command), name)
    return any("--replicates" in option.opts for option in command.params)


@pytest.mark.slow
def test_the_page_on_resuming_does_what_it_says(tmp_path, monkeypatch):
    _reduced(tmp_path)
    done = run_page("docs/running/resume_regrade_merge.md", tmp_path, monkeypatch)
    assert len(done) == 9


@pytest.mark.slow
def test_the_page_on_campaigns_and_the_readmes_benchmarks_do_what_they_say(tmp_path, monkeypatch):
    _reduced(tmp_path)
    done = run_page("docs/campaigns.md", tmp_path, monkeypatch)
    assert done[:1] == ["stp run small.toml --out small"]
    keep = ("stp think", "stp optimal")
    others = [
        shlex.join(words)
        for words in commands(ROOT / "README.md")
        if not shlex.join(words).startswith(keep)
    ]
    assert len(run_page("README.md", tmp_path, monkeypatch, without=others)) == 4


@pytest.mark.slow
def test_the_page_on_the_explorer_does_what_it_says(tmp_path, monkeypatch):
    """On a demo campaign, small runs of both benchmarks, and methods of a synthetic release."""
    from evaluator.otbench.session import run_methods
    from tests.otbench.campaigns import campaign, released

    _reduced(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("demo-campaign", "second"):
        _stp("run", "docs/examples/demo.toml", "--out", name)
    Path("first").symlink_to("demo-campaign")
    for name in ("a", "b"):
        model = f"docs/examples/arithmetic.py:{'careful' if name == 'a' else 'hasty'}"
        _stp(
            "think",
            "run",
            model,
            "--out",
            f"runs/{name}",
            "--samples",
            2,
            "--folds",
            1,
            "--sizes",
            8,
        )
    _stp("optimal", "run", "demo", "--out", "demo-run", "--subsets", "ovt:demo,ut:demo",
         "--limit", 2, "--seeds", 1, "--thinking-tokens", 64, "--max-tokens", 96)  # fmt: skip
    _stp("optimal", "score", "demo-run", "--replicates", 20)
    release = released(tmp_path / "release", campaign(tmp_path / "synthetic"))
    run_methods(release, ["constant_cap"], tmp_path / "otb", replicates=0)
    key = _stp("think", "show", "runs/a", "--limit", 1).splitlines()[1].split()[0]
    text = (ROOT / "docs" / "explorer.md").read_text(encoding="utf-8")
    (tmp_path / "explorer.md").write_text(text.replace("KEY", key))
    done = run_page(tmp_path / "explorer.md", tmp_path, monkeypatch)
    assert len(done) == 11


@pytest.mark.slow
def test_the_page_on_live_methods_does_what_it_says(tmp_path, monkeypatch):
    examples = tmp_path / "docs" / "examples"
    examples.mkdir(parents=True)
    text = (ROOT / "docs" / "examples" / "live_demo.toml").read_text(encoding="utf-8")
    text = re.sub(r"^limit = \d+", "limit = 15", text, flags=re.MULTILINE)
    text = re.sub(r"^trajectories = \d+", "trajectories = 1", text, flags=re.MULTILINE)
    (examples / "live_demo.toml").write_text(text)
    done = run_page("docs/live.md", tmp_path, monkeypatch, without=("stp serve",))
    assert len(done) == 7
    assert (tmp_path / "static-6" / "index.html").is_file()


def _stp(*words):
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == 0, f"{words}: {result.output[-600:]} {result.exception!r}"
    return result.output


def test_scripts_of_the_documents_say_what_they_take():
    """A script that is named with options knows them; each says so in its help."""
    asked = {}
    for _, words in LINES:
        if words[0] == "python":
            options = {word.split("=")[0] for word in words[2:] if word.startswith("--")}
            asked.setdefault(words[1], set()).update(options)
    for script, options in asked.items():
        if options:
            done = subprocess.run(
                [sys.executable, ROOT / script, "--help"],
                capture_output=True,
                text=True,
                check=True,
            )
            assert all(option in done.stdout for option in options), script
