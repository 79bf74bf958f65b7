"""A live run as pieces: its rows as responses, and every decision of its method.

Full thinking and the method are two ways of asking the same questions, so that the page that
pairs two models pairs these.
"""

from pathlib import Path
from typing import Any

from evaluator.explorer.responses import ResponseRow, ResponsesSource, ResponseText, asked_digest
from evaluator.explorer.source import Piece, TrajectoryKey
from evaluator.live.compare import LiveRun, read_live
from evaluator.live.setup import METHOD
from evaluator.present.names import visible


class LiveResponses:
    """Those of ``stp live``; raises as :class:`evaluator.explorer.responses.ThinkResponses`."""

    kind = "live"

    def __init__(self, folder: Path) -> None:
        self.run: LiveRun = read_live(folder)
        self.folder, self.name = folder, self.run.record.name
        self.made = [(arm, row) for arm, rows in self.run.rows.items() for row in rows]
        self.rows = [_row(arm, row) for arm, row in self.made]

    def text(self, row: int) -> ResponseText:
        """Return what a response says; a live run keeps ids of its thinking, and no prompt."""
        _, found = self.made[row]
        return ResponseText(prompt="", reference="", thinking=None, text=found["answer"])


def _row(arm: str, row: dict[str, Any]) -> ResponseRow:
    return ResponseRow(
        key=f"{row['question']}/{row['trajectory']}",
        asked=asked_digest(row["benchmark"], row["question"]),
        task=row["benchmark"],
        group=f"stopped by: {row['reason']}",
        method=arm,
        right=bool(row["right"]),
        answer=row["answer"],
        reason=row["verdict"],
        error="",
        pattern="",
        tokens=row["tokens"] + row["signal_tokens"] + len(row["answer_ids"]),
        thinking_tokens=row["tokens"],
        finish=row["reason"],
    )


class LiveSource(ResponsesSource):
    """A finished live run; ``r/R`` has the decisions of its method too.

    Raises
    ------
    data.errors.MisuseError
        If the run is not finished.
    """

    def __init__(self, folder: Path) -> None:
        self._live = LiveResponses(folder)
        super().__init__(self._live)
        record = self._live.run.record
        self._model = str(record.models["model"]["name"])
        self._method = visible(str(record.asked["method"] or ""))
        self._setting = visible(str(record.asked["setting"]))
        rows = self._live.run.rows.get(METHOD, [])
        self._stopped = {
            TrajectoryKey(self._model, row["benchmark"], row["question"], row["trajectory"]): row
            for row in rows
        }

    def piece(self, name: str) -> Piece:
        """Return a piece."""
        found = super().piece(name)
        if name.startswith("r/"):
            arm, row = self._live.made[int(name[2:])]
            found |= self._stop(row) if arm == METHOD else {}
        return found

    def stops(self, key: TrajectoryKey) -> list[Piece]:
        """Return where the method stopped a trajectory, with every decision."""
        row = self._stopped.get(key)
        return [] if row is None else [self._stop(row)]

    def _stop(self, row: dict[str, Any]) -> Piece:
        return {
            "method": self._method,
            "where": f"live, {visible(self._live.folder.name)}",
            "live": True,
            "setting": self._setting,
            "reason": visible(row["reason"]),
            "position": row["position"],
            "tokens": row["tokens"],
            "signal_tokens": row["signal_tokens"],
            "right": row["right"],
            "lengths": row["lengths"],
            "decisions": [
                [each["position"], each["tokens"], each["score"], each["stops"]]
                for each in row["decisions"]
            ],
        }
