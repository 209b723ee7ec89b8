from __future__ import annotations

import errno
import random
import shutil
from itertools import pairwise

import pytest
from handmade_stores import LOG_SIZE, healthy

from engine.inspection import open_store
from engine.inspection.side_index import SideIndex
from engine.mapped.reading import SystemDisk
from viewer.log.rows import EdgeRow, LogSource, MatchSource, UnitRow
from viewer.widgets.row_window import Window


@pytest.fixture
def flipped(golden):
    with open_store(golden("crash-flip-5.3.3")) as store:
        yield store


def everything(source):
    return source.read(source.start, 0, 1 << 20).rows


def test_rows_follow_each_other_without_a_gap(flipped):
    source = LogSource(flipped.log)
    rows = everything(source)
    assert rows[0].offset == flipped.log.min_offset
    for row, following in pairwise(rows):
        assert row.end == following.offset
    assert rows[-1].kind == "zero"
    assert rows[-1].end == flipped.log.end_offset


def test_any_byte_of_the_log_leads_to_the_row_that_holds_it(flipped):
    source = LogSource(flipped.log)
    rows = everything(source)
    rng = random.Random(7)
    for _ in range(40):
        position = rng.randrange(source.start, source.end)
        page = source.read(position, 5, 5)
        holder = next(row for row in rows if row.offset <= position < row.end)
        assert page.rows[page.rows_before] == holder
        at = rows.index(holder)
        assert page.rows == rows[max(0, at - 5) : at + 5]


def test_windows_over_the_log_read_on_exactly_where_they_ended(flipped):
    source = LogSource(flipped.log)
    rows = everything(source)
    window, top = Window(source, chunk=50, capacity=200), 0
    want = window.jump(source.start, 20)
    top = window.apply(want, source.read(want.position, want.rows_before, want.rows_after), 0, 20)
    actual_rows = list(window.rows)
    while not window.last:
        top = len(window.rows) - 20
        want = window.wanted(top, 20)
        before = window.rows[-1]
        page = source.read(want.position, want.rows_before, want.rows_after)
        assert page.rows[0].offset == before.end
        actual_rows += page.rows
        top = window.apply(want, page, top, 20)
    assert actual_rows == rows


def test_matches_are_rows_by_their_number(flipped):
    log = LogSource(flipped.log)
    offsets = [row.offset for row in everything(log) if isinstance(row, UnitRow) and row.topic == "orders"]
    source = MatchSource(log, offsets)
    assert source.total == len(offsets)
    page = source.read(100, 10, 20)
    assert [row.offset for row in page.rows] == offsets[90:120]
    assert source.position(page.rows[page.rows_before]) == 100


def test_marks_tell_what_a_unit_is(golden):
    with open_store(golden("broker-transactions")) as store:
        marks = {row.topic: row.marks for row in everything(LogSource(store.log)) if isinstance(row, UnitRow)}
    assert "T" in marks["RMQ_SYS_TRANS_HALF_TOPIC"]


def test_what_was_still_being_written_is_no_damage(golden, tmp_path):
    """A writer finished a unit between the read of its bytes and that of the next: a red row stood there for a moment,
    in a store that is sound.
    """
    store = tmp_path / "store"
    shutil.copytree(golden("clean-5.3.3"), store)
    file = sorted(next(store.rglob("commitlog")).iterdir())[0]
    content = file.read_bytes()
    with open_store(store) as snapshot:
        late = LogSource(snapshot.log).read(0, 0, 40).rows[20]

    class Writer:
        """The log's reader; the writer is done with the unit once the log was walked."""

        def __getattr__(self, name):
            return getattr(self.log, name)

        def walk(self, *where, **how):
            for item in list(self.log.walk(*where, **how)):
                file.write_bytes(content)
                yield item

    for torn in (
        bytes(late.size),
        content[late.offset : late.offset + 92] + bytes(8) + content[late.offset + 100 : late.end],
    ):
        file.write_bytes(content[: late.offset] + torn + content[late.end :])
        with open_store(store) as snapshot:
            actual_rows = LogSource(snapshot.log).read(0, 0, 40).rows
            assert any(row.offset == late.offset and row != late for row in actual_rows)
            reader = Writer()
            reader.log = snapshot.log
            rows = LogSource(reader).read(0, 0, 40).rows
            assert rows[20] == late


def test_numbers_of_a_log_that_is_shorter_now_are_nobody_s(tmp_path, golden):
    """A store that went while it was counted had "5,172 rows" and an empty table that said nothing."""
    root = shutil.copytree(golden("crash-flip-5.3.3"), tmp_path / "store")
    with open_store(root) as store:
        source = LogSource(store.log)
        index = SideIndex(store.log)
        assert index.build()
        source.counted = index
        assert source.total == index.total > 0
        shutil.rmtree(root)
        store.refresh()
        assert source.total is None
        assert source.counted is None


def test_a_last_file_that_cannot_be_read_is_the_last_row(tmp_path, monkeypatch):
    """Going there put the error over the rows of another place, and Ctrl+End went nowhere."""
    root = healthy().write(tmp_path / "store")
    last = max((root / "commitlog").iterdir())
    opened = SystemDisk.open

    def refuse(self, path):
        if path == str(last):
            raise OSError(errno.EACCES, "Permission denied", path)
        return opened(self, path)

    monkeypatch.setattr(SystemDisk, "open", refuse)
    with open_store(root) as store:
        source = LogSource(store.log)
        for position in (int(last.name), int(last.name) + LOG_SIZE // 2, source.end):
            page = source.read(position, 5, 5)
            edge = page.rows[-1]
            assert isinstance(edge, EdgeRow)
            assert (edge.kind, edge.offset, edge.size) == ("error", int(last.name), LOG_SIZE)
            assert "Permission denied" in edge.reason
