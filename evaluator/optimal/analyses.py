"""What overthinking depends on: domain, answer type, options, model size (paper 004, 3.4 and D.2).

Everything starts from graded rows and takes a question as the unit: responses are averaged within
a question first. Differences between thinking and not thinking are paired by question.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from evaluator.analysis.exact_tests import EXACT_UP_TO, exact_p
from evaluator.optimal.methods import NO_THINKING, ROUTERS, THINKING
from evaluator.optimal.metrics import T_MAX, area_fractions
from stp.ragged import FloatArray
from stp.seeds import PAPER_SEED

if TYPE_CHECKING:
    from pandas.api.typing import DataFrameGroupBy

SIGNIFICANT = 0.05
RESAMPLES = 10_000
"""Up to this many questions with a difference, all sign patterns are tried instead of a sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearFit:
    """A straight line through points, by least squares.

    Attributes
    ----------
    slope, intercept
        Of the line.
    r_squared
        Share of the variance that it explains; NaN if all values are the same.
    p_value
        That the slope is 0 (t-test); NaN with fewer than three points.
    points
        How many there are.
    """

    slope: float
    intercept: float
    r_squared: float
    p_value: float
    points: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankCorrelation:
    """Spearman's ρ of two columns over groups; NaN with fewer than three groups or no variation."""

    name: str
    rho: float
    p_value: float
    groups: int


def thinking_methods(rows: pd.DataFrame) -> list[str]:
    """Return the methods under which models think, whatever they are called, ``thinking`` first.

    These are the methods with thinking tokens, or with responses whose tokens nobody counted;
    routers, whose responses are those of other methods, are not among them.
    """
    thinks = rows["thinking_tokens"].fillna(1) > 0
    found = rows.loc[thinks & ~rows["method"].isin([NO_THINKING, *ROUTERS]), "method"]
    return sorted(found.unique().tolist(), key=lambda name: name != THINKING)


def by_group(rows: pd.DataFrame, column: str, *, t_max: int = T_MAX) -> pd.DataFrame:
    """Return means over the questions of each group, for every model and method.

    Parameters
    ----------
    rows
        Graded rows.
    column
        ``"domain"``, ``"discipline"``, ``"answer_type"``, ``"options"`` or ``"benchmark"``. Rows
        without it (``""`` or 0) are left out.
    t_max
        Of AUC_OAA.

    Returns
    -------
    pandas.DataFrame
        Indexed by (model, method, group): ``questions``, ``accuracy``, ``thinking_tokens``,
        ``auc_oaa``; a mean is NaN if a token count is unknown.
    """
    kept = rows[rows["right"].notna() & ~rows[column].isin(["", 0])]
    questions = _questions(kept, [column], t_max)
    groups = questions.groupby(["model", "method", column], sort=True)
    means = _whole_means(groups[["accuracy", "thinking_tokens", "auc_oaa"]])
    means.insert(0, "questions", groups.size())
    return means


def _questions(rows: pd.DataFrame, extra: Sequence[str], t_max: int) -> pd.DataFrame:
    """Return one row for each model, method and question, with means over responses."""
    thinking = rows["thinking_tokens"].to_numpy(np.float64, na_value=np.nan)
    right = rows["right"].to_numpy(np.float64)
    table = rows[["model", "method", "subset", "question", *extra]].assign(
        accuracy=right,
        thinking_tokens=thinking,
        auc_oaa=area_fractions(right, thinking, t_max),
    )
    keys = ["model", "method", "subset", "question", *extra]
    groups = table.groupby(keys, sort=True, observed=True)
    return _whole_means(groups).reset_index()


def _whole_means(groups: "DataFrameGroupBy[Any, Any]") -> pd.DataFrame:
    """Return means of groups; one that holds an unknown value is unknown."""
    known = groups.count().eq(groups.size(), axis=0)
    return groups.mean().where(known)


def sign_flip_p_value(differences: FloatArray) -> float:
    """Return the two-sided p-value of paired differences having mean 0, by flipping signs.

    ``differences`` has one for each question; float64 ``(questions,)``. Beyond :data:`RESAMPLES`
    sign patterns that many are drawn. 1.0 if at most one question differs.

    Examples
    --------
    >>> sign_flip_p_value(np.array([1.0] * 6))
    0.03125
    """
    moved = differences[differences != 0]
    # With one difference both sign patterns are equally extreme; scipy takes no single number.
    if moved.size < 2:
        return 1.0
    found = stats.permutation_test(
        (moved,),
        np.sum,
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=500,
        rng=np.random.default_rng(PAPER_SEED),
    )
    return float(found.pvalue)


def holm(p_values: FloatArray) -> FloatArray:
    """Return p-values adjusted for their number, by Holm's method; NaN stays.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    adjusted = np.full(p_values.size, np.nan)
    known = np.flatnonzero(~np.isnan(p_values))
    order = known[np.argsort(p_values[known], kind="stable")]
    factors = np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * factors))
    return adjusted


def thinking_deltas(rows: pd.DataFrame, column: str, *, thinking: str = THINKING) -> pd.DataFrame:
    """Return what thinking changes in each group, with significance (paper 004, Table 10).

    Parameters
    ----------
    rows
        Graded rows; models without ``thinking`` or without ``no-thinking`` are left out.
    column
        As in :func:`by_group`.
    thinking
        The method that thinks.

    Returns
    -------
    pandas.DataFrame
        Indexed by (model, group): ``questions``, ``delta`` (accuracy with thinking minus without,
        mean over questions), ``tokens`` (thinking tokens with thinking), ``p_value``
        (:func:`sign_flip_p_value`), ``p_holm`` (adjusted over the model's groups) and
        ``significant`` (``p_holm`` below 0.05).
    """
    kept = rows[rows["right"].notna() & ~rows[column].isin(["", 0])]
    plain = NO_THINKING
    kept = kept[kept["method"].isin([thinking, plain])]
    questions = _questions(kept, [column], T_MAX)
    wide = questions.pivot_table(
        index=["model", column, "subset", "question"],
        columns="method",
        values=["accuracy", "thinking_tokens"],
    )
    records = []
    if {("accuracy", thinking), ("accuracy", plain)} <= set(wide.columns):
        paired = wide.dropna(subset=[("accuracy", thinking), ("accuracy", plain)])
        difference = (paired["accuracy", thinking] - paired["accuracy", plain]).to_numpy(float)
        tokens = (
            paired["thinking_tokens", thinking].to_numpy(float)
            if ("thinking_tokens", thinking) in paired.columns
            else np.full(len(paired), np.nan)
        )
        places: dict[tuple[str, object], list[int]] = {}
        for place, (model, group, _, _) in enumerate(paired.index):
            places.setdefault((model, group), []).append(place)
        records = [
            {
                "model": model,
                column: group,
                "questions": len(here),
                "delta": difference[here].mean(),
                "tokens": tokens[here].mean(),
                "p_value": sign_flip_p_value(difference[here]),
            }
            for (model, group), here in places.items()
        ]
    names = ["model", column, "questions", "delta", "tokens", "p_value"]
    frame = pd.DataFrame(records, columns=names)
    frame["p_holm"] = np.nan
    for here in frame.groupby("model").groups.values():
        frame.loc[here, "p_holm"] = holm(frame.loc[here, "p_value"].to_numpy(float))
    frame["significant"] = frame["p_holm"] < SIGNIFICANT
    return frame.set_index(["model", column])


def rank_correlations(
    rows: pd.DataFrame, column: str, method: str = THINKING
) -> list[RankCorrelation]:
    """Return whether groups with more thinking are answered better (section 3.4).

    Thinking tokens of each group against accuracy with a method, and against what it changes;
    groups are averaged over models, equal weight.
    """
    groups = by_group(rows, column)
    if method not in groups.index.get_level_values("method"):
        return []
    with_thinking = groups.xs(method, level="method")
    mean = with_thinking.groupby(level=column)[["accuracy", "thinking_tokens"]].mean()
    found = [
        _correlation("thinking tokens and accuracy", mean["thinking_tokens"], mean["accuracy"])
    ]
    deltas = thinking_deltas(rows, column, thinking=method)
    if len(deltas):
        change = deltas.groupby(level=column)["delta"].mean().reindex(mean.index)
        found.append(
            _correlation("thinking tokens and what thinking adds", mean["thinking_tokens"], change)
        )
    return found


def _correlation(name: str, a: "pd.Series[float]", b: "pd.Series[float]") -> RankCorrelation:
    x, y = a.to_numpy(float), b.to_numpy(float)
    known = ~(np.isnan(x) | np.isnan(y))
    x, y = x[known], y[known]
    if x.size < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return RankCorrelation(name=name, rho=np.nan, p_value=np.nan, groups=int(x.size))
    found = stats.spearmanr(x, y)
    p_value = float(found.pvalue)
    if x.size <= EXACT_UP_TO:
        p_value = exact_p(stats.rankdata(x), stats.rankdata(y))
    return RankCorrelation(
        name=name, rho=float(found.statistic), p_value=p_value, groups=int(x.size)
    )


def _line_p(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the two-sided p-value of a line's slope; exact over all orders of few points."""
    if len(x) <= EXACT_UP_TO:
        return exact_p(np.asarray(x, float), np.asarray(y, float))
    return float(stats.linregress(x, y).pvalue)


def linear_fit(x: Sequence[float], y: Sequence[float]) -> LinearFit:
    """Return the least-squares line through points.

    Examples
    --------
    >>> fit = linear_fit([4, 8, 12], [100.0, 260.0, 420.0])
    >>> round(fit.slope, 6), round(fit.r_squared, 6)
    (40.0, 1.0)
    """
    points = len(x)
    if points < 2 or np.ptp(x) == 0:
        return LinearFit(
            slope=np.nan, intercept=np.nan, r_squared=np.nan, p_value=np.nan, points=points
        )
    found = stats.linregress(x, y)
    flat = np.ptp(y) == 0
    return LinearFit(
        slope=float(found.slope),
        intercept=float(found.intercept),
        r_squared=np.nan if flat else float(found.rvalue**2),
        p_value=_line_p(x, y) if points > 2 and not flat else np.nan,
        points=points,
    )


def options_fit(rows: pd.DataFrame, method: str = THINKING) -> tuple[pd.DataFrame, LinearFit]:
    """Return thinking tokens by number of options, and the line through them (paper 004, D.2).

    Where a run asked the same questions with irrelevant options added (subsets ``ovt-general+N``),
    these alone are compared, each model on the questions that it has at every number: the growth is
    then the options' and not the questions'. Otherwise the choices as they were made are.

    Returns
    -------
    by_options : pandas.DataFrame
        Indexed by options: ``questions``, ``thinking_tokens`` and ``accuracy``, averaged over
        models.
    fit : LinearFit
        Tokens for each further option.
    """
    kept = rows[(rows["method"] == method) & (rows["options"] > 0) & rows["right"].notna()]
    added = kept[kept["subset"].str.contains("+", regex=False)]
    if len(added):
        names = added["question"].str.rpartition("/")[2]
        added = added.assign(stem=names)
        counts = added.groupby(["model", "stem"])["options"].transform("nunique")
        kept = added[counts == added.groupby("model")["options"].transform("nunique")]
    questions = _questions(kept, ["options"], T_MAX)
    per_model = _whole_means(
        questions.groupby(["model", "options"])[["thinking_tokens", "accuracy"]]
    )
    by_options = per_model.groupby(level="options").mean()
    by_options.insert(0, "questions", questions.groupby("options")["question"].nunique())
    known = by_options["thinking_tokens"].dropna()
    return by_options, linear_fit(known.index.astype(float).tolist(), known.tolist())


def by_size(
    rows: pd.DataFrame, method: str = THINKING, *, t_max: int = T_MAX
) -> tuple[pd.DataFrame, LinearFit]:
    """Return overthinking by model size: means on the overthinking side, and tokens by log size.

    Returns
    -------
    models : pandas.DataFrame
        Indexed by model: ``size`` (billions of parameters), ``accuracy``, ``thinking_tokens``,
        ``auc_oaa``; smallest first. Models without a known size are left out.
    fit : LinearFit
        Thinking tokens for each tenfold of parameters.
    """
    here = rows["size"].notna() & (rows["side"] == "ovt") & (rows["method"] == method)
    kept = rows[here & rows["right"].notna()]
    questions = _questions(kept, [], t_max)
    by_subset = _whole_means(
        questions.groupby(["model", "subset"])[["accuracy", "thinking_tokens", "auc_oaa"]]
    )
    models = by_subset.groupby(level="model").mean()
    models.insert(0, "size", kept.groupby("model")["size"].first().astype(float))
    models = models.sort_values("size")
    known = models.dropna(subset=["thinking_tokens"])
    fit = linear_fit(np.log10(known["size"]).tolist(), known["thinking_tokens"].tolist())
    return models, fit
