"""Signs of ΔP by progress against a loop over steps."""

from collections import Counter

import pytest

from evaluator.analysis.step_changes import changes_by_progress, suitable_bin_tokens
from stp.curves import Curves
from tests.evaluator.synthetic import make_curves


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("bin_tokens", [1, 7, 50, 10_000])
def test_fractions_equal_a_loop_over_steps(seed, bin_tokens):
    curves = make_curves(models=2, questions=5, seed=seed)
    counts = {}
    for s in range(curves.trajectories):
        start, stop = curves.trajectory_offsets[s : s + 2].tolist()
        for k in range(start + 1, stop):
            change = int(curves.correct[k]) - int(curves.correct[k - 1])
            sign = "positive" if change > 0 else "negative" if change < 0 else "flat"
            counts.setdefault(int(curves.tokens[k]) // bin_tokens, Counter())[sign] += 1
    frame = changes_by_progress(curves, bin_tokens)
    assert frame["from_tokens"].tolist() == [b * bin_tokens for b in sorted(counts)]
    for row, b in zip(frame.to_dict("records"), sorted(counts), strict=True):
        total = counts[b].total()
        assert row["steps"] == total
        for sign in ("positive", "negative", "flat"):
            assert row[sign] == pytest.approx(counts[b][sign] / total)
        if counts[b]["positive"]:
            ratio = counts[b]["negative"] / counts[b]["positive"]
            assert row["negative_to_positive"] == pytest.approx(ratio)
        else:
            assert row["negative_to_positive"] != row["negative_to_positive"]


def test_no_steps_give_no_bins_and_a_bin_needs_a_width():
    curves = Curves(tokens=[0], correct=[1], trajectory_offsets=[0, 1], question=[0], probes=1)
    assert changes_by_progress(curves, 10).empty
    with pytest.raises(ValueError, match="bin_tokens"):
        changes_by_progress(curves, 0)


@pytest.mark.parametrize(("longest", "width"), [(3, 1), (100, 5), (8_000, 500), (32_768, 2_000)])
def test_bin_width_is_round_and_gives_about_twenty_bins(longest, width):
    curves = Curves(
        tokens=[0, longest], correct=[0, 0], trajectory_offsets=[0, 2], question=[0], probes=1
    )
    assert suitable_bin_tokens(curves) == width
