"""Asking: every question of a plan, in every mode, once for each seed.

Responses go to one file a mode as they come, so a run that was stopped continues where it was, and
more seeds, methods or subsets add to what is there.
"""

import contextlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from string import Template

from data.errors import EngineError, MisuseError, StoreError
from data.progress import NOBODY, Progress
from data.prompts import Prompts
from evaluator.optimal.methods import MODES, ROUTER, read_route
from evaluator.optimal.plan import GROWING, OptimalPlan, grown, plan_of
from evaluator.optimal.stored import KIND, QUESTIONS, response_file, route_file
from evaluator.optimal.subsets import Item, load_items, read_items, write_items
from evaluator.runs.asking import Missing, ask_missing, opened_once
from evaluator.runs.folder import locked_folder
from evaluator.runs.plain import to_plain
from evaluator.runs.record import RunRecord, begin_run, check_folder, finish_run
from stp.asking import ModelSpec, Request, Responder, ResponseStore, Settings
from stp.seeds import sample_seed

ROUTER_SETTINGS = Settings(max_tokens=256, temperature=0.0, thinking="default")
ROUTER_ATTEMPTS = 3
_TOO_LONG = re.compile(r"\bcontext\b|\btoo long\b", re.IGNORECASE)
"""In what engines and providers say of a prompt that is too long; that stays so."""

MOST_REQUESTS = 10_000_000
"""Of one method: what a run holds in memory."""


def items_of(plan: OptimalPlan, folder: Path, loaded: Sequence[Item] = ()) -> list[Item]:
    """Return the questions of a run, as they were asked.

    They are kept in the run's folder: a later version of a data set or a generator changes neither
    what is asked when a run continues nor what its answers are compared with.

    Parameters
    ----------
    plan
        What is asked.
    folder
        The run's.
    loaded
        From :func:`load_missing`, where it was called before.

    Raises
    ------
    data.errors.MisuseError
        If questions cannot be had, or are more than memory holds responses to; nothing is written.
    data.errors.StoreError
        If the file cannot be read or written.
    """
    kept = _kept(folder)
    there = {item.subset for item in kept}
    new = [item for item in loaded if item.subset not in there]
    new += load_missing(plan, [*kept, *new])
    place = {subset: number for number, subset in enumerate(plan.subsets)}
    items = sorted(
        (item for item in [*kept, *new] if item.subset in place),
        key=lambda item: place[item.subset],
    )
    _check_size(plan, len(items))
    if new:
        write_items(folder / QUESTIONS, [*kept, *new])
    return items


def _kept(folder: Path, *, begun: bool = False) -> list[Item]:
    """Return the questions that a folder keeps; before there is a record they may be others'."""
    path = folder / QUESTIONS
    try:
        return read_items(path) if path.exists() else []
    except StoreError as error:
        if not begun:
            raise
        raise MisuseError(
            f"{folder}: is not a run of {KIND} and is not empty (it holds {QUESTIONS}); choose a "
            "new "
            "folder"
        ) from error


def load_missing(
    plan: OptimalPlan, kept: Sequence[Item], progress: Progress = NOBODY
) -> list[Item]:
    """Return the questions of a plan's subsets that none of the kept ones are of.

    Raises
    ------
    data.errors.MisuseError
        If a subset is unknown, or its questions cannot be read.
    """
    there = {item.subset for item in kept}
    missing = [subset for subset in plan.subsets if subset not in there]
    if not missing:
        return []
    return load_items(
        missing,
        general=plan.general,
        data_dir=Path(plan.data_dir) if plan.data_dir else None,
        limit=plan.limit,
        progress=progress,
    )


def requests_of(items: Sequence[Item], plan: OptimalPlan) -> list[Request]:
    """Return one request for each question and seed; seeds do not depend on the mode.

    Raises
    ------
    data.errors.MisuseError
        If they are more than memory holds.
    """
    _check_size(plan, len(items))
    return [
        Request(
            id=f"{item.key}/{sample}",
            prompt=item.prompt_in(plan.prompts),
            seed=sample_seed(
                plan.seed,
                model=plan.name,
                benchmark=item.benchmark,
                question=item.question.id,
                trajectory=sample,
                phase="optimal",
            ),
        )
        for sample in range(plan.seeds)
        for item in items
    ]


def _check_size(plan: OptimalPlan, questions: int) -> None:
    if questions * plan.seeds > MOST_REQUESTS:
        raise MisuseError(
            f"{questions:,} questions and {plan.seeds:,} seeds are {questions * plan.seeds:,} "
            f"requests of each method; at most {MOST_REQUESTS:,}"
        )


def run(
    model: str | ModelSpec | Responder,
    out: str | Path,
    plan: OptimalPlan,
    *,
    router: str | ModelSpec | Responder | None = None,
    progress: Progress = NOBODY,
) -> None:
    """Ask what a plan asks and has no response yet.

    Parameters
    ----------
    model
        What :func:`stp.asking.open_responder` opens, or a responder.
    out
        The run's folder; made, or continued.
    plan
        What to ask.
    router
        The model that sorts questions; needed by the method ``"router"``.
    progress
        Told how far it is.

    Raises
    ------
    data.errors.EngineError
        If some requests stay without a response. What was answered is kept.
    data.errors.StoreMismatchError
        If the folder holds responses to another plan, of another model, or of other weights.
    data.errors.StpError
        If the plan does not fit the folder, the model, or the questions, or another process works
        in the folder.
    """
    folder = Path(out).expanduser()
    if ROUTER in plan.methods and router is None:
        raise MisuseError("the method router needs a router model: --router MODEL")
    stored = check_folder(folder, KIND, begun=(QUESTIONS,))
    if stored is not None:
        plan = grown(plan_of(folder, stored), plan)
    # A plan that cannot be asked, or that no model answers, leaves no folder.
    kept = _kept(folder, begun=stored is None)
    loaded = load_missing(plan, kept, progress.stage("making the questions"))
    _check_size(plan, sum(item.subset in plan.subsets for item in (*kept, *loaded)))
    with contextlib.ExitStack() as stack:
        opened = stack.enter_context(opened_once())
        models = {"model": opened(model)}
        if ROUTER in plan.methods and router is not None:
            models["router"] = opened(router)
        stack.enter_context(locked_folder(folder))
        # A plan that cannot be asked is never written: the larger number of seeds would stay in it.
        items = items_of(plan, folder, loaded)
        requests = requests_of(items, plan)
        record = begin_run(
            folder,
            RunRecord(
                kind=KIND,
                name=plan.name,
                asked=to_plain(plan),
                models={role: each.describe() for role, each in models.items()},
            ),
            replies=[response_file(folder, mode) for mode in MODES],
            free=GROWING,
        )
        errors = _ask_modes(folder, requests, models["model"], plan, progress)
        if "router" in models:
            errors += _ask_router(folder, items, models["router"], plan.prompts, progress)
        if errors:
            raise EngineError(_unanswered(folder, errors))
        finish_run(folder, record)


def _ask_modes(
    folder: Path,
    requests: Sequence[Request],
    model: Responder,
    plan: OptimalPlan,
    progress: Progress,
) -> list[str]:
    """Ask in every mode of a plan, in one stream of requests."""
    modes = [name for name in plan.methods if name in MODES]
    stores = {mode: ResponseStore(response_file(folder, mode)) for mode in modes}
    errors = ask_missing(
        model,
        *(
            Missing(
                store=store,
                requests=store.missing(requests),
                settings=MODES[mode].settings(plan.settings, plan.prompts),
                total=len(requests),
                progress=progress.within(mode),
            )
            for mode, store in stores.items()
        ),
    )
    return [f"{mode}, {error}" for mode, some in zip(modes, errors, strict=True) for error in some]


def _unanswered(folder: Path, errors: Sequence[str]) -> str:
    """Say what is to be done about requests that were not answered."""
    too_long = [error for error in errors if _TOO_LONG.search(error)]
    others = [error for error in errors if not _TOO_LONG.search(error)]
    said = []
    if others:
        said.append(
            f"{len(others):,} requests were not answered, the first {others[0]}; run again, what "
            "was answered is kept"
        )
    if too_long:
        said.append(
            f"{len(too_long):,} prompts are too long for the model's context, the first "
            f"{too_long[0]}; asking again changes nothing: `stp optimal score "
            f"{shlex.quote(str(folder))} --allow-incomplete` leaves them out"
        )
    return "; ".join(said)


def _ask_router(
    folder: Path,
    items: Sequence[Item],
    router: Responder,
    prompts: Prompts,
    progress: Progress,
) -> list[str]:
    """Have every question sorted; a reply without a route is asked for again."""
    store = ResponseStore(route_file(folder))
    prompt = Template(prompts.text("router"))
    for attempt in range(ROUTER_ATTEMPTS):
        sorted_already = routes_of(store)
        missing = store.missing(
            Request(
                id=f"{item.key}/{attempt}",
                prompt=prompt.substitute(question=item.question.prompt),
                seed=attempt,
            )
            for item in items
            if item.key not in sorted_already
        )
        # A greedy router would say the same again.
        settings = replace(ROUTER_SETTINGS, temperature=0.0 if attempt == 0 else 1.0)
        (errors,) = ask_missing(
            router,
            Missing(
                store=store,
                requests=missing,
                settings=settings,
                total=len(items),
                progress=progress.within(ROUTER),
            ),
        )
        if errors:
            return [f"{ROUTER}, {error}" for error in errors]
    return []


def routes_of(store: ResponseStore) -> dict[str, bool]:
    """Return for each question that the router sorted whether it is complex.

    Questions whose replies name no route are left out.
    """
    routes: dict[str, bool] = {}
    for name, reply in store.read().items():
        route = read_route(reply.text) if reply.error is None else None
        if route is not None:
            routes.setdefault(name.rpartition("/")[0], route)
    return routes
