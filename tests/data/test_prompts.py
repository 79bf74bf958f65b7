"""Wordings: named, versioned, checked, and put where our own words were."""

import hashlib
import json
from string import Template

import pytest

from data import get_benchmark
from data.benchmark import MATH_INSTRUCTION
from data.errors import ConfigError, MisuseError
from data.prompts import OWN_VERSION, Prompts, load_prompts, own_texts
from data.tasks import get_task, task_names

DIGESTS = {"1": "a225ff9026429a24"}


def test_another_text_of_ours_needs_another_version():
    digest = hashlib.sha256(json.dumps(sorted(own_texts().items())).encode()).hexdigest()[:16]
    assert DIGESTS.get(OWN_VERSION) == digest, "a text changed: raise data.prompts.OWN_VERSION"
    assert Prompts().record() == {"name": "own", "version": OWN_VERSION, "replaced": []}


def write(tmp_path, text):
    path = tmp_path / "published.toml"
    path.write_text(text)
    return path


def test_a_file_replaces_what_it_names(tmp_path):
    path = write(
        tmp_path,
        'name = "theirs"\n[prompts]\nmath = "Box it, for $5."\nrouter = "$question?"\n'
        '[questions]\nsum = "Add $numbers"\ndivision = "$a over $b"\n',
    )
    prompts = load_prompts(path)
    assert prompts.instruction(MATH_INSTRUCTION) == "Box it, for $5."
    assert prompts.instruction("A benchmark of somebody.") == "A benchmark of somebody."
    assert prompts.text("choice") == own_texts()["choice"]
    assert prompts.worded(get_task("sum")).ask((3, -1)) == "Add [3, -1]"
    assert prompts.worded(get_task("division")).ask((3, -1)) == "3 over -1"
    assert prompts.worded(get_task("mean")) is get_task("mean")
    record = prompts.record()
    assert record["name"] == "theirs"
    assert record["replaced"] == ["math", "questions.division", "questions.sum", "router"]
    assert len(record["version"]) == 12
    other = load_prompts(write(tmp_path, 'name = "theirs"\n[prompts]\nmath = "Box it."\n'))
    assert other.version != prompts.version
    # The name alone is a wording of its own too.
    assert load_prompts(write(tmp_path, "")).record()["name"] == "published"


def test_every_benchmark_of_ours_is_asked_in_words_that_have_a_name():
    known = set(own_texts().values())
    for name in ("math500", "gpqa_diamond", "livecodebench", "think-sum", "ovt-general-open"):
        assert get_benchmark(name).instruction in known


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[prompts]\nmaths = 'x'", "no prompt 'maths'; did you mean 'math'"),
        ("[questions]\nsums = '$numbers'", "no task 'sums'"),
        ("[prompt]\nmath = 'x'", "unknown key 'prompt'"),
        ("[prompts]\nmath = ' '", "math is ' '; it must be a text"),
        ("[prompts]\nmath = 3", "math is 3; it must be a text"),
        ("[prompts]\nrouter = 'simple?'", r"router lacks \$question"),
        ("[prompts]\nrouter = '$question $model'", r"router has \$model; there is \$question"),
        ("[prompts]\nrouter = '$question costs 5$'", r"router holds a \$ that is not a name"),
        ("[questions]\nsum = 'Add'", r"sum lacks \$numbers"),
        ("[questions]\nsum = '$numbers $a'", r"sum has \$a; there is \$numbers"),
        ("[questions]\ndivision = 'over $b'", r"division lacks \$a"),
        ("name = 'own'\n[prompts]\nmath = 'x'", "which names our own texts"),
        ("name = ''", "it must be a text"),
        ("[prompts", "not valid TOML"),
    ],
)
def test_a_bad_file_is_one_clear_line(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        load_prompts(write(tmp_path, text))
    assert "\n" not in str(caught.value)
    assert "published.toml" in str(caught.value)


def test_a_file_that_is_not_there():
    with pytest.raises(MisuseError, match=r"nowhere.toml cannot be read: No such file"):
        load_prompts("nowhere.toml")


def test_all_places_of_our_own_texts_are_known():
    for name in ("router", "judge", "generate", "format-choice"):
        assert Template(own_texts()[name]).is_valid()
        assert Template(own_texts()[name]).get_identifiers()
    assert set(task_names()) >= {"sum", "division"}
