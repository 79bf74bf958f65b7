"""The audit of whole campaigns, against loops over their stored rows and decoded text."""

import re
import shutil
from collections import Counter
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from tokenizers import AddedToken, Tokenizer

from data.errors import MisuseError, StoreError
from evaluator.analysis.audit import (
    audit_campaigns,
    audit_frame,
    campaign_step_lengths,
    forms_frame,
    length_samples,
    lengths_frame,
)
from evaluator.analysis.stored_thinking import models_with_thinking, open_campaigns
from evaluator.figures.steps import step_length_plot
from evaluator.simulation.store import write_campaign
from evaluator.simulation.worlds import make_world, paper_population
from stp.campaign.models import tokenizer_hash
from stp.campaign.run import run_campaign
from stp.campaign.store import Store
from stp.campaign.tables import content_digest
from stp.campaign.text import StoredTokenizer
from stp.segmentation import boundary_token_ids, segment
from stp.tokenizers import token_bytes
from tests.campaign.conftest import configure, model_folder, sevens  # noqa: F401
from tests.campaign.fakes import ScriptedEngine, write_questions
from tests.campaign.rows import table_rows


class NewlineEngine(ScriptedEngine):
    """Puts single newlines beside boundary tokens, and beside each other."""

    def _ids(self, text):
        end, pure, newline = map(self._tokenizer.token_to_id, (".\n\n", "\n\n", "\u010a"))
        ids = []
        for i in super()._ids(text):
            if i == end and len(ids) % 2:
                ids += [i, newline]
            elif i == pure and len(ids) % 2:
                ids += [newline, i]
            else:
                ids.append(i)
        return (newline, newline, *ids) if "x" in text else tuple(ids)


def run(config, folder, **options):
    run_campaign(config, folder, open_model=lambda name, path: NewlineEngine(path), **options)
    return folder


@pytest.fixture(scope="module")
def campaign(configure, tmp_path_factory):  # noqa: F811
    return run(configure(), tmp_path_factory.mktemp("audit") / "campaign")


@pytest.fixture(scope="module")
def other(configure, tmp_path_factory):  # noqa: F811
    """The same model with another benchmark and another b."""
    folder = tmp_path_factory.mktemp("other")
    questions = write_questions(folder / "questions", 4).rename(folder / "questions/more.toml")
    return run(configure(benchmark=questions, step_tokens=5), folder / "campaign")


def audits_of(urls, *, allow_incomplete=False, **options):
    return audit_campaigns(open_campaigns(urls, allow_incomplete=allow_incomplete), **options)


def boundary_audit(urls, *, top=3, **options):
    return audit_frame(audits_of(urls, **options), top)


def lengths_of(urls, targets=(128, 256, 512), *, allow_incomplete=False):
    return campaign_step_lengths(open_campaigns(urls, allow_incomplete=allow_incomplete), targets)


def step_length_samples(urls, targets):
    return length_samples(lengths_of(urls, targets))


def step_length_table(urls, *targets, **options):
    return lengths_frame(lengths_of(urls, *targets, **options))


def naive_audit(folder):
    """Return forms with occurrences, crossing, unmarked: by ids, and pairs by decoded text."""
    tokenizer = StoredTokenizer(Store(folder), "scripted").fast
    contents, boundaries = token_bytes(tokenizer), boundary_token_ids(tokenizer)
    forms, crossing, unmarked = Counter(), 0, 0
    for row in table_rows(folder, "trajectories"):
        ids = row["thinking_ids"]
        forms.update(contents[i] for i in ids if i in boundaries)
        found = 0
        for left, right in pairwise(ids):
            if contents[left].endswith(b"\n") and contents[right].startswith(b"\n"):
                found += 1
                unmarked += right not in boundaries
        crossing += found
        text = tokenizer.decode(ids, skip_special_tokens=False)
        inside = sum(len(re.findall(b"(?=\n\n)", contents[i])) for i in ids)
        assert len(re.findall("(?=\n\n)", text)) == found + inside
    return forms, crossing, unmarked


def test_the_table_equals_loops_over_rows(campaign):
    frame = boundary_audit(campaign)
    assert len(frame) == 1
    row = frame.iloc[0].to_dict()
    forms, crossing, unmarked = naive_audit(campaign)
    rows = table_rows(campaign, "trajectories")
    assert crossing > unmarked > 0
    (first, most), (second, fewer) = forms.most_common(2)
    texts = {b"\n\n": r"\n\n", b".\n\n": r".\n\n"}
    assert row == {
        "model": "scripted",
        "trajectories": len(rows),
        "missing_trajectories": 0,
        "tokens": sum(len(item["thinking_ids"]) for item in rows),
        "boundary_ids": 2,
        "pure": 1,
        "white_space": 0,
        "suffix": 1,
        "infix": 0,
        "seen": 2,
        "events": forms.total(),
        "crossing": crossing,
        "unmarked": unmarked,
        "decoded_trajectories": len(rows),
        "decoding_mismatches": 0,
        "reconstructed_trajectories": len(rows),
        "reconstruction_mismatches": 0,
        "top_forms": f"{texts[first]} ({most:,}), {texts[second]} ({fewer:,})",
    }
    assert boundary_audit(campaign, top=1)["top_forms"].item() == f"{texts[first]} ({most:,})"


def test_all_boundary_forms_are_listed(campaign):
    frame = forms_frame(audits_of(campaign))
    tokenizer = StoredTokenizer(Store(campaign), "scripted").fast
    assert set(frame["token_id"]) == boundary_token_ids(tokenizer)
    forms, _, _ = naive_audit(campaign)
    found = dict(zip(frame["form"], frame["occurrences"], strict=True))
    assert found == {r"\n\n": forms[b"\n\n"], r".\n\n": forms[b".\n\n"]}
    assert frame["occurrences"].is_monotonic_decreasing
    assert dict(zip(frame["form"], frame["kind"], strict=True)) == {
        r"\n\n": "pure",
        r".\n\n": "suffix",
    }
    # A form stays what it is on the way through a CSV file.
    text = frame.to_csv(index=False)
    assert text.count("\n") == len(frame) + 1


def test_models_of_one_name_are_pooled_over_campaigns(campaign, other):
    both = boundary_audit([campaign, other]).iloc[0]
    parts = [boundary_audit(url).iloc[0] for url in (campaign, other)]
    for name in ("trajectories", "tokens", "events", "crossing", "unmarked"):
        assert both[name] == parts[0][name] + parts[1][name]
    # Each campaign is segmented with its own b.
    assert both["reconstructed_trajectories"] == both["trajectories"]
    assert both["reconstruction_mismatches"] == 0
    one, two, pooled = (
        step_length_samples(urls, (8,)) for urls in (campaign, other, [campaign, other])
    )
    expected = np.sort(np.concatenate([one["scripted"][8], two["scripted"][8]]))
    assert pooled["scripted"][8].tolist() == expected.tolist()


def test_campaigns_that_do_not_go_together_are_refused(campaign, other, tmp_path):
    with pytest.raises(MisuseError, match="no campaign was given"):
        boundary_audit([])
    with pytest.raises(MisuseError, match="one campaign only"):
        boundary_audit([campaign, campaign])
    with pytest.raises(MisuseError, match="no campaign here"):
        step_length_table(tmp_path)
    with pytest.raises(MisuseError, match="decoded_tokens"):
        boundary_audit(campaign, decoded_tokens=-1)
    copy = shutil.copytree(other, tmp_path / "copy")
    tokenizer = Tokenizer.from_file(str(copy / "tokenizer/scripted/tokenizer.json"))
    tokenizer.add_tokens([AddedToken("!\n\n", special=False)])
    tokenizer.save(str(copy / "tokenizer/scripted/tokenizer.json"))
    # A campaign that began with these files, not one whose files were changed.
    store = Store(copy)
    manifest = store.read_manifest()
    (model,) = manifest.models
    own = model.model_copy(update={"tokenizer_hash": tokenizer_hash(copy / "tokenizer/scripted")})
    store.write_manifest(manifest.model_copy(update={"models": [own]}))
    with pytest.raises(MisuseError, match=r"one vocabulary in .* and another in"):
        boundary_audit([campaign, copy])


def rewrite_positions(folder, change):
    """Change the columns of the first shard of positions, and write it as a whole shard."""
    store = Store(folder)
    name = min(name for name in store.files("positions") if name.endswith(".parquet"))
    rows, info = store.read_checked("positions", name)
    columns = rows.to_pydict()
    change(columns)
    changed = type(rows).from_pydict(columns, schema=rows.schema)
    assert content_digest(changed) != info.digest
    store.write_shard("positions", name, changed, source=info.source, work=info.work)


def test_another_position_is_a_mismatch(campaign, tmp_path):
    copy = shutil.copytree(campaign, tmp_path / "copy")

    def change(columns):
        at = next(
            i
            for i, (k, n) in enumerate(zip(columns["position"], columns["tokens"], strict=True))
            if k == 1 and n > 1
        )
        columns["tokens"][at] -= 1

    rewrite_positions(copy, change)
    frame = boundary_audit(copy)
    assert frame["reconstruction_mismatches"].item() == 1
    assert frame["decoding_mismatches"].item() == 0


@pytest.mark.parametrize("column", ["question", "trajectory", "position"])
def test_positions_of_other_trajectories_are_an_error(column, campaign, tmp_path):
    copy = shutil.copytree(campaign, tmp_path / "copy")

    def change(columns):
        columns[column] = [value + 1 for value in columns[column]]

    rewrite_positions(copy, change)
    with pytest.raises(StoreError, match="not those of the trajectories"):
        boundary_audit(copy)


def test_an_incomplete_campaign_is_audited_only_if_allowed(campaign, tmp_path):
    copy = shutil.copytree(campaign, tmp_path / "copy")
    generated = sorted((copy / "trajectories").rglob("*.parquet"))
    gone = len(Store(copy).read_shard("trajectories", str(generated[0].relative_to(copy))))
    generated[0].unlink()
    positions = sorted((copy / "positions").rglob("*.parquet"))
    unprobed = len(Store(copy).read_shard("trajectories", str(generated[1].relative_to(copy))))
    positions[1].unlink()
    with pytest.raises(StoreError, match="1 are not generated, 2 are not probed"):
        open_campaigns(copy)
    row = boundary_audit(copy, allow_incomplete=True).iloc[0]
    whole = boundary_audit(campaign).iloc[0]
    assert row["missing_trajectories"] == gone
    assert row["trajectories"] == whole["trajectories"] - gone
    assert row["reconstructed_trajectories"] == whole["trajectories"] - gone - unprobed
    for path in positions[2:]:
        path.unlink()
    row = boundary_audit(copy, allow_incomplete=True, decoded_tokens=0).iloc[0]
    # What is not checked is not zero.
    assert (row["reconstructed_trajectories"], row["decoded_trajectories"]) == (0, 0)
    assert row["reconstruction_mismatches"] is pd.NA
    assert row["decoding_mismatches"] is pd.NA


def test_prompts_that_are_too_long_are_not_missing(configure, tmp_path):  # noqa: F811
    prompts = ["What is 3 + 4?", "long " * 200, "What is 2 + 5?"]
    questions = write_questions(tmp_path / "questions", prompts=prompts)
    folder = run(configure(benchmark=questions), tmp_path / "campaign")
    assert boundary_audit(folder)["trajectories"].item() == 2 * 3
    for path in (folder / "trajectories").rglob("*.parquet"):
        path.unlink()
    row = boundary_audit(folder, allow_incomplete=True).iloc[0]
    assert (row["trajectories"], row["missing_trajectories"]) == (0, 2 * 3)
    assert step_length_table(folder, allow_incomplete=True)["steps"].tolist() == [0, 0, 0]


def test_a_limit_decodes_some_shards(campaign):
    (whole,) = audits_of(campaign)
    (some,) = audits_of(campaign, decoded_tokens=whole.counts.tokens // 3)
    assert 0 < some.decoded < whole.decoded == whole.counts.trajectories
    (everything,) = audits_of(campaign, decoded_tokens=None)
    assert everything.decoded == whole.decoded
    assert audit_frame([some])["decoding_mismatches"].item() == 0


def test_step_lengths_equal_segmenting_every_row(campaign):
    boundaries = boundary_token_ids(StoredTokenizer(Store(campaign), "scripted").fast)
    samples = step_length_samples(campaign, (4, 8, 16))
    frame = step_length_table(campaign, (4, 8, 16)).set_index(["model", "step_tokens"])
    for target in (4, 8, 16):
        lengths = [
            length
            for row in table_rows(campaign, "trajectories")
            for length in np.diff(segment(row["thinking_ids"], boundaries, target)).tolist()
        ]
        assert samples["scripted"][target].tolist() == sorted(lengths)
        row = frame.loc[("scripted", target)]
        assert row["steps"] == len(lengths)
        assert row["mean"] == pytest.approx(np.mean(lengths), rel=1e-12)
        assert row["q50"] == np.quantile(lengths, 0.5, method="inverted_cdf")
        assert row["q05"] == np.quantile(lengths, 0.05, method="inverted_cdf")
        assert row["longest"] == max(lengths)
    # The campaign's own b gives the recorded steps.
    recorded = [row["tokens"] for row in table_rows(campaign, "positions") if row["position"] > 0]
    assert frame.loc[("scripted", 8), "steps"] == len(recorded)


def test_the_figure_takes_the_samples(campaign):
    figure = step_length_plot(step_length_samples(campaign, (4, 16)))
    texts = [text.get_text() for axes in figure.axes for text in axes.get_legend().get_texts()]
    means = step_length_table(campaign, (4, 16))["mean"]
    assert texts == [f"b = {b}, mean {mean:.1f}" for b, mean in zip((4, 16), means, strict=True)]


def test_reading_tells_how_many_units_are_done(campaign, other):
    opened = open_campaigns([campaign, other])
    told = []
    audit_campaigns(opened, progress=lambda *counts: told.append(counts))
    units = sum(len(units) for one in opened for units in one.units.values())
    assert told == [(i + 1, units) for i in range(units)]


def test_a_model_without_stored_thinking_is_left_out(tmp_path):
    population = paper_population().sized(models=1, scale=0.01)
    write_campaign(make_world(population, 1), population, tmp_path / "synthetic")
    opened = open_campaigns(tmp_path / "synthetic")
    assert models_with_thinking(opened) == []
    assert audit_campaigns(opened) == ()
    assert campaign_step_lengths(opened) == {}
