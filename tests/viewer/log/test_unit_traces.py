"""Traces in the detail of a message: who sent and received it, how it ended, and the way to the trace and back."""

from __future__ import annotations

from pathlib import Path

from panes import on_store, wait_until, wait_until_idle
from traced_stores import GONE, ID, write_traced_store

from engine.codec.message import Unit
from engine.inspection.snapshot import open_store
from viewer.log.pane import UnitsPane
from viewer.log.unit_traces import read_traces
from viewer.runtime.places import Place


def test_lines_say_who_how_long_and_how_it_ended(tmp_path: Path) -> None:
    write_traced_store(tmp_path)
    with open_store(tmp_path) as store:
        units = [item for item in store.units(crc=False) if isinstance(item, Unit)]
        group = read_traces(store, units[0])
        assert group is not None
        assert [(line.label, line.value, line.tone) for line in group.lines] == [
            ("sent", "shop", "text3"),
            ("received", "billing", "error"),
            ("received", "billing", "text3"),
        ]
        assert group.lines[1].note == "exception · → trace"
        words = {line.label: line.value for line in group.lines[1].lines}
        assert (words["client"], words["took"], words["ended"]) == ("10.0.0.9:5000", "1.2 s", "exception")
        assert {line.label: line.value for line in group.lines[2].lines}["retries before"] == "1"
        unended = read_traces(store, units[1])
        assert unended is not None
        assert {line.label: line.value for line in unended.lines[0].lines}["ended"] == "no trace says how it ended"
        gone = read_traces(store, next(unit for unit in units if GONE in unit.keys))
        assert gone is not None
        assert gone.lines[0].place == Place("where", key=GONE)
        assert gone.lines[0].note == "failed · → where is it"


def test_without_traces_nothing_is_claimed(tmp_path: Path) -> None:
    write_traced_store(tmp_path, with_traces=False)
    with open_store(tmp_path) as store:
        unit = next(item for item in store.units(crc=False) if isinstance(item, Unit))
        assert read_traces(store, unit) is None


def test_the_detail_leads_from_a_message_to_its_trace_and_back(qapp, tmp_path: Path) -> None:
    write_traced_store(tmp_path)

    async def drive(pane: UnitsPane, session) -> None:
        await wait_until(lambda: pane.unit.current is not None and pane.unit.current.traces, "the traces are there")
        trace_place = pane.unit.current.traces.lines[0].place
        pane.show_place(trace_place)
        await wait_until(
            lambda: (
                pane.unit.current is not None
                and pane.unit.current.row.offset == trace_place.offset
                and pane.unit.current.traces
            ),
            "the trace is shown",
        )
        assert pane.unit.current.traces.lines[0].place.offset == 0
        assert pane.unit.current.traces.lines[0].lines[0].value == ID[0]
        await wait_until_idle(session.jobs)

    on_store(qapp, UnitsPane, tmp_path, drive)
