"""What a leaderboard row holds: checked where it is made, and where it comes from elsewhere."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from evaluator.otbench.summary import SUMMARIES
from oracle.actions import Strategy

# Whole numbers stay whole: a row is written again as it was read.
_Number = Annotated[int, Field(strict=True)] | Annotated[float, Field(allow_inf_nan=False)]
_Whole = Annotated[int, Field(ge=0, lt=2**63)]
# An accuracy of 300 % from elsewhere is not a result.
_Share = Annotated[_Number, Field(ge=0, le=1)]
_Positive = Annotated[_Number, Field(ge=0)]
MOST_REPLICATES = 100_000
"""A check of a row from elsewhere repeats it with as many replicates, so there is a limit."""

_SHARES = ("best_accuracy", "selected_accuracy")
"""Of a row's summary, the numbers that are accuracies."""


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow", frozen=True)


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


class Resampling(_Part):
    """How intervals were made: replicates (0: none) and their seed."""

    replicates: Annotated[int, Field(ge=0, le=MOST_REPLICATES)]
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
    tokens_fraction: _Positive
    accuracy: _Share
    on_curve: bool


class Row(_Part):
    """A method on a release.

    Declared is what anything here reads; the rest is kept as it is. ``file`` is where the row was
    read from, and no part of it.
    """

    schema_version: int
    label: Annotated[str, Field(min_length=1)]
    method: MethodPart
    release: ReleasePart
    resampling: Resampling
    full_accuracy: _Share
    zero_accuracy: _Share
    selected: SelectedPart
    summary: dict[str, ValuePart]
    points: Annotated[list[PointPart], Field(min_length=1)]
    versions: dict[str, str]
    digest: str
    run: dict[str, Any]
    file: str | None = Field(default=None, exclude=True)

    @model_validator(mode="after")
    def _check_together(self) -> "Row":
        missing = SUMMARIES.keys() - self.summary.keys()
        if missing:
            raise ValueError(f"summary: no {min(missing)}")
        for name in _SHARES:
            part = self.summary[name]
            if any(not 0 <= value <= 1 for value in (part.value, part.low, part.high) if value):
                raise ValueError(f"summary: {name} is not a share of 1")
        if self.selected.index >= len(self.points):
            raise ValueError("selected: there is no such point")
        return self

    @property
    def area(self) -> float:
        """The area of the method curve above P(0), up to full thinking; a fraction."""
        return self.summary["curve_area"].value or 0.0

    def plain(self) -> dict[str, Any]:
        """Return the row as it is written."""
        return self.model_dump(exclude_unset=True)
