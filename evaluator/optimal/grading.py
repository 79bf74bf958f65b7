"""From stored responses to graded rows: rules first, the judge for what no rule decides.

A row is one response to one question under one method. What has no verdict stays without one
(``right`` is missing), and whoever scores has to say what to do with it.
"""

import contextlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from data.errors import MisuseError
from data.optimal.domains import discipline_of
from data.progress import NOBODY, Progress
from data.reasoning_gym_tasks import ANSWER_KIND as REASONING_GYM
from evaluator.answers import Checker, Verdict
from evaluator.answers.judged import boxed_or_whole, plain_words
from evaluator.answers.reasoning_gym import partial_credit
from evaluator.optimal.judge import (
    Agreement,
    Case,
    ModelJudge,
    absent_judge,
    agreement,
    reason_of,
)
from evaluator.optimal.methods import MODES, NO_THINKING, ORACLE_ROUTER, ROUTER, THINKING
from evaluator.optimal.plan import OptimalPlan
from evaluator.optimal.running import items_of, requests_of, routes_of
from evaluator.optimal.stored import (
    Judging,
    OptimalRun,
    read_asked,
    response_file,
    route_file,
    store_graded,
    typed_rows,
)
from evaluator.optimal.subsets import Item
from evaluator.runs.folder import locked_folder
from stp.asking import Response, ResponseStore

_PLAIN_NUMBER = re.compile(r"[-+]?\d[\d.,/ ]*")
_NO_ANSWER = Verdict(right=False, answer=None, reason="wrong: no answer")


def grade(
    folder: str | Path,
    *,
    judge: ModelJudge | None = None,
    judge_name: str = "",
    checker: Checker | None = None,
    allow_incomplete: bool = False,
    progress: Progress = NOBODY,
) -> OptimalRun:
    """Grade a run's stored responses, and write ``graded.jsonl`` into its folder.

    Parameters
    ----------
    folder
        The run's.
    judge
        Judges what no rule decides; only needed where there is such an answer.
    judge_name
        What the judge is called in the report.
    checker
        Judges by rules; by default one of its own with a cache in the folder.
    allow_incomplete
        Grade what is there instead of refusing.
    progress
        Told how far it is.

    Raises
    ------
    data.errors.MisuseError
        If responses are missing, or a judge is needed and there is none.
    data.errors.StoreError
        If another process works in the folder, or a file cannot be read or written.
    """
    path = Path(folder).expanduser()
    record, plan = read_asked(path)
    with contextlib.ExitStack() as stack:
        stack.enter_context(locked_folder(path))
        pairs = _answered(path, plan, allow_incomplete=allow_incomplete)
        if checker is None:
            checker = stack.enter_context(Checker(cache_path=path / "verdicts.sqlite"))
        frame, judging = _judged(path, plan, pairs, checker, judge, judge_name, progress)
        return store_graded(path, record, plan, frame, judging)


def grade_again(run: OptimalRun, *, progress: Progress = NOBODY) -> pd.DataFrame:
    """Return a run's rows made again, from its responses and the judge's kept replies.

    Nothing is asked and nothing written: neither the model nor the judge is needed.

    Raises
    ------
    data.errors.MisuseError
        If a judge was asked, and the run does not say which or keeps too few of its replies.
    """
    judged_with = run.judging.judged_with
    judge = None if judged_with is None else absent_judge(run.folder, judged_with)
    pairs = _answered(run.folder, run.plan, allow_incomplete=True)
    with Checker() as checker:
        frame, _ = _judged(run.folder, run.plan, pairs, checker, judge, "", progress)
    return typed_rows(frame)


def _judged(
    folder: Path,
    plan: OptimalPlan,
    pairs: Sequence[tuple[str, str, Item, Response]],
    checker: Checker,
    judge: ModelJudge | None,
    judge_name: str,
    progress: Progress,
) -> tuple[pd.DataFrame, Judging]:
    """Return the rows of responses, and how their verdicts came about."""
    verdicts = _by_rule(pairs, checker, progress)
    judged, votes = _by_judge(pairs, verdicts, judge, progress)
    rows = [
        _row(plan, mode, name, item, response, verdicts[place], by_judge=place in judged)
        for place, (mode, name, item, response) in enumerate(pairs)
    ]
    frame, unrouted = _with_routers(pd.DataFrame(rows), plan, folder)
    return frame, Judging(
        responses=len(pairs),
        by_rule=len(pairs) - len(judged),
        by_judge=sum(verdicts[place] is not None for place in judged),
        undecided=sum(verdicts[place] is None for place in judged),
        agreement=votes,
        judge=judge_name if judged else "",
        unrouted=unrouted,
        judged_with=judge.judged_with if judged and judge is not None else None,
    )


def _answered(
    folder: Path, plan: OptimalPlan, *, allow_incomplete: bool
) -> list[tuple[str, str, Item, Response]]:
    """Return mode, name, question and response of all that was answered."""
    items = items_of(plan, folder)
    by_key = {item.key: item for item in items}
    pairs = [
        (mode, name, by_key[name.rpartition("/")[0]], response)
        for mode in plan.methods
        if mode in MODES
        for name, response in _responses(
            folder, mode, plan, items, allow_incomplete=allow_incomplete
        ).items()
    ]
    if not pairs:
        raise MisuseError(f"{folder}: no responses yet; `stp optimal run` asks for them")
    return pairs


def _responses(
    folder: Path, mode: str, plan: OptimalPlan, items: Sequence[Item], *, allow_incomplete: bool
) -> dict[str, Response]:
    """Return the responses of a mode, in the order of the requests."""
    stored = ResponseStore(response_file(folder, mode)).read()
    wanted = [request.id for request in requests_of(items, plan)]
    there = {name: stored[name] for name in wanted if name in stored and stored[name].error is None}
    if len(there) < len(wanted) and not allow_incomplete:
        raise MisuseError(
            f"{folder}: {len(wanted) - len(there):,} of {len(wanted):,} responses are missing "
            f"({mode}); `stp optimal run` asks for them, --allow-incomplete leaves them out"
        )
    return there


def _by_rule(
    pairs: Sequence[tuple[str, str, Item, Response]],
    checker: Checker,
    progress: Progress,
) -> list[Verdict | None]:
    """Return the verdicts of rules; None if they do not decide."""
    verdicts: list[Verdict | None] = [None] * len(pairs)
    step, stage = 256, progress.stage("grading")
    for start in range(0, len(pairs), step):
        chunk = pairs[start : start + step]
        plain = [place for place, pair in enumerate(chunk) if not pair[2].judged]
        found = checker.check_many([(chunk[p][2].question, chunk[p][3].text) for p in plain])
        for place, verdict in zip(plain, found, strict=True):
            verdicts[start + place] = verdict
        for place, (_, _, item, response) in enumerate(chunk):
            if item.judged:
                verdicts[start + place] = decide_by_rule(item, response.text, checker)
        stage(start + len(chunk), len(pairs))
    return verdicts


def decide_by_rule(item: Item, text: str, checker: Checker) -> Verdict | None:
    """Return what rules say of an answer that a judge could be asked about; None if they do not.

    Numbers and letters are decided as in mathematics and choices; words only if they are the
    reference's own. A number is wrong by rule only if it is all of the answer: one with a unit, or
    in a sentence, may say the same in another way.
    """
    answer = boxed_or_whole(text)
    if answer is None:
        return _NO_ANSWER
    if plain_words(answer) == plain_words(reference_text(item)):
        return Verdict(True, answer, "right: the reference's words")
    if item.question.answer_kind not in _RULED:
        return None
    verdict = checker.check(item.question, text)
    if verdict.right:
        return verdict
    if verdict.answer is None:
        return None
    letter = len(verdict.answer) == 1 and verdict.answer.isalpha()
    number = _PLAIN_NUMBER.fullmatch(plain_words(answer))
    return verdict if letter or number else None


_RULED = frozenset({"math", "choice"})


def reference_text(item: Item) -> str:
    """Return the right answer as a judge may read it: an option with its letter, or the text."""
    question = item.question
    if question.answer_kind == "choice":
        option = question.choices["ABCDEFGHIJKLMNOPQRSTUVWXYZ".index(question.reference)]
        return f"{question.reference}. {option}"
    return question.reference


def _by_judge(
    pairs: Sequence[tuple[str, str, Item, Response]],
    verdicts: list[Verdict | None],
    judge: ModelJudge | None,
    progress: Progress,
) -> tuple[set[int], Agreement]:
    """Fill in the verdicts that rules left open; return whose they are, and the agreement."""
    open_places = [place for place, verdict in enumerate(verdicts) if verdict is None]
    if not open_places:
        return set(), agreement([])
    if judge is None:
        raise MisuseError(
            f"{len(open_places):,} answers are in words that no rule decides: name a model that "
            "judges them, --judge MODEL"
        )
    cases = []
    for place in open_places:
        item, response = pairs[place][2], pairs[place][3]
        cases.append(
            Case(
                question=item.question.prompt,
                reference=reference_text(item),
                answer=boxed_or_whole(response.text) or "",
            )
        )
    judgements = judge.judge(cases, progress.stage("judging"))
    for place, case, judgement in zip(open_places, cases, judgements, strict=True):
        if judgement.right is not None:
            verdicts[place] = Verdict(judgement.right, case.answer, reason_of(judgement.right))
    distinct = dict(zip(cases, judgements, strict=True))
    return set(open_places), agreement(list(distinct.values()))


def _row(
    plan: OptimalPlan,
    mode: str,
    name: str,
    item: Item,
    response: Response,
    verdict: Verdict | None,
    *,
    by_judge: bool,
) -> dict[str, Any]:
    gym = item.question.answer_kind == REASONING_GYM
    return {
        "model": plan.name,
        "method": mode,
        "subset": item.subset,
        "side": item.side,
        "benchmark": item.benchmark,
        "question": item.key,
        "sample": int(name.rpartition("/")[2]),
        "right": None if verdict is None else verdict.right,
        "thinking_tokens": response.thinking_tokens,
        "output_tokens": response.output_tokens,
        "credit": partial_credit(verdict) if gym and verdict is not None else None,
        "answer": None if verdict is None else verdict.answer,
        "reason": "undecided: no verdict of the judge" if verdict is None else verdict.reason,
        "by_judge": by_judge,
        "finish": response.finish,
        "ran_on": response.ran_on,
        "domain": item.domain,
        "discipline": discipline_of(item.domain) if item.domain else "",
        "answer_type": item.answer_type,
        "options": item.options,
        "size": plan.size,
    }


def _with_routers(frame: pd.DataFrame, plan: OptimalPlan, folder: Path) -> tuple[pd.DataFrame, int]:
    """Add the rows of routers: each question's responses in the mode that the router chose."""
    added, unrouted = [], 0
    chosen: dict[str, Mapping[str, bool]] = {}
    if ORACLE_ROUTER in plan.methods:
        sides = frame.drop_duplicates("question").set_index("question")["side"]
        chosen[ORACLE_ROUTER] = {str(key): side == "ut" for key, side in sides.items()}
    if ROUTER in plan.methods:
        routes = routes_of(ResponseStore(route_file(folder)))
        questions = frame["question"].unique()
        unrouted = sum(question not in routes for question in questions)
        if not routes:
            raise MisuseError(f"{folder}: the router model sorted no question; run it, or another")
        # What the router could not sort is thought about: nobody said that it is simple.
        chosen[ROUTER] = {question: routes.get(question, True) for question in questions}
    for method, thinks in chosen.items():
        wanted = frame["question"].map(thinks).map({True: THINKING, False: NO_THINKING})
        added.append(frame[frame["method"] == wanted].assign(method=method))
    return pd.concat([frame, *added], ignore_index=True), unrouted
