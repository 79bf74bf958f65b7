"""What a leaderboard row holds, for rows that come from elsewhere."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from evaluator.otbench.summary import SUMMARIES
from oracle.actions import Strategy

_Number = Annotated[float, Field(allow_inf_nan=False)]
_Whole = Annotated[int, Field(ge=0, lt=2**63)]
_MOST_REPLICATES = 10_000_000


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")


class MethodPart(_Part):
    """Which method."""

    name: str
    spec: Annotated[str, Field(min_length=1)]
    origin: str
    strategy: Strategy
    given: dict[str, Any]
    trivial: bool


class ReleasePart(_Part):
    """Which release."""

    name: str
    checksum: str


class ResamplingPart(_Part):
    """How intervals were made."""

    replicates: Annotated[int, Field(ge=0, le=_MOST_REPLICATES)]
    seed: _Whole


class SelectedPart(_Part):
    """The setting that validation questions selected."""

    index: _Whole
    setting: Any


class ValuePart(_Part):
    """A number with its interval."""

    value: _Number | None
    low: _Number | None = None
    high: _Number | None = None


class PointPart(_Part):
    """An operating point."""

    setting: Any
    tokens_fraction: _Number
    accuracy: _Number
    on_curve: bool


class RowModel(_Part):
    """A row, as far as anything here reads it."""

    label: Annotated[str, Field(min_length=1)]
    method: MethodPart
    release: ReleasePart
    resampling: ResamplingPart
    full_accuracy: _Number
    zero_accuracy: _Number
    selected: SelectedPart
    summary: dict[str, ValuePart]
    points: Annotated[list[PointPart], Field(min_length=1)]
    versions: dict[str, str]
    digest: str
    run: dict[str, Any]

    @model_validator(mode="after")
    def _check_together(self) -> "RowModel":
        missing = SUMMARIES.keys() - self.summary.keys()
        if missing:
            raise ValueError(f"summary: no {min(missing)}")
        if self.selected.index >= len(self.points):
            raise ValueError("selected: there is no such point")
        return self
