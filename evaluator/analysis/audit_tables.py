"""The tables that come from stored token ids: boundary audit, boundary forms, step lengths."""

import pandas as pd

from evaluator.present.table import Table

_MOST_FORMS = 30
"""Rows of a model in the table of boundary tokens."""


def audit_table(frame: pd.DataFrame) -> Table:
    """Return the boundary audit (Table 8): :func:`~evaluator.analysis.audit.audit_frame`."""
    labels = {
        "model": "Model",
        "boundary_ids": "Vocabulary",
        "pure": "P",
        "white_space": "W",
        "suffix": "S",
        "infix": "I",
        "seen": "Seen",
        "events": "Events",
        "crossing": "Cross",
        "unmarked": "Unmarked",
        "decoding_mismatches": "Decoding",
        "reconstruction_mismatches": "Positions",
        "top_forms": "Top forms",
    }
    shown = frame[list(labels)].rename(columns=labels).set_index("Model")
    return Table(
        name="boundary-audit",
        title="Boundary tokens in the vocabulary, in the trajectories, and between tokens",
        frame=shown.astype(object).where(shown.notna(), None),
        note=(
            f"{int(frame['trajectories'].sum()):,} trajectories, {int(frame['tokens'].sum()):,} "
            f"thinking tokens; decoded as a whole: {int(frame['decoded_trajectories'].sum()):,} "
            "trajectories. Vocabulary, by form: the double newline alone (P), among white space "
            "(W), after a text (S), before a text (I). Cross: newline pairs over two tokens; "
            "unmarked: those whose right token is not a boundary. Decoding, positions: "
            "trajectories "
            "that do not agree when decoded as a whole, or segmented again."
        ),
    )


def forms_table(frame: pd.DataFrame) -> Table:
    """Return boundary tokens that occurred; see :func:`~evaluator.analysis.audit.forms_frame`."""
    seen = frame[frame["occurrences"] > 0]
    shown = seen.groupby("model", sort=False).head(_MOST_FORMS)
    more = len(seen) - len(shown)
    labels = {"model": "Model", "token_id": "Id", "form": "Form", "kind": "Kind"}
    table = shown.rename(columns={**labels, "occurrences": "Occurrences"})
    return Table(
        name="boundary-forms",
        title="Boundary tokens by occurrences",
        frame=table.set_index(["Model", "Id"])[["Form", "Kind", "Occurrences"]],
        note=f"{more:,} more ids occurred." if more else "",
    )


def length_table(frame: pd.DataFrame) -> Table:
    """Return step lengths (Figure 9); :func:`~evaluator.analysis.audit.lengths_frame`."""
    labels = {"q05": "5%", "q25": "25%", "q50": "50%", "q75": "75%", "q95": "95%"}
    named = frame.rename(
        columns={
            "model": "Model",
            "step_tokens": "b",
            "steps": "Steps",
            "mean": "Mean",
            "longest": "Longest",
            **labels,
        }
    )
    return Table(
        name="step-lengths",
        title="Lengths of steps in tokens, all steps of a model pooled",
        frame=named.set_index(["Model", "b"]),
        formats=dict.fromkeys(labels.values(), ",.0f"),
        note="The stored thinking, cut again for each b; nothing was probed again.",
    )
