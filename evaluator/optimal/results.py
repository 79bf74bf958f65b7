"""Everything that runs come to: rows, scores, analyses, examples and bridge, and their files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import pandas as pd

from data.errors import MisuseError
from data.progress import NOBODY, Progress
from data.prompts import wording_note
from evaluator.optimal.bridging import BridgeCell
from evaluator.optimal.cautions import check_rows, without
from evaluator.optimal.examples import Example, find_examples
from evaluator.optimal.metrics import T_MAX
from evaluator.optimal.running import items_of
from evaluator.optimal.scores import REPLICATES, Scores, score
from evaluator.optimal.stored import Judging, OptimalRun, response_file
from evaluator.optimal.tables import all_tables
from evaluator.present.table import Table
from stp.asking import ResponseStore
from stp.seeds import PAPER_SEED

SHOWN_EXAMPLES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownExample:
    """An example with its texts.

    Attributes
    ----------
    example
        Which question, and the counts.
    prompt, reference
        What was asked.
    better_text, worse_text
        A right and a wrong response, thinking first.
    """

    example: Example
    prompt: str
    reference: str
    better_text: str
    worse_text: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Results:
    """What one or several runs come to.

    Attributes
    ----------
    rows
        Graded rows of all runs; see :class:`evaluator.optimal.stored.OptimalRun`.
    scores
        Their scores.
    judgings
        How the verdicts of each model came about.
    examples
        Questions where thinking or its lack hurts significantly.
    shown
        The clearest of them, with texts.
    cells
        AUC_OAA beside the early-exit frontier, for campaigns.
    tables
        All tables.
    cautions
        Warnings to read before the scores.
    """

    rows: pd.DataFrame
    scores: Scores
    judgings: Mapping[str, Judging]
    examples: tuple[Example, ...]
    shown: tuple[ShownExample, ...]
    cells: tuple[BridgeCell, ...]
    tables: tuple[Table, ...] = field(default=())
    cautions: tuple[str, ...] = ()


def make_results(
    runs: Sequence[OptimalRun],
    *,
    further_rows: pd.DataFrame | None = None,
    cells: Sequence[BridgeCell] = (),
    t_max: int = T_MAX,
    replicates: int = REPLICATES,
    seed: int = PAPER_SEED,
    allow_undecided: bool = False,
    progress: Progress = NOBODY,
) -> Results:
    """Score and analyse runs together.

    Parameters
    ----------
    runs
        Graded runs.
    further_rows
        Of :func:`evaluator.optimal.bridging.method_rows`.
    cells
        Of :func:`evaluator.optimal.bridging.bridge`.
    t_max, replicates, seed, allow_undecided, progress
        As of :func:`evaluator.optimal.scores.score`.

    Raises
    ------
    data.errors.MisuseError
        If two runs have the same model and method, or there is nothing to score.
    """
    frames = [run.rows for run in runs]
    _check_names(frames)
    if further_rows is not None:
        frames.append(further_rows)
    if not frames:
        raise MisuseError("no runs: nothing to score")
    checked = check_rows(pd.concat(frames, ignore_index=True))
    rows = checked.rows
    scores = score(
        rows,
        t_max=t_max,
        replicates=replicates,
        seed=seed,
        allow_undecided=allow_undecided,
        progress=progress,
    )
    own = pd.concat([run.rows for run in runs], ignore_index=True) if runs else rows.iloc[:0]
    own = without(own, checked.left_out)
    examples = tuple(find_examples(own)) if len(own) else ()
    return Results(
        rows=rows,
        scores=scores,
        judgings={run.plan.name: run.judging for run in runs},
        examples=examples,
        shown=_with_texts(examples[:SHOWN_EXAMPLES], runs),
        cells=tuple(cells),
        cautions=checked.cautions,
        tables=tuple(
            all_tables(
                own if len(own) else rows,
                scores,
                examples=examples,
                cells=cells,
                wording=wording_note(run.plan.prompts for run in runs) if runs else "",
            )
        ),
    )


def _check_names(frames: Sequence[pd.DataFrame]) -> None:
    seen: dict[tuple[str, str], int] = {}
    for place, rows in enumerate(frames):
        for pair in rows[["model", "method"]].drop_duplicates().itertuples(index=False, name=None):
            if seen.setdefault(pair, place) != place:
                raise MisuseError(
                    f"two runs are called {pair[0]!r} and have the method {pair[1]}; run one of "
                    "them under another --name"
                )


def _with_texts(
    examples: Sequence[Example], runs: Sequence[OptimalRun]
) -> tuple[ShownExample, ...]:
    shown = []
    by_model = {run.plan.name: run for run in runs}
    items = cache(
        lambda name: {i.key: i for i in items_of(by_model[name].plan, by_model[name].folder)}
    )
    stored = cache(lambda path: ResponseStore(path).read())
    for example in examples:
        folder = by_model[example.model].folder
        item = items(example.model)[example.question]
        texts = {}
        for method, sample in (
            (example.better, example.better_sample),
            (example.worse, example.worse_sample),
        ):
            response = stored(response_file(folder, method))[f"{example.question}/{sample}"]
            thinking = f"{response.thinking.strip()}\n\n" if response.thinking else ""
            texts[method] = f"{thinking}{response.text}".strip()
        shown.append(
            ShownExample(
                example=example,
                prompt=item.question.prompt,
                reference=item.question.reference,
                better_text=texts[example.better],
                worse_text=texts[example.worse],
            )
        )
    return tuple(shown)
