"""A user's own benchmark: what works, and what every mistake says."""

import json

import pytest

from data import ConfigError, MisuseError, get_benchmark
from data.benchmark import MATH_INSTRUCTION
from tests.data.made import write_csv, write_jsonl, write_parquet

ROWS = [
    {"number": 1, "text": "2 + 2?", "gold": "4", "note": None},
    {"number": 2, "text": "3 + 3?", "gold": 6, "note": "x"},
]
TEXT_ROWS = [{**row, "gold": str(row["gold"])} for row in ROWS]

TOML = """
path = "questions.jsonl"
answer_kind = "math"
group = "Lab"
licence = "CC-BY-4.0"
expected_count = 2

[columns]
id = "number"
question = "text"
answer = "gold"
"""


def described(tmp_path, toml=TOML, rows=ROWS):
    write_jsonl(tmp_path / "questions.jsonl", rows)
    path = tmp_path / "lab.toml"
    path.write_text(toml, encoding="utf-8")
    return str(path)


def test_a_described_file_is_a_benchmark(tmp_path):
    benchmark = get_benchmark(described(tmp_path))
    questions = benchmark.load()
    assert (benchmark.name, benchmark.group, benchmark.instruction) == (
        "lab",
        "Lab",
        MATH_INSTRUCTION,
    )
    assert [(q.id, q.prompt, q.reference) for q in questions] == [
        ("1", "2 + 2?", "4"),
        ("2", "3 + 3?", "6"),
    ]
    assert benchmark.source.licence == "CC-BY-4.0"
    assert benchmark.load(limit=1) == questions[:1]


@pytest.mark.parametrize("write, ending", [(write_parquet, "parquet"), (write_csv, "csv")])
def test_other_file_kinds_give_the_same_questions(tmp_path, write, ending):
    expected = get_benchmark(described(tmp_path)).load()
    write(tmp_path / f"questions.{ending}", TEXT_ROWS)
    path = described(tmp_path, TOML.replace("questions.jsonl", f"questions.{ending}"))
    assert get_benchmark(path).load() == expected


def test_an_instruction_of_ones_own(tmp_path):
    path = described(tmp_path, 'instruction = "Say it."\nname = "mine"\n' + TOML)
    assert get_benchmark(path).instruction == "Say it."
    assert get_benchmark(path).name == "mine"


def test_a_generated_task_is_an_answer_kind(tmp_path):
    path = described(tmp_path, TOML.replace('"math"', '"sum"'))
    assert {q.answer_kind for q in get_benchmark(path).load()} == {"sum"}


@pytest.mark.parametrize(
    "toml, message",
    [
        ("colour = 1\n" + TOML, "unknown key 'colour'; known are name, path"),
        (TOML + 'reference = "gold"\n', "unknown key 'reference'; known are id, question"),
        (TOML.replace('path = "questions.jsonl"', ""), "the key 'path' is missing"),
        (
            TOML.replace("path", "paht", 1),
            "unknown key 'paht'; did you mean 'path'? Known are name",
        ),
        (TOML.replace('answer_kind = "math"', ""), "the key 'answer_kind' is missing"),
        (TOML.replace('"math"', '"maths"'), "unknown answer_kind 'maths'; known are math, choice"),
        (TOML.replace("= 2", '= "two"'), "'expected_count' must be int, not 'two'"),
        (TOML.replace("= 2", "= true"), "'expected_count' must be int, not True"),
        (TOML.replace('"number"', "3"), "'id' must be str, not 3"),
        (TOML + 'choices = "options"\n', "goes with answer_kind 'choice'"),
        (TOML.replace('"math"', '"choice"'), "goes with answer_kind 'choice'"),
        ('answer_form = "number"\n' + TOML, "answer_form 'number'; expected one of letter"),
        ("columns = 3", "'columns' must be a table"),
        ("this is no toml", "not a TOML file"),
    ],
)
def test_a_wrong_description_is_refused_by_name(tmp_path, toml, message):
    with pytest.raises(ConfigError) as caught:
        get_benchmark(described(tmp_path, toml))
    assert message in str(caught.value)
    assert "lab.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_description_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"absent\.toml: no such file"):
        get_benchmark(str(tmp_path / "absent.toml"))


@pytest.mark.parametrize(
    "rows, message",
    [
        (
            [{**ROWS[0], "number": 1}, {**ROWS[1], "number": 1}],
            "row 2: the id '1' is that of row 1",
        ),
        ([ROWS[0], {**ROWS[1], "gold": "  "}], "row 2: column 'gold' is empty"),
        ([ROWS[0], {**ROWS[1], "gold": None}], "row 2: column 'gold' is empty"),
        ([ROWS[0], {**ROWS[1], "text": ""}], "row 2: column 'text' is empty"),
        (
            [ROWS[0], {"number": 2, "text": "3 + 3?", "answer": "6"}],
            "row 2: no column 'gold'; there are 'number', 'text', 'answer'",
        ),
        ([ROWS[0], {**ROWS[1], "gold": ["6"]}], "row 2: column 'gold' holds a list, not text"),
        ([ROWS[0]], "1 questions, and 2 are expected"),
        ([], "no questions"),
    ],
)
def test_a_wrong_row_is_refused_with_its_number(tmp_path, rows, message):
    with pytest.raises(MisuseError) as caught:
        get_benchmark(described(tmp_path, rows=rows)).load()
    assert message in str(caught.value)
    assert "questions.jsonl" in str(caught.value)


def test_a_missing_question_file_is_named(tmp_path):
    path = described(tmp_path, TOML.replace("questions.jsonl", "absent.jsonl"))
    assert get_benchmark(path).source.available(None) == ""
    with pytest.raises(MisuseError, match=r"absent\.jsonl: no such file"):
        get_benchmark(path).load()


CHOICE_TOML = """
path = "questions.jsonl"
answer_kind = "choice"
answer_form = "{form}"

[columns]
choices = {columns}
"""


@pytest.mark.parametrize(
    "form, columns, row",
    [
        ("letter", '"options"', {"answer": "b", "options": ["four", "five"]}),
        ("index", '"options"', {"answer": 1, "options": ["four", "five"]}),
        ("text", '"options"', {"answer": "five", "options": ["four", "five"]}),
        ("letter", '["first", "second"]', {"answer": "B", "first": "four", "second": "five"}),
    ],
)
def test_choices_in_every_form(tmp_path, form, columns, row):
    toml = CHOICE_TOML.format(form=form, columns=columns)
    path = described(tmp_path, toml, [{"question": "2 + 3?", **row}])
    (question,) = get_benchmark(path).load()
    assert question.id == "lab-1"
    assert (question.reference, question.choices) == ("B", ("four", "five"))
    assert question.prompt == "2 + 3?\n\nA. four\nB. five"


@pytest.mark.parametrize(
    "form, row, message",
    [
        ("letter", {"answer": "C", "options": ["four", "five"]}, "'C' is not a letter from A to B"),
        ("letter", {"answer": "AB", "options": ["four", "five"]}, "'AB' is not a letter"),
        ("index", {"answer": 2, "options": ["four", "five"]}, "'2' is not a place from 0 to 1"),
        ("text", {"answer": "six", "options": ["four", "five"]}, "'six' is not exactly one option"),
        ("letter", {"answer": "A", "options": ["four"]}, "1 options"),
        ("letter", {"answer": "A", "options": ["four", " "]}, "an option is empty"),
        ("letter", {"answer": "A", "options": ["four", "four"]}, "stands there twice"),
        ("letter", {"answer": "A", "options": "four"}, "must hold a list"),
        ("letter", {"answer": "A"}, "no column 'options'"),
    ],
)
def test_wrong_choices_are_refused_with_the_row(tmp_path, form, row, message):
    toml = CHOICE_TOML.format(form=form, columns='"options"')
    path = described(tmp_path, toml, [{"question": "2 + 3?", **row}])
    with pytest.raises(MisuseError) as caught:
        get_benchmark(path).load()
    assert message in str(caught.value)
    assert "row 1" in str(caught.value)


def test_a_folder_instead_of_a_description_is_one_clear_error(tmp_path):
    (tmp_path / "lab.toml").mkdir()
    with pytest.raises(ConfigError, match=r"lab\.toml: cannot be read"):
        get_benchmark(str(tmp_path / "lab.toml"))


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "a\nb", "a\x00b", "x" * 81, "\u2603" * 30]
)
def test_a_name_that_no_folder_can_have_is_refused(tmp_path, name):
    written = json.dumps(name)
    with pytest.raises(ConfigError, match="cannot be a folder's"):
        get_benchmark(described(tmp_path, f"name = {written}\n{TOML}"))


@pytest.mark.parametrize("name", ["lab", "a/b", "Lab 2.0 (ours)", "\u2603"])
def test_names_that_can_be_written_as_a_folders_are_taken(tmp_path, name):
    assert get_benchmark(described(tmp_path, f"name = {json.dumps(name)}\n{TOML}")).name == name


@pytest.mark.parametrize("column", ["number", "text", "gold"])
def test_half_a_character_is_refused_with_its_place(tmp_path, column):
    rows = [ROWS[0], {**TEXT_ROWS[1], column: "ab\ud800c"}]
    path = described(tmp_path)
    # JSON's escapes can spell it; UTF-8 cannot.
    (tmp_path / "questions.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    with pytest.raises(MisuseError, match=r"row 2: half a character \(\\ud800\) at 2") as caught:
        get_benchmark(path).load()
    str(caught.value).encode()


def test_a_description_nested_without_end_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match="not a TOML file"):
        get_benchmark(described(tmp_path, "a=" + "[" * 5000))


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ("3", "must be a JSON object"),
        ('{"fn_name": "f", "inputs": ["1"], "outputs": ["yes"]}', "is not JSON: 'yes'"),
        ('{"fn_name": "f", "inputs": ["x"], "outputs": ["1"]}', "input 1 of function f is not"),
        (
            '{"fn_name": null, "inputs": ["1"], "outputs": ["1"], "time_limit_seconds": 1e400}',
            "time_limit_seconds is inf",
        ),
    ],
)
def test_tests_that_no_program_could_pass_are_refused_with_file_and_row(tmp_path, gold, message):
    good = json.dumps({"fn_name": None, "inputs": ["1"], "outputs": ["1"]})
    rows = [{**TEXT_ROWS[0], "gold": good}, {**TEXT_ROWS[1], "gold": gold}]
    path = described(tmp_path, TOML.replace('"math"', '"code"'), rows)
    with pytest.raises(MisuseError, match=r"questions\.jsonl, row 2: code tests: ") as caught:
        get_benchmark(path).load()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
