"""References that no answer can equal are read, or refused before anything runs."""

import json

import pytest

from data import Question, get_benchmark
from data.custom import final_answer
from data.errors import MisuseError
from stp.campaign.references import check_references
from stp.campaign.run import run_campaign


def question(reference, kind="math"):
    return Question(id="q-1", prompt="What?", reference=reference, answer_kind=kind)


READ = {
    "Natalia sold 24.\nAltogether 72.\n#### 72": "72",
    "#### 41": "41",
    "#### 1,234": "1,234",
    "Answer: 5": "5",
    "final answer: \\frac{1}{2}": "\\frac{1}{2}",
    "<answer>5</answer>": "5",
    "Some thought. <answer> x=5 </answer>": "x=5",
}


@pytest.mark.parametrize(("text", "answer"), READ.items())
def test_forms_in_wide_use_are_read(text, answer):
    assert final_answer(text) == answer
    check_references("own", [question(answer)])


@pytest.mark.parametrize(
    "reference",
    [
        "Therefore $x=5$.",
        "5 (five)",
        "Ans: 5",
        "A: 5",
        "We get 5",
        "It is 5 because 2+3 = 5",
        "First 3.\nThen 5.",
        "#### 41",
        "<answer>5</answer>",
        "Answer: 5, 6",
        "???",
        "{",
        "\\frac{",
        "The train that left first arrives after the other one, since it is slower and stops twice",
    ],
)
def test_texts_are_refused(reference):
    good = Question(id="q-0", prompt="What?", reference="5", answer_kind="math")
    with pytest.raises(MisuseError, match=r"own: no answer can equal .* of question 'q-1'"):
        check_references("own", [good, question(reference)])


@pytest.mark.parametrize(
    "reference",
    [
        "5",
        "-1/2",
        "1,234",
        "5%",
        "12 cm",
        "$5$",
        "\\boxed{5}",
        "x=5",
        "x=5 or x=6",
        "5, 6",
        "(3, \\frac{\\pi}{2})",
        "[1, 2)",
        "5x - 7y + 11z + 4 = 0",
        "\\text{June 20}",
        "June 20",
        "3:45 PM",
        "Group 2A",
        "\\text{(C)}",
        "John and Mary",
        "east",
        "p - q",
        "f(x) = 2x + 3",
        "\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}",
        "10^{-4}",
        "\\$18.90",
        "6 - 5i",
    ],
)
def test_answers_are_taken(reference):
    check_references("own", [question(reference)])


@pytest.mark.parametrize(
    ("reference", "kind", "message"),
    [
        (
            '{"fn_name": "f", "inputs": ["1"], "outputs": ["x"]}',
            "code",
            "output 1 of .* is not JSON",
        ),
        ("{}", "reasoning_gym", "no reference of a Reasoning Gym question"),
        (" ", "judged", "the reference is empty"),
    ],
)
def test_references_of_another_form_are_refused(reference, kind, message):
    with pytest.raises(MisuseError, match=f"own: question q-1: .*{message}"):
        check_references("own", [question("5"), question(reference, kind)])


@pytest.mark.parametrize("name", ["demo", "aime2024", "gsm8k", "math500"])
def test_benchmarks_of_this_project_are_taken(name):
    benchmark = get_benchmark(name)
    try:
        questions = benchmark.load()
    except MisuseError as error:
        pytest.skip(f"its questions are not here: {error}")
    check_references(name, questions)


def test_a_campaign_is_refused_before_it_is_begun(configure, opener, tmp_path):
    path = tmp_path / "own.toml"
    rows = [{"question": "2 + 3?", "answer": "5"}, {"question": "1 + 1?", "answer": "2 (two)"}]
    (tmp_path / "own.jsonl").write_text("\n".join(map(json.dumps, rows)))
    path.write_text('path = "own.jsonl"\nanswer_kind = "math"\n')
    with pytest.raises(MisuseError, match=r"'2 \(two\)' of question 'own-2'"):
        run_campaign(configure(benchmark=path), tmp_path / "campaign", open_model=opener)
    assert not opener.engines
    assert not (tmp_path / "campaign" / "manifest.json").exists()


@pytest.mark.parametrize(
    "sampling", ["temperature = 0.0", "temperature = 0.000001", "top_k = 1", "top_p = 0.0000001"]
)
def test_copies_are_no_samples(configure, opener, tmp_path, sampling):
    extra = f"[sampling]\n{sampling}\n"
    with pytest.raises(MisuseError, match=r"copies, and generation\.trajectories = 3 and"):
        run_campaign(configure(extra), tmp_path / "campaign", open_model=opener)
    with pytest.raises(MisuseError, match=r"copies, and probing\.probes = 4 would"):
        run_campaign(
            configure(extra, trajectories=1, unit_trajectories=1),
            tmp_path / "campaign",
            open_model=opener,
        )
    one = configure(extra, trajectories=1, unit_trajectories=1, probes=1)
    assert run_campaign(one, tmp_path / "campaign", open_model=opener).finished


def test_a_refused_campaign_leaves_no_folder(configure, opener, tmp_path):
    extra = "[sampling]\ntemperature = 0.0\n"
    with pytest.raises(MisuseError, match="copies"):
        run_campaign(configure(extra), tmp_path / "new" / "campaign", open_model=opener)
    assert not (tmp_path / "new" / "campaign").exists()
    (tmp_path / "there").mkdir()
    with pytest.raises(MisuseError, match="copies"):
        run_campaign(configure(extra), tmp_path / "there", open_model=opener)
    assert (tmp_path / "there").is_dir()
