"""Worker function of the Conversation view: the steps as rows with the text of their bodies. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from viewer.look.assets import tr_plural
from viewer.pane.body_text import Body, as_json_or_text, as_messages, as_text, looks_like_json, open_body

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.codec.message import Unit
    from engine.config import MessageStoreConfig
    from engine.inspection.conversation import Conversation, ConversationStep, PropertyChange
    from engine.inspection.timeline.events import TimelineEvent
    from engine.inspection.where.lost import WhereResult
    from viewer.runtime.worker import WorkerControl

CHARSET = "UTF-8"
MAX_BODY_BYTES = 64 << 10
"""Bytes of one unpacked body that the text shows."""
MAX_TEXT_BYTES = 2 << 20
"""Bytes of all bodies that the text shows."""


@dataclass(frozen=True, slots=True)
class ConversationQuery:
    """Search input: a name of a message, as the view Where takes it, and an optional topic."""

    text: str
    topic: str = ""


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """A step of the conversation. ``body``: the unpacked body, until it is ``text``. ``same_body``: number of the
    earlier row with the same body; 0 for none.
    """

    number: int
    step: str
    message: int
    time: int
    gap_ms: int | None
    physical_offset: int | None
    topic: str = ""
    queue_id: int | None = None
    queue_offset: int | None = None
    size: int | None = None
    unique_key: str = ""
    keys: tuple[str, ...] = ()
    tags: str = ""
    changes: tuple[PropertyChange, ...] = ()
    statement: str = ""
    event: TimelineEvent | None = None
    body: Body | None = None
    text: str = ""
    text_note: str = ""
    same_body: int = 0
    has_bad_crc: bool = False
    shows_message: bool = False
    """True if the conversation has several messages, so that the row says to which one it belongs."""


@dataclass(frozen=True, slots=True)
class ConversationAnswer:
    """The rows, and the verdict on each message."""

    rows: tuple[ConversationRow, ...]
    messages: tuple[WhereResult, ...]
    duration_ms: int
    is_truncated: bool
    has_unread: bool


class _Stopped(Exception):
    """The user stopped the search while it walked the log."""


def read_rows(
    control: WorkerControl,
    path: Path,
    config: MessageStoreConfig | None,
    query: ConversationQuery,
    events: Sequence[TimelineEvent] = (),
) -> ConversationAnswer | None:
    """Follow a conversation in the store at ``path``; None if the user stopped it."""
    from engine.inspection import open_store
    from engine.inspection.conversation import read_conversation

    with open_store(path, config) as store:
        store.commit_log.settle_end()
        total = max(1, store.log.sequence.total_size)

        def progress(done_bytes: int) -> None:
            if control.cancelled:
                raise _Stopped
            control.report(min(done_bytes, total), total)

        try:
            conversation = read_conversation(store, query.text, query.topic or None, progress, events)
        except _Stopped:
            return None
    return ConversationAnswer(
        tuple(_rows(conversation)),
        conversation.messages,
        conversation.duration_ms,
        conversation.is_truncated,
        conversation.has_unread,
    )


def _rows(conversation: Conversation) -> Iterator[ConversationRow]:
    numbers_of_bodies: dict[bytes, int] = {}
    room = MAX_TEXT_BYTES
    shows_message = len(conversation.messages) > 1
    for number, step in enumerate(conversation.steps, 1):
        unit = step.unit
        if unit is None:
            yield _row_of(number, step, shows_message)
            continue
        first_number = numbers_of_bodies.setdefault(unit.body, number) if unit.body else number
        if first_number < number:
            yield _row_of(number, step, shows_message, unit, same_body=first_number)
            continue
        body = open_body(unit.body, unit.sys_flag, max(1, min(MAX_BODY_BYTES, room)))
        room -= len(body.data)
        yield _row_of(number, step, shows_message, unit, replace(body, stored=b""))


def _row_of(
    number: int,
    step: ConversationStep,
    shows_message: bool,
    unit: Unit | None = None,
    body: Body | None = None,
    same_body: int = 0,
) -> ConversationRow:
    row = ConversationRow(
        number,
        step.kind,
        step.message,
        step.time,
        step.gap_ms,
        step.offset,
        changes=step.changes,
        statement=step.statement,
        event=step.event,
        shows_message=shows_message,
    )
    if unit is None:
        return row
    return replace(
        row,
        topic=unit.topic,
        queue_id=unit.queue_id,
        queue_offset=unit.queue_offset,
        size=unit.size,
        unique_key=unit.unique_key or "",
        keys=tuple(unit.keys),
        tags=unit.tags or "",
        body=body,
        same_body=same_body,
        has_bad_crc=unit.crc == "bad",
    )


def body_texts(rows: Sequence[ConversationRow]) -> tuple[ConversationRow, ...]:
    """Return the rows with their bodies as indented JSON or text, in the language of the window. May take 100 ms."""
    return tuple(row if row.body is None else _with_text(row, row.body) for row in rows)


def _with_text(row: ConversationRow, body: Body) -> ConversationRow:
    if body.members:
        text, note = as_messages(body.members, CHARSET, as_indented_json=True)
    else:
        data = body.data[:MAX_BODY_BYTES]
        text, note = (as_json_or_text if looks_like_json(data) else as_text)(data, CHARSET)
        if len(data) < len(body.data):
            note = tr_plural("the first {n:,} byte of the body", "the first {n:,} bytes of the body", n=len(data))
    return replace(row, body=None, text=text, text_note=" · ".join(part for part in (*body.notes, note) if part))
