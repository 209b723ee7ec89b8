"""Streams over logs that changed: cut back, created anew, missing, deleted unread, or read by an older release."""

import shutil
import time
from collections import Counter

import pytest
from followed_stores import FILE, Query, new_store, places, put, units_of

from engine.config import from_mapping
from engine.errors import StoreError
from engine.message_store import MessageStore
from engine.pipeline.stream_offsets import NEAREST_MARK_BYTES

pytestmark = pytest.mark.spark


def filled(path, count, topic="Orders"):
    with new_store(path) as store:
        put(store, count, topic)
    return path


def replaced(path, by):
    shutil.rmtree(path)
    shutil.copytree(by, path)


def damage_rows(rows):
    """Return (store, start, size, reason) of the rows of damage."""
    return [(row["store"], row["physicalOffset"], row["size"]) for row in rows if row["type"] == "damage"]


def topics(rows):
    return [row["topic"] for row in rows if row["type"] == "unit"]


def fails(query, why):
    offsets_before = dict(query.at)
    with pytest.raises(StoreError, match=why) as caught:
        query.trigger()
    assert "failOnDataLoss=false" in str(caught.value)
    query.at = offsets_before


def test_files_that_were_deleted_before_they_were_read_are_told(tmp_path):
    with new_store(tmp_path / "s") as store:
        put(store, 10)
        query = Query(tmp_path / "s")
        first_rows = query.trigger()
        put(store, 900)
    for name in (0, FILE):
        (tmp_path / "s" / "commitlog" / f"{name:020d}").unlink()
    fails(query, "the files were deleted before they were read")
    query = Query(tmp_path / "s", query.at, failOnDataLoss="false")
    record, *later_rows = query.trigger()
    end = first_rows[-1]["physicalOffset"] + first_rows[-1]["size"]
    assert (record["type"], record["physicalOffset"], record["size"]) == ("damage", end, 2 * FILE - end)
    assert places(later_rows) == units_of(tmp_path / "s")
    assert query.trigger() == []


def test_files_that_are_deleted_between_planning_and_reading_are_told(tmp_path):
    filled(tmp_path / "s", 900)
    query = Query(tmp_path / "s", failOnDataLoss="false")
    end = query.source.latestOffset({})
    (tmp_path / "s" / "commitlog" / f"{0:020d}").unlink()
    record, *remainder = query.read({}, end)
    assert (record["type"], record["physicalOffset"], record["size"]) == ("damage", 0, FILE)
    assert places(remainder) == units_of(tmp_path / "s")
    with pytest.raises(StoreError, match="deleted before they were read"):
        Query(tmp_path / "s").read({}, end)


def test_a_log_that_was_cut_back_is_reported_and_its_new_units_come(tmp_path):
    """The stream waited at such a log: units written up to the old end were never delivered, without a word."""
    filled(tmp_path / "s", 50)
    shutil.copytree(tmp_path / "s", tmp_path / "before")
    filled(tmp_path / "s", 50)
    query = Query(tmp_path / "s")
    assert len(query.trigger()) == 100
    old_end = query.offset()
    replaced(tmp_path / "s", tmp_path / "before")
    fails(query, f"the log was cut back; it had been read up to {old_end:,}, and goes on at")
    query = Query(tmp_path / "s", query.at, failOnDataLoss="false")
    damage, *later_rows = query.trigger()
    cut = later_rows[-1]["physicalOffset"] + later_rows[-1]["size"]
    assert query.offset() == cut
    assert damage_rows([damage]) == [
        (str(tmp_path / "s"), later_rows[0]["physicalOffset"], old_end - later_rows[0]["physicalOffset"])
    ]
    assert places(later_rows) == units_of(tmp_path / "s")[-len(later_rows) :]
    assert query.trigger() == []
    filled(tmp_path / "s", 7, "Later")
    assert topics(query.trigger()) == ["Later"] * 7


@pytest.mark.parametrize("count", [5, 500])
def test_a_log_that_was_cut_back_and_written_on_gives_its_new_units(tmp_path, count):
    filled(tmp_path / "s", 50)
    shutil.copytree(tmp_path / "s", tmp_path / "before")
    filled(tmp_path / "s", 50)
    query = Query(tmp_path / "s", failOnDataLoss="false")
    assert len(query.trigger()) == 100
    replaced(tmp_path / "s", tmp_path / "before")
    filled(tmp_path / "s", count, "Later")
    rows = query.trigger()
    assert len(damage_rows(rows)) == 1
    assert [topic for topic in topics(rows) if topic == "Later"] == ["Later"] * count
    assert places([row for row in rows if row["type"] == "unit"]) == units_of(tmp_path / "s")[-len(rows) + 1 :]
    assert query.trigger() == []


def test_units_with_an_earlier_clock_behind_a_cut_are_not_skipped(tmp_path):
    """A log was cut and written on by a machine whose clock was an hour behind. None of its units was delivered: the
    stream continued at the first unit stored later than the last delivered one.
    """
    filled(tmp_path / "s", 50)
    shutil.copytree(tmp_path / "s", tmp_path / "before")
    filled(tmp_path / "s", 50)
    query = Query(tmp_path / "s", failOnDataLoss="false")
    assert len(query.trigger()) == 100
    replaced(tmp_path / "s", tmp_path / "before")
    an_hour_ago = time.time_ns() // 1_000_000 - 3_600_000
    sizes = {"mappedFileSizeCommitLog": FILE, "mappedFileSizeConsumeQueue": 20 * 200}
    with MessageStore(tmp_path / "s", from_mapping(sizes)[0], clock=lambda: an_hour_ago) as store:
        put(store, 20, "Later")
    rows = query.trigger()
    assert len(damage_rows(rows)) == 1
    assert [topic for topic in topics(rows) if topic == "Later"] == ["Later"] * 20


def test_a_cut_repeats_no_more_than_a_few_times_its_length(tmp_path):
    """The distance of marks within one batch grows fourfold each time: the length of the cut bounds the repeated
    part.
    """
    filled(tmp_path / "s", 4000)
    shutil.copytree(tmp_path / "s", tmp_path / "before")
    filled(tmp_path / "s", 300)
    query = Query(tmp_path / "s", failOnDataLoss="false")
    total = len(query.trigger())
    old_end = query.offset()
    replaced(tmp_path / "s", tmp_path / "before")
    rows = query.trigger()
    units = [row for row in rows if row["type"] == "unit"]
    cut = old_end - query.offset()
    assert 0 < len(units) < total / 2
    assert query.offset() - units[0]["physicalOffset"] <= max(4 * cut, 4 * NEAREST_MARK_BYTES)


@pytest.mark.parametrize("count", [5, 50, 500])
def test_a_store_made_anew_is_told_and_read_from_its_first_unit(tmp_path, count):
    """With such a store a query once ended with no row and no error; after the old end it continued in the middle."""
    filled(tmp_path / "s", 50)
    query = Query(tmp_path / "s")
    assert len(query.trigger()) == 50
    old_end = query.offset()
    shutil.rmtree(tmp_path / "s")
    filled(tmp_path / "s", count)
    fails(query, f"another log stands here than the one that was read up to {old_end:,}")
    query = Query(tmp_path / "s", query.at, failOnDataLoss="false")
    rows = query.trigger()
    assert damage_rows(rows) == [(str(tmp_path / "s"), 0, old_end)]
    assert places([row for row in rows if row["type"] == "unit"]) == units_of(tmp_path / "s")
    assert query.trigger() == []


def test_a_loss_that_was_planned_comes_again_as_it_was(tmp_path):
    """A driver that dies between planning and the end of a batch reads it again, and the log has grown since."""
    filled(tmp_path / "s", 50)
    query = Query(tmp_path / "s", failOnDataLoss="false")
    query.trigger()
    shutil.rmtree(tmp_path / "s")
    filled(tmp_path / "s", 20)
    end = query.source.latestOffset(query.at)
    first_rows = query.read(query.at, end)
    filled(tmp_path / "s", 300, "Later")
    second_query = Query(tmp_path / "s", failOnDataLoss="false")
    assert second_query.read(query.at, end) == first_rows
    assert topics(second_query.read(end, second_query.source.latestOffset(end))) == ["Later"] * 300


def test_a_log_that_is_replaced_between_planning_and_reading_is_told(tmp_path):
    filled(tmp_path / "s", 50)
    end = Query(tmp_path / "s").source.latestOffset({})
    shutil.rmtree(tmp_path / "s")
    filled(tmp_path / "s", 60)
    with pytest.raises(StoreError, match="replaced between planning and reading"):
        Query(tmp_path / "s").read({}, end)
    query = Query(tmp_path / "s", failOnDataLoss="false")
    assert len(damage_rows(query.read({}, end))) == 1
    rows = query.read(end, query.source.latestOffset(end))
    assert len(damage_rows(rows)) == 1
    assert len(topics(rows)) == 60


@pytest.mark.parametrize("missing", ["store", "log", "bytes"])
def test_a_store_that_is_gone_is_told_once_and_known_again_when_it_is_back(tmp_path, missing):
    """A disk that is not mounted is no store without messages."""
    for broker in "ab":
        filled(tmp_path / "fleet" / broker, 20)
    query = Query(f"{tmp_path}/fleet/*", failOnDataLoss="false")
    assert len(query.trigger()) == 40
    away = tmp_path / "fleet" / "a" / {"store": ".", "log": "commitlog", "bytes": f"commitlog/{0:020d}"}[missing]
    shutil.move(away.resolve(), tmp_path / "away")
    if missing == "log":
        (tmp_path / "fleet" / "a" / "commitlog").mkdir()
    if missing == "bytes":
        away.write_bytes(bytes(FILE))
    filled(tmp_path / "fleet" / "b", 5, "Later")
    with pytest.raises(StoreError, match="is its disk mounted"):
        Query(f"{tmp_path}/fleet/*", query.at).trigger()
    rows = query.trigger()
    assert [store for store, _, _ in damage_rows(rows)] == [str(tmp_path / "fleet" / "a")]
    assert topics(rows) == ["Later"] * 5
    assert query.trigger() == []
    if missing == "log":
        (tmp_path / "fleet" / "a" / "commitlog").rmdir()
    elif missing == "bytes":
        away.unlink()
    shutil.move(tmp_path / "away", away.resolve())
    assert query.trigger() == []
    filled(tmp_path / "fleet" / "a", 3, "Later")
    assert topics(query.trigger()) == ["Later"] * 3


def test_a_moved_mount_goes_on_where_it_was(tmp_path):
    """Offsets are kept by path: a fleet under another mount point was read anew, each row a second time."""
    for broker in "abc":
        filled(tmp_path / "old" / broker, 20 + ord(broker))
    query = Query(f"{tmp_path}/*/*")
    first_rows = query.trigger()
    (tmp_path / "old").rename(tmp_path / "new")
    assert query.trigger() == []
    assert all(path.startswith(f"{tmp_path}/new/") for path in query.at)
    filled(tmp_path / "new" / "b", 4, "Later")
    later_rows = query.trigger()
    assert topics(later_rows) == ["Later"] * 4
    counts = Counter(unit for broker in "abc" for unit in units_of(tmp_path / "new" / broker))
    assert Counter(places(first_rows + later_rows)) == counts


def test_offsets_of_earlier_releases_are_read(tmp_path):
    """They are numbers by path, without marks: a shorter log is an error, a longer one is continued."""
    path = str(tmp_path / "s")
    filled(path, 30)
    full_query = Query(path)
    rows = full_query.trigger()
    middle = rows[10]["physicalOffset"]
    query = Query(path, {path: middle})
    assert query.trigger() == rows[10:]
    assert query.read({path: middle}, {path: full_query.offset()}) == rows[10:]
    assert query.read({}, {path: middle}) == rows[:10]
    fails(Query(path, {path: full_query.offset() + 1000}), "another log stands here")
    query = Query(path, {path: full_query.offset() + 1000}, failOnDataLoss="false")
    assert query.trigger()[1:] == rows


def test_a_store_that_cannot_be_read_ends_the_query_or_lets_the_others_go_on(tmp_path, monkeypatch, capsys):
    from engine.errors import CannotRead
    from engine.pipeline import commitlog_source

    for broker in "ab":
        filled(tmp_path / broker, 20)
    end = commitlog_source._current_end

    def refused(store):
        if store.path.endswith("a"):
            raise CannotRead("cannot be read: Permission denied", file=store.path)
        return end(store)

    monkeypatch.setattr(commitlog_source, "_current_end", refused)
    with pytest.raises(CannotRead, match="Permission denied"):
        Query(f"{tmp_path}/*").trigger()
    query = Query(f"{tmp_path}/*", failOnDataLoss="false")
    assert len(topics(query.trigger())) == 20
    assert "nothing of this store comes until it can be read" in capsys.readouterr().err
    monkeypatch.setattr(commitlog_source, "_current_end", end)
    assert len(topics(query.trigger())) == 20
