"""Asking: every question of a plan, in every mode, once for each seed.

Responses go to one file a mode as they come, so a run that was stopped goes on where it was, and
more seeds, methods or subsets add to what is there.
"""

import contextlib
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from data.errors import EngineError, MisuseError, StoreError, StoreMismatchError
from evaluator.optimal.methods import MODES, ROUTER, read_route
from evaluator.optimal.plan import PLAN_FILE, Plan, merged_plan, write_plan
from evaluator.optimal.subsets import Item, load_items, read_items, write_items
from evaluator.runs.folder import check_free, locked_folder
from evaluator.runs.freshness import difference
from stp.asking import Request, Responder, ResponseStore, Settings
from stp.asking.base import identity
from stp.asking.opening import ModelSpec, open_responder
from stp.asking.resuming import ask_missing
from stp.files import json_bytes, read_json, write_durably
from stp.seeds import sample_seed

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many responses are there, and of how many."""

ROUTER_SETTINGS = Settings(max_tokens=256, temperature=0.0, thinking="default")
ROUTER_ATTEMPTS = 3
MODEL_FILE = "model.json"
_TOO_LONG = re.compile(r"\bcontext\b|\btoo long\b", re.IGNORECASE)
"""In what engines and providers say of a prompt that is too long; that stays so."""

QUESTIONS_FILE = "questions.jsonl"
MOST_REQUESTS = 10_000_000
"""Of one method: what a run holds in memory."""


def response_file(folder: Path, mode: str) -> Path:
    """Return where the responses of a mode are."""
    return folder / "responses" / f"{mode}.jsonl"


def route_file(folder: Path) -> Path:
    """Return where the replies of the router model are."""
    return folder / "responses" / "router-replies.jsonl"


def items_of(plan: Plan, folder: Path, loaded: Sequence[Item] = ()) -> list[Item]:
    """Return the questions of a run, as they were asked.

    They are kept in the run's folder: a later version of a data set or a generator changes neither
    what is asked when a run goes on nor what its answers are compared with.

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
        write_items(folder / QUESTIONS_FILE, [*kept, *new])
    return items


def _kept(folder: Path) -> list[Item]:
    path = folder / QUESTIONS_FILE
    return read_items(path) if path.exists() else []


def _making(progress: Progress | None) -> Callable[[int, int], None] | None:
    return None if progress is None else partial(progress, "making the questions")


def load_missing(
    plan: Plan, kept: Sequence[Item], progress: Callable[[int, int], None] | None = None
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


def requests_of(items: Sequence[Item], plan: Plan) -> list[Request]:
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
            prompt=item.prompt,
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


def _check_size(plan: Plan, questions: int) -> None:
    if questions * plan.seeds > MOST_REQUESTS:
        raise MisuseError(
            f"{questions:,} questions and {plan.seeds:,} seeds are {questions * plan.seeds:,} "
            f"requests of each method; at most {MOST_REQUESTS:,}"
        )


def run(
    plan: Plan,
    folder: Path,
    *,
    responder: Responder | None = None,
    router: Responder | None = None,
    progress: Progress | None = None,
) -> None:
    """Ask what a plan asks and has no response yet.

    Parameters
    ----------
    plan
        What to ask.
    folder
        The run's folder; made, or gone on with.
    responder, router
        Who answers; opened from the plan where left out.
    progress
        Told how far it is.

    Raises
    ------
    data.errors.EngineError
        If some requests stay without a response. What was answered is kept.
    data.errors.StoreMismatchError
        If the folder holds responses of another model, or of other weights.
    data.errors.StpError
        If the plan does not fit the folder, the model, or the questions, or another process works
        in the folder.
    """
    loaded: Sequence[Item] = ()
    _check_folder(folder)
    with contextlib.ExitStack() as stack:
        # What cannot be asked, or nobody can answer, leaves no folder behind.
        if not (folder / PLAN_FILE).exists():
            loaded = load_missing(plan, _kept(folder), _making(progress))
            _check_size(plan, len(loaded))
            if responder is None:
                responder = stack.enter_context(open_responder(plan.model))
            if router is None and ROUTER in plan.methods and plan.router is not None:
                router = stack.enter_context(open_responder(plan.router))
        stack.enter_context(locked_folder(folder))
        _run(plan, folder, loaded, responder, router, progress)


def _check_folder(folder: Path) -> None:
    """Refuse a folder of something else before anything is asked or written."""
    if (folder / PLAN_FILE).exists():
        return
    what = "run of `stp optimal run`"
    check_free(folder, what, begun=(QUESTIONS_FILE,))
    try:
        # The questions come before the plan; other runs have a file of that name, too.
        _kept(folder)
    except StoreError as error:
        raise MisuseError(
            f"{folder}: is no {what} and is not empty (it holds {QUESTIONS_FILE}); choose a new "
            "folder"
        ) from error


def _run(
    plan: Plan,
    folder: Path,
    loaded: Sequence[Item],
    responder: Responder | None,
    router: Responder | None,
    progress: Progress | None,
) -> None:
    plan = merged_plan(folder, plan)
    loaded = loaded or load_missing(plan, _kept(folder), _making(progress))
    # A plan that cannot be asked is never written: the larger number of seeds would stay in it.
    items = items_of(plan, folder, loaded)
    requests = requests_of(items, plan)
    write_plan(folder, plan)
    opened: list[Responder] = []
    errors: list[str] = []
    try:
        for mode in (name for name in plan.methods if name in MODES):
            store = ResponseStore(response_file(folder, mode))
            missing = store.missing(requests)
            if not missing:
                continue
            if responder is None:
                responder = open_responder(plan.model)
                opened.append(responder)
            check_models(folder, model=responder)
            settings = MODES[mode].settings(plan.settings)
            errors += _ask(responder, store, missing, settings, mode, len(requests), progress)
        if ROUTER in plan.methods:
            errors += _ask_router(plan, folder, items, router, opened, progress)
    finally:
        for each in opened:
            each.close()
    if errors:
        raise EngineError(_unanswered(folder, errors))


def _ask(
    responder: Responder,
    store: ResponseStore,
    missing: Sequence[Request],
    settings: Settings,
    doing: str,
    total: int,
    progress: Progress | None,
) -> list[str]:
    told = None if progress is None else partial(progress, doing)
    errors = ask_missing(responder, store, missing, settings, total=total, progress=told)
    return [f"{doing}, {error}" for error in errors]


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
    plan: Plan,
    folder: Path,
    items: Sequence[Item],
    router: Responder | None,
    opened: list[Responder],
    progress: Progress | None,
) -> list[str]:
    """Have every question sorted; a reply without a route is asked for again."""
    from string import Template

    from data.optimal import prompt_text

    store = ResponseStore(route_file(folder))
    prompt = Template(prompt_text("router"))
    for attempt in range(ROUTER_ATTEMPTS):
        sorted_already = routes_of(store)
        waiting = [item for item in items if item.key not in sorted_already]
        requests = [
            Request(
                id=f"{item.key}/{attempt}",
                prompt=prompt.substitute(question=item.question.prompt),
                seed=attempt,
            )
            for item in waiting
        ]
        missing = store.missing(requests)
        if not missing:
            continue
        if router is None:
            if plan.router is None:
                raise MisuseError("the method router needs a router model: --router MODEL")
            router = open_responder(plan.router)
            opened.append(router)
        check_models(folder, router=router)
        # A greedy router would say the same again.
        settings = replace(ROUTER_SETTINGS, temperature=0.0 if attempt == 0 else 1.0)
        errors = _ask(router, store, missing, settings, ROUTER, len(items), progress)
        if errors:
            return errors
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


@contextlib.contextmanager
def opened_once() -> Iterator[Callable[[ModelSpec], Responder]]:
    """Yield what opens models, each of them once, and close them all at the end."""
    opened: dict[str, Responder] = {}
    with contextlib.ExitStack() as stack:

        def opening(spec: ModelSpec) -> Responder:
            key = repr(spec)
            if key not in opened:
                opened[key] = stack.enter_context(open_responder(spec))
            return opened[key]

        yield opening


def check_models(folder: Path, **models: Responder) -> None:
    """Write down who is asked, before anything is; or see that it is who was asked before.

    Parameters
    ----------
    folder
        Its ``model.json`` has what models say of themselves.
    models
        By what they do there.

    Raises
    ------
    data.errors.StoreMismatchError
        If a model has other weights, or is another one, than the folder's responses are from.
    data.errors.StoreError
        If the file cannot be read or written.
    """
    import platform
    from importlib import metadata

    path = folder / MODEL_FILE
    try:
        known = read_json(path)
    except FileNotFoundError:
        known = {}
    for role, responder in models.items():
        described = dict(responder.describe())
        before = known.get(role) or described
        if not isinstance(before, dict):
            raise StoreError(f"{path}: what it says of the {role} cannot be read")
        key = difference(identity(before), identity(described))
        if key is not None:
            raise StoreMismatchError(
                f"{folder}: its responses are those of the {role} with {key} "
                f"{before.get(key)!r}, and {described.get(key)!r} is to be asked now; give another "
                "folder"
            )
        known[role] = described
    known |= {
        "stp_engine": metadata.version("stp-engine"),
        "python": platform.python_version(),
    }
    write_durably(path, json_bytes(known, indent=1) + b"\n")
