"""What a report is made from: curves, and what was asked.

No store and no engine is known here, so a page can be made (and tested) from plain values.
"""

from dataclasses import dataclass

from stp.curves import Curves


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReportData:
    """Everything that a report shows.

    Attributes
    ----------
    name
        The campaign's name, the page's title.
    curves
        All measured curves.
    campaign
        The folder whose trajectories can be read in the explorer; empty for curves alone.
    warnings
        What a reader must know before believing a number: what is missing.
    step_tokens
        b, the target length of a step, or None if it is not known.
    settings, provenance
        What was asked and what it ran on, as (name, value) pairs in reading order.
    """

    name: str
    curves: Curves
    campaign: str = ""
    warnings: tuple[str, ...] = ()
    step_tokens: int | None = None
    settings: tuple[tuple[str, str], ...] = ()
    provenance: tuple[tuple[str, str], ...] = ()
