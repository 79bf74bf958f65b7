"""What ``signals.json`` says: how a campaign's signals were read, and so which shards are theirs.

Separate from the work itself, so that looking at a folder loads no engine.
"""

import contextlib
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from data.errors import MisuseError, StoreError
from stp.campaign.store import Store
from stp.campaign.tables import TornShardError
from stp.campaign.units import STAGE_TABLES, Unit

SIGNALS_FILE = "signals.json"

Layer = int | Annotated[str, Field(pattern=r"^[0-9]{1,3}%$")]


class SignalSettings(BaseModel):
    """Which signals are read.

    Attributes
    ----------
    layers
        Hidden states: 0 is the embedding, i the output of the i-th block; -1 is the last one;
        ``"50%"`` is the one half-way up. Empty: none.
    trial_tokens
        Most tokens of the greedy trial answer at every position; 0 for no trial answers.
    trial_prompt
        Text that stands between the closed prefix and the trial answer.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    layers: tuple[Layer, ...] = ("50%",)
    trial_tokens: int = Field(default=20, ge=0, le=4096)
    trial_prompt: str = ""

    def layers_of(self, last: int) -> tuple[int, ...]:
        """Return the layers asked for of a model whose last one has this number, rising.

        Raises
        ------
        data.errors.MisuseError
            If it has no such layer, or its engine shows none (-1).
        """
        if last < 0 and self.layers:
            raise MisuseError(
                "this engine shows no hidden states: `--layers none` leaves them out, and `stp "
                "signals FOLDER --engine transformers` reads them"
            )
        chosen = set()
        for layer in self.layers:
            if isinstance(layer, str):
                number = round(last * int(layer[:-1]) / 100)
            else:
                number = layer if layer >= 0 else last + 1 + layer
            if not 0 <= number <= last:
                raise MisuseError(f"layer {layer} is not one of the model's 0..{last}")
            chosen.add(number)
        return tuple(sorted(chosen))


class SignalsRecord(BaseModel):
    """The content of ``signals.json``: settings, and what each model's engine says of itself."""

    model_config = ConfigDict(extra="forbid")

    settings: SignalSettings
    engines: dict[str, dict[str, Any]] = Field(default_factory=dict)


def read_signals_record(store: Store) -> SignalsRecord | None:
    """Return how a campaign's signals were read, or None if they were not.

    Raises
    ------
    data.errors.StoreError
        If the file is damaged.
    """
    if not store.exists(SIGNALS_FILE):
        return None
    try:
        return SignalsRecord.model_validate_json(store.read_bytes(SIGNALS_FILE))
    except ValidationError as error:
        raise StoreError(
            f"{store.url}/{SIGNALS_FILE}: damaged; read the signals again with `stp signals "
            f"{store.argument} --again`"
        ) from error


def signal_source(unit: Unit, *, trajectories: str, settings: SignalSettings) -> str:
    """Return what a unit's signals are made from: the campaign, a digest, the settings."""
    return f"{unit.campaign} {trajectories} {settings.model_dump_json()}"


def is_read_with(store: Store, settings: SignalSettings) -> bool:
    """Return whether any unit's signals were read with these settings."""
    ending = f" {settings.model_dump_json()}"
    for table in STAGE_TABLES["signals"]:
        for name in store.files(table):
            # One that is torn is read again, whatever it was read with.
            with contextlib.suppress(TornShardError):
                info = store.shard_info(table, name) if name.endswith(".parquet") else None
                if info is not None and info.source.endswith(ending):
                    return True
    return False
