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
from viewer.log.rows import LogSource, MatchSource, NonUnitRow, UnitRow
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


def test_any_byte_of_the_log_leads_to_its_row(flipped):
    source = LogSource(flipped.log)
    rows = everything(source)
    rng = random.Random(7)
    for _ in range(40):
        position = rng.randrange(source.start, source.end)
        page = source.read(position, 5, 5)
        holder = next(row for row in rows if row.offset <= position < row.end)
        assert page.rows[page.rows_before] == holder
        index = rows.index(holder)
        assert page.rows == rows[max(0, index - 5) : index + 5]


def test_windows_over_the_log_continue_exactly_where_they_ended(flipped):
    source = LogSource(flipped.log)
    rows = everything(source)
    window, top = Window(source, chunk=50, capacity=200), 0
    request = window.jump(source.start, 20)
    top = window.apply(request, source.read(request.position, request.rows_before, request.rows_after), 0, 20)
    read_rows = list(window.rows)
    while not window.last:
        top = len(window.rows) - 20
        request = window.wanted(top, 20)
        last_row = window.rows[-1]
        page = source.read(request.position, request.rows_before, request.rows_after)
        assert page.rows[0].offset == last_row.end
        read_rows += page.rows
        top = window.apply(request, page, top, 20)
    assert read_rows == rows


def test_matches_are_rows_by_their_number(flipped):
    log = LogSource(flipped.log)
    offsets = [row.offset for row in everything(log) if isinstance(row, UnitRow) and row.topic == "orders"]
    source = MatchSource(log, offsets)
    assert source.total == len(offsets)
    page = source.read(100, 10, 20)
    assert [row.offset for row in page.rows] == offsets[90:120]
    assert source.position(page.rows[page.rows_before]) == 100


def test_marks_show_the_kind_of_a_unit(golden):
    with open_store(golden("broker-transactions")) as store:
        marks = {row.topic: row.marks for row in everything(LogSource(store.log)) if isinstance(row, UnitRow)}
    assert "T" in marks["RMQ_SYS_TRANS_HALF_TOPIC"]


def test_an_incomplete_unit_is_no_damage(golden, tmp_path):
    """A writer completed a unit between the reads of its bytes and of the next one. For a moment there was a red row in
    a valid store.
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


def test_counts_of_a_log_that_became_shorter_are_dropped(tmp_path, golden):
    """A store deleted during the count showed "5,172 rows" and an empty table without a message."""
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
    """Going there put the error over the rows of another place, and Ctrl+End did nothing."""
    root = healthy().write(tmp_path / "store")
    last_file = max((root / "commitlog").iterdir())
    opened = SystemDisk.open

    def refuse(self, path):
        if path == str(last_file):
            raise OSError(errno.EACCES, "Permission denied", path)
        return opened(self, path)

    monkeypatch.setattr(SystemDisk, "open", refuse)
    with open_store(root) as store:
        source = LogSource(store.log)
        for position in (int(last_file.name), int(last_file.name) + LOG_SIZE // 2, source.end):
            page = source.read(position, 5, 5)
            edge = page.rows[-1]
            assert isinstance(edge, NonUnitRow)
            assert (edge.kind, edge.offset, edge.size) == ("error", int(last_file.name), LOG_SIZE)
            assert "Permission denied" in edge.reason
