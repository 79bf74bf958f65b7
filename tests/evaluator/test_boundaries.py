"""The boundary audit against loops over ids, on a campaign whose text is known."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from evaluator.boundaries import audit_campaign, audit_table, escape, form_of, length_table
from stp.campaign.run import run_campaign
from stp.campaign.store import Store
from stp.campaign.tables import content_digest
from stp.campaign.text import StoredTokenizer
from stp.segmentation import boundary_token_ids, segment
from stp.tokenizers import token_bytes
from tests.campaign.conftest import configure, model_folder, sevens  # noqa: F401
from tests.campaign.fakes import ScriptedEngine
from tests.campaign.rows import table_rows


class NewlineEngine(ScriptedEngine):
    """Writes some double newlines as two tokens, and some triple ones."""

    def _ids(self, text):
        end = self._tokenizer.token_to_id(".\n\n")
        newline = self._tokenizer.token_to_id("\u010a")
        ids = []
        for i in super()._ids(text):
            ids += [i, newline] if i == end and len(ids) % 2 else [i]
        return (newline, newline, *ids) if "x" in text else tuple(ids)


@pytest.fixture(scope="module")
def campaign(configure, tmp_path_factory):  # noqa: F811
    folder = tmp_path_factory.mktemp("audit") / "campaign"
    run_campaign(configure(), folder, open_model=lambda name, path: NewlineEngine(path))
    return folder


def test_counts_equal_a_loop_over_ids(campaign):
    (audit,) = audit_campaign(campaign, targets=(4, 16))
    tokenizer = StoredTokenizer(Store(campaign), "scripted").fast
    contents, boundaries = token_bytes(tokenizer), boundary_token_ids(tokenizer)
    seen, crossing, unmarked, tokens = Counter(), 0, 0, 0
    lengths = {4: [], 8: [], 16: []}
    rows = table_rows(campaign, "trajectories")
    for row in rows:
        ids = row["thinking_ids"]
        tokens += len(ids)
        seen.update(i for i in ids if i in boundaries)
        for left, right in pairwise(ids):
            if contents[left].endswith(b"\n") and contents[right].startswith(b"\n"):
                crossing += 1
                unmarked += right not in boundaries
        for target, found in lengths.items():
            found += np.diff(segment(ids, boundaries, target)).tolist()
    assert crossing > unmarked > 0 or crossing == unmarked > 0
    assert (audit.trajectories, audit.tokens) == (len(rows), tokens)
    assert audit.occurrences == dict(seen)
    assert list(audit.occurrences.values()) == sorted(seen.values(), reverse=True)
    assert (audit.crossing, audit.unmarked, audit.mismatches) == (crossing, unmarked, 0)
    assert audit.vocabulary == {"pure": 1, "white_space": 0, "suffix": 1, "infix": 0}
    assert {t: v.tolist() for t, v in audit.lengths.items()} == lengths


def test_a_changed_partition_is_a_mismatch(campaign, tmp_path):
    import shutil

    copy = shutil.copytree(campaign, tmp_path / "copy")
    store = Store(copy)
    name = sorted(str(p.relative_to(copy)) for p in (copy / "positions").rglob("*.parquet"))[0]
    rows, info = store.read_checked("positions", name)
    columns = rows.to_pydict()
    pairs = zip(columns["position"], columns["tokens"], strict=True)
    at = next(i for i, (k, length) in enumerate(pairs) if k == 1 and length > 1)
    columns["tokens"][at] -= 1
    changed = type(rows).from_pydict(columns, schema=rows.schema)
    assert content_digest(changed) != info.digest
    store.write_shard("positions", name, changed, source=info.source, work=info.work)
    (audit,) = audit_campaign(copy)
    assert audit.mismatches == 1


def test_tables_show_forms_written_out(campaign):
    audits = audit_campaign(campaign, targets=(16,))
    table = audit_table(audits)
    assert '".\\n\\n"' in table.to_csv()
    assert '".\\\\n\\\\n"' in table.to_markdown()
    lengths = length_table(audits)
    assert lengths.frame.index.tolist() == [("scripted", 8), ("scripted", 16)]
    assert lengths.frame.loc[("scripted", 8), "Mean"] == audits[0].lengths[8].mean()


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (b"\n\n", "pure"),
        (b"\n\n\n", "white_space"),
        (b" \n\n\t", "white_space"),
        (b".\n\n", "suffix"),
        (b"};\n\n\n ", "suffix"),
        (b"\n\n#", "infix"),
        (b");\n\n//", "infix"),
        (b"a\n\nb\n\n", "suffix"),
    ],
)
def test_forms(content, form):
    assert form_of(content) == form


def test_escape_never_prints_a_control_character():
    assert escape(b".\n\n") == '".\\n\\n"'
    assert escape(b"\xff\x00") == '"\\xff\\x00"'
