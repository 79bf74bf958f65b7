"""From what a user names to a plan: a model, a method with its setting, questions, a release.

Everything that can be wrong is reported here, before a model is loaded.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from data import Question
from data.errors import ConfigError, MisuseError
from data.progress import NOBODY, Progress
from evaluator.answers.judges import judge_for
from evaluator.live.policy import HIDDEN, Policy, make_policy, model_number
from evaluator.live.thinking import LiveTask, Plan
from evaluator.otbench.load import Release, load_release
from evaluator.otbench.splits import SPLITS, SplitRule, lot
from stp.campaign.config import CampaignConfig
from stp.campaign.manifest import ModelRecord
from stp.campaign.models import LocatedModel, locate_model, own_context, tokenizer_hash
from stp.campaign.prepare import load_questions, make_subject, question_rows
from stp.campaign.sections import BenchmarkConfig, EngineConfig, ModelConfig
from stp.campaign.signal_record import SignalSettings
from stp.engines import open_engine
from stp.engines.base import Engine
from stp.engines.checks import weights_hash

FULL: Final = "full"
METHOD: Final = "method"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a user names.

    Attributes
    ----------
    model
        A folder, a hub id or ``"demo"``, with its family where that is named.
    method, setting
        Who stops the thinking; no method for full thinking alone.
    release
        What a method learns from; it gives limits, step length, sampling and seed as well.
    engine
        What runs the model.
    changes
        Settings of a campaign file that replace those of the release or the defaults, by table.
    """

    model: ModelConfig
    method: str | None = None
    setting: str | None = None
    release: Path | None = None
    engine: EngineConfig = field(default_factory=EngineConfig)
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ready:
    """A model and a method that can begin; the model is not loaded yet.

    Attributes
    ----------
    wanted, model
        What was named, and where the model is.
    plan
        What all trajectories have in common, with the method.
    release
        The release, loaded; None without one.
    """

    wanted: Wanted
    model: LocatedModel
    plan: Plan
    release: Release | None

    def open(self, **defaults: Any) -> tuple[Engine, Plan]:
        """Load the model; return the engine, and the plan with what the engine can show.

        Parameters
        ----------
        **defaults
            Options of the engine where none of that name was wanted.

        Raises
        ------
        data.errors.MisuseError
            If the engine does not show what the method needs.
        """
        wanted, policy = self.wanted.engine, self.plan.policy
        options = {**defaults, **wanted.options}
        if policy is not None and policy.reads and wanted.name == "vllm":
            options.setdefault("max_logprobs", -1)
        engine = open_engine(wanted.name, self.model.folder, **options)
        try:
            check_shown(policy, engine)
        except BaseException:
            engine.close()
            raise
        return engine, self.plan


def check_shown(policy: Policy | None, engine: Engine) -> None:
    """Refuse a method that needs what an engine does not show.

    Raises
    ------
    data.errors.MisuseError
        Names the method and the signals.
    """
    if policy is None or not policy.reads:
        return
    hidden = sorted(policy.needs & HIDDEN)
    if hidden and engine.layers < 0:
        raise MisuseError(
            f"method {policy.label} needs {', '.join(hidden)}, and {type(engine).__name__} shows "
            "no hidden states; run it with --engine transformers"
        )
    engine.check_signals([])


def get_ready(wanted: Wanted, *, progress: Progress = NOBODY) -> Ready:
    """Check what was named, let the method learn, and return what can begin.

    Raises
    ------
    data.errors.StpError
        If a model, a method, its setting or a release cannot be used, or they do not go together.
    """
    model = locate_model(wanted.model)
    release = None
    if wanted.release is not None:
        release = load_release(wanted.release, progress=progress)
    campaign = None if release is None else _campaign_of(release, wanted.model.name)
    if release is not None and campaign is not None:
        check_same_model(release, campaign, model)
    config = _config(wanted, campaign)
    policy = None
    if wanted.method is not None:
        progress.stage(f"training {wanted.method}")
        policy = make_policy(wanted.method, wanted.setting, release, wanted.model.name)
        _check_engine_shows(policy, wanted.engine.name)
    elif wanted.setting is not None:
        raise MisuseError("--setting needs a method; name it with --method")
    signals = None if campaign is None else campaign.get("signals")
    record = _record(config, model)
    layers = () if policy is None else {*policy.layers, *policy.prompt_layers}
    plan = Plan(
        config=config,
        subject=make_subject(config, model, record),
        policy=policy,
        signals=SignalSettings() if signals is None else SignalSettings.model_validate(signals),
        layers=tuple(sorted(layers)),
        answer_of=answer_of,
    )
    return Ready(wanted=wanted, model=model, plan=plan, release=release)


def _check_engine_shows(policy: Policy, engine: str) -> None:
    """Refuse what is known not to work without opening the engine."""
    if policy.reads and engine == "server":
        raise MisuseError(
            f"method {policy.label} reads {', '.join(sorted(policy.description.needs))}, and the "
            "server engine shows no signals; use --engine transformers or vllm"
        )
    if policy.needs & HIDDEN and engine != "transformers":
        raise MisuseError(
            f"method {policy.label} needs hidden states, and the {engine} engine shows none; run "
            "it with --engine transformers"
        )


def answer_of(question: Question, text: str) -> str | None:
    """Return the answer in a text, as grading finds it."""
    return judge_for(question).extract(text)


def _record(config: CampaignConfig, model: LocatedModel) -> ModelRecord:
    """Return the one thing that a subject needs of a record: the context."""
    own = own_context(model.folder) or config.generation.context_limit
    return ModelRecord(
        name=model.name,
        path=str(model.folder),
        revision=model.revision,
        weights_hash="",
        tokenizer_hash="",
        context_limit=min(config.generation.context_limit, own),
        family={},
        turn_end={},
    )


def _config(wanted: Wanted, campaign: Mapping[str, Any] | None) -> CampaignConfig:
    """Return limits, steps, sampling and seed: a release's, or a campaign file's defaults."""
    values: dict[str, Any] = {"generation": {}, "probing": {}, "sampling": {}, "prompts": {}}
    if campaign is not None:
        for key, value in campaign["settings"].items():
            table, _, name = key.partition(".")
            if table in values and name and value is not None:
                values[table][name] = value
        values["seed"] = campaign["settings"]["seed"]
    for table, changes in wanted.changes.items():
        values.setdefault(table, {}).update(changes)
    if wanted.seed is not None:
        values["seed"] = wanted.seed
    values["probing"]["steps"] = "causal"
    try:
        return CampaignConfig.model_validate(
            {
                **values,
                "name": "live",
                "models": [wanted.model.model_dump(exclude_none=True)],
                "benchmarks": [{"name": "demo"}],
                "engine": wanted.engine.model_dump(exclude_none=True),
            }
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{place} = {first['input']!r}: {first['msg']}") from error


def _campaign_of(release: Release, model: str) -> Mapping[str, Any]:
    """Return a release's entry of the campaign that measured a model."""
    name = release.curves.model_names[model_number(release, model)]
    for campaign in release.manifest["campaigns"]:
        if any(record["name"] == name for record in campaign["models"]):
            found: Mapping[str, Any] = campaign
            return found
    raise MisuseError(f"{release.folder}: its manifest names no campaign of {name}")


def check_same_model(release: Release, campaign: Mapping[str, Any], model: LocatedModel) -> None:
    """Refuse another model than the release was measured with: its measurements say nothing of it.

    Raises
    ------
    data.errors.MisuseError
        Says what differs: family, tokenizer or weights.
    """
    record = next(entry for entry in campaign["models"] if entry["name"] == model.name)
    family = record.get("family", model.family.name)
    if family != model.family.name:
        raise MisuseError(
            f"{release.folder}: was measured with a model of the family {family}, and "
            f"{model.folder} is of {model.family.name}; nothing was started"
        )
    for what, found in (
        ("tokenizer", tokenizer_hash(model.folder)),
        ("weights", weights_hash(model.folder)),
    ):
        if record[f"{what}_hash"] != found:
            raise MisuseError(
                f"{release.folder}: was measured with a model {model.name} of another "
                f"{what} than {model.folder}; measure this one"
            )


def live_tasks(
    ready: Ready,
    benchmarks: Sequence[BenchmarkConfig],
    *,
    trajectories: int = 1,
    split: str | None = "test",
) -> list[LiveTask]:
    """Return the trajectories to make, in order of benchmark, question and number.

    Parameters
    ----------
    ready
        The model and the method.
    benchmarks
        Which questions; with a release and none named, the release's.
    trajectories
        Of every question.
    split
        Of a release's questions only this one; None for all of them, or all that are named.

    Raises
    ------
    data.errors.MisuseError
        If there are none.
    """
    release, plan = ready.release, ready.plan
    numbers = {} if release is None else {key: n for n, key in enumerate(release.question_ids)}
    named = list(benchmarks)
    if not named and release is not None:
        named = [BenchmarkConfig(name=name) for name in dict.fromkeys(b for b, _ in numbers)]
    seed = SplitRule().seed if release is None else int(release.manifest["splits"]["seed"])
    tasks: list[LiveTask] = []
    for entry in named:
        benchmark, questions = load_questions(entry, plan.config.prompts.wording)
        rows = question_rows(plan.config, plan.subject, benchmark, questions).to_pylist()
        for question, row in zip(questions, rows, strict=True):
            number = numbers.get((benchmark.name, question.id))
            outside = False
            if release is not None and (split is not None or not benchmarks):
                outside = number is None or split not in (None, SPLITS[release.split_q[number]])
            if outside or row["fit"] == "too_long":
                continue
            tasks += [
                LiveTask(
                    benchmark=benchmark.name,
                    question=question,
                    trajectory=trajectory,
                    prompt_ids=tuple(row["prompt_ids"]),
                    thinking_limit=row["thinking_limit"],
                    lot=lot(seed, benchmark.name, question.id),
                    session=len(tasks) + trajectory,
                )
                for trajectory in range(trajectories)
            ]
    if not tasks:
        what = f" in the {split} split of {release.folder}" if release is not None else ""
        raise MisuseError(f"there are no questions to ask{what}; name others with --benchmark")
    return tasks


def asked_record(ready: Ready, tasks: Sequence[LiveTask]) -> dict[str, Any]:
    """Return what is asked as plain values: what a run must be to continue."""
    plan, policy = ready.plan, ready.plan.policy
    settings = plan.config.settings()
    kept = ("generation.", "probing.", "sampling.", "seed", "models[0].name")
    return {
        "settings": {
            key: value
            for key, value in settings.items()
            if key.startswith(kept) and key != "generation.trajectories"
        },
        "method": None if policy is None else policy.label,
        "setting": None if policy is None else json.loads(json.dumps(policy.setting)),
        "release": None if ready.release is None else ready.release.checksum,
        "weights": weights_hash(ready.model.folder),
        "engine": ready.wanted.engine.name,
        "questions": [[t.benchmark, t.question.id, t.trajectory] for t in tasks],
    }


def arms_of(ready: Ready) -> Iterator[str]:
    """Yield what is measured: full thinking, and the method."""
    yield FULL
    if ready.plan.policy is not None:
        yield METHOD
