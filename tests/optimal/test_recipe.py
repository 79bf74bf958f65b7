"""The recipe of OvT-General: parsing, checks, filtering, refill, and going on after a stop."""

import json
import re

import pytest

from data.errors import EngineError, MisuseError, StoreMismatchError
from data.optimal.general import GeneralQuestion, load_general
from evaluator.answers import Checker
from evaluator.optimal.building import build
from evaluator.optimal.card import DROPPED_FILE, STATISTICS_FILE
from evaluator.optimal.formats import SeenQuestions, parse_reply
from evaluator.optimal.recipe import Recipe
from stp.asking.function import CallableResponder


def parsed(kind, *objects, options=4, text=None):
    reply = json.dumps(list(objects)) if text is None else text
    return parse_reply(reply, prefix="p", domain="Mechanics", answer_type=kind, options=options)


def reason(kind, *objects, **named):
    (dropped,) = parsed(kind, *objects, **named).dropped
    return dropped.reason


NUMERIC = {"question": "How many wheels has a bicycle?", "answer": "2"}
CHOICE = {
    "question": "Which unit measures force?",
    "options": ["Newton", "Joule", "Watt", "Pascal"],
    "answer": "Newton",
}


def test_a_good_question_of_each_type_passes():
    short = {"question": "What is the capital of France?", "answer": "Paris"}
    longer = {"question": "Why does ice float?", "answer": "Ice is less dense than water."}
    for kind, values in (
        ("numeric", NUMERIC),
        ("choice", CHOICE),
        ("short", short),
        ("open", longer),
    ):
        found = parsed(kind, values)
        assert not found.dropped
        assert found.candidates[0].id == "p-1"
    assert parsed("numeric", {**NUMERIC, "answer": 2}).candidates[0].answer == "2"


def test_lists_in_fences_after_prose_or_cut_at_their_end_are_read():
    fence = "Here you are:\n```json\n" + json.dumps([NUMERIC, NUMERIC]) + "\n```\nEnjoy {them}"
    assert len(parsed("numeric", text=fence).candidates) == 2
    cut = json.dumps([NUMERIC, NUMERIC])[:-20]
    assert len(parsed("numeric", text=cut).candidates) == 1
    assert "no JSON object" in reason("numeric", text="I cannot do that.")
    assert "no JSON object" in reason("numeric", text="{" * 5000)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("numeric", {"answer": "two"}, "not a number in digits"),
        ("numeric", {"answer": "2 wheels"}, "not a number in digits"),
        ("numeric", {"answer": None}, "must be a text"),
        ("numeric", {"question": "?"}, "characters"),
        ("numeric", {"question": "What does the figure above show?"}, "not there"),
        ("numeric", {"answer": " "}, "empty"),
        ("choice", {"options": ["Newton", "Joule", "Watt"]}, "3 options; 4 were asked for"),
        ("choice", {"options": ["Newton", "newton", "Watt", "Volt"]}, "the same"),
        ("choice", {"options": ["Newton", "Joule", "Watt", "All of the above"]}, "other options"),
        ("choice", {"options": ["Newton", "Joule", "Watt", ""]}, "empty"),
        ("choice", {"options": "Newton"}, "list of options"),
        ("choice", {"answer": "Volt"}, "not exactly one"),
        ("short", {"answer": "one two three four five six"}, "6 words"),
        ("short", {"answer": "Bicycle"}, "holds its answer"),
        ("open", {"answer": "Because."}, "1 words"),
        ("open", {"answer": "word " * 41}, "41 words"),
    ],
)
def test_format_checks(kind, change, message):
    base = CHOICE if kind == "choice" else NUMERIC
    assert message in reason(kind, {**base, **change})


def test_the_right_option_may_be_named_by_letter_and_does_not_stand_first():
    lettered = {**CHOICE, "answer": "B", "options": ["A. Joule", "B. Newton", "C. W", "D. V"]}
    found = parsed("choice", lettered).candidates[0]
    assert found.answer == "Newton"
    assert sorted(found.options) == ["Joule", "Newton", "V", "W"]
    places = {
        parse_reply(
            json.dumps([CHOICE]), prefix=f"p{i}", domain="d", answer_type="choice", options=4
        )
        .candidates[0]
        .options.index("Newton")
        for i in range(30)
    }
    assert places == {0, 1, 2, 3}


def candidate(name, question, answer):
    return GeneralQuestion(
        id=name, domain="d", answer_type="short", question=question, answer=answer
    )


def test_repeated_questions_are_found_and_others_are_not():
    seen = SeenQuestions()
    one = "What is the capital city of the country of France in western Europe today?"
    assert seen.repeated(candidate("a", one, "Paris")) is None
    assert seen.repeated(candidate("b", one.upper(), "Paris")) == "a"
    nearly = one.replace("today?", "now?")
    assert seen.repeated(candidate("c", nearly, "Paris")) == "a"
    # The same words around another answer are another question.
    assert seen.repeated(candidate("d", one.replace("France", "Spain"), "Madrid")) is None


STAGES = ("answers", "judge")


class World:
    """A generator, an answerer and a judge that know a few things; they count their calls."""

    def __init__(self, *, shaky=(), fail_after=None):
        self.asked = {"generator": 0, "answerer": 0, "judge": 0}
        self.shaky = shaky
        self.fail_after = fail_after
        self.prompts = []

    def generator(self, prompt):
        self.asked["generator"] += 1
        self.prompts.append(prompt)
        if self.fail_after is not None and self.asked["generator"] > self.fail_after:
            raise RuntimeError("the machine was switched off")
        domain = re.search(r"Subject: (.*)", prompt).group(1)
        wanted = int(re.search(r"Write (\d+)", prompt).group(1))
        start = prompt.count("\n- How many things")
        if "a single number" in prompt:
            return json.dumps(
                [
                    {"question": f"How many things are in {domain} lot {start + i}?", "answer": i}
                    for i in range(wanted)
                ]
            )
        return json.dumps(
            [{"question": f"Who leads the {domain} team {i}?", "answer": "Ada"} for i in range(9)]
        )

    def answerer(self, prompt):
        self.asked["answerer"] += 1
        number = re.search(r"lot (\d+)\?", prompt)
        if number is None:
            return "It is \\boxed{Ada Lovelace}"
        if number.group(1) in self.shaky and self.asked["answerer"] % 3 == 0:
            return "\\boxed{77}"
        return f"\\boxed{{{int(number.group(1)) % 2}}}"

    def judge(self, prompt):
        self.asked["judge"] += 1
        return "Verdict: yes" if "Ada Lovelace" in prompt else "Verdict: no"

    def build(self, recipe, folder):
        with Checker() as checker:
            return build(
                recipe,
                folder,
                generator=CallableResponder(self.generator, name="generator"),
                answerer=CallableResponder(self.answerer, name="answerer"),
                judge=CallableResponder(self.judge, name="judge"),
                checker=checker,
            )


def recipe(**changes):
    values = {
        "domains": ("Mechanics", "History"),
        "answer_types": ("numeric", "short"),
        "per_pair": 2,
        "k": 3,
        "rounds": 3,
    }
    return Recipe(**{**values, **changes})


def test_only_questions_on_which_all_answers_agree_stay(tmp_path):
    world = World(shaky=("1",))
    built = world.build(recipe(rounds=1), tmp_path)
    ids = [question.id for question in built.questions]
    assert "mechanics-numeric-r1-1" in ids
    assert "mechanics-numeric-r1-2" not in ids
    lost = [item for item in built.dropped if item.id == "mechanics-numeric-r1-2"]
    assert lost[0].stage == "answers"
    assert re.match(r"\d of 3 answers agree", lost[0].reason)
    # Numbers are decided by rule; the judge saw words only.
    assert built.by_rule >= 12
    assert world.asked["judge"] == built.by_judge or world.asked["judge"] > 0


def test_a_judge_that_says_nothing_is_no_answer_that_differs(tmp_path, monkeypatch):
    world = World(shaky=("1",))
    monkeypatch.setattr(world, "judge", lambda prompt: "I would rather not say.")
    built = world.build(recipe(rounds=1), tmp_path)
    by_stage = {stage: [d for d in built.dropped if d.stage == stage] for stage in STAGES}
    # Numbers are decided by rule: one differs in each domain; words wait for the judge.
    assert {d.answer_type for d in by_stage["answers"]} == {"numeric"}
    assert {d.answer_type for d in by_stage["judge"]} == {"short"}
    assert by_stage["judge"][0].reason == (
        "the judge gave no verdict on 3 of 3 answers; the others agree"
    )
    counts = json.loads((tmp_path / STATISTICS_FILE).read_text())
    assert counts["dropped"]["judge"] == len(by_stage["judge"]) > 0
    assert counts["judge_agreement"]["undecided"] == counts["answers_decided_by_judge"] > 0
    assert f"| judge | {len(by_stage['judge'])} |" in (tmp_path / "README.md").read_text()


def test_an_answer_that_differs_counts_before_a_judge_that_says_nothing(tmp_path):
    world = World()
    said = iter(["Verdict: no", *["Who knows?"] * 1000])
    world.judge = lambda prompt: next(said)
    built = world.build(recipe(rounds=1, domains=("History",)), tmp_path)
    reasons = {d.id: (d.stage, d.reason) for d in built.dropped if d.answer_type == "short"}
    assert [stage for stage, _ in reasons.values()].count("answers") == 1
    assert ("answers", "0 of 3 answers agree with the reference") in reasons.values()


def test_what_was_dropped_is_filled_up_and_known_questions_are_named(tmp_path):
    world = World(shaky=("1",))
    built = world.build(recipe(), tmp_path)
    numeric = [q for q in built.questions if q.answer_type == "numeric"]
    assert len(numeric) == 4
    assert built.rounds > 1
    assert any("Do not ask these again" in prompt for prompt in world.prompts)
    assert {q.provenance["round"] for q in numeric} > {1}


def test_the_data_set_has_provenance_statistics_and_a_card(tmp_path):
    built = World().build(recipe(), tmp_path)
    again = load_general(str(tmp_path))
    assert again == list(built.questions)
    provenance = again[0].provenance
    assert provenance["generator"] == "generator"
    assert provenance["agreeing"] == provenance["answers"] == 3
    assert len(provenance["prompt_sha256"]) == 64
    counts = json.loads((tmp_path / STATISTICS_FILE).read_text())
    assert counts["questions"] == len(again) == 8
    assert counts["by_answer_type"] == {"numeric": 4, "short": 4}
    card = (tmp_path / "README.md").read_text()
    assert card.startswith("---\n")
    assert "8 questions in 2 domains" in card
    for line in (tmp_path / DROPPED_FILE).read_text().splitlines():
        assert json.loads(line)["reason"]


def test_a_build_that_was_stopped_goes_on_and_gives_the_same(tmp_path):
    whole = World().build(recipe(), tmp_path / "whole")
    broken = World(fail_after=2)
    with pytest.raises(EngineError, match="switched off"):
        broken.build(recipe(), tmp_path / "stopped")
    resumed = World()
    built = resumed.build(recipe(), tmp_path / "stopped")
    assert built.questions == whole.questions
    names = ("questions.jsonl", "dropped.jsonl")
    for name in names:
        assert (tmp_path / "stopped" / name).read_bytes() == (
            tmp_path / "whole" / name
        ).read_bytes()
    assert resumed.asked["generator"] == 2
    done = World()
    done.build(recipe(), tmp_path / "stopped")
    assert done.asked == {"generator": 0, "answerer": 0, "judge": 0}


def test_another_recipe_in_the_same_folder_is_refused_but_more_rounds_are_not(tmp_path):
    World().build(recipe(rounds=1), tmp_path)
    World().build(recipe(rounds=2), tmp_path)
    with pytest.raises(StoreMismatchError, match="k is 3 in the folder and 4 now"):
        World().build(recipe(k=4), tmp_path)


def test_another_model_in_the_same_folder_is_refused_before_it_is_asked(tmp_path):
    World().build(recipe(rounds=1), tmp_path)
    other = World()
    with (
        Checker() as checker,
        pytest.raises(StoreMismatchError, match=r'answerer\.model is "answerer" in the folder'),
    ):
        build(
            recipe(rounds=2),
            tmp_path,
            generator=CallableResponder(other.generator, name="generator"),
            answerer=CallableResponder(other.answerer, name="another"),
            judge=CallableResponder(other.judge, name="judge"),
            checker=checker,
        )
    assert other.asked == {"generator": 0, "answerer": 0, "judge": 0}


def test_choices_take_their_numbers_of_options_in_turn():
    whole = recipe(domains=tuple(f"d{i}" for i in range(11)))
    assert [whole.options_of(f"d{i}") for i in range(11)] == [4, 5, 6, 7, 8, 9, 10, 11, 12, 4, 5]
    assert len(Recipe().pairs()) == 288


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 0}, "k must be"),
        ({"domains": ()}, "domains"),
        ({"answer_types": ("essay",)}, "no answer type 'essay'"),
        ({"options": (3,)}, "3 options"),
    ],
)
def test_recipes_that_cannot_be_are_one_line(change, message):
    with pytest.raises(MisuseError, match=message):
        recipe(**change)


def test_a_folder_of_something_else_is_refused_and_one_just_locked_is_not(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "plan.json").write_text("{}")
    world = World()
    with pytest.raises(
        MisuseError, match=r"not empty \(it holds plan\.json\); choose a new folder"
    ):
        world.build(recipe(), other)
    assert not any(world.asked.values())
    assert [path.name for path in other.iterdir()] == ["plan.json"]
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "run.lock").touch()
    assert world.build(recipe(rounds=1), tmp_path / "begun").questions
