"""Entries of the palette: commands, places of the open store, filters. A prefix selects among them."""

from __future__ import annotations

from viewer.shell.palette_source import entries


def entries_for(window, text):
    return [(entry.section, entry.text) for entry in entries(window, text)]


def test_a_prefix_selects_the_entries(run, window, golden):
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    assert {section for section, _ in entries_for(window, ">find")} == {"Commands"}
    assert ("Places", "Go to 4096") in entries_for(window, "@4096")
    assert ("Places", "OrderEvents") in entries_for(window, "orderev")
    assert entries_for(window, ':topic = "X"')[-1] == ("Filters", 'topic = "X"')
    assert entries_for(window, "?") == [("Commands", "All keys")]


def test_without_a_store_there_are_commands_only(window):
    assert {section for section, _ in entries_for(window, "open")} == {"Commands"}
    assert entries_for(window, "@4096") == []
