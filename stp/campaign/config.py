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

What each table may hold is in :mod:`stp.campaign.sections`; here are the whole file, how it is read
and compared, and the errors of a wrong file. Nothing is known of stores and benchmarks.
"""

import hashlib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import tomli_w
from pydantic import Field, ValidationError, model_validator

from data.errors import ConfigError
from data.files import plain_file
from data.hints import did_you_mean, nearest
from stp.campaign.sections import (
    SCHEDULING_OPTIONS,
    BenchmarkConfig,
    EngineConfig,
    GenerationConfig,
    ModelConfig,
    ProbingConfig,
    PromptsConfig,
    SamplingConfig,
    Section,
    ShardConfig,
)
from stp.records import flattened


class CampaignConfig(Section):
    """A whole campaign: models × benchmarks × trajectories × positions × probes.

    Attributes
    ----------
    name
        The title of its report. Left out: the campaign file's name.
    seed
        Every sample's seed is made from this one and the sample's place in the campaign.
    models, benchmarks
        Every model is run on every benchmark.
    engine, generation, probing, sampling, shards, prompts
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
    prompts: PromptsConfig = PromptsConfig()

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
        if self.generation.mode != "thinking" and self.probing.plan != "uniform":
            raise ValueError(
                'probing.plan = "adaptive" chooses among positions, and with generation.mode = '
                f'"{self.generation.mode}" there is one: leave it out'
            )
        if self.generation.mode != "thinking" and self.probing.answer_opening:
            raise ValueError(
                "probing.answer_opening opens answers after thinking, and with generation.mode = "
                f'"{self.generation.mode}" there is none: leave it out'
            )
        if self.generation.mode != "thinking" and self.probing.answer_end != "turn":
            raise ValueError(
                "probing.answer_end ends answers after thinking, and with generation.mode = "
                f'"{self.generation.mode}" there is none: leave it out'
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

    def with_prompts(self, path: str) -> "CampaignConfig":
        """Return the same campaign in the words of a file.

        Raises
        ------
        data.errors.ConfigError, data.errors.MisuseError
            As :func:`data.prompts.load_prompts`.
        """
        return self.model_copy(update={"prompts": PromptsConfig.model_validate(path)})

    @property
    def trajectories_per_unit(self) -> int:
        """Trajectories of each question in a unit, never more than there are."""
        wanted = self.shards.trajectories or self.generation.trajectories
        return min(wanted, self.generation.trajectories)

    def settings(self) -> dict[str, Any]:
        """Return what determines the rows, by dotted key; everything else may change on resume.

        Left out are the campaign's name, where a model or a question file lies (their content is
        compared by hash), and the engine options of
        :data:`stp.campaign.sections.SCHEDULING_OPTIONS`.
        """
        values = self.model_dump(mode="json")
        del values["name"]
        if self.prompts == PromptsConfig(version="1"):
            # Campaigns from before wordings were named were asked with our first one.
            del values["prompts"]
        for model in values["models"]:
            del model["path"], model["family"]
        for benchmark in values["benchmarks"]:
            del benchmark["data_dir"]
            benchmark["name"] = Path(benchmark["name"]).name
        if self.probing.plan == "uniform":
            # Nor had they a plan.
            for key in ("plan", "first_probes", "rounds", "share"):
                del values["probing"][key]
        if not self.probing.answer_opening:
            # Campaigns from before there were openings have none in their settings.
            del values["probing"]["answer_opening"]
        if self.probing.answer_end == "turn":
            # Nor had they a choice of what ends an answer.
            del values["probing"]["answer_end"]
        if self.probing.steps == "merged":
            # Nor have campaigns from before there was another way to cut steps.
            del values["probing"]["steps"]
        if self.generation.mode == "thinking":
            # Campaigns from before there were modes have none in their settings.
            del values["generation"]["mode"]
        values["shards"]["trajectories"] = self.trajectories_per_unit
        options = values["engine"]["options"]
        # How long a hang may last, and how many engines there are, say nothing of the rows.
        for key in ("stall_seconds", "units_in_flight", "actors", "gpus_per_actor"):
            del values["engine"][key]
        values["engine"]["options"] = {
            key: value for key, value in options.items() if key not in SCHEDULING_OPTIONS
        }
        return dict(flattened(values))

    def content_hash(self) -> str:
        """Return the SHA-256 of :meth:`settings`, as 64 hexadecimal digits."""
        return settings_hash(self.settings())

    def to_toml(self) -> str:
        """Return the campaign file with every setting written out (except those that are unset)."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))


def settings_hash(settings: Mapping[str, Any]) -> str:
    """Return the SHA-256 of :meth:`CampaignConfig.settings`, as 64 hexadecimal digits."""
    text = json.dumps(settings, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def load_config(path: str | Path) -> CampaignConfig:
    """Read a campaign file.

    Folders named in it that exist beside the file become absolute, so that the value means the
    same from everywhere.

    Raises
    ------
    data.errors.ConfigError
        If the file cannot be read, is not TOML, or holds a key or a value that cannot be used. One
        line: the file, the key, what is wrong, what is allowed.
    """
    path = Path(path)
    try:
        # Some editors put a byte order mark first.
        text = plain_file(path).read_text(encoding="utf-8-sig")
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


def _anchor(values: dict[str, Any], folder: Path) -> None:
    """Make the relative folders that exist beside the campaign file absolute."""
    prompts = values.get("prompts")
    if isinstance(prompts, str) and _is_there(folder / prompts):
        values["prompts"] = str((folder / prompts).resolve())
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
    return message + (f" (and {more} more problems after it)" if more else "")


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
        name, listed, _ = key.partition("[")
        header = f"[[{name}]]" if kind == "tuple_type" or listed else f"[{name}]"
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
