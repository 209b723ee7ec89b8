"""Events in words: every kind that the view lists has a chip, and what the lane draws has a shape of its theme."""

from __future__ import annotations

from engine.inspection.timeline.events import KINDS, TRACE_KINDS, TimelineEvent
from viewer.look.theme import C
from viewer.pane.event_words import CHIPS, GLYPHS, event_title, is_drawn, message_text


def test_every_kind_is_named_and_the_lane_draws_all_but_topics() -> None:
    assert CHIPS.keys() == set(KINDS) - set(TRACE_KINDS)
    assert CHIPS.keys() - GLYPHS.keys() == {"topicAppears", "deleted"}
    assert all(C(role).isValid() for _, role in GLYPHS.values())


def test_times_in_sentences_are_in_the_zone_of_the_window() -> None:
    event = TimelineEvent(
        "crash", 1_795_248_938_749, None, None, "ended at 2026-11-21T08:15:38.749Z", "certain", "abort"
    )
    assert "T08:15" not in message_text(event)
    assert event_title(event).startswith("crash · 2026-11-21 ")
    assert not is_drawn(event)
    assert is_drawn(event, 1_795_248_938_749)
