"""The Line over the log: its extent, its samples, and findings as pins."""

from __future__ import annotations

from handmade_stores import HandmadeStore
from panes import on_store, wait_until_idle

from engine.errors import CannotRead
from engine.inspection import open_store
from engine.rules import catalogue
from viewer.log.pane import UnitsPane
from viewer.pane.log_survey import cached_of, in_log, pins_of, sample_spans, times_of, topics_of
from viewer.runtime.places import Place
from viewer.widgets.log_line import TopicMix


def test_findings_with_a_place_in_the_log_are_pins():
    log = catalogue.CL03.finding("Wrong CRC", "/s/commitlog/00", 640, {})
    queue = catalogue.CQ09.finding("Tag", "/s/consumequeue/T/0/00", 20, {})
    chat = catalogue.CL03.finding("Said", "/s/commitlog/00", 700, {}, "chat")
    assert [in_log(item) for item in (log, queue, chat)] == [True, False, True]
    (pin,) = pins_of([log, queue, chat])
    assert (pin.offset, pin.kind, pin.link) == (640, "error", Place("findings", name="CL03"))


def test_topics_of_samples_by_their_bytes():
    mixes = [TopicMix(0, 100, (("A", 0.5), ("B", 0.5))), TopicMix(100, 400, (("B", 1.0),))]
    assert topics_of(mixes) == ["B", "A"]
    assert topics_of([]) == []


def test_times_and_memory_of_files(tmp_path):
    handmade_store = HandmadeStore()
    for _ in range(60):
        handmade_store.put()
    with open_store(handmade_store.write(tmp_path / "s")) as store:
        starts = [file.start_offset for file in store.log.files]
        times = times_of(store.log, [*starts, 10**9])
        assert list(times) == starts
        assert times[0] == handmade_store.units[0].store_timestamp
        cached = cached_of(store)
    assert all(0 <= share <= 1 and range_start < range_end for range_start, range_end, share in cached)


def test_the_line_reaches_the_end_of_the_log(qapp, tmp_path):
    store = HandmadeStore()
    for number in range(60):
        store.put(("Orders", "Paid")[number % 2])

    async def drive(pane, session):
        pane.survey.read_extent()
        await wait_until_idle(session.jobs)
        assert (pane.survey._line.low, pane.survey._line.written) == (0, store.end)
        pane.survey.set_session(None)
        assert pane.survey._line.high == 0

    on_store(qapp, UnitsPane, store.write(tmp_path / "s"), drive)


def test_a_place_that_cannot_be_read_hides_no_other(tmp_path, monkeypatch):
    """Several places are sample_spans at a time. One unread file kept the whole Line grey."""
    handmade_store = HandmadeStore()
    for _ in range(8):
        handmade_store.put("Orders", body=b"x" * 100)
    size = handmade_store.units[0].size
    with open_store(handmade_store.write(tmp_path / "s")) as store:
        read = store.log.walk

        def walk(start, *args, **named):
            if start == 2 * size:
                raise CannotRead("cannot be read: Permission denied", file="a file")
            return read(start, *args, **named)

        monkeypatch.setattr(store.log, "walk", walk)
        mixes = sample_spans(store.log, [(n * size, (n + 1) * size) for n in range(4)])
    assert [mix.start // size for mix in mixes] == [0, 1, 3]
