"""Campaigns: from questions to curves, in stages that each resume by themselves.

The way through this package: ``config`` with ``sections`` (what is asked) → ``early`` (what cannot
be, before anything is loaded) → ``prepare`` (models found, prompts made, folder opened) → ``run``
(the driver: unit after unit, by ``workers``) → ``generate`` or ``answer`` (both with
``trajectories``), ``probe``, ``grade``, ``signal_rows`` (pure functions of a unit) → ``store`` and
``tables`` (shards) → ``curves``, ``signal_reader``, ``reader``, ``status`` (what is in a folder,
without a model).

>>> from stp.campaign import load_curves, run_campaign
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stp.campaign.config import CampaignConfig, load_config, parse_config
    from stp.campaign.curves import load_curves
    from stp.campaign.reader import CampaignReader
    from stp.campaign.run import grade_campaign, run_campaign
    from stp.campaign.signal_reader import load_signals
    from stp.campaign.signal_record import SignalSettings
    from stp.campaign.signals import signals_campaign
    from stp.campaign.status import campaign_status

__all__ = [
    "CampaignConfig",
    "CampaignReader",
    "SignalSettings",
    "campaign_status",
    "grade_campaign",
    "load_config",
    "load_curves",
    "load_signals",
    "parse_config",
    "run_campaign",
    "signals_campaign",
]

_HOMES = {
    "CampaignConfig": "config",
    "CampaignReader": "reader",
    "SignalSettings": "signal_record",
    "campaign_status": "status",
    "grade_campaign": "run",
    "load_config": "config",
    "load_curves": "curves",
    "load_signals": "signal_reader",
    "parse_config": "config",
    "run_campaign": "run",
    "signals_campaign": "signals",
}


def __getattr__(name: str) -> Any:
    """Import a public name's module on first use: pyarrow and the rest load only when needed."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
