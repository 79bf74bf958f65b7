"""The manifest: what a campaign's folder is, so that rows can be trusted and repeated.

``manifest.json`` holds the settings that determine the rows and their hash, the models with the
hashes of weights and tokenizer, the questions of every cell, package versions and environment, and
the work of each stage so far. It is strict JSON: no NaN, no infinity.
"""

import hashlib
import json
import math
import os
import platform
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from data.errors import MisuseError, StoreError
from data.prompts import Prompts
from stp.campaign.config import CampaignConfig, settings_hash
from stp.campaign.tables import SCHEMA_VERSION, Work
from stp.campaign.units import Cell
from stp.engines.base import Usage
from stp.formats import ModelFamily
from stp.records import package_versions

_PACKAGES = (
    "stp-engine",
    "math-verify",
    "latex2sympy2_extended",
    "numpy",
    "pyarrow",
    "tokenizers",
    "torch",
    "transformers",
    "vllm",
)


_MOST_QUESTIONS = 10_000_000
"""Of a cell. How many there are says their shard; this holds where that is gone."""


_DIGEST = "digest"


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ModelRecord(_Record):
    """A model of the campaign.

    ``turn_end`` holds the ids that end an answer, by the place that names them (see
    :mod:`stp.formats.turn_end`); empty in campaigns from before it was recorded. ``engine`` is what
    the engine said of itself when it was opened first; empty before that. ``made_tokenizer_hash``
    is that of the ``tokenizer.json`` which was made where the model has none.
    """

    name: str
    path: str
    revision: str | None
    weights_hash: str
    tokenizer_hash: str
    context_limit: int
    family: dict[str, Any]
    turn_end: dict[str, list[int]] = Field(default_factory=dict)
    engine: dict[str, Any] = Field(default_factory=dict)
    made_tokenizer_hash: str = ""

    def difference(self, other: "ModelRecord") -> str | None:
        """Return the name of a field by which another record is of another model, or None.

        Of families only what they do is compared: a folder of an earlier version may know less of
        where its settings are from.
        """
        for field in ("weights_hash", "tokenizer_hash", "context_limit"):
            if getattr(self, field) != getattr(other, field):
                return field
        own, others = (ModelFamily.model_validate(record.family) for record in (self, other))
        return None if own.settings() == others.settings() else "family"


class MendingRecord(_Record):
    """References that were taken into a campaign later.

    ``file`` and ``sha256`` say from where, ``changed`` the ids of the questions.
    """

    file: str
    sha256: str
    changed: list[str]
    at: str


class LotRecord(_Record):
    """Questions × trajectories that a campaign was begun with, or that it grew by later.

    ``questions`` and ``trajectories`` are half-open ranges, cut into units of a fixed size.
    ``probes`` is what every position was to get then, and ``campaign`` the digest that its units
    carry: their rows stay what they are however the campaign grows.
    """

    questions: tuple[int, int]
    trajectories: tuple[int, int]
    questions_per_unit: int = Field(ge=1)
    trajectories_per_unit: int = Field(ge=1)
    probes: int
    campaign: str


class CellRecord(_Record):
    """The questions of a model on a benchmark.

    ``digest`` is that of their shard as they were asked; ``group`` the benchmark's reporting group,
    empty if it was not recorded. ``references`` holds by question id the references that count
    instead of those asked with, ``mended_digest`` is the shard's digest with these, and
    ``mendings`` says where they came from. ``lots`` are the ranges of a cell that has grown.
    """

    model: str
    benchmark: str
    questions: int = Field(ge=0, le=_MOST_QUESTIONS)
    shortened: int = Field(ge=0)
    too_long: int = Field(ge=0)
    digest: str
    group: str = ""
    references: dict[str, str] = Field(default_factory=dict)
    mended_digest: str = ""
    mendings: list[MendingRecord] = Field(default_factory=list)
    lots: list[LotRecord] = Field(default_factory=list)

    @property
    def shard_digest(self) -> str:
        """The digest that the shard of the questions has now."""
        return self.mended_digest or self.digest

    @property
    def grading_mark(self) -> str:
        """What verdicts on these references carry after the checker's version; "" for the first.

        Without it, verdicts on earlier references would be taken for verdicts on these.
        """
        return f" references {self.mended_digest[:16]}" if self.mended_digest else ""

    @property
    def cell(self) -> Cell:
        """The cell itself, as units are planned in it."""
        return Cell(model=self.model, benchmark=self.benchmark, questions=self.questions)


class StageRecord(_Record):
    """The work of a stage over all of its shards.

    ``prefill_amplification`` is the prefilled tokens over the least that the engine's blocks allow;
    None before any.
    """

    units: int = 0
    samples: int = 0
    prefill_tokens: int = 0
    prefill_least_tokens: int = 0
    prefill_block_least_tokens: int = 0
    prefill_amplification: float | None = None
    generated_tokens: int = 0
    seconds: float = 0.0

    def add(self, work: Work) -> None:
        """Count the work of one more unit."""
        self.units += 1
        self.samples += work.samples
        self.prefill_tokens += work.usage.prefill_tokens
        self.prefill_least_tokens += work.usage.prefill_least_tokens
        self.prefill_block_least_tokens += work.usage.prefill_block_least_tokens
        self.generated_tokens += work.usage.generated_tokens
        self.seconds += work.seconds
        self._amplify()

    def join(self, other: "StageRecord") -> None:
        """Count the work of further units."""
        self.units += other.units
        self.samples += other.samples
        self.prefill_tokens += other.prefill_tokens
        self.prefill_least_tokens += other.prefill_least_tokens
        self.prefill_block_least_tokens += other.prefill_block_least_tokens
        self.generated_tokens += other.generated_tokens
        self.seconds += other.seconds
        self._amplify()

    def _amplify(self) -> None:
        if self.prefill_block_least_tokens:
            self.prefill_amplification = round(self.usage.block_amplification, 4)

    @property
    def usage(self) -> Usage:
        """The tokens alone."""
        return Usage(
            prefill_tokens=self.prefill_tokens,
            prefill_least_tokens=self.prefill_least_tokens,
            prefill_block_least_tokens=self.prefill_block_least_tokens,
            generated_tokens=self.generated_tokens,
        )


class Manifest(_Record):
    """The content of ``manifest.json``."""

    schema_version: int = SCHEMA_VERSION
    created: str
    config_hash: str
    settings: dict[str, Any]
    models: list[ModelRecord]
    cells: list[CellRecord]
    prompts: dict[str, Any] = Field(default_factory=lambda: Prompts().record())
    checker_version: str | None = None
    packages: dict[str, str]
    environment: dict[str, Any]
    stages: dict[str, StageRecord] = Field(default_factory=dict)

    def model_record(self, name: str) -> ModelRecord:
        """Return the record of a model of the campaign."""
        return next(record for record in self.models if record.name == name)

    def cells_of(self, model: str | None, benchmark: str | None) -> list[CellRecord]:
        """Return the cells of a model and a benchmark; None stands for all.

        Raises
        ------
        data.errors.MisuseError
            If the campaign has none of that name; the message lists those that it has.
        """
        for what, wanted in (("model", model), ("benchmark", benchmark)):
            names = sorted({getattr(record, what) for record in self.cells})
            if wanted is not None and wanted not in names:
                raise MisuseError(
                    f"no {what} {wanted!r} in this campaign; it has {', '.join(names)}"
                )
        return [
            record
            for record in self.cells
            if model in (None, record.model) and benchmark in (None, record.benchmark)
        ]

    def to_json(self) -> str:
        """Return the file's text, with a digest of all else that it says."""
        values = json.loads(strict_json(self.model_dump(mode="python")))
        return strict_json({**values, _DIGEST: _digest(values)})


def new_manifest(
    config: CampaignConfig, models: list[ModelRecord], cells: list[CellRecord]
) -> Manifest:
    """Return the manifest of a campaign that starts now, here."""
    return Manifest(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        config_hash=config.content_hash(),
        settings=config.settings(),
        prompts=config.prompts.wording.record(),
        models=models,
        cells=cells,
        packages=package_versions(_PACKAGES),
        environment={
            "python": platform.python_version(),
            "system": platform.system(),
            "machine": platform.machine(),
            "processors": os.cpu_count(),
            "byte_order": sys.byteorder,
        },
    )


def parse_manifest(text: str, *, path: str) -> Manifest:
    """Read a manifest.

    Raises
    ------
    data.errors.StoreError
        If it is not a manifest, was changed since it was written, or is one of another schema
        version.
    """
    try:
        values = json.loads(text)
        found = values["schema_version"]
        if found != SCHEMA_VERSION:
            raise StoreError(
                f"{path}: the campaign has schema version {found}, and this release reads "
                f"{SCHEMA_VERSION}; use the release that wrote it ({values.get('packages')})"
            )
        # Manifests of the first releases have none.
        if (digest := values.pop(_DIGEST, None)) not in (None, _digest(values)):
            raise ValueError(f"its content is not what was written: its digest was {digest:.12}")
        manifest = Manifest.model_validate(values)
        if settings_hash(manifest.settings) != manifest.config_hash:
            raise ValueError("its settings are not those of its config_hash")
        return manifest
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        why = str(error).splitlines()[0]
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_input=False)[0]
            why = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise StoreError(
            f"{path}: not a whole manifest ({why}); restore it from a copy, "
            "or start the campaign in another folder"
        ) from error


def _digest(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of plain values, whatever the order of their keys."""
    return text_hash(json.dumps(values, sort_keys=True))


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text in UTF-8, as hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def strict_json(value: object) -> str:
    """Return indented JSON in which a number that is not finite is null, with the reason beside it.

    Examples
    --------
    >>> print(strict_json({"rate": float("nan")}))
    {
      "rate": null,
      "rate_reason": "nan is not a number in JSON"
    }
    """
    return json.dumps(_finite(value), indent=2, allow_nan=False, ensure_ascii=False)


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        result: dict[str, object] = {}
        for key, item in value.items():
            result[str(key)] = _finite(item)
            if isinstance(item, float) and not math.isfinite(item):
                result[f"{key}_reason"] = f"{item} is not a number in JSON"
        return result
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
