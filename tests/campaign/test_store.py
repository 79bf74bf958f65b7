"""What is in a folder is whole or absent, and belongs to one run at a time."""

import errno
import multiprocessing
import os
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.errors import MisuseError, StoreError
from stp.campaign import lock
from stp.campaign.lock import FolderInUseError
from stp.campaign.store import Store
from stp.campaign.tables import make_table

fork = multiprocessing.get_context("fork")


@pytest.fixture(params=["local", "memory"])
def store(request, tmp_path):
    if request.param == "local":
        yield Store(tmp_path / "campaign")
        return
    store = Store(f"memory://{tmp_path.name}/campaign")
    yield store
    if store._fs.exists("/" + tmp_path.name):
        store._fs.rm("/" + tmp_path.name, recursive=True)


def test_bytes_come_back_and_replace_each_other(store):
    store.write_bytes("a/b.bin", b"one")
    store.write_bytes("a/b.bin", b"two")
    assert store.read_bytes("a/b.bin") == b"two"
    assert store.files("a") == ["a/b.bin"]
    assert store.files("c") == []


def test_a_missing_file_is_one_line(store):
    with pytest.raises(StoreError, match=r"nothing\.bin: cannot be read"):
        store.read_bytes("nothing.bin")


def test_a_folder_with_other_things_is_refused(store):
    store.check_free()
    store.write_bytes("thesis.tex", b"important")
    with pytest.raises(MisuseError, match=r"holds thesis\.tex"):
        store.check_free()


def test_a_folder_without_a_campaign_says_how_to_start_one(store):
    with pytest.raises(MisuseError, match="no campaign here"):
        store.read_manifest()


def test_a_release_is_no_campaign(store):
    store.write_bytes("manifest.json", b'{"schema_version": 1}')
    with pytest.raises(StoreError, match="not a whole manifest"):
        store.read_manifest()
    store.write_bytes("manifest.sha256", b"0123  manifest.json\n")
    with pytest.raises(MisuseError, match=f"^{store.url}: a release, no campaign; give the camp"):
        store.read_manifest()
    store.remove("manifest.sha256")
    with pytest.raises(StoreError, match="not a whole manifest"):
        store.read_manifest()


def test_what_is_set_aside_is_kept_under_new_names(store):
    for content in (b"1", b"2"):
        store.write_bytes("probes/x.parquet", content)
        store.set_aside("probes/x.parquet", "torn")
    assert store.files("probes") == ["probes/x.parquet.torn", "probes/x.parquet.torn2"]
    assert store.read_bytes("probes/x.parquet.torn2") == b"2"


def test_an_unknown_protocol_is_misuse():
    with pytest.raises(MisuseError, match="cannot be used as a campaign's folder"):
        Store("nosuch://bucket/campaign")


def test_two_runs_at_once_are_refused(store):
    refused = pytest.raises(FolderInUseError, match=f"process {os.getpid()} on")
    with store.lock(), refused, Store(store.url).lock():
        raise AssertionError("the folder was locked twice")
    with store.lock():
        pass


def _hold_for_ever(url, ready):
    with Store(url).lock():
        ready.set()
        while True:
            os.sched_yield()


def test_the_lock_of_a_killed_run_is_taken_over(tmp_path, caplog):
    url = str(tmp_path / "campaign")
    ready = fork.Event()
    process = fork.Process(target=_hold_for_ever, args=(url, ready))
    process.start()
    assert ready.wait(30)
    with pytest.raises(FolderInUseError, match=f"process {process.pid} on"), Store(url).lock():
        pass
    process.kill()
    process.join()
    with Store(url).lock():
        assert "taking over" in caplog.text


def test_a_lock_file_of_a_dead_process_is_taken_over_and_one_elsewhere_is_not(monkeypatch):
    store = Store("memory://locks/campaign")
    child = fork.Process(target=os.getpid)
    child.start()
    child.join()
    monkeypatch.setattr(lock.os, "getpid", lambda: child.pid)
    text = lock._me()
    monkeypatch.undo()
    store.write_bytes("run.lock", text.encode())
    with store.lock():
        assert f'"pid": {os.getpid()}' in store.read_bytes("run.lock").decode()
    assert not store.exists("run.lock")
    store.write_bytes("run.lock", b'{"pid": 1, "host": "elsewhere"}')
    with pytest.raises(FolderInUseError, match="process 1 on elsewhere"), store.lock():
        pass


def test_a_run_clears_what_a_killed_one_left_half_written(tmp_path):
    store = Store(tmp_path)
    (tmp_path / "probes").mkdir()
    half = tmp_path / "probes" / ".000001.parquet.123.tmp"
    half.write_bytes(b"PAR1 half")
    with store.lock():
        assert not half.exists()


def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch):
    store = Store(tmp_path)
    store.write_bytes("a.bin", b"old")

    def fail(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match="the disk is full") as caught:
        store.write_bytes("a.bin", b"new")
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]
    assert store.read_bytes("a.bin") == b"old"


def _write_under_a_limit(url, result):
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    try:
        Store(url).write_bytes("large.bin", b"x" * 2000)
    except StoreError as error:
        result.put(str(error))


def test_a_write_that_the_system_cuts_off_leaves_nothing_behind(tmp_path):
    result = fork.Queue()
    process = fork.Process(target=_write_under_a_limit, args=(str(tmp_path), result))
    process.start()
    assert "the disk is full" in result.get(timeout=30)
    process.join()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def tiny_disk(tmp_path):
    """A file system of 64 KiB, where the tests may mount one."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True
    )
    if done.returncode != 0:
        pytest.skip("this machine does not allow mounting a small file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_really_full(tiny_disk: Path):
    store = Store(tiny_disk)
    store.write_bytes("kept.bin", b"x" * 20_000)
    with pytest.raises(StoreError, match="the disk is full"):
        store.write_bytes("large.bin", os.urandom(100_000))
    assert [path.name for path in tiny_disk.iterdir()] == ["kept.bin"]
    assert len(store.read_bytes("kept.bin")) == 20_000


@pytest.mark.parametrize("below", ["", "/deeper"])
def test_a_file_in_the_place_of_the_folder_is_misuse(tmp_path, below):
    (tmp_path / "file").write_text("mine")
    with (
        pytest.raises(MisuseError, match="a file is in the way"),
        Store(f"{tmp_path}/file{below}").lock(),
    ):
        pass
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("url", ["zip://no/such.zip", "data:"])
def test_a_file_system_that_cannot_be_written_is_misuse(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MisuseError) as error, Store(url).lock():
        pass
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "url"),
    [("memory://", "memory://"), ("memory://a/b//", "memory://a/b"), ("/", "/"), ("a/", "a")],
)
def test_a_slash_at_the_end_means_nothing_and_a_scheme_stays_one(given, url):
    assert Store(given).url == url


@pytest.mark.parametrize("content", [b"\xd9\xff\x00", b"[1]", b"{" * 10_000, b"{}"])
def test_a_lock_file_that_says_nothing_is_taken_over(tmp_path, caplog, content):
    (tmp_path / "run.lock").write_bytes(content)
    with Store(tmp_path).lock():
        assert "taking over from another process" in caplog.text
    assert (tmp_path / "run.lock").read_bytes() == b""


def test_a_remote_store_that_cannot_be_reached_is_one_line(monkeypatch):
    class NotReachedError(Exception):
        """Neither an OSError nor one of ours, as clients of object stores have them."""

    store = Store("memory://campaign-x")

    def fail(path: str) -> bool:
        raise NotReachedError("no credentials\nfor you")

    monkeypatch.setattr(store._fs, "exists", fail)
    for ask in (store.is_campaign, lambda: store.files("probes")):
        with pytest.raises(StoreError, match=r"campaign-x: the store cannot be reached: no cred"):
            ask()


def test_some_columns_of_a_damaged_shard_are_those_written_or_an_error(tmp_path):
    """The digest is of all rows; what is read in part has a checksum for each page."""
    store = Store(tmp_path / "c")
    ids = list(range(40))
    rows = make_table(
        "positions",
        {
            **dict.fromkeys(("model", "benchmark"), ["m"] * 40),
            **dict.fromkeys(("question", "trajectory", "position", "tokens"), ids),
        },
    )
    store.write_shard("positions", "p.parquet", rows, source="s")
    path = tmp_path / "c" / "p.parquet"
    whole = path.read_bytes()
    written = store.read_columns("positions", "p.parquet", ["question", "tokens"])
    refused = 0
    for place in range(4, len(whole) - 8, 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        try:
            found = store.read_columns("positions", "p.parquet", ["question", "tokens"])
        except StoreError:
            refused += 1
            continue
        assert found.equals(written), place
    assert refused > 50


@pytest.mark.parametrize("spoil", ["column", "table", "version", "foreign"])
def test_some_columns_of_a_strangers_shard_are_refused_in_one_line(store, tmp_path, spoil):
    ids = list(range(4))
    rows = make_table(
        "positions",
        {
            **dict.fromkeys(("model", "benchmark"), ["m"] * 4),
            **dict.fromkeys(("question", "trajectory", "position", "tokens"), ids),
        },
    )
    store.write_shard("positions", "p.parquet", rows, source="s")
    written = pq.read_table(pa.BufferReader(store.read_bytes("p.parquet")))
    metadata = dict(written.schema.metadata)
    if spoil == "column":
        written = written.drop_columns(["tokens"])
    elif spoil == "version":
        metadata[b"stp.schema"] = b"2"
    elif spoil == "foreign":
        metadata = {}
    sink = pa.BufferOutputStream()
    pq.write_table(written.replace_schema_metadata(metadata), sink)
    store.write_bytes("p.parquet", sink.getvalue().to_pybytes())
    table = "probes" if spoil == "table" else "positions"
    said = "schema version 2" if spoil == "version" else f"it is not a shard of {table}"
    for read in (store.read_columns, lambda *asked: list(store.read_batches(*asked))):
        with pytest.raises(StoreError, match=said) as refusal:
            read(table, "p.parquet", ["question", "tokens"])
        assert "\n" not in str(refusal.value)
