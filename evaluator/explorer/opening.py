"""Which folder gives which pieces: its kind is told by the files in it."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from data.errors import MisuseError
from data.progress import NOBODY, Progress
from evaluator.explorer.source import Source, Sources


def open_sources(folders: Sequence[str | Path], *, progress: Progress = NOBODY) -> Sources:
    """Open folders of any kind that can be looked at.

    Parameters
    ----------
    folders
        Campaigns, releases, live runs, and runs of OTBench, LLMThinkBench and OptimalThinkingBench.
    progress
        Told of the bytes of a release that are checked.

    Raises
    ------
    data.errors.MisuseError
        If there is none, or one is of no kind that is known.
    data.errors.StoreError
        If one cannot be read.
    """
    if not folders:
        raise MisuseError("name at least one folder: a campaign, a release, or a run")
    return Sources([open_source(folder, progress) for folder in folders])


def open_source(folder: str | Path, progress: Progress = NOBODY) -> Source:
    """Open one folder; its kind is told by the files in it."""
    path = Path(folder).expanduser()
    remote = "://" in str(folder)
    if not remote and not path.is_dir():
        raise MisuseError(f"{folder}: no such folder")
    if not remote:
        _check_links(path)
    for marker, opened in _KINDS:
        if not remote and (path / marker).is_file():
            return opened(path, progress)
    if remote:
        return _campaign(folder, progress)
    raise MisuseError(
        f"{folder}: neither a campaign nor a release nor a run "
        f"(none of {', '.join(dict.fromkeys(marker for marker, _ in _KINDS))} is in it)"
    )


def _check_links(folder: Path) -> None:
    """Refuse a folder with a link that leads out of it: only what was named is read."""
    root = folder.resolve()
    for parent, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(parent, name)
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                raise MisuseError(
                    f"{path}: is a link to a place outside of {folder}; replace it by what it "
                    "leads to, or remove it"
                )


def _campaign(folder: str | Path, _: Progress) -> Source:
    from evaluator.explorer.campaign import CampaignSource

    return CampaignSource(folder)


def _release(folder: Path, progress: Progress) -> Source:
    from evaluator.explorer.release import ReleaseSource

    return ReleaseSource(folder, progress=progress)


def _methods(folder: Path, _: Progress) -> Source:
    from evaluator.explorer.otbench import MethodsSource

    return MethodsSource(folder)


def _responses(folder: Path, _: Progress) -> Source:
    from evaluator.explorer.responses import ResponsesSource, open_responses
    from evaluator.runs.record import RECORD
    from stp.files import read_json

    if read_json(folder / RECORD).get("kind") == _LIVE:
        from evaluator.explorer.live import LiveSource

        return LiveSource(folder)
    return ResponsesSource(open_responses(folder))


_LIVE = "stp live"
"""The kind of a live run's record; the runner itself is imported with the first one."""
_KINDS: Sequence[tuple[str, Callable[[Path, Progress], Source]]] = (
    ("campaign.toml", _campaign),
    ("manifest.sha256", _release),
    ("leaderboard.jsonl", _methods),
    ("run.json", _responses),
)
"""A file that only folders of a kind have, and what opens them."""
