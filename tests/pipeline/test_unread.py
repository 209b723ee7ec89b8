"""Unreadable parts are not absent: they are rows of damage, and the rest is read.

A storage that fails at one call replaces the disks: each listing, each stat, each opening and each read of each format
fails once.
"""

import errno
import itertools
import os

import pytest
from failing_storage import FailingDisks, make_fleet
from pyspark.sql.datasource import EqualTo, GreaterThan
from unprivileged_user import as_nobody, open_folder

from engine.errors import CannotRead, NotAStore
from engine.pipeline import files, storage
from engine.pipeline.commitlog_source import CommitLogReader
from engine.pipeline.files import find_stores, log_files
from engine.pipeline.index_source import IndexReader
from engine.pipeline.options import LogOptions, Options
from engine.pipeline.queue_source import QueueReader
from engine.pipeline.splits import plan

pytestmark = pytest.mark.spark
READERS = (CommitLogReader, QueueReader, IndexReader)


@pytest.fixture
def disks(monkeypatch):
    """Return a function that replaces the disks by a storage."""

    def put(failing):
        for module in (storage, files, *_users()):
            monkeypatch.setattr(module, "storage_of", lambda path: (failing, path))
        return failing

    return put


def _users():
    from engine.pipeline import index_source, pruning, queue_files

    return index_source, queue_files, pruning


def rows_of(source, path, filters=(), **options):
    arguments = {"path": str(path), "splitBytes": "3000", **options}
    log_options = LogOptions(arguments) if source is CommitLogReader else Options(arguments, source.COLUMNS)
    reader = source(log_options, list(log_options.columns))
    reader.pushFilters(list(filters))
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


def plain(rows):
    return {str(row) for row in rows if row["type"] != "damage"}


def reasons(rows):
    return [row["reason"] for row in rows if row["type"] == "damage"]


@pytest.fixture
def fleet(tmp_path):
    return make_fleet(tmp_path)


@pytest.mark.full_form(keep=4)
@pytest.mark.parametrize("source", READERS, ids=lambda item: item.NAME if hasattr(item, "NAME") else "log")
@pytest.mark.parametrize(
    "conditions", [(), (EqualTo(("topic",), "Orders"),), (GreaterThan(("phyOffset",), 10),)], ids=str
)
def test_wherever_a_call_fails_it_is_told_and_the_rest_comes(fleet, disks, source, conditions):
    """A folder without rights was an empty store, and a folder that could not be listed ended the whole fleet."""
    pattern = f"{fleet}/*/store"
    conditions = (
        [item for item in conditions if item.attribute[0] in source.COLUMNS]
        if source is not CommitLogReader
        else conditions
    )
    conditions = [
        condition for condition in conditions if condition.attribute != ("phyOffset",) or source is IndexReader
    ]
    counting = disks(FailingDisks(below="/a/"))
    full_rows = rows_of(source, pattern, conditions)
    of_b = plain(row for row in full_rows if row["broker"] == "b")
    assert not reasons(full_rows)
    assert of_b
    for position in range(counting.calls):
        failing = disks(FailingDisks(position, "/a/"))
        rows = rows_of(source, pattern, conditions)
        assert of_b <= plain(rows), failing.hurt
        actual_reasons = reasons(rows)
        if plain(full_rows) - plain(rows) and not conditions:  # a condition drops rows of damage like others
            assert any(os.strerror(errno.EIO) in reason for reason in actual_reasons), failing.hurt
        assert all(row["broker"] == "a" for row in rows if row["type"] == "damage")


@pytest.mark.parametrize("source", READERS, ids=lambda item: item.NAME if hasattr(item, "NAME") else "log")
def test_a_read_fails_at_once_where_that_is_asked_for(fleet, disks, source):
    counting = disks(FailingDisks(below="/a/"))
    complete = plain(rows_of(source, f"{fleet}/*/store", unreadable="fail"))
    for position in range(0, counting.calls, 3):
        failing = disks(FailingDisks(position, "/a/"))
        try:
            rows = plain(rows_of(source, f"{fleet}/*/store", unreadable="fail"))
        except CannotRead as error:
            assert failing.hurt in str(error) or os.strerror(errno.EIO) in str(error)  # noqa: PT017
            continue
        assert rows == complete, failing.hurt


def test_only_what_is_gone_is_absent(tmp_path, disks):
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / "00000000000000004096").symlink_to("nowhere")
    (tmp_path / "commitlog" / "00000000000000000000").write_bytes(bytes(4096))
    (store,) = find_stores(str(tmp_path))
    assert [file.start for file in log_files(store)] == [0]
    disks(FailingDisks(0, "/commitlog/00000000000000000000", errno.ESTALE))
    (store,) = find_stores(str(tmp_path))
    with pytest.raises(CannotRead, match="00000000000000000000: cannot be looked at: Stale file handle"):
        log_files(store)
    with pytest.raises(NotAStore):
        find_stores(str(tmp_path / "nothing"))


def test_a_store_that_cannot_be_looked_for_is_a_place_that_is_unread(fleet, disks):
    for below in ("/a", "/a/store", "/a/store/commitlog"):
        disks(FailingDisks(0, f"{fleet}{below}"))
        places = {place.broker: place for place in find_stores(f"{fleet}/*/store")}
        assert set(places) == {"a", "b"}, below
        with pytest.raises(CannotRead, match="Input/output error"):
            log_files(places["a"])
        planned = plan(places.values(), without_unread=True)
        assert [item.broker for item in planned.unread] == ["a"]
        assert {split.broker for split in planned.splits} == {"b"}
        with pytest.raises(CannotRead):
            plan(places.values())


def test_an_unreadable_log_file_is_one_row_however_it_is_asked_for(fleet, disks):
    """Conditions on offsets gave it another place and another length, and each split a row of its own."""
    (store,) = find_stores(str(fleet / "a"))
    *_, last_file = log_files(store)
    for filters in ([], [GreaterThan(("physicalOffset",), last_file.start - 100)]):
        failing = disks(FailingDisks())
        failing.hurt, failing.only = last_file.path, "read"
        rows = [row for row in rows_of(CommitLogReader, fleet / "a", filters) if row["type"] == "damage"]
        assert [(row["physicalOffset"], row["size"]) for row in rows] == [(last_file.start, last_file.size)]


def test_queues_are_read_though_the_newest_file_of_the_log_is_not(fleet, disks):
    """The end of the log is unknown then: no entry is left out, and a row says so."""
    complete = plain(rows_of(QueueReader, fleet / "a"))
    (store,) = find_stores(str(fleet / "a"))
    failing = disks(FailingDisks())
    failing.only = "read"
    failing.hurt = log_files(store)[-1].path
    rows = rows_of(QueueReader, fleet / "a")
    assert complete <= plain(rows)
    (reason,) = reasons(rows)
    assert failing.hurt in reason


def test_rights_that_are_missing_are_told():
    """``chmod 644`` of a folder made it an empty store, in all three formats, without a word."""
    with open_folder() as folder:
        make_fleet(folder)
        pattern = f"{folder}/*/store"
        for source, part in zip(READERS, ("commitlog", "consumequeue", "index"), strict=True):
            full_rows = rows_of(source, pattern)
            for mode, where in itertools.product((0o644, 0o311, 0o000), (f"a/store/{part}", "a/store", "a")):
                (folder / where).chmod(mode)
                rows = as_nobody(lambda: rows_of(source, pattern))  # noqa: B023  it is done at once
                (folder / where).chmod(0o755)
                if mode == 0o311 and where == "a":
                    assert rows == full_rows
                    continue
                actual_rows = [row for row in rows if row["type"] == "damage"]
                assert {row["broker"] for row in actual_rows} == {"a"}, (part, mode)
                assert all("Permission denied" in row["reason"] for row in actual_rows)
                of_b = [row for row in rows if row["broker"] == "b"]
                assert of_b == [row for row in full_rows if row["broker"] == "b"]
