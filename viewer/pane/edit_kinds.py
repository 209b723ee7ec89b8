"""The changes that a user may stage by hand: what each asks for, and the patches that it becomes. No Qt.

A change is made on the store as the patches staged before leave it, so one change may follow another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.sentences import sentence
from viewer.look.assets import tr, words

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.inspection.snapshot import StoreSnapshot
    from engine.patching.patches import Patch
    from viewer.runtime.store_session import StoreSession

Values = Mapping[str, str]
Make = Callable[["StoreSnapshot", Values, bool], "Sequence[Patch]"]


@dataclass(frozen=True, slots=True)
class EditField:
    """A value that a change asks for: its name for the code, its label, and an example."""

    key: str
    label: str
    example: str = ""


@dataclass(frozen=True, slots=True)
class EditKind:
    """A kind of change. ``tick`` is the words of its one option, "" if it has none; ``note`` says what to know."""

    id: str
    title: str
    fields: tuple[EditField, ...]
    make: Make
    tick: str = ""
    note: str = ""


def _number(values: Values, key: str) -> int:
    text = values[key].replace(",", "").strip()
    try:
        return int(text, 0)
    except ValueError as error:
        raise UsageError(sentence("expected a number, found {text}", text=text or "…")) from error


def bytes_of_text(text: str) -> bytes:
    """Return the bytes of hexadecimal digits, with or without spaces. Raises :class:`UsageError`."""
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise UsageError(sentence("expected pairs of hexadecimal digits, found {text}", text=text[:40])) from error


def _group_offset(store: StoreSnapshot, values: Values, _tick: bool) -> Sequence[Patch]:
    from engine.repair.value_edits import edit_consumer_offset

    group, topic = values["group"].strip(), values["topic"].strip()
    return edit_consumer_offset(store, group, topic, _number(values, "queue"), _number(values, "offset")).patches


def _delay_offset(store: StoreSnapshot, values: Values, _tick: bool) -> Sequence[Patch]:
    from engine.repair.value_edits import edit_delay_offset

    return edit_delay_offset(store, _number(values, "level"), _number(values, "offset")).patches


def _checkpoint(store: StoreSnapshot, values: Values, _tick: bool) -> Sequence[Patch]:
    from engine.repair.value_edits import edit_checkpoint

    return edit_checkpoint(store, values["field"].strip(), _number(values, "number")).patches


def _log_bytes(store: StoreSnapshot, values: Values, tick: bool) -> Sequence[Patch]:
    from engine.repair.byte_edits import edit_log_bytes

    unit = _number(values, "unit") if tick else None
    return edit_log_bytes(store, _number(values, "offset"), bytes_of_text(values["bytes"]), unit_offset=unit)


def _queue_entry(store: StoreSnapshot, values: Values, _tick: bool) -> Sequence[Patch]:
    from engine.repair.byte_edits import edit_queue_entry

    numbers = (_number(values, key) for key in ("queue", "entry", "offset"))
    return edit_queue_entry(store, values["topic"].strip(), *numbers)


def _remove_message(store: StoreSnapshot, values: Values, _tick: bool) -> Sequence[Patch]:
    from engine.repair.byte_edits import remove_message

    return remove_message(store, _number(values, "offset"))


def _cut(store: StoreSnapshot, values: Values, _tick: bool) -> Sequence[Patch]:
    from engine.repair.byte_edits import cut_log

    return cut_log(store, _number(values, "offset"))


def _remove(store: StoreSnapshot, values: Values, _tick: bool) -> Sequence[Patch]:
    from engine.repair.byte_edits import remove_file

    return [remove_file(store, values["file"].strip())]


def _move(store: StoreSnapshot, values: Values, _tick: bool) -> Sequence[Patch]:
    from engine.repair.byte_edits import move_file

    return [move_file(store, values["file"].strip(), values["target"].strip())]


_FILE = EditField("file", words("File"), "config/topics.json")
_QUEUE = EditField("queue", words("Queue"), "0")
_PHYSICAL = EditField("offset", words("Physical offset"), "81,604,377,362")
EDIT_KINDS = (
    EditKind(
        "logBytes",
        words("Change bytes of the log"),
        (
            _PHYSICAL,
            EditField("bytes", words("Bytes"), "00 00 07 52"),
            EditField("unit", words("Message at"), "81,604,377,362"),
        ),
        _log_bytes,
        words("Put the CRC of the message right"),
    ),
    EditKind(
        "groupOffset",
        words("Change the offset of a group"),
        (
            EditField("group", words("Group"), "billing"),
            EditField("topic", words("Topic"), "Orders"),
            _QUEUE,
            EditField("offset", words("Queue offset"), "1,000"),
        ),
        _group_offset,
        note=words("The group reads this message next."),
    ),
    EditKind(
        "delayOffset",
        words("Change the offset of a delay level"),
        (EditField("level", words("Delay level"), "3"), EditField("offset", words("Queue offset"), "250")),
        _delay_offset,
        note=words("The broker delivers this message next."),
    ),
    EditKind(
        "checkpoint",
        words("Change a value of the checkpoint"),
        (
            EditField("field", words("Field"), "logicsMsgTimestamp"),
            EditField("number", words("Number"), "1764409000000"),
        ),
        _checkpoint,
        note=words("A time in ms since 1970, or an offset in the log."),
    ),
    EditKind(
        "queueEntry",
        words("Rewrite a queue entry"),
        (
            EditField("topic", words("Topic"), "Orders"),
            _QUEUE,
            EditField("entry", words("Queue offset"), "17"),
            _PHYSICAL,
        ),
        _queue_entry,
        note=words("The entry then leads to the message that begins there."),
    ),
    EditKind(
        "removeMessage",
        words("Remove a message"),
        (_PHYSICAL,),
        _remove_message,
        note=words("An empty message takes its place in log and queue, so that all others keep their offsets."),
    ),
    EditKind(
        "cutLog",
        words("Cut the log"),
        (_PHYSICAL,),
        _cut,
        note=words("The message that begins there, and all behind it, are lost. Later log files go."),
    ),
    EditKind("removeFile", words("Remove a file"), (_FILE,), _remove),
    EditKind(
        "moveFile", words("Move a file"), (_FILE, EditField("target", words("New name"), "lost/topics.json")), _move
    ),
)
BY_ID = {kind.id: kind for kind in EDIT_KINDS}


def base_patches(session: StoreSession) -> tuple[Patch, ...]:
    """Return the patches on which the next change is made: those shown, and those of the user's that are taken."""
    shown = session.patches
    return (*shown, *(patch for patch in session.bench.taken_patches(()) if patch not in shown))


def make_patches(
    path: Path,
    config: MessageStoreConfig | None,
    base: Sequence[Patch],
    kind: EditKind,
    values: Values,
    *,
    tick: bool = False,
) -> tuple[Patch, ...]:
    """Return the patches of a change on the store as ``base`` leaves it; none if it is so already. Reads the disk.

    Raises StoreError, OSError.
    """
    from engine.inspection.snapshot import open_store

    with open_store(path, config, base) as store:
        return tuple(kind.make(store, values, tick))


def edit_title(kind: EditKind, values: Values) -> str:
    """Return the words of a change for undo: what, and where."""
    shown = [values[field.key] for field in kind.fields if field.key != "bytes" and values.get(field.key)]
    return f"{tr(kind.title)}: {' · '.join(shown)}"
