"""Events of a store's past in words and marks, for the view Timeline and for the lane of the Log view. No Qt."""

from __future__ import annotations

import re
from datetime import datetime

from engine.inspection.timeline.events import Kind, TimelineEvent
from viewer.look.assets import tr, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import moment
from viewer.widgets.columns import Chip

CHIPS: dict[Kind, Chip] = {
    "crash": Chip("error", words("crash")),
    "outage": Chip("error", words("outage")),
    "stall": Chip("warn", words("stall")),
    "clockStep": Chip("warn", words("clock was set")),
    "duplicateSend": Chip("warn", words("sent twice")),
    "redelivery": Chip("warn", words("delivered twice")),
    "retryStorm": Chip("warn", words("retry storm")),
    "lateIndex": Chip("note", words("index made late")),
    "hostChange": Chip("note", words("other broker")),
    "masterTerm": Chip("note", words("term of a master")),
    "start": Chip("ok", words("start")),
    "cleanStop": Chip("ok", words("closed")),
    "pause": Chip("chat", words("pause")),
    "topicAppears": Chip("chat", words("new topic")),
    "deleted": Chip("chat", words("deleted")),
}
"""Chips by kind, worst first. Message traces are listed by the command only."""
GLYPHS: dict[Kind, tuple[str, str]] = {
    "crash": ("error", "error"),
    "outage": ("held", "error"),
    "stall": ("held", "warn"),
    "clockStep": ("clock", "warn"),
    "duplicateSend": ("warn", "warn"),
    "redelivery": ("warn", "warn"),
    "retryStorm": ("loop", "warn"),
    "lateIndex": ("note", "note"),
    "hostChange": ("note", "note"),
    "masterTerm": ("note", "note"),
    "start": ("start", "ok"),
    "cleanStop": ("ok", "ok"),
    "pause": ("held", "text3"),
}
"""Shape and colour role of the kinds that the lane draws, worst first."""
_UTC_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
"""A time in a sentence of the engine."""


def is_drawn(event: TimelineEvent, last_stored: int | None = None) -> bool:
    """Return True for an event that the lane shows: one of its kinds, with a place in the log or behind its end."""
    is_behind_the_log = last_stored is not None and event.time >= last_stored
    return event.kind in GLYPHS and (event.physical_offset is not None or is_behind_the_log)


def event_title(event: TimelineEvent) -> str:
    """Return kind and time of an event."""
    return f"{tr(CHIPS[event.kind].word)} · {moment(event.time or None)}"


def message_text(event: TimelineEvent) -> str:
    """Return what the files show, in the language and the time zone of the window."""
    return _UTC_TIME.sub(_window_time, engine_words(event.message))


def _window_time(utc_time: re.Match[str]) -> str:
    return moment(round(datetime.fromisoformat(utc_time[0]).timestamp() * 1000))
