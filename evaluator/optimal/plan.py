"""What a run is: which model is asked what, how, and how often; written down beside its responses.

A folder holds one plan. It can grow by methods, subsets and seeds; going on with another plan is
an error that names what differs.
"""

import dataclasses
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.errors import MisuseError, StoreError, StoreMismatchError
from evaluator.optimal.methods import ROUTER, check_methods
from stp.asking import Settings
from stp.asking.opening import ModelSpec
from stp.files import json_bytes, read_json, write_durably

SEEDS = 8
TEMPERATURE = 0.6
"""Eight seeds at temperature 0.6 (paper 004, B.2)."""
PLAN_FILE = "plan.json"
SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A run of one model.

    Attributes
    ----------
    model
        Who is asked.
    name
        What tables call it; by default the last part of the model's name.
    subsets, methods
        What is asked, and how; see :mod:`evaluator.optimal.subsets` and ``methods``.
    general
        Where OvT-General's questions are.
    data_dir
        Folder of question files.
    limit
        Only so many questions of each benchmark.
    seeds
        Responses to each question.
    seed
        What the seeds of responses are made from.
    settings
        How responses are sampled; thinking and suffix are the methods'.
    router
        The model that sorts questions; needed by the method ``"router"``.
    size
        Parameters of the model in billions, for the analysis by size; None if unknown.
    """

    model: ModelSpec
    name: str = ""
    subsets: tuple[str, ...]
    methods: tuple[str, ...]
    general: str | None = None
    data_dir: str | None = None
    limit: int | None = None
    seeds: int = SEEDS
    seed: int = 0
    settings: Settings = field(default_factory=lambda: Settings(temperature=TEMPERATURE))
    router: ModelSpec | None = None
    size: float | None = None

    def __post_init__(self) -> None:
        check_methods(self.methods)
        if self.seeds < 1:
            raise MisuseError(f"seeds must be at least 1, not {self.seeds}")
        if self.limit is not None and self.limit < 1:
            raise MisuseError(f"limit must be at least 1, not {self.limit}")
        if self.size is not None and not 0 < self.size < math.inf:
            raise MisuseError(f"size must be a number of billions above 0, not {self.size}")
        if ROUTER in self.methods and self.router is None:
            raise MisuseError("the method router needs a router model: --router MODEL")
        if not self.name:
            last = self.model.model.rstrip("/").rpartition("/")[2]
            object.__setattr__(self, "name", last or self.model.model)

    def as_json(self) -> dict[str, Any]:
        """Return the plan as it is stored."""
        values = dataclasses.asdict(self)
        for key in ("model", "router"):
            if values[key] is not None:
                values[key]["options"] = dict(values[key]["options"])
        return {"schema": SCHEMA, **json.loads(json.dumps(values))}


def write_plan(folder: Path, plan: Plan) -> None:
    """Write a run's plan, added to the one that the folder has.

    Methods and subsets come together, and the larger number of seeds counts: nothing that is
    stored changes by that. Everything else has to be the same.

    Raises
    ------
    data.errors.StoreMismatchError
        If the folder holds a run with another plan.
    data.errors.StoreError
        If it cannot be written.
    """
    path = folder / PLAN_FILE
    plan = merged_plan(folder, plan)
    write_durably(path, json_bytes(plan.as_json(), indent=1) + b"\n")


def merged_plan(folder: Path, given: Plan) -> Plan:
    """Return what a plan and the one that the folder has come to together; writes nothing.

    Raises
    ------
    data.errors.StoreMismatchError
        If they do not fit together.
    """
    if not (folder / PLAN_FILE).exists():
        return given
    stored = read_plan(folder)
    together = dataclasses.replace(
        given,
        methods=tuple(dict.fromkeys((*stored.methods, *given.methods))),
        subsets=tuple(dict.fromkeys((*stored.subsets, *given.subsets))),
        seeds=max(stored.seeds, given.seeds),
        general=given.general or stored.general,
        router=given.router or stored.router,
        size=given.size or stored.size,
    )
    old, new = stored.as_json(), together.as_json()
    for values in (old, new):
        # Where a server listens and how many requests it takes at a time change no response.
        values["model"]["base_url"] = values["model"]["batch"] = None
        for key in ("methods", "subsets", "seeds", "size", "data_dir"):
            values[key] = None
        if stored.router is None or values["router"] is None:
            values["router"] = None
        else:
            values["router"]["base_url"] = values["router"]["batch"] = None
    if old["general"] is None:
        old["general"] = new["general"]
    for key, value in new.items():
        if old.get(key) != value:
            raise StoreMismatchError(
                f"{folder}: holds a run with {key} {_short(old.get(key))}, and {_short(value)} is "
                "asked for; give another folder"
            )
    return together


def read_plan(folder: Path) -> Plan:
    """Read a run's plan.

    Raises
    ------
    data.errors.MisuseError
        If the folder holds no run.
    data.errors.StoreError
        If the plan is damaged, or of a later version.
    """
    path = folder / PLAN_FILE
    try:
        values = read_json(path)
    except FileNotFoundError as error:
        raise MisuseError(f"{folder}: no run of `stp optimal run` is there") from error
    if values.pop("schema", None) != SCHEMA:
        raise StoreError(f"{path}: was written by another version of this project")
    try:
        values["settings"]["tools"] = tuple(values["settings"]["tools"])
        return Plan(
            **{
                **values,
                "model": ModelSpec(**values["model"]),
                "router": ModelSpec(**values["router"]) if values["router"] else None,
                "settings": Settings(**values["settings"]),
                "subsets": tuple(values["subsets"]),
                "methods": tuple(values["methods"]),
            }
        )
    except (KeyError, TypeError, AttributeError, MisuseError) as error:
        raise StoreError(f"{path}: is no plan of a run ({error})") from error


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
