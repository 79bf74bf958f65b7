"""What a campaign is asked to do: one TOML file, read into one frozen value.

An example::

    name = "demo"

    [[models]]
    path = "demo"

    [[benchmarks]]
    name = "demo"
    limit = 40

    [generation]
    trajectories = 8
    thinking_limit = 512

    [probing]
    step_tokens = 16

Every setting that is left out has the value of the paper (002, section 4.1 and appendix A). This
module knows nothing of stores and benchmarks, and of engines their names.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    field_validator,
    model_validator,
)

from data.errors import ConfigError
from data.hints import did_you_mean, nearest
from stp.engines.names import engine_names

SCHEDULING_OPTIONS = frozenset(
    {
        # transformers
        "device",
        "max_rows",
        "memory_bytes",
        "suffix_chunk_tokens",
        "threads",
        "trunk_chunk_tokens",
        # server
        "api_key_env",
        "attempts",
        "concurrency",
        "timeout_seconds",
        "url",
        # vLLM
        "async_scheduling",
        "cache_share",
        "cpu_offload_gb",
        "data_parallel_size",
        "distributed_executor_backend",
        "enforce_eager",
        "gpu_memory_utilization",
        "kv_cache_memory_bytes",
        "max_num_batched_tokens",
        "max_num_seqs",
        "max_parallel_loading_workers",
        "num_gpu_blocks_override",
        "pipeline_parallel_size",
        "swap_space",
        "tensor_parallel_size",
    }
)
"""Engine options that say how the work is done, not what is asked; a folder accepts new values."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")

LARGEST_COUNT = 2**31 - 1
"""The tables hold counts as 32-bit integers."""

LARGEST_REPETITION = 1_000_000
"""Most samples of one thing. Nobody wants more; a slip of the keyboard is caught before it runs."""

Count = Annotated[int, Field(ge=1, le=LARGEST_COUNT, strict=True)]
Repetition = Annotated[int, Field(ge=1, le=LARGEST_REPETITION, strict=True)]


Mode = Literal["thinking", "direct", "thinking_off"]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ModelConfig(_Section):
    """A reasoning model.

    Attributes
    ----------
    path
        A folder, ``"demo"`` for the model shipped with the project, or an id on the Hugging Face
        hub. A relative folder is looked for beside the campaign file, then in the current folder.
    name
        What the model is called in tables, reports and seeds. Left out: the last part of ``path``.
    family
        Its thinking format: a family's name or a TOML file. Left out: found by the model's name.
    revision
        Hub revision. Left out: the hub's main one.
    """

    path: str = Field(min_length=1)
    name: str = Field(default="", pattern=r"^[A-Za-z0-9][A-Za-z0-9._+ -]*$", max_length=200)
    family: str | None = None
    revision: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_from_path(cls, values: object) -> object:
        if isinstance(values, Mapping) and isinstance(values.get("path"), str):
            last = str(values["path"]).rstrip("/").rpartition("/")[2]
            return {**values, "name": values.get("name") or last}
        return values


class BenchmarkConfig(_Section):
    """A benchmark, whole or its first questions.

    Attributes
    ----------
    name
        A registered benchmark, or a TOML file that describes one's own.
    limit
        Number of questions. Left out: all.
    data_dir
        Folder with the question file, where the benchmark needs one.
    """

    name: str = Field(min_length=1)
    limit: Count | None = None
    data_dir: str | None = None


class EngineConfig(_Section):
    """What runs the models.

    Attributes
    ----------
    name
        An engine: ``"transformers"``, ``"vllm"`` or ``"server"``.
    actors
        Engines side by side with ``--ray``. Left out: as many as the cluster's GPUs allow, or one a
        node without GPUs.
    gpus_per_actor
        GPUs of each. Left out: as many as it runs in parallel (``tensor_parallel_size``), or none
        where the cluster has none.
    stall_seconds
        How long it may give nothing before it counts as hanging, and the run ends.
    options
        What the engine gets as it is; a table for an argument that takes several values.
    """

    name: str = "transformers"
    actors: Count | None = None
    gpus_per_actor: int | None = Field(default=None, ge=0, le=LARGEST_COUNT, strict=True)
    stall_seconds: float = Field(default=3600.0, gt=0)
    options: dict[str, JsonValue] = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        names = engine_names()
        if name not in names:
            raise ValueError(
                f"engine.name = {json.dumps(name)}: no such engine{did_you_mean(name, names)} "
                f"(there are {', '.join(names)})"
            )
        return name


class GenerationConfig(_Section):
    """How trajectories are made.

    Attributes
    ----------
    mode
        ``"thinking"``: the model thinks, and is probed along the way. ``"direct"``: the prompt asks
        for an answer without reasoning. ``"thinking_off"``: thinking is turned off. The last two
        have one answer per trajectory and no thinking.
    trajectories
        Per question.
    thinking_limit
        Most thinking tokens of a trajectory.
    context_limit
        Most tokens, prompt and output together. The engine's own limit counts where it is lower.
    answer_tokens
        Most tokens of the original answer, after the thinking.
    """

    mode: Mode = "thinking"
    trajectories: Repetition = 16
    thinking_limit: Count = 32_768
    context_limit: Count = 65_536
    answer_tokens: Count = 4_096


class ProbingConfig(_Section):
    """How trajectories are probed.

    Attributes
    ----------
    step_tokens
        Target length b of a step, in tokens.
    probes
        Answers sampled at every position.
    answer_tokens
        Most tokens of a probe's answer.
    """

    step_tokens: Count = 256
    probes: Repetition = 16
    answer_tokens: Count = 4_096


class SamplingConfig(_Section):
    """Sampling parameters that replace the model family's. Left out: the family's."""

    temperature: float | None = Field(default=None, ge=0, strict=True)
    top_p: float | None = Field(default=None, gt=0, le=1, strict=True)
    top_k: int | None = Field(default=None, ge=0, le=LARGEST_COUNT, strict=True)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2, strict=True)


class ShardConfig(_Section):
    """How the work is cut into units. A unit is lost when a run is killed in its middle.

    Attributes
    ----------
    questions
        Questions in a unit.
    trajectories
        Trajectories of each question in a unit. Left out: all of them.
    """

    questions: Count = 4
    trajectories: Count | None = None


class CampaignConfig(_Section):
    """A whole campaign: models × benchmarks × trajectories × positions × probes.

    Attributes
    ----------
    name
        The title of its report. Left out: the campaign file's name.
    seed
        Every sample's seed is made from this one and the sample's place in the campaign.
    models, benchmarks
        Every model is run on every benchmark.
    engine, generation, probing, sampling, shards
        As their classes say.
    """

    name: str = Field(default="campaign", min_length=1)
    seed: int = Field(default=20_260_721, ge=0, lt=2**63, strict=True)
    models: tuple[ModelConfig, ...] = Field(min_length=1)
    benchmarks: tuple[BenchmarkConfig, ...] = Field(min_length=1)
    engine: EngineConfig = EngineConfig()
    generation: GenerationConfig = GenerationConfig()
    probing: ProbingConfig = ProbingConfig()
    sampling: SamplingConfig = SamplingConfig()
    shards: ShardConfig = ShardConfig()

    @model_validator(mode="before")
    @classmethod
    def _one_answer(cls, values: object) -> object:
        """Set the number of probes of a campaign whose answers are the trajectories' own."""
        if not isinstance(values, Mapping):
            return values
        generation, probing = values.get("generation"), values.get("probing", {})
        if not isinstance(generation, Mapping) or not isinstance(probing, Mapping):
            return values
        if generation.get("mode", "thinking") == "thinking" or "probes" in probing:
            return values
        return {**values, "probing": {**probing, "probes": 1}}

    @model_validator(mode="after")
    def _probes_fit_mode(self) -> "CampaignConfig":
        if self.generation.mode != "thinking" and self.probing.probes != 1:
            raise ValueError(
                f"probing.probes is {self.probing.probes}, but with generation.mode = "
                f'"{self.generation.mode}" every trajectory is one answer: leave it out'
            )
        return self

    @model_validator(mode="after")
    def _distinct_names(self) -> "CampaignConfig":
        for key, names in (
            ("models", [model.name for model in self.models]),
            ("benchmarks", [benchmark.name for benchmark in self.benchmarks]),
        ):
            twice = {name for name in names if names.count(name) > 1}
            if twice:
                raise ValueError(f"{key}: the name {min(twice)!r} is used twice; give each its own")
        return self

    @property
    def trajectories_per_unit(self) -> int:
        """Trajectories of each question in a unit, never more than there are."""
        wanted = self.shards.trajectories or self.generation.trajectories
        return min(wanted, self.generation.trajectories)

    def settings(self) -> dict[str, Any]:
        """Return what determines the rows, by dotted key; everything else may change on resume.

        Left out are the campaign's name, where a model or a question file lies (their content is
        compared by hash), and the engine options of :data:`SCHEDULING_OPTIONS`.
        """
        values = self.model_dump(mode="json")
        del values["name"]
        for model in values["models"]:
            del model["path"], model["family"]
        for benchmark in values["benchmarks"]:
            del benchmark["data_dir"]
            benchmark["name"] = Path(benchmark["name"]).name
        if self.generation.mode == "thinking":
            # Campaigns from before there were modes have none in their settings.
            del values["generation"]["mode"]
        values["shards"]["trajectories"] = self.trajectories_per_unit
        options = values["engine"]["options"]
        # How long a hang may last, and how many engines there are, say nothing of the rows.
        for key in ("stall_seconds", "actors", "gpus_per_actor"):
            del values["engine"][key]
        values["engine"]["options"] = {
            key: value for key, value in options.items() if key not in SCHEDULING_OPTIONS
        }
        return dict(_flatten(values))

    def content_hash(self) -> str:
        """Return the SHA-256 of :meth:`settings`, as 64 hexadecimal digits."""
        text = json.dumps(self.settings(), sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def to_toml(self) -> str:
        """Return the campaign file with every setting written out (except those that are unset)."""
        values = self.model_dump(mode="json", exclude_none=True)
        lines = [f"{key} = {_toml_value(values.pop(key))}" for key in ("name", "seed")]
        for key in ("models", "benchmarks"):
            for entry in values.pop(key):
                lines += ["", f"[[{key}]]", *_toml_lines(entry)]
        options = values["engine"].pop("options")
        for key, entry in values.items():
            lines += ["", f"[{key}]", *_toml_lines(entry)]
            if key == "engine" and options:
                lines += ["", "[engine.options]", *_toml_lines(options)]
        return "\n".join(lines) + "\n"


def load_config(path: str | Path) -> CampaignConfig:
    """Read a campaign file.

    Folders named in it that exist beside the file become absolute, so that the value means the
    same from everywhere.

    Raises
    ------
    data.errors.ConfigError
        If the file cannot be read, is no TOML, or holds a key or a value that cannot be used. One
        line: the file, the key, what is wrong, what is allowed.
    """
    path = Path(path)
    try:
        # Some editors put a byte order mark first.
        text = path.read_text(encoding="utf-8-sig")
    except IsADirectoryError as error:
        raise ConfigError(
            f"{path}: a folder without a campaign in it; give a campaign file (TOML), or the "
            "folder of a campaign that was started"
        ) from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the campaign file: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: the campaign file is not UTF-8 text") from error
    return parse_config(text, source=str(path), folder=path.parent, name=path.stem)


def parse_config(
    text: str, *, source: str, folder: Path | None = None, name: str = "campaign"
) -> CampaignConfig:
    """Read a campaign from TOML text.

    Parameters
    ----------
    text
        The content of a campaign file.
    source
        What errors call it.
    folder
        Where folders named in it are looked for first; nowhere if left out.
    name
        The campaign's name if the text gives none.

    Raises
    ------
    data.errors.ConfigError
        As :func:`load_config`.
    """
    try:
        values = tomllib.loads(text)
    except RecursionError as error:
        raise ConfigError(f"{source}: not a campaign file: it is nested too deeply") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source}: not valid TOML: {error}") from error
    values.setdefault("name", name)
    if folder is not None:
        _anchor(values, folder)
    try:
        return CampaignConfig.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{source}: {_explain(error)}") from error


def differences(
    stored: Mapping[str, Any],
    asked: Mapping[str, Any],
    *,
    before: str = "in the folder",
    now: str = "now",
) -> list[str]:
    """Return one phrase for every dotted key whose value differs, in order of the keys.

    ``before`` and ``now`` say where the two values stand.
    """
    found = []
    for key in sorted(stored.keys() | asked.keys()):
        was, is_now = stored.get(key), asked.get(key)
        if was != is_now:
            found.append(f"{key} is {json.dumps(was)} {before} and {json.dumps(is_now)} {now}")
    return found


def _anchor(values: dict[str, Any], folder: Path) -> None:
    """Make the relative folders that exist beside the campaign file absolute."""
    for table, key in (
        ("models", "path"),
        ("models", "family"),
        ("benchmarks", "name"),
        ("benchmarks", "data_dir"),
    ):
        entries = values.get(table)
        for entry in entries if isinstance(entries, list) else []:
            value = entry.get(key) if isinstance(entry, dict) else None
            if isinstance(value, str) and value not in ("", "demo") and _is_there(folder / value):
                if key == "name" and not value.endswith(".toml"):
                    continue
                if table == "models" and key == "path":
                    entry.setdefault("name", value.rstrip("/").rpartition("/")[2])
                entry[key] = str((folder / value).resolve())


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # No system has a name so long.
        return False


def _flatten(value: object, key: str = "") -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _flatten(item, f"{key}.{name}" if key else name)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from _flatten(item, f"{key}[{index}]")
    else:
        yield key, value


def _toml_value(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(_toml_lines(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    # JSON's strings, numbers and booleans are TOML's, but for the DEL character.
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("\x7f", "\\u007f")


def _toml_lines(entry: Mapping[str, object]) -> list[str]:
    return [
        f"{key if _BARE_KEY.fullmatch(key) else _toml_value(key)} = {_toml_value(value)}"
        for key, value in entry.items()
    ]


def _explain(error: ValidationError) -> str:
    """Return pydantic's first complaint as one line, with the number of further ones."""
    problems = error.errors(include_url=False)
    # An unknown key explains a missing one (a misspelt "models"), so it comes first.
    problems.sort(key=lambda problem: problem["type"] != "extra_forbidden")
    first = problems[0]
    location = _place(first)
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    key = key.lstrip(".")
    message = _complaint(first["type"], key, location, first["msg"], first.get("input"))
    places = {tuple(_place(problem)) for problem in problems}
    # A misspelt key is also a missing one, and leaves its table one entry short: that is one slip.
    meant = (*location[:-1], _meant(location)) if first["type"] == "extra_forbidden" else ()
    more = sum(
        list(place[: len(location)]) != location
        and place != meant
        and not any(len(place) < len(other) and other[: len(place)] == place for other in places)
        for place in places
    )
    return message + (f" (and {more} more to mend after it)" if more else "")


def _meant(location: list[Any]) -> str | None:
    """Return the key that is allowed in a place and is nearest to the unknown one given."""
    return nearest(str(location[-1]), _fields_at(location[:-1]))


def _place(problem: Mapping[str, Any]) -> list[Any]:
    """Return where a complaint belongs, without the type that was tried of several allowed."""
    types = ("str", "bool", "int", "float", "list", "dict")
    return [part for part in problem["loc"] if part not in types]


def _complaint(kind: str, key: str, location: list[Any], text: str, value: object) -> str:
    if kind == "extra_forbidden":
        known = _fields_at(location[:-1])
        hint = did_you_mean(str(location[-1]), known)
        return f"unknown key {key!r}{hint} (allowed here: {', '.join(known)})"
    if kind == "missing":
        table = f"add a [[{key}]] table" if key in ("models", "benchmarks") else f"set {key!r}"
        return f"{key!r} is missing; {table}"
    if kind == "value_error":
        return text.removeprefix("Value error, ")
    if kind == "too_short":
        return f"{key!r} is empty; add a [[{key}]] table"
    if kind == "string_pattern_mismatch":
        return (
            f"{key} = {json.dumps(value, default=str)}: a model's name begins with a letter or a "
            "digit, and has nothing but these, spaces and . _ + -; set another 'name'"
        )
    if kind in ("tuple_type", "model_type", "dict_type"):
        header = f"[[{key}]]" if kind == "tuple_type" else f"[{key.partition('[')[0]}]"
        return f"{key!r} must be written as a {header} table"
    text = text.replace("Input should be", "must be").replace("input should be", "must be")
    return f"{key} = {json.dumps(value, default=str)}: {text[0].lower()}{text[1:]}"


def _fields_at(location: list[Any]) -> list[str]:
    """Return the key names allowed in the table at ``location``."""
    section: Any = CampaignConfig
    for part in location:
        if isinstance(part, int):
            continue
        field = section.model_fields.get(part) if hasattr(section, "model_fields") else None
        if field is None:
            return []
        annotation = field.annotation
        section = (get_args(annotation) or (annotation,))[0]
    return list(getattr(section, "model_fields", {}))
