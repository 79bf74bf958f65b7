"""Published numbers that contradict each other: each statement of docs/published_numbers.md.

The inputs stand here as the papers print them (rows of tables in thinkbench/paper and in
optimal/table6.py). ``says`` wants a statement on the page, with the figure that was computed.
Those on pools and scores of paper 000 are in thinkbench/test_paper.py.
"""

import csv
import itertools
from pathlib import Path

import numpy as np
import pytest

from evaluator.optimal.metrics import f1_otb
from evaluator.thinkbench.oscore import overthinking_score
from tests.optimal.table6 import ROWS as TABLE

HERE = Path(__file__).parent
PAGE = " ".join((HERE.parent / "docs" / "published_numbers.md").read_text(encoding="utf-8").split())


def says(text):
    assert text in PAGE, text


def rows(name):
    path = HERE / "thinkbench" / "paper" / f"{name}.tsv"
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


# ------------------------------------------------------------------------------ paper 002


def test_the_tokens_of_otbench():
    questions = 90 + 500 + 198 + 175
    trajectories = questions * 6 * 16
    assert trajectories == 92_448
    says("92,448 trajectories")
    stored, said = 576_688_123, 70.5e9
    assert round(stored / trajectories) == 6_238
    says("6,238 a trajectory")
    assert round(said / stored) == 122
    says("122 times")
    assert round(said / trajectories) == 762_591
    assert said / trajectories > 23 * 32_768
    says("762,591 a trajectory, 23 times the limit of 32,768")


# ------------------------------------------------------------------------------ paper 003


def needed_efficiency(row):
    """Return the least and greatest efficiency that give a score, as its inputs are rounded."""
    ends = [
        (float(row["oscore"]) + s * 0.0005, float(row["accuracy"]) / 100 + a * 0.00005)
        for s in (-1, 1)
        for a in (-1, 1)
    ]
    values = [score * accuracy / (2 * accuracy - score) for score, accuracy in ends]
    return min(values), max(values)


def test_table_3_of_003_needs_more_efficiency_for_more_tokens():
    table = rows("table3_of_003")
    by_name = {(row["model"], row["parameters"]): row for row in table}
    qwen, phi = by_name["Qwen3", "14"], by_name["Phi-4", "14"]
    for row, expected in ((qwen, 0.624), (phi, 0.475)):
        low, high = needed_efficiency(row)
        assert low <= expected <= high
        assert high - low < 0.003
        accuracy = float(row["accuracy"]) / 100
        assert overthinking_score(accuracy, (low + high) / 2) == pytest.approx(
            float(row["oscore"]), abs=0.0006
        )
    assert float(qwen["tokens"]) > 9 * float(phi["tokens"])
    says("Qwen3-14B needs E = 0.624 at 3,607.6 tokens, Phi-4 0.475 at 378.6")
    pairs = list(itertools.combinations(sorted(table, key=lambda row: float(row["tokens"])), 2))
    against = sum(
        needed_efficiency(longer)[0] > needed_efficiency(shorter)[1] for shorter, longer in pairs
    )
    assert (len(pairs), against) == (741, AGAINST)
    says(f"{AGAINST} of the 741 pairs")


AGAINST = 360


def test_the_two_papers_print_other_scores_for_the_same_runs():
    second = {(row["model"], row["parameters"].strip("–-")): row for row in rows("table2")}
    same = other = 0
    for row in rows("table3_of_003"):
        match = second.get((row["model"], row["parameters"]))
        if match is None:
            continue
        assert (match["accuracy"], float(match["tokens"])) == (
            row["accuracy"],
            float(row["tokens"]),
        )
        same += 1
        other += match["oscore"] != row["oscore"]
    assert (same, other) == (38, 37)
    says(
        "38 rows have the same accuracy and tokens in both papers, "
        "and 37 of them have different scores"
    )
    assert len(rows("table3_of_003")) == len(rows("table2")) == 39
    says("39 rows each")


def test_table_11_has_003s_scores():
    third = {row["oscore"] for row in rows("table3_of_003")}
    free = [row for row in rows("table11") if row["budget"] == "unconstrained"]
    assert len(free) == 9
    assert all(float(row["oscore"]) in set(map(float, third)) for row in free)
    second = {(row["accuracy"], float(row["tokens"])): row["oscore"] for row in rows("table2")}
    other = sum(
        float(second[row["accuracy"], float(row["tokens"])]) != float(row["oscore"])
        for row in free
        if (row["accuracy"], float(row["tokens"])) in second
    )
    assert other == 8
    says("8 of the 9 uncapped rows of Table 11")


# ------------------------------------------------------------------------------ paper 000

TABLE_15 = {
    "GPT-5": (97.31, 992, 99.23, 1347),
    "GPT-5-mini": (96.13, 799, 98.87, 1156),
    "GPT-5-nano": (96.07, 1377, 97.45, 1823),
    "GPT-4.1": (92.23, 409, 96.78, 845),
    "GPT-4.1-mini": (93.28, 916, 97.12, 1234),
    "o3": (97.26, 857, 99.17, 1089),
    "o3-mini": (94.23, 1101, 98.34, 1456),
    "Gemini-2.5-Pro": (89.38, 268, 97.89, 567),
    "Qwen3-32B": (84.38, 2846, 93.47, 3567),
    "Llama-3.3-70B": (74.84, 313, 89.67, 678),
    "Phi-4": (78.92, 379, 83.12, 892),
    "Phi-4-reasoning": (72.23, 6066, 74.56, 8234),
}
TABLE_16 = [
    (71.68, 94.23, 68.34), (61.78, 93.17, 65.78), (56.21, 87.12, 59.12),
    (43.42, 71.23, 48.23), (68.12, 88.12, 52.34), (59.22, 86.45, 49.23),
]  # fmt: skip
TABLE_12 = {
    "Phi-4-reasoning": (41, 18, 22, 3, 16),
    "Phi-4-mini-reason.": (35, 14, 19, 8, 24),
    "Qwen3 (CoT)": (38, 22, 18, 2, 20),
    "O3 / O4-mini": (24, 34, 12, 1, 29),
    "GPT-5": (21, 31, 10, 0, 38),
    "Gemini-2.5": (19, 26, 14, 1, 40),
    "Phi-4 (standard)": (6, 3, 2, 0, 89),
    "Qwen2.5 (instruct)": (8, 4, 3, 0, 85),
    "Llama-3 (instruct)": (9, 5, 4, 0, 82),
}


def test_gpt_5_and_others_without_tools_in_two_tables():
    ninth = {(row["model"], row["budget"]): float(row["tokens"]) for row in rows("table9")}
    gpt5 = [tokens for (model, _), tokens in ninth.items() if model == "GPT-5"]
    assert ninth["GPT-5", "medium"] == 20.5
    assert (max(gpt5), TABLE_15["GPT-5"][1]) == (158.2, 992)
    says("GPT-5 writes 20.5 tokens at medium effort and at most 158.2 at any in Table 9, 992")
    o3 = max(tokens for (model, _), tokens in ninth.items() if model == "O3")
    assert (o3, TABLE_15["o3"][1]) == (55.6, 857)
    says("o3 at most 55.6 and 857")
    mini = next(row for row in rows("table2") if row["model"] == "GPT-4.1-mini")
    assert (mini["accuracy"], mini["tokens"]) == ("90.23", "328.8")
    assert TABLE_15["GPT-4.1-mini"][:2] == (93.28, 916)
    says("GPT-4.1-mini 328.8 tokens and 90.23 % in Table 2, 916 and 93.28 %")


def test_the_overhead_of_tools():
    ratios = [after / before for _, before, _, after in TABLE_15.values()]
    assert (round(min(ratios), 2), round(max(ratios), 2)) == (1.25, 2.35)
    says("1.25 to 2.35")
    gains = [after - before for before, _, after, _ in TABLE_15.values()]
    gains += [tools - alone for alone, tools, _ in TABLE_16]
    assert (round(min(gains), 2), round(max(gains), 2)) == (1.38, 31.39)
    says("1.38 to 31.39 points")
    base = [tools - alone for alone, tools, _ in TABLE_16]
    assert (round(min(base), 2), round(max(base), 2)) == (20.0, 31.39)
    lost = [tools - larger for _, tools, larger in TABLE_16]
    assert (round(min(lost)), round(max(lost))) == (23, 37)


def test_the_shares_of_patterns():
    helpful = [row[4] for row in TABLE_12.values()]
    stop = [row[3] for row in TABLE_12.values()]
    assert (min(helpful), max(helpful), max(stop)) == (16, 89, 8)
    says("16 to 89 %")
    says("up to 8 %")
    assert all(sum(row) == 100 for row in TABLE_12.values())
    says("Every row of Table 12 sums to 100 %")


def test_the_ratios_of_matched_pairs():
    base, instruct, reasoning = 148.5, 260.2, 3608
    assert round(reasoning / base, 1) == 24.3
    ratios = (reasoning / instruct, 6066 / 379, 3172 / 292)
    assert [round(ratio, 1) for ratio in ratios] == [13.9, 16.0, 10.9]
    says("10.9 to 16.0")


def test_what_reasoning_costs_over_all_models():
    table = rows("table2")
    reasoning = [
        float(row["tokens"])
        for row in table
        if row["model"] == "Qwen3" or "reasoning" in row["model"]
    ]
    others = [float(row["tokens"]) for row in table]
    others = [tokens for tokens in others if tokens not in reasoning]
    assert (len(reasoning), len(others)) == (9, 30)
    ratio = np.mean(reasoning) / np.mean(others)
    assert round(ratio, 1) == RATIO
    assert round(6780.7 / 378.6, 1) == 17.9
    says(f"{RATIO} times")


RATIO = 13.4


def test_where_efforts_reach_their_top():
    ninth = {(row["model"], row["budget"]): row for row in rows("table9")}
    accuracy = {key: float(row["accuracy"]) for key, row in ninth.items()}
    assert accuracy["GPT-5", "low"] < accuracy["GPT-5", "medium"] == accuracy["GPT-5", "high"]
    assert accuracy["GPT-5-Nano", "low"] < accuracy["GPT-5-Nano", "high"]
    assert accuracy["GPT-5-Nano", "high"] - accuracy["GPT-5-Nano", "low"] == 3
    says("GPT-5 gains a point from low to medium, GPT-5-nano three from low to high")


def power_mean(a, b, p):
    return ((a**p + b**p) / 2) ** (1 / p)


@pytest.mark.parametrize(("a", "e"), [(0.1, 1.0), (0.3, 0.9), (0.5, 0.6)])
def test_the_sign_of_proposition_1(a, e):
    penalty = overthinking_score(a, e) - overthinking_score(a, a)
    assert penalty == pytest.approx(a * (e - a) / (a + e))
    assert penalty > 0 > a * (a - e) / (a + e)
    says("a(e − a)/(a + e)")
    # It grows ever more slowly with the imbalance, and never beyond a.
    grown = [overthinking_score(a, larger) for larger in np.linspace(a, 1, 10)]
    assert (np.diff(grown, n=2) < 0).all()
    assert penalty < a


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.1), (0.9, 0.3), (0.6, 0.5)])
def test_theorem_6_as_stated(a, b):
    means = [power_mean(a, b, p) for p in (-1, -2, -5, -50)]
    assert all(later < earlier for earlier, later in itertools.pairwise(means))
    assert means[0] == pytest.approx(overthinking_score(a, b))
    assert means[-1] == pytest.approx(min(a, b), rel=0.02)
    says("p = −2 is as smooth")
    # The mixed derivative, at a = b = 1, is (1 − p)/4: it has no maximum.
    h = 1e-3
    for p in (-1, -2, -5):
        mixed = (
            power_mean(1 + h, 1 + h, p)
            - power_mean(1 + h, 1 - h, p)
            - power_mean(1 - h, 1 + h, p)
            + power_mean(1 - h, 1 - h, p)
        ) / (4 * h * h)
        assert mixed == pytest.approx((1 - p) / 4, rel=1e-3)
    says("(1 − p)/4")


# ------------------------------------------------------------------------------ paper 004


def test_the_accuracies_of_d3_and_table_6():
    general, math_questions, general_questions = 86.8, 133, 1327
    pooled = (general_questions * general + math_questions * 100) / (
        general_questions + math_questions
    )
    equal = (general + 100) / 2
    assert (round(pooled, 1), round(equal, 1)) == (88.0, 93.4)
    printed = [
        row.ovt_accuracy
        for row in TABLE
        if row.mode == "thinking"
        and row.model in ("Qwen3-8B", "Qwen3-14B", "Qwen3-32B", "Qwen3-235B-A22B")
    ]
    assert (min(printed), max(printed)) == (97.9, 98.3)
    assert min(printed) > equal > pooled
    says("at most 88.0 % pooled and 93.4 % with equal weights")
    says("97.9 to 98.3 %")


def test_table_6_itself_follows():
    assert len(TABLE) == 33
    for row in TABLE:
        low = f1_otb(max(0, row.auc - 0.05) / 100, max(0, row.ut_accuracy - 0.05) / 100)
        high = f1_otb((row.auc + 0.05) / 100, (row.ut_accuracy + 0.05) / 100)
        assert 100 * low - 0.05 - 1e-9 <= row.f1 <= 100 * high + 0.05 + 1e-9
    says("all 33 F1 values follow")
    # Accuracy can never be below the area under it.
    assert all(row.auc <= row.ovt_accuracy + 1e-9 for row in TABLE)
    plain = [row for row in TABLE if row.mode == "plain" and row.auc < row.ovt_accuracy]
    assert {row.model for row in plain} == {
        "Qwen3-1.7B", "Qwen3-8B", "Qwen3-14B", "Qwen3-32B", "Qwen3-235B-A22B",
    }  # fmt: skip
    assert all(row.ovt_tokens == 0 for row in plain)
    says("0 thinking tokens and an area 0.1 to 0.2 points below the accuracy")
    gaps = [round(row.ovt_accuracy - row.auc, 1) for row in plain]
    assert (min(gaps), max(gaps)) == (0.1, 0.2)


def test_the_page_names_its_papers():
    for paper in ("000", "002", "003", "004"):
        says(f"Paper {paper}")
