from __future__ import annotations

import random
import shutil
from itertools import pairwise

import pytest

from engine.inspection import open_store
from viewer.log.columns import look, unit_kind, verdict
from viewer.log.rows import EdgeRow, LogSource, MatchSource, UnitRow
from viewer.widgets.log_line import LogLine, Mix, Pin, joined, line_of, sample, sample_places, worst_pins
from viewer.widgets.row_window import Window

KIND = unit_kind(lambda topic, queue_id, offset: (topic, queue_id, offset))


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
        assert page.rows[page.at] == holder
        at = rows.index(holder)
        assert page.rows == rows[max(0, at - 5) : at + 5]


def test_windows_over_the_log_read_on_exactly_where_they_ended(flipped):
    source = LogSource(flipped.log)
    rows = everything(source)
    window, top = Window(source, chunk=50, capacity=200), 0
    want = window.jump(source.start, 20)
    top = window.apply(want, source.read(want.position, want.before, want.after), 0, 20)
    seen = list(window.rows)
    while not window.last:
        top = len(window.rows) - 20
        want = window.wanted(top, 20)
        before = window.rows[-1]
        page = source.read(want.position, want.before, want.after)
        assert page.rows[0].offset == before.end
        seen += page.rows
        top = window.apply(want, page, top, 20)
    assert seen == rows


def test_a_wrong_crc_is_marked_and_said_first(flipped):
    bad = [row for row in everything(LogSource(flipped.log)) if isinstance(row, UnitRow) and row.crc == "bad"]
    assert len(bad) == 1
    assert look(bad[0]).mark == "error"
    assert KIND.speak(bad[0]).startswith("body CRC bad. ")


def test_edges_speak_in_words(flipped):
    rows = [row for row in everything(LogSource(flipped.log)) if isinstance(row, EdgeRow)]
    assert {row.kind for row in rows} >= {"blank", "zero"}
    blank = next(row for row in rows if row.kind == "blank")
    assert blank.next_file in look(blank).words
    assert look(EdgeRow("damage", 5, 1874, 1879, "length field says 1,936,422,189")).fill == "errorFill"
    assert verdict(EdgeRow("damage", 5, 9, 14)) == "damage"


def test_matches_are_rows_by_their_number(flipped):
    log = LogSource(flipped.log)
    offsets = [row.offset for row in everything(log) if isinstance(row, UnitRow) and row.topic == "orders"]
    source = MatchSource(log, offsets)
    assert source.total == len(offsets)
    page = source.read(100, 10, 20)
    assert [row.offset for row in page.rows] == offsets[90:120]
    assert source.position(page.rows[page.at]) == 100


def test_marks_tell_what_a_unit_is(golden):
    with open_store(golden("broker-transactions")) as store:
        marks = {row.topic: row.marks for row in everything(LogSource(store.log)) if isinstance(row, UnitRow)}
    assert "T" in marks["RMQ_SYS_TRANS_HALF_TOPIC"]


def test_the_line_maps_offsets_to_shares_and_back(flipped):
    line = line_of(flipped.log)
    for offset in (line.low, line.low + 12_345, line.written - 1):
        assert abs(line.offset(line.share(offset)) - offset) <= 2
    assert line.share(line.high) == 1.0
    far = LogLine(1 << 50, (1 << 50) + (1 << 40), (1 << 50) + (1 << 40))
    assert abs(far.offset(far.share((1 << 50) + 999_999_999)) - (1 << 50) - 999_999_999) < 1 << 12


def test_samples_cover_the_line_once_and_name_topics(flipped):
    line = line_of(flipped.log)
    places = sample_places(line, 40)
    assert min(low for low, _ in places) == line.low
    assert sum(high - low for low, high in places) == line.written - line.low
    mix = sample(flipped.log, *places[0])
    assert abs(sum(part for _, part in mix.shares) - 1) < 1e-9


def test_of_pins_that_would_overlap_the_worst_is_drawn():
    pins = [Pin(1, "warn"), Pin(2, "error"), Pin(90, "note")]
    assert [(x, pin.kind) for x, pin in worst_pins(pins, [10.0, 12.0, 50.0], 6)] == [(10.0, "error"), (50.0, "note")]


def test_joined_samples_keep_every_byte_and_its_share() -> None:
    mixes = [Mix(n * 10, n * 10 + 10, (("a", 1.0),) if n % 2 else (("a", 0.5), ("b", 0.5)), n) for n in range(8)]
    found = joined([mixes[3], *mixes[:3], *mixes[4:]], 20)
    assert [(one.start, one.end, one.time) for one in found] == [(0, 20, 0), (20, 40, 2), (40, 60, 4), (60, 80, 6)]
    assert all(dict(one.shares) == {"a": 0.75, "b": 0.25} for one in found)
    apart = [Mix(0, 10, ()), Mix(20, 30, (("a", 1.0),), 5)]
    assert joined(apart, 100) == apart, "what does not touch stays apart"
    assert joined([Mix(0, 10, ()), Mix(10, 20, (("a", 1.0),), 5)], 20) == [Mix(0, 20, (("a", 1.0),), 5)]


def test_what_was_still_being_written_is_no_damage(golden, tmp_path):
    """A writer finished a unit between the read of its bytes and that of the next: a red row stood there for a moment,
    in a store that is sound.
    """
    store = tmp_path / "store"
    shutil.copytree(golden("clean-5.3.3"), store)
    file = sorted(next(store.rglob("commitlog")).iterdir())[0]
    whole = file.read_bytes()
    with open_store(store) as snapshot:
        late = LogSource(snapshot.log).read(0, 0, 40).rows[20]

    class Writer:
        """The log's reader; the writer is done with the unit once the log was walked."""

        def __getattr__(self, name):
            return getattr(self.log, name)

        def walk(self, *where, **how):
            for item in list(self.log.walk(*where, **how)):
                file.write_bytes(whole)
                yield item

    for torn in (
        bytes(late.size),
        whole[late.offset : late.offset + 92] + bytes(8) + whole[late.offset + 100 : late.end],
    ):
        file.write_bytes(whole[: late.offset] + torn + whole[late.end :])
        with open_store(store) as snapshot:
            seen = LogSource(snapshot.log).read(0, 0, 40).rows
            assert any(row.offset == late.offset and row != late for row in seen)
            reader = Writer()
            reader.log = snapshot.log
            rows = LogSource(reader).read(0, 0, 40).rows
            assert rows[20] == late
