"""Runs on the demo model, its judge behind a real server, and what is resumed and refused."""

import dataclasses
import json
import shutil
import threading

import pandas as pd
import pytest

from data import get_benchmark
from data.errors import EngineError, MisuseError, StoreError, StoreMismatchError
from data.prompts import Prompts
from evaluator.answers import Checker
from evaluator.optimal.grading import decide_by_rule, grade
from evaluator.optimal.judge import open_judge
from evaluator.optimal.methods import METHODS, check_methods, read_route
from evaluator.optimal.output import write_results
from evaluator.optimal.plan import OptimalPlan
from evaluator.optimal.results import make_results
from evaluator.optimal.running import items_of, requests_of, run
from evaluator.optimal.scores import score
from evaluator.optimal.selection import benchmark_names, select, task_names
from evaluator.optimal.stored import load_run, read_asked, response_file
from evaluator.optimal.subsets import load_items
from stp.asking import ResponseStore, Settings
from stp.asking.function import CallableResponder
from stp.asking.model_names import parse_model
from stp.asking.opening import open_responder
from tests.asking.server import serving


def plan(**changes):
    values = {
        "name": "demo",
        "subsets": ("ovt:demo", "ut:think-sum"),
        "methods": ("thinking", "no-thinking", "oracle-router"),
        "limit": 2,
        "seeds": 2,
        "settings": Settings(temperature=0.6, max_tokens=160, thinking_tokens=120),
    }
    return OptimalPlan(**{**values, **changes})


def ask(asked, folder, *, responder="demo", router=None):
    run(responder, folder, asked, router=router)


@pytest.fixture(scope="module")
def demo():
    with open_responder("demo") as responder:
        yield responder


@pytest.fixture(scope="module")
def whole(tmp_path_factory, demo):
    """A run of the demo model, graded."""
    folder = tmp_path_factory.mktemp("run")
    ask(plan(), folder, responder=demo)
    return folder, grade(folder)


def test_the_whole_way_on_the_demo_model(whole, tmp_path):
    folder, (rows, judging) = whole[0], (whole[1].rows, whole[1].judging)
    # Two modes of 4 questions and 2 seeds, and the oracle router's pick among them.
    assert len(rows) == 8 * 2 + 8
    assert judging.by_judge == judging.undecided == 0
    thinking = rows[rows["method"] == "thinking"]
    assert thinking["thinking_tokens"].gt(0).all()
    assert rows[rows["method"] == "no-thinking"]["thinking_tokens"].eq(0).all()
    again = load_run(folder)
    pd.testing.assert_frame_equal(again.rows, rows)
    assert again.judging == judging
    results = make_results([again], replicates=50)
    page = write_results(results, tmp_path / "report", title="demo <b>")
    text = page.read_text()
    assert "demo &lt;b&gt;" in text
    # Beside our own script, whose library's name spaces look like addresses; the policy holds.
    markup = text.rpartition("<script>")[0]
    assert markup.count("<script") == markup.count('<script type="application/json"') == 1
    assert "http://" not in markup.replace("http://www.w3.org", "")
    assert (tmp_path / "report" / "tables" / "scores.csv").exists()


def test_the_oracle_router_thinks_on_hard_questions_only(whole):
    rows = whole[1].rows
    routed = rows[rows["method"] == "oracle-router"]
    assert routed[routed["side"] == "ovt"]["thinking_tokens"].eq(0).all()
    assert routed[routed["side"] == "ut"]["thinking_tokens"].gt(0).all()
    scores = score(rows, replicates=0)
    by_method = {m: scores.values[i] for i, (_, m) in enumerate(scores.rows)}
    assert by_method["oracle-router"][3] == by_method["no-thinking"][3]
    assert by_method["oracle-router"][4] == by_method["thinking"][4]


def test_a_run_that_was_stopped_goes_on_and_gives_the_same(whole, tmp_path, demo):
    folder = whole[0]
    complete = ResponseStore(response_file(folder, "thinking")).read()
    lines = response_file(folder, "thinking").read_bytes().splitlines(keepends=True)
    stopped = tmp_path / "stopped"
    response_file(stopped, "thinking").parent.mkdir(parents=True)
    for name in ("run.json", "questions.jsonl"):
        shutil.copy(folder / name, stopped / name)
    # Three responses, and half of a line.
    response_file(stopped, "thinking").write_bytes(b"".join(lines[:3]) + lines[3][:40])
    ask(plan(), stopped, responder=demo)
    resumed = ResponseStore(response_file(stopped, "thinking")).read()
    assert resumed.keys() == complete.keys()
    for name, response in resumed.items():
        assert response.text == complete[name].text
        assert response.thinking_tokens == complete[name].thinking_tokens


def test_more_seeds_methods_and_subsets_add_to_what_is_there(tmp_path):
    asked = []

    def model(prompt):
        asked.append(prompt)
        return {"text": "\\boxed{1}", "thinking_tokens": 3}

    responder = CallableResponder(model, name="demo")
    small = plan(methods=("thinking",), seeds=1, subsets=("ut:think-sum",))
    ask(small, tmp_path, responder=responder)
    assert len(asked) == 2
    ask(small, tmp_path, responder=responder)
    assert len(asked) == 2
    ask(
        plan(methods=("thinking", "no-thinking"), seeds=2, subsets=("ut:think-sum", "ovt:demo")),
        tmp_path,
        responder=responder,
    )
    assert len(asked) == 16
    ask(small, tmp_path, responder=responder)
    assert len(asked) == 16
    assert read_asked(tmp_path)[1].seeds == 2
    with pytest.raises(StoreMismatchError, match="limit"):
        ask(dataclasses.replace(small, limit=1), tmp_path, responder=responder)


def test_seeds_are_the_same_in_every_mode_and_different_otherwise(tmp_path):
    asked = plan()
    requests = requests_of(items_of(asked, tmp_path), asked)
    assert len({r.seed for r in requests}) == len({r.id for r in requests}) == len(requests) == 8


def test_questions_are_kept_as_they_were_asked(tmp_path, monkeypatch):
    asked = plan(methods=("default",), seeds=1, subsets=("ovt-general",), general="sample")
    ask(asked, tmp_path, responder=CallableResponder(lambda prompt: "\\boxed{6}", name="m"))
    before = items_of(asked, tmp_path)

    def gone(*arguments, **named):
        raise AssertionError("the questions are there already")

    monkeypatch.setattr("evaluator.optimal.running.load_items", gone)
    assert items_of(asked, tmp_path) == before
    assert before == load_items(["ovt-general"], general="sample", limit=2)


def test_a_plan_that_cannot_be_leaves_nothing_behind(tmp_path):
    responder = CallableResponder(lambda prompt: "\\boxed{6}", name="m")
    for bad in ("ovt:nothing", "ovt-general"):
        with pytest.raises(MisuseError):
            ask(plan(subsets=(bad,)), tmp_path, responder=responder)
    ask(plan(methods=("default",), limit=1, seeds=1), tmp_path, responder=responder)
    assert read_asked(tmp_path)[1].subsets == ("ovt:demo", "ut:think-sum")


def test_a_size_that_cannot_be_leaves_a_run_as_it_was(tmp_path):
    responder = CallableResponder(lambda prompt: "\\boxed{6}", name="m")
    small = plan(methods=("default",), subsets=("ut:think-sum",), seeds=1)
    ask(small, tmp_path, responder=responder)
    grade(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.json*")}
    too_many = dataclasses.replace(small, seeds=10**9, subsets=("ut:think-sum", "ovt:demo"))
    with pytest.raises(MisuseError, match="4 questions and 1,000,000,000 seeds"):
        ask(too_many, tmp_path, responder=responder)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.json*")} == before
    assert len(load_run(tmp_path).rows) == 2


def test_a_run_goes_on_with_all_that_its_folder_asks(tmp_path):
    asked = []

    def model(prompt):
        asked.append(prompt)
        return "\\boxed{6}"

    responder = CallableResponder(model, name="m")
    small = plan(methods=("default",), subsets=("ut:think-sum",), seeds=1)
    ask(small, tmp_path, responder=responder)
    more = dataclasses.replace(small, seeds=2, subsets=("ovt:demo",))
    # Whoever scores needs a response to each of four questions and two seeds.
    ask(more, tmp_path, responder=responder)
    assert len(asked) == 8
    assert len(grade(tmp_path).rows) == 8


def test_one_failure_costs_one_response_and_is_no_wrong_answer(tmp_path):
    down = [True]

    def model(prompt):
        if down[0] and "7" in prompt:
            raise RuntimeError("connection reset")
        return "\\boxed{1}"

    asked = plan(methods=("default",), limit=6, seeds=1)
    with pytest.raises(EngineError, match="connection reset"):
        ask(asked, tmp_path, responder=CallableResponder(model, name="m"))
    with pytest.raises(MisuseError, match="responses are missing"):
        grade(tmp_path)
    rows = grade(tmp_path, allow_incomplete=True).rows
    assert 0 < len(rows) < 12
    down[0] = False
    ask(asked, tmp_path, responder=CallableResponder(model, name="m"))
    assert len(grade(tmp_path).rows) == 12
    # What a function does not say of its tokens is unknown.
    assert rows["thinking_tokens"].isna().all()


def general_plan(**changes):
    return plan(
        subsets=("ovt-general", "ut:think-sum"), general="sample", methods=("default",), seeds=1,
        **changes,
    )  # fmt: skip


def test_answers_in_words_need_a_judge_and_letters_and_numbers_do_not(tmp_path):
    references = {
        item.prompt_in(Prompts()): item.question
        for item in load_items(["ovt-general"], general="sample")
    }

    def model(prompt):
        question = references.get(prompt)
        if question is None:
            return "\\boxed{0}"
        if question.answer_kind == "judged":
            return f"\\boxed{{in other words, {question.reference}}}"
        return f"\\boxed{{{question.reference}}}"

    ask(general_plan(), tmp_path, responder=CallableResponder(model, name="m"))
    with pytest.raises(MisuseError, match="--judge MODEL"):
        grade(tmp_path)
    judge = CallableResponder(lambda prompt: "They agree. Verdict: yes", name="judge")
    graded = grade(tmp_path, judge=open_judge(judge, tmp_path), judge_name="judge")
    rows, judging = graded.rows, graded.judging
    assert judging.by_judge == 4
    assert judging.by_rule == 6
    by_type = rows.groupby("answer_type")["by_judge"].mean()
    assert by_type["numeric"] == by_type["choice"] == 0
    assert by_type["short"] == by_type["open"] == 1
    assert rows[rows["side"] == "ovt"]["right"].all()


def test_a_judge_behind_a_server_that_says_nothing_readable_leaves_answers_undecided(
    tmp_path, demo
):
    ask(
        general_plan(limit=1),
        tmp_path,
        responder=CallableResponder(lambda prompt: "\\boxed{something}", name="m"),
    )
    with serving(demo) as server:
        judge = open_responder(parse_model(f"demo@{server.url}"))
        # The demo model adds numbers; it cannot judge, and no verdict may be made of that.
        graded = grade(
            tmp_path,
            judge=open_judge(judge, tmp_path, max_tokens=12),
            judge_name="demo",
        )
        asked = len(server.bodies)
    rows, judging = graded.rows, graded.judging
    assert judging.undecided == judging.agreement.undecided > 0
    assert asked == judging.undecided * 4
    assert rows["right"].isna().sum() == judging.undecided
    with pytest.raises(MisuseError, match="have no verdict"):
        score(rows, replicates=0)
    kept = score(rows, replicates=0, allow_undecided=True)
    assert kept.undecided.sum() == judging.undecided


def test_a_model_behind_a_server_is_asked_as_a_local_one(tmp_path, demo):
    with serving(demo) as server:
        asked = plan(methods=("default",), seeds=1, limit=1)
        ask(asked, tmp_path, responder=parse_model(f"demo@{server.url}"))
        # Where a server listens makes it no other model.
        ask(asked, tmp_path, responder=parse_model("demo@http://127.0.0.1:9/v1"))
    rows = grade(tmp_path).rows
    assert len(rows) == 2
    assert rows["output_tokens"].notna().all()


def test_a_router_model_chooses_the_mode_and_what_it_cannot_sort_is_thought_about(tmp_path):
    def model(prompt, settings):
        thinks = settings.thinking == "on"
        return {"text": f"\\boxed{{{int(thinks)}}}", "thinking_tokens": 50 * thinks}

    def router(prompt):
        if "demo" in str(prompt) or "What is" in prompt:
            return "Route: simple"
        return "I would rather not."

    asked = plan(methods=("thinking", "no-thinking", "router"))
    ask(
        asked,
        tmp_path,
        responder=CallableResponder(model, name="m"),
        router=CallableResponder(router, name="r"),
    )
    graded = grade(tmp_path)
    rows, judging = graded.rows, graded.judging
    routed = rows[rows["method"] == "router"]
    assert len(routed) == 8
    simple = [i.key for i in items_of(asked, tmp_path) if "What is" in i.question.prompt]
    assert judging.unrouted == 4 - len(simple)
    tokens = routed.set_index("question")["thinking_tokens"]
    for item in items_of(asked, tmp_path):
        assert set(tokens.loc[item.key]) == {0 if item.key in simple else 50}


@pytest.mark.parametrize(
    ("reply", "route"),
    [
        ("Route: simple", False),
        ("**Route:** complex", True),
        ("Route: simple? No. Route: complex", True),
        ("complex", True),
        ("It is not that simple.", None),
        ("", None),
    ],
)
def test_routes_are_read_strictly(reply, route):
    assert read_route(reply) is route


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ((), "no method"),
        (("thinkng",), "no method 'thinkng'"),
        (("thinking", "thinking"), "twice"),
        (("thinking", "oracle-router"), "name both"),
    ],
)
def test_methods_that_cannot_be_are_one_line(methods, message):
    with pytest.raises(MisuseError, match=message):
        check_methods(methods)
    assert set(METHODS) > {"thinking", "router"}


def test_plans_are_read_back_as_they_were(tmp_path):
    written = plan(methods=("default",), size=1.5, general="sample")
    ask(written, tmp_path / "run", responder=CallableResponder(lambda prompt: "1", name="m"))
    assert read_asked(tmp_path / "run")[1] == written
    with pytest.raises(MisuseError, match="no run"):
        read_asked(tmp_path)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["asked"]["seeds"] == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("demo", ("demo", None)),
        ("smol@http://127.0.0.1:1/v1", ("smol", "http://127.0.0.1:1/v1")),
        ("owner@name/model", ("owner@name/model", None)),
    ],
)
def test_models_are_named_in_one_text(text, expected):
    spec = parse_model(text)
    assert (spec.model, spec.base_url) == expected


def test_models_that_cannot_be_read_are_one_line():
    spec = parse_model("x;family=none;threads=2;batch=3")
    assert (spec.family, spec.batch, spec.options) == ("none", 3, {"threads": 2})
    for text in ("", ";family=none", "x;family", "x;batch=many"):
        with pytest.raises(MisuseError):
            parse_model(text)


def test_rules_decide_numbers_and_letters_only_where_they_are_certain():
    items = {i.question.id: i for i in load_items(["ovt-general"], general="sample")}
    hexagon, force = items["sample-numeric-1"], items["sample-choice-1"]
    with Checker() as checker:
        assert decide_by_rule(hexagon, "\\boxed{6}", checker).right
        assert decide_by_rule(hexagon, "\\boxed{6 sides}", checker).right
        assert not decide_by_rule(hexagon, "\\boxed{5}", checker).right
        assert decide_by_rule(hexagon, "It has \\boxed{7 sides}", checker) is None
        assert decide_by_rule(hexagon, "Not 5, but half a dozen.", checker) is None
        assert decide_by_rule(hexagon, "\\boxed{as many as an insect has legs}", checker) is None
        assert decide_by_rule(force, "\\boxed{B}", checker).right
        assert not decide_by_rule(force, "\\boxed{A}", checker).right
        assert decide_by_rule(force, "\\boxed{Newton}", checker).right
        assert not decide_by_rule(force, "", checker).right


def test_tasks_that_need_thinking_are_kept(tmp_path):
    from data.reasoning_gym_tasks import gym_questions

    own = {
        q.prompt.strip(): json.loads(q.reference)["answer"]
        for q in gym_questions("chain_sum", {}, count=2)
    }

    def small(prompt):
        answer = next((a for text, a in own.items() if text in prompt), "7")
        return {"text": f"<answer>{answer}</answer>", "thinking_tokens": 9}

    def large(prompt):
        return "\\boxed{nothing}"

    selected = select(
        CallableResponder(small, name="small"),
        CallableResponder(large, name="large"),
        tmp_path,
        tasks=("chain_sum", "letter_counting"),
        limit=2,
        seeds=2,
        replicates=50,
    )
    by_task = {item.task: item for item in selected}
    assert by_task["chain_sum"].kept
    assert by_task["chain_sum"].gap == 1.0
    assert not by_task["letter_counting"].kept
    assert len(task_names(None)) == 11
    assert len(task_names(["all"])) > 90


def test_one_process_at_a_time_works_in_a_folder(tmp_path, capsys):
    from evaluator.runs.folder import locked_folder
    from stp.cli.main import main

    asked = plan(methods=("default",), seeds=1, limit=1)
    refused = []

    def model(prompt):
        with pytest.raises(StoreError, match=r"run\.lock: process \d+ on .* works") as error:
            ask(asked, tmp_path, responder=CallableResponder(lambda prompt: "1", name="m"))
        refused.append(str(error.value))
        return "\\boxed{1}"

    ask(asked, tmp_path, responder=CallableResponder(model, name="m"))
    assert len(refused) == 2
    assert len(ResponseStore(response_file(tmp_path, "default")).read()) == 2
    commands = (
        ["run", "demo", "--subsets", "ovt:demo", "--out", str(tmp_path)],
        ["score", str(tmp_path)],
        ["build", str(tmp_path / "made"), "--generator", "demo"],
    )
    with locked_folder(tmp_path), locked_folder(tmp_path / "made"):
        for command in commands:
            with pytest.raises(SystemExit) as ended:
                main(["optimal", *command])
            assert ended.value.code == 1
            (line,) = capsys.readouterr().err.strip().splitlines()
            assert "run.lock" in line


class Weights(CallableResponder):
    """A function that says whose weights it has."""

    def __init__(self, function, **described):
        super().__init__(function, name="m")
        self._described = described

    def describe(self):
        return {**super().describe(), **self._described}


def test_other_weights_are_refused_before_anything_is_asked(tmp_path):
    asked = []

    def model(prompt):
        asked.append(prompt)
        return "\\boxed{1}"

    small = plan(methods=("default",), seeds=1, limit=1)
    ask(small, tmp_path, responder=Weights(model, weights_hash="a" * 64, device="cpu"))
    before = (tmp_path / "run.json").read_bytes()
    more = dataclasses.replace(small, seeds=2)
    with pytest.raises(StoreMismatchError, match=r'weights_hash is "a+" in the folder and "b+"'):
        ask(more, tmp_path, responder=Weights(model, weights_hash="b" * 64, device="cpu"))
    assert len(asked) == 2
    assert (tmp_path / "run.json").read_bytes() == before
    # The same weights on another device are the same model.
    ask(more, tmp_path, responder=Weights(model, weights_hash="a" * 64, device="cuda"))
    assert len(asked) == 4


def test_who_was_asked_is_known_of_a_run_that_was_stopped(tmp_path):
    def model(prompt):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask(
            plan(methods=("default",)),
            tmp_path,
            responder=Weights(model, weights_hash="a" * 64),
        )
    recorded = json.loads((tmp_path / "run.json").read_text())
    assert recorded["models"]["model"]["weights_hash"] == "a" * 64
    assert not list(tmp_path.glob(".*.tmp"))


def test_methods_are_one_stream_of_requests(tmp_path):
    begun = threading.Event()

    def model(prompt, settings):
        if settings.thinking == "on":
            assert begun.wait(20)
        begun.set()
        return {"text": "\\boxed{1}", "thinking_tokens": 3 * (settings.thinking == "on")}

    # More at a time than the first method has requests.
    responder = CallableResponder(model, name="m", workers=9)
    ask(plan(methods=("thinking", "no-thinking")), tmp_path, responder=responder)
    ids = [request.id for request in requests_of(items_of(plan(), tmp_path), plan())]
    for method, tokens in (("thinking", 3), ("no-thinking", 0)):
        rows = ResponseStore(response_file(tmp_path, method)).read()
        assert list(rows) == ids
        assert {row.thinking_tokens for row in rows.values()} == {tokens}


def test_another_router_is_refused(tmp_path):
    def model(prompt):
        return {"text": "\\boxed{1}", "thinking_tokens": 1}

    def routed(name, **changes):
        ask(
            plan(methods=("thinking", "no-thinking", "router"), **changes),
            tmp_path,
            responder=CallableResponder(model, name="m"),
            router=CallableResponder(lambda prompt: "Route: simple", name=name),
        )

    routed("r")
    routed("r", seeds=3)
    with pytest.raises(StoreMismatchError, match=r'router\.model is "r" in the folder'):
        routed("other")
    with pytest.raises(MisuseError, match="--router MODEL"):
        ask(plan(methods=("thinking", "no-thinking", "router")), tmp_path / "none")


def test_prompts_that_are_too_long_are_named_and_every_method_is_asked(tmp_path):
    long = items_of(plan(), tmp_path / "questions")[0].prompt_in(Prompts())

    def model(prompt):
        if prompt == long:
            raise ValueError("the prompt has 900 tokens, and the model's context holds 800")
        return {"text": "\\boxed{1}", "thinking_tokens": 1}

    responder = CallableResponder(model, name="m")
    with pytest.raises(EngineError, match="4 prompts are too long") as error:
        ask(plan(), tmp_path / "run", responder=responder)
    said = str(error.value)
    assert "run again" not in said
    assert f"`stp optimal score {tmp_path / 'run'} --allow-incomplete`" in said
    rows = grade(tmp_path / "run", allow_incomplete=True).rows
    # Three of four questions, two seeds; what is too long for one method is so for all.
    assert rows.groupby("method").size().to_dict() == {
        "thinking": 6, "no-thinking": 6, "oracle-router": 6,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["graded.jsonl", "questions.jsonl", "responses/default.jsonl"])
def test_rows_that_are_no_longer_what_the_responses_come_to_are_not_scored(tmp_path, name):
    asked = plan(methods=("default",), seeds=1)
    ask(asked, tmp_path, responder=CallableResponder(lambda prompt: "1", name="m"))
    rows = grade(tmp_path).rows
    path = tmp_path / name
    if name == "graded.jsonl":
        text = path.read_text()
        assert len(rows) == text.count('"right": false')
        path.write_text(text.replace('"right": false', '"right": true'))
    else:
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    with pytest.raises(
        MisuseError, match=rf"{name}: (has changed|is not as it was).*stp optimal score"
    ):
        load_run(tmp_path)
    ask(asked, tmp_path, responder=CallableResponder(lambda prompt: "1", name="m"))
    again = grade(tmp_path).rows
    pd.testing.assert_frame_equal(load_run(tmp_path).rows, again)


@pytest.mark.parametrize(
    "left",
    [
        lambda made: None,
        lambda made: [],
        lambda made: {},
        lambda made: {key: made[key] for key in made if key != "checker"},
        lambda made: {"graded.jsonl": made["graded.jsonl"]},
        lambda made: {**made, "further": "0"},
    ],
    ids=["null", "list", "nothing", "no checker", "rows alone", "more"],
)
def test_rows_of_which_nothing_says_what_they_are_from_are_not_scored(tmp_path, left):
    asked = plan(methods=("default",), seeds=1)
    ask(asked, tmp_path, responder=CallableResponder(lambda prompt: "1", name="m"))
    grade(tmp_path)
    path = tmp_path / "grading.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps({**values, "made_from": left(values["made_from"])}))
    with pytest.raises(MisuseError, match=r"grading\.json: does not say what .*stp optimal score"):
        load_run(tmp_path)
    del values["made_from"]
    path.write_text(json.dumps(values))
    with pytest.raises(MisuseError, match=r"grading\.json: does not say what .*stp optimal score"):
        load_run(tmp_path)
    path.unlink()
    with pytest.raises(MisuseError, match=r"grading\.json: is not there, .*stp optimal score"):
        load_run(tmp_path)
    grade(tmp_path)
    load_run(tmp_path)


def test_rows_of_another_checker_are_not_scored(tmp_path, monkeypatch):
    ask(
        plan(methods=("default",), seeds=1),
        tmp_path,
        responder=CallableResponder(lambda prompt: "1", name="m"),
    )
    grade(tmp_path)
    monkeypatch.setattr("evaluator.runs.graded.CHECKER_VERSION", "another")
    with pytest.raises(MisuseError, match=r"another version of the answer checker.*optimal score"):
        load_run(tmp_path)
    grade(tmp_path)
    load_run(tmp_path)


def test_methods_that_need_no_response_of_their_own_are_graded_first(tmp_path):
    responder = CallableResponder(
        lambda prompt: {"text": "\\boxed{1}", "thinking_tokens": 3}, name="m"
    )
    asked = plan(methods=("thinking", "no-thinking"), seeds=1)
    ask(asked, tmp_path, responder=responder)
    grade(tmp_path)
    # Where its questions are from changes no row.
    ask(dataclasses.replace(asked, data_dir=str(tmp_path)), tmp_path, responder=responder)
    load_run(tmp_path)
    routed = dataclasses.replace(asked, methods=(*asked.methods, "oracle-router"))
    ask(routed, tmp_path, responder=responder)
    with pytest.raises(MisuseError, match="something else was asked when the run was graded"):
        load_run(tmp_path)
    assert "oracle-router" in set(grade(tmp_path).rows["method"])
    load_run(tmp_path)


def test_more_responses_than_were_graded_are_graded_first(tmp_path):
    responder = CallableResponder(lambda prompt: "1", name="m")
    ask(plan(methods=("default",), seeds=1), tmp_path, responder=responder)
    grade(tmp_path)
    load_run(tmp_path)
    ask(plan(methods=("default", "thinking"), seeds=1), tmp_path, responder=responder)
    with pytest.raises(MisuseError, match=r"thinking\.jsonl: has changed"):
        load_run(tmp_path)


@pytest.mark.parametrize("name", ["run.json", "questions.jsonl", "grading.json"])
@pytest.mark.parametrize(
    "text", ["", "[1, 2]", "{", '{"model": 3}', "[" * 100_000, "3", '{"x": NaN}']
)
def test_a_file_that_was_changed_is_named(tmp_path, name, text):
    asked = plan(methods=("default",), seeds=1)
    responder = CallableResponder(lambda prompt: "1", name="m")
    ask(asked, tmp_path, responder=responder)
    grade(tmp_path)
    if name == "questions.jsonl" and not text:
        # Without questions they are made again, and are the same.
        text = (tmp_path / name).read_text()
        text += text
    (tmp_path / name).write_text(text)
    # Rows of which it cannot be said what they are from are graded again: that is no failure.
    with pytest.raises((StoreError, MisuseError), match=rf"{name}(, line 1)?: "):
        if name == "grading.json":
            load_run(tmp_path)
        else:
            ask(plan(methods=("default",), seeds=2), tmp_path, responder=responder)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_folder_of_something_else_is_refused_as_it_is(tmp_path, capsys):
    from evaluator.thinkbench import ThinkConfig
    from evaluator.thinkbench import run as run_think
    from stp.cli.main import main

    run_think(
        CallableResponder(lambda prompt: "1", name="m"),
        tmp_path / "think",
        ThinkConfig(tasks=("sum",), samples=1, folds=1, sizes=(8,)),
    )
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "questions.jsonl").write_text('{"question": "why?"}\n')
    commands = (
        ["run", "demo", "--subsets", "ovt:demo", "--limit", "1", "--out"],
        ["build", "--generator", "demo"],
    )
    for name, refused in (
        ("think", "holds a run of stp think run, not of stp optimal"),
        ("notes", "and is not empty (it holds questions.jsonl); choose a new folder"),
    ):
        before = contents(tmp_path / name)
        for command in commands:
            with pytest.raises(SystemExit) as ended:
                main(["optimal", *command, str(tmp_path / name)])
            assert ended.value.code == 2
            said = " ".join(capsys.readouterr().err.split())
            assert refused in said
            assert contents(tmp_path / name) == before


def test_what_a_stopped_beginning_left_is_gone_on_with(tmp_path):
    asked = plan(methods=("default",), seeds=1, limit=1)
    responder = CallableResponder(lambda prompt: "1", name="m")
    ask(asked, tmp_path / "whole", responder=responder)
    begun = tmp_path / "begun"
    begun.mkdir()
    (begun / "run.lock").touch()
    (begun / ".run.json.17.tmp").write_text("{")
    shutil.copy(tmp_path / "whole" / "questions.jsonl", begun)
    ask(asked, begun, responder=responder)
    assert read_asked(begun)[1] == read_asked(tmp_path / "whole")[1]


def test_mathematics_benchmarks_are_selected_as_tasks_are(tmp_path):
    """The demo's questions stand for a benchmark's: 004, section 2.2, tries both kinds."""
    questions = {item.prompt_in(Prompts()): item for item in load_items(["ut:demo"], limit=3)}

    def small(prompt):
        text = rf"\boxed{{{questions[prompt].question.reference}}}"
        return {"text": text, "thinking_tokens": 50}

    selected = select(
        CallableResponder(small, name="small"),
        CallableResponder(lambda prompt: {"text": r"\boxed{x}", "thinking_tokens": 0}, name="big"),
        tmp_path,
        tasks=task_names(["none"]),
        benchmarks=("demo",),
        limit=3,
        seeds=1,
        replicates=20,
    )
    assert [(item.task, item.gap, item.kept) for item in selected] == [("demo", 1.0, True)]
    with pytest.raises(MisuseError, match="no task and no benchmark"):
        select("demo", "demo", tmp_path / "no", tasks=())


def test_names_of_benchmarks_to_select_from():
    assert benchmark_names(["math"])[2:] == ("aime2025", "hmmt_feb_2025")
    assert all(get_benchmark(name) for name in benchmark_names(["math"]))
    assert benchmark_names(None) == ()
    with pytest.raises(MisuseError, match="named twice"):
        benchmark_names(["demo", "demo"])
