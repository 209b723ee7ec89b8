"""What a table says while it has no rows."""

from __future__ import annotations

from viewer.widgets.record_state import State


def test_states_are_said_and_offer_the_next_step(view, qtbot):
    done = []
    view.set_rows([])
    view.set_state(State("empty", "No unit carries the key", steps=(("Clear the filter", lambda: done.append(1)),)))
    assert view.note.isVisible()
    assert view.note.accessibleName() == "No unit carries the key"
    view.note.step()
    assert done == [1]
    view.set_state(State("cut", "First 5,000 matches.", steps=(("Go on", lambda: done.append(2)),)))
    assert view.strip.isVisible()
    assert not view.note.isVisible()
    view.set_state(None)
    assert not view.strip.isVisible()
