"""Reports about rebuilt queues and indexes."""

from __future__ import annotations

import io
from types import SimpleNamespace

from engine.cli.output import Output
from engine.cli.rebuilt_text import print_rebuilt, rebuilt_figures

DONE = SimpleNamespace(
    units=1200,
    queues=3,
    entries=1190,
    index_files=1,
    index_entries=2400,
    damaged=2,
    damaged_bytes=512,
    stale=4,
    deleted_topics=["Gone"],
)


def test_figures_have_the_field_names_of_the_record():
    figures = rebuilt_figures(DONE)
    assert (figures["leftBehind"], figures["bytesLeftBehind"], figures["staleUnits"]) == (2, 512, 4)
    assert (figures["indexEntries"], figures["deletedTopics"]) == (2400, ["Gone"])


def test_units_without_an_entry_are_reported(capsys):
    stream = io.StringIO()
    print_rebuilt(Output(as_json=False, stream=stream), DONE, "/new", "b-1: ")
    assert stream.getvalue().startswith("1,200 units: 1,190 entries in 3 queues, 2,400 keys in 1 index file")
    err = capsys.readouterr().err
    assert "b-1: skipped because damaged: 2 places of the log, 512 bytes" in err
    assert "b-1: Gone was deleted" in err


def test_absent_parts_are_not_mentioned(capsys):
    complete = SimpleNamespace(**vars(DONE) | {"damaged": 0, "stale": 0, "deleted_topics": []})
    print_rebuilt(Output(as_json=False, stream=io.StringIO()), complete, "/new")
    assert capsys.readouterr().err == ""
