"""Numbers and texts for the page's script, as plain JSON values.

Short keys, since they are repeated for every trajectory; ``page.js`` opens with the same list.
"""

from typing import Any

import numpy as np

from evaluator.analysis.frontiers import (
    CellFrontiers,
    average_endpoints,
    average_frontiers,
    rewards_on_grid,
)
from evaluator.analysis.overthinking import Summary
from evaluator.present.names import cell_name, visible
from evaluator.report.data import AnswerCount, ReportData
from oracle.actions import STRATEGIES
from stp.curves import Curves

AVERAGE_POINTS = 1000
CELL_POINTS = 200
ANSWERS_SHOWN = 6


def _round(values: Any) -> list[float]:
    return np.round(np.asarray(values, dtype=np.float64), 5).tolist()  # type: ignore[no-any-return]


def frontier_payload(curves: Curves, cells: tuple[CellFrontiers, ...]) -> list[dict[str, Any]]:
    """Return the averaged frontiers (if there are several cells), then each cell's."""
    views: list[dict[str, Any]] = []
    if len(cells) > 1:
        zero, full = average_endpoints(cells)
        views.append(
            {
                "name": "Average of all cells",
                "zero": round(zero, 5),
                "full": round(full, 5),
                "acc": {f.strategy: _round(f.accuracy) for f in average_frontiers(cells)},
            }
        )
    points = AVERAGE_POINTS if len(cells) == 1 else CELL_POINTS
    views += [
        {
            "name": cell_name(curves, cell.model, cell.benchmark),
            "zero": round(cell.zero_reward / cell.probes, 5),
            "full": round(cell.full_reward / cell.probes, 5),
            "tokens": cell.full_cost,
            "acc": {
                strategy: _round(rewards_on_grid(states, points) / cell.probes)
                for strategy, states in zip(STRATEGIES, cell.states, strict=True)
            },
        }
        for cell in cells
    ]
    return views


def _answers(answers: tuple[AnswerCount, ...]) -> list[list[Any]]:
    """Return [answer, right, count, reply] rows; beyond the first few, rows merge by verdict."""
    rows: list[list[Any]] = [
        [
            None if a.answer is None else visible(a.answer, 160),
            int(a.right),
            a.count,
            visible(a.reply.strip(), 280),
        ]
        for a in answers[:ANSWERS_SHOWN]
    ]
    for right in (True, False):
        rest = [a for a in answers[ANSWERS_SHOWN:] if a.right is right]
        if rest:
            rows.append([f"{len(rest)} other answers", int(right), sum(a.count for a in rest), ""])
    return rows


def trajectory_payload(data: ReportData, summary: Summary) -> list[dict[str, Any]]:
    """Return curve, steps and answers of every selected trajectory."""
    curves, frame = data.curves, summary.trajectories
    out = []
    for text in data.trajectories:
        s = text.trajectory
        part = slice(int(curves.trajectory_offsets[s]), int(curves.trajectory_offsets[s + 1]))
        out.append(
            {
                "m": int(curves.model[s]),
                "b": int(curves.benchmark[s]),
                "q": int(curves.question[s]),
                "s": int(curves.sample[s]),
                "L": curves.tokens[part].tolist(),
                "C": curves.correct[part].tolist(),
                "k": int(frame["k_star"].iloc[s]),
                "or": round(float(frame["overthinking_ratio"].iloc[s]), 5),
                "ad": round(float(frame["accuracy_degradation"].iloc[s]), 5),
                "steps": [visible(step) for step in text.steps],
                "answers": [_answers(answers) for answers in text.answers],
                "reply": visible(text.final_reply.strip(), 1200),
                "final": None if text.final_answer is None else visible(text.final_answer, 160),
                "right": int(curves.original_correct[s]),
                "finish": visible(text.thinking_finish, 20),
            }
        )
    return out


def page_payload(
    data: ReportData, summary: Summary, cells: tuple[CellFrontiers, ...]
) -> dict[str, Any]:
    """Return everything that the page's script reads."""
    curves = data.curves
    questions = {
        str(q.question): {
            "id": visible(q.id, 160),
            "prompt": visible(q.prompt),
            "reference": visible(q.reference, 1200),
        }
        for q in data.questions
    }
    shown = sorted(
        {
            (int(curves.model[t.trajectory]), int(curves.benchmark[t.trajectory]))
            for t in data.trajectories
        }
    )
    return {
        "probes": curves.probes,
        "frontiers": frontier_payload(curves, cells),
        "cells": [[m, b, cell_name(curves, m, b)] for m, b in shown],
        "questions": questions,
        "trajectories": trajectory_payload(data, summary),
    }
