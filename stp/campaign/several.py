"""What must hold before campaigns are read, alone or together."""

from collections.abc import Iterable, Mapping, Sequence
from shlex import quote

from data.errors import MisuseError, StoreError


def check_disjoint(campaigns: Iterable[tuple[str, Sequence[tuple[str, str]]]]) -> None:
    """Refuse campaigns that have a cell in common.

    Parameters
    ----------
    campaigns
        For each, its URL and its (model, benchmark) pairs.

    Raises
    ------
    data.errors.MisuseError
        If there is no campaign, or a cell is in two of them.
    """
    owners: dict[tuple[str, str], str] = {}
    given = 0
    for url, cells in campaigns:
        given += 1
        for model, benchmark in cells:
            if (model, benchmark) in owners:
                raise MisuseError(
                    f"{url}: {model} on {benchmark} is in {owners[model, benchmark]} too; "
                    "a cell can be taken from one campaign only"
                )
            owners[model, benchmark] = url
    if not given:
        raise MisuseError("no campaign was given; name at least one folder")


def check_complete(
    url: str, not_done: Mapping[str, int], *, needed: str, allow_incomplete: bool
) -> None:
    """Refuse a campaign some of whose units lack a stage.

    Parameters
    ----------
    url
        The campaign's folder.
    not_done
        Units that are not "generated", "probed", "graded", in this order.
    needed
        The last of these that is needed.
    allow_incomplete
        Whether the user takes what is there.

    Raises
    ------
    data.errors.StoreError
        If units are not done and that is not allowed.
    """
    if not_done[needed] and not allow_incomplete:
        what = ", ".join(f"{count} are not {stage}" for stage, count in not_done.items() if count)
        raise StoreError(
            f"{url}: the campaign is not complete: of its units {what}; continue "
            f"`stp run {quote(url)}`, or take what is there with --allow-incomplete"
        )
