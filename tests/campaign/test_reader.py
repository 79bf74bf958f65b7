"""A campaign read as a person would read it."""

import pytest

from data.errors import MisuseError
from stp.campaign.reader import CampaignReader
from stp.campaign.run import run_campaign
from stp.campaign.store import Store
from tests.campaign.fakes import ScriptedEngine
from tests.campaign.rows import table_rows


@pytest.fixture(scope="module")
def folder(configure, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reader") / "campaign"
    asked = []

    class Remembering(ScriptedEngine):
        def work(self, trees):
            asked.extend(trees)
            return super().work(trees)

    run_campaign(configure(), folder, open_model=lambda name, path: Remembering(path))
    return folder, asked


@pytest.fixture(scope="module")
def reader(folder):
    return CampaignReader(folder[0])


def test_a_trajectory_has_its_steps_and_counts(folder, reader):
    for row in table_rows(folder[0], "trajectories"):
        view = reader.trajectory(f"sevens-{row['question'] + 1}", row["trajectory"])
        assert list(view.thinking_ids) == row["thinking_ids"]
        assert view.thinking_finish == row["thinking_finish"]
        assert len(view.steps) == len(view.tokens) - 1 == len(view.correct) - 1
        assert "".join(view.steps) == reader.tokenizer("scripted").show(view.thinking_ids)
        for position, correct in enumerate(view.correct):
            probes = reader.probes_at(view, position)
            assert [probe.sample for probe in probes] == [0, 1, 2, 3]
            assert sum(probe.right for probe in probes) == correct
            assert all(probe.text.startswith("\\boxed{") for probe in probes)
        if view.thinking_finish == "end":
            assert view.original.reason.startswith(("right", "wrong"))
        else:
            assert view.original.text == ""


def test_a_prefix_is_exactly_what_was_sent(folder, reader):
    sent = {
        tree.trunk_ids[: branch.cut] + branch.suffix_ids: branch.seeds
        for tree in folder[1]
        if len(tree.branches) > 1
        for branch in tree.branches
    }
    end = reader.tokenizer("scripted").fast.token_to_id("</think>")
    shown = 0
    for question in range(10):
        view = reader.trajectory(f"sevens-{question + 1}", 0)
        if len(view.tokens) == 1:
            continue
        for position in range(len(view.tokens)):
            prefix = reader.prefix(view, position)
            assert prefix.ids in sent
            assert prefix.ids.count(end) == 1
            assert prefix.text.endswith("</think>\n\n")
            shown += 1
    assert shown > 20


def test_a_summary_counts_right_answers(folder, reader):
    summaries = list(reader.summaries())
    assert [item.question_id for item in summaries] == [f"sevens-{n + 1}" for n in range(10)]
    verdicts = table_rows(folder[0], "verdicts")
    for number, item in enumerate(summaries):
        own = [row["right"] for row in verdicts if row["question"] == number]
        zero = [r["right"] for r in verdicts if r["question"] == number and r["position"] == 0]
        original = [r["right"] for r in verdicts if r["question"] == number and r["position"] == -1]
        assert (item.trajectories, item.probes) == (3, 4)
        assert (item.zero_correct, item.original_correct) == (sum(zero), sum(original))
        assert item.full_correct <= sum(own)
        views = [reader.trajectory(item.question_id, t) for t in range(3)]
        assert item.full_correct == sum(view.correct[-1] for view in views)


@pytest.mark.parametrize(
    ("question", "trajectory", "values", "part"),
    [
        ("sevens-99", 0, {}, "no question 'sevens-99'"),
        ("sevens-1", 3, {}, r"trajectory 3 is not one of 0\.\.2"),
        ("sevens-1", 0, {"model": "other"}, "no model 'other' in this campaign; it has scripted"),
    ],
)
def test_what_is_not_there_is_said(reader, question, trajectory, values, part):
    with pytest.raises(MisuseError, match=part):
        reader.trajectory(question, trajectory, **values)


def test_a_position_that_is_not_there_is_said(reader):
    view = reader.trajectory("sevens-1")
    with pytest.raises(MisuseError, match="is not one of this trajectory's"):
        reader.prefix(view, len(view.tokens))


def test_a_question_in_two_cells_must_be_named_with_its_model(configure, tmp_path, model_folder):
    text = f'\n[[models]]\npath = "{model_folder}"\nname = "twin"\nfamily = "demo"\n'
    config = configure(text, trajectories=1)
    run_campaign(config, tmp_path / "c", open_model=lambda name, path: ScriptedEngine(path))
    reader = CampaignReader(tmp_path / "c")
    with pytest.raises(MisuseError, match=r"in 2 cells .*--model"):
        reader.trajectory("sevens-1")
    first = reader.trajectory("sevens-1", model="scripted")
    second = reader.trajectory("sevens-1", model="twin")
    assert first.thinking_ids != second.thinking_ids or first.correct != second.correct
    assert len(Store(tmp_path / "c").files("probes/twin")) > 0


def test_before_probing_and_grading_there_is_less_to_read(configure, tmp_path):
    for stages, probed in ((("generate",), False), (("probe",), True)):
        run_campaign(
            configure(),
            tmp_path / "c",
            stages=stages,
            open_model=lambda name, path: ScriptedEngine(path),
        )
        view = CampaignReader(tmp_path / "c").trajectory("sevens-2", 1)
        assert bool(view.tokens) == probed
        assert view.correct is None
        assert view.original.reason is None
        assert view.thinking_ids
