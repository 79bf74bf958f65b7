"""Parts of a campaign: side by side in one folder, or apart and merged; the rows of a whole run."""

import multiprocessing
import shutil
import threading

import pytest

from data.errors import MisuseError, StoreMismatchError
from stp.campaign.lock import FolderInUseError, Part
from stp.campaign.merge import merge_campaigns
from stp.campaign.run import SilentObserver, run_campaign
from stp.campaign.signal_record import SIGNALS_FILE, SignalSettings, SignalsRecord
from stp.campaign.status import campaign_status
from stp.campaign.store import Store
from tests.campaign.fakes import ScriptedEngine
from tests.campaign.rows import rows_of

fork = multiprocessing.get_context("fork")


def run(config, folder, part=None, **options):
    options.setdefault("open_model", lambda name, path: ScriptedEngine(path))
    return run_campaign(config, folder, part=part, **options)


@pytest.fixture(scope="module")
def whole(configure, tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts") / "whole"
    run(configure(), folder)
    return folder


def test_parts_hold_every_unit_once(configure, whole, tmp_path):
    folders = [tmp_path / f"part-{number}" for number in (1, 2, 3)]
    for number, folder in enumerate(folders, start=1):
        assert run(configure(), folder, Part(number, 3)).finished
    shards = [set(Store(folder).files("probes")) for folder in folders]
    assert set.union(*shards) == set(Store(whole).files("probes"))
    assert sum(map(len, shards)) == len(set.union(*shards))
    assert max(map(len, shards)) - min(map(len, shards)) <= 1
    result = merge_campaigns(folders, tmp_path / "merged")
    assert result.complete
    assert rows_of(tmp_path / "merged") == rows_of(whole)
    assert campaign_status(tmp_path / "merged").finished
    # Nothing is left to do, and the work of all parts is counted.
    manifest = Store(tmp_path / "merged").read_manifest()
    assert manifest.stages["probe"].samples == Store(whole).read_manifest().stages["probe"].samples
    again = run(configure(), tmp_path / "merged")
    assert again.finished and again.units == 0
    assert merge_campaigns(folders, tmp_path / "merged").shards == 0


def _run_part(config, folder, number, count, started):
    started.wait()
    run(
        config,
        folder,
        Part(number, count),
        open_model=lambda name, path: ScriptedEngine(path, seconds_per_call=0.01),
    )


def test_parts_share_a_folder(configure, whole, tmp_path):
    started = fork.Event()
    processes = [
        fork.Process(target=_run_part, args=(configure(), tmp_path / "shared", n, 4, started))
        for n in (1, 2, 3, 4)
    ]
    for process in processes:
        process.start()
    started.set()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    assert rows_of(tmp_path / "shared") == rows_of(whole)
    assert run(configure(), tmp_path / "shared").units == 0


class _Inside(SilentObserver):
    """Does something while a run is under way."""

    def __init__(self, action):
        self.action, self.done = action, False

    def unit_finished(self, stage, unit, work):
        if not self.done:
            self.done = True
            self.action()


def test_who_may_work_on_a_folder_beside_a_part(configure, tmp_path):
    folder = tmp_path / "c"

    def others():
        with pytest.raises(FolderInUseError):
            run(configure(), folder)
        with pytest.raises(FolderInUseError):
            run(configure(), folder, Part(1, 3))
        with pytest.raises(FolderInUseError, match="another number of parts"):
            run(configure(), folder, Part(1, 2))
        assert run(configure(), folder, Part(2, 3)).finished

    inside = _Inside(others)
    assert run(configure(), folder, Part(1, 3), observer=inside).finished
    assert inside.done
    # Afterwards the folder is free for any of them.
    assert run(configure(), folder, Part(1, 2)).finished
    assert run(configure(), folder).finished


def test_a_part_that_was_stopped_goes_on(configure, whole, tmp_path):
    stop = threading.Event()
    first = run(configure(), tmp_path / "c", Part(1, 2), observer=_Inside(stop.set), stop=stop)
    assert not first.finished and first.units == 1
    for number in (1, 2):
        assert run(configure(), tmp_path / "c", Part(number, 2)).finished
    assert rows_of(tmp_path / "c") == rows_of(whole)


def test_parts_that_are_missing_are_counted(configure, whole, tmp_path):
    run(configure(), tmp_path / "one", Part(1, 2), stages=("generate", "probe"))
    result = merge_campaigns([tmp_path / "one"], tmp_path / "merged")
    assert not result.complete
    half = result.units // 2
    assert result.missing == {"generate": half, "probe": half, "grade": result.units}
    assert run(configure(), tmp_path / "merged").finished
    assert rows_of(tmp_path / "merged") == rows_of(whole)


def test_other_campaigns_and_other_rows_are_refused(configure, whole, tmp_path):
    other = configure(probes=3)
    run(other, tmp_path / "other", Part(1, 2))
    with pytest.raises(StoreMismatchError, match=r"probing\.probes is 3"):
        merge_campaigns([whole, tmp_path / "other"], tmp_path / "m1")
    with pytest.raises(MisuseError, match="no campaign"):
        merge_campaigns([whole, tmp_path / "nothing"], tmp_path / "m2")
    with pytest.raises(StoreMismatchError, match="merge into a new folder"):
        merge_campaigns([whole], tmp_path / "other")
    with pytest.raises(MisuseError, match="one of the parts"):
        merge_campaigns([whole], whole)
    changed = tmp_path / "changed"
    shutil.copytree(whole, changed)
    store = Store(changed)
    name = store.files("verdicts")[0]
    rows, info = store.read_checked("verdicts", name)
    store.write_shard("verdicts", name, rows.slice(1), source=info.source)
    with pytest.raises(StoreMismatchError, match="different rows in verdicts/"):
        merge_campaigns([whole, changed], tmp_path / "m3")


def test_parts_that_do_not_fit_say_what_helps(configure, whole, tmp_path):
    """The advice is for whoever merges: no option of a run helps there."""
    run(configure(probes=3), tmp_path / "other", Part(1, 2))
    with pytest.raises(StoreMismatchError) as caught:
        merge_campaigns([whole, tmp_path / "other"], tmp_path / "merged")
    said = str(caught.value)
    assert str(whole) in said and str(tmp_path / "other") in said and "--out" not in said
    assert "probing.probes is 3 in the one and 4 in the other" in said
    assert said.endswith(
        "merge folders into which one campaign was run, in parts (`stp run ... --shard I/N`)"
    )
    same, moved = tmp_path / "same", tmp_path / "moved"
    shutil.copytree(whole, same)
    manifest = Store(whole).read_manifest()
    manifest.models[0].weights_hash = "0" * 64
    Store(same).write_manifest(manifest)
    with pytest.raises(StoreMismatchError, match="its weights_hash differs; merge folders into"):
        merge_campaigns([whole, same], moved)
    assert not moved.exists()


def test_signals_with_other_settings_say_how_to_read_them_alike(whole, tmp_path):
    for number in (1, 2):
        shutil.copytree(whole, tmp_path / f"part-{number}")
        record = SignalsRecord(settings=SignalSettings(trial_tokens=number))
        (tmp_path / f"part-{number}" / SIGNALS_FILE).write_text(record.model_dump_json())
    second = tmp_path / "part-2"
    with pytest.raises(StoreMismatchError, match=f"`stp signals {second} --again`"):
        merge_campaigns([tmp_path / "part-1", second], tmp_path / "merged")


def test_a_torn_shard_is_named(configure, whole, tmp_path):
    torn = tmp_path / "torn"
    shutil.copytree(whole, torn)
    name = Store(torn).files("probes")[1]
    content = (torn / name).read_bytes()
    (torn / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(Exception, match=name.replace(".", r"\.")):
        merge_campaigns([torn], tmp_path / "merged")


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2"])
def test_shards_that_are_none_are_refused(text):
    with pytest.raises(MisuseError):
        Part.parse(text)
