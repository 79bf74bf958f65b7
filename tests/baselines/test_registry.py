"""Methods by name, by entry point, and from a file."""

import sys

import pytest

from baselines import Router, find_method, method_names
from baselines.registry import BUILT_IN
from baselines.signals import SIGNALS
from data.errors import MisuseError
from oracle import STRATEGIES

FILE = '''
from dataclasses import dataclass

from baselines import EarlyExit


@dataclass
class Calm(EarlyExit):
    """Stop when the next token is certain."""

    least: float = 0.5

    name = "calm"
    needs = ("entropy",)
    grid = (0.1, 1.0)

    def score(self, prefix):
        return -prefix["entropy"][-1]


class Nothing:
    pass
'''


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "calm.py"
    path.write_text(FILE)
    return path


def test_every_method_of_this_project_says_what_it_is():
    assert set(BUILT_IN) <= set(method_names())
    for name in BUILT_IN:
        source = find_method(name)
        method = source.method
        assert method.name == name
        assert method.strategy in STRATEGIES
        assert set(method.needs) <= set(SIGNALS)
        assert method.__doc__
        module = sys.modules[method.__module__]
        assert method.trivial or "arXiv" in (module.__doc__ or "")
        assert method.trivial or "Departures." in (module.__doc__ or "")
        made = source.make()
        assert len(set(map(str, made.settings()))) == len(made.settings()) > 0
        assert source.make(made.hyperparameters()).hyperparameters() == made.hyperparameters()


def test_a_file_gives_a_method_with_its_digest(file):
    source = find_method(f"{file}:Calm")
    assert source.method.name == "calm"
    assert source.origin.startswith("calm.py sha256:")
    assert source.make({"least": 0.7}).hyperparameters() == {"least": 0.7}
    with pytest.raises(MisuseError, match=r"calm\.py:Calm: no hyperparameter 'most'; it has least"):
        source.make({"most": 1})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("no_such", "there is no method 'no_such'; there are think_switcher"),
        ("gone.py:Calm", "cannot read gone.py"),
        ("calm.py", "name its class too, as in calm.py:MyMethod"),
        ("{file}:Missing", "has no class Missing"),
        ("{file}:Nothing", "does not derive from baselines.Router"),
    ],
)
def test_what_is_no_method_is_refused(file, spec, message):
    with pytest.raises(MisuseError, match=message):
        find_method(spec.format(file=file))


def test_a_file_that_fails_is_its_authors(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("import no_such_module\n")
    with pytest.raises(MisuseError, match=r"ModuleNotFoundError in .*broken\.py: No module named"):
        find_method(f"{path}:X")


def test_unknown_signals_and_missing_names_are_refused(tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text(
        "from baselines import Router\n"
        "class A(Router):\n    name = 'a'\n    needs = ('magic',)\n"
        "class B(Router):\n    pass\n"
    )
    with pytest.raises(MisuseError, match="a: needs 'magic', which is not a signal; there are"):
        find_method(f"{path}:A")
    with pytest.raises(MisuseError, match="the class B has no name"):
        find_method(f"{path}:B")


def test_another_package_registers_a_method(tmp_path, monkeypatch):
    (tmp_path / "their_methods.py").write_text(
        "from baselines import Router\n"
        "class Theirs(Router):\n"
        "    name = 'theirs'\n"
        "    grid = (0.5,)\n"
        "    def score(self, question):\n"
        "        return question.lot\n"
    )
    info = tmp_path / "their_package-2.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 2.1\n")
    (info / "entry_points.txt").write_text("[stp.methods]\ntheirs = their_methods:Theirs\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "theirs" in method_names()
    source = find_method("theirs")
    assert issubclass(source.method, Router)
    assert source.origin == "their-package 2.1"
    (tmp_path / "their_methods.py").unlink()
    sys.modules.pop("their_methods")
    with pytest.raises(MisuseError, match="method theirs: its package cannot be imported"):
        find_method("theirs")


def test_a_hyperparameter_that_is_none_of_those_allowed_is_refused():
    source = find_method("deer")
    with pytest.raises(MisuseError, match=r"deer: mean is 'arithmetik'; it is one of 'geometric'"):
        source.make({"mean": "arithmetik"})
    with pytest.raises(MisuseError, match="deer: no hyperparameter 'meen'; it has mean"):
        source.make({"meen": "geometric"})
    with pytest.raises(MisuseError, match=r"no method 'deeer'; did you mean 'deer'\? There are"):
        find_method("deeer")
