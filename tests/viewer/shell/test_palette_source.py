"""What the palette offers: commands, places of the open store, filters; the sign in front chooses."""

from __future__ import annotations

from viewer.shell.palette_source import entries


def found(window, text):
    return [(entry.section, entry.text) for entry in entries(window, text)]


def test_a_sign_chooses_what_is_offered(run, window, golden):
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    assert {section for section, _ in found(window, ">find")} == {"Commands"}
    assert ("Places", "Go to 4096") in found(window, "@4096")
    assert ("Places", "OrderEvents") in found(window, "orderev")
    assert found(window, ':topic = "X"')[-1] == ("Filters", 'topic = "X"')
    assert found(window, "?") == [("Commands", "All keys")]


def test_without_a_store_there_are_commands_only(window):
    assert {section for section, _ in found(window, "open")} == {"Commands"}
    assert found(window, "@4096") == []
