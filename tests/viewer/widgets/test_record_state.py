"""Text of a table while it has no rows."""

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


def test_a_sentence_that_does_not_fit_on_the_line_ends_in_an_ellipsis_and_is_in_the_tool_tip(view):
    """ "Linked to /data/store: both windows go to the sam" stood above tied windows: no sign that more follows."""
    sentence = "Linked to /data/store: both windows go to the same place of the log. " * 4
    view.set_state(State("cut", sentence, steps=(("Unlink", lambda: None),)))
    view.strip.grab()
    assert view.strip._text.toolTip() == sentence
    view.set_state(State("cut", "short"))
    view.strip.grab()
    assert view.strip._text.toolTip() == ""
