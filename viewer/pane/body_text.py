"""A message body as text: decompressed, decoded in a charset, or as indented JSON. No Qt.

Bodies may be huge or hostile: text is cut at :data:`MAX_TEXT_CHARACTERS`, JSON is indented only up to
:data:`MAX_JSON_BYTES`, and decompression has a limit. Each function returns a note if it cut something.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from engine.codec.batch import Member, MemberDamage, members
from engine.codec.compression import MAX_UNPACKED_BYTES, kind_of, unpack
from engine.codec.message import INNER_BATCH
from viewer.look.assets import tr, tr_plural
from viewer.look.formats import number, size

CHARSETS = ("UTF-8", "GB18030", "Big5", "Shift_JIS", "EUC-KR", "Latin-1", "UTF-16-BE", "UTF-16-LE", "ASCII")
MAX_TEXT_CHARACTERS = 1 << 20
MAX_JSON_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Body:
    """A body as stored, and decompressed. ``kind`` is its compression or None; ``notes`` report cuts and errors."""

    stored: bytes
    data: bytes
    kind: str | None
    notes: tuple[str, ...]
    members: tuple[Member | MemberDamage, ...] = ()

    @property
    def summary(self) -> str:
        """``1,204 B``, or ``1,204 B, zlib → 38.0 KiB``."""
        if self.kind is None:
            return f"{number(len(self.stored))} B"
        return f"{number(len(self.stored))} B, {self.kind} → {size(len(self.data))}"

    def of_member(self, index: int) -> Body:
        """Return the body of one message of a batch; for a damaged message, the rest of the batch from there on."""
        member = self.members[index]
        if isinstance(member, Member):
            return Body(member.body, member.body, None, ())
        remaining = self.data[member.position : member.position + member.size]
        return Body(remaining, remaining, None, (member.reason,))


def open_body(stored: bytes, sys_flag: int, max_bytes: int = MAX_UNPACKED_BYTES) -> Body:
    """Decompress ``stored`` by its ``sys_flag``, to at most ``max_bytes``, and list the messages of a batch.

    May take long: call it in the worker or in a thread.
    """
    kind = kind_of(sys_flag)
    data, note = unpack(stored, sys_flag, max_bytes)
    batch_members = tuple(members(data)) if sys_flag & INNER_BATCH else ()
    return Body(stored, data, kind, (note,) if note else (), batch_members)


def as_text(data: bytes, charset: str = "UTF-8") -> tuple[str, str]:
    """Return ``data`` decoded in ``charset``, and a note. Invalid bytes become �."""
    cut = data[: MAX_TEXT_CHARACTERS * 4]
    text = cut.decode(charset, "replace")
    notes = []
    if len(text) > MAX_TEXT_CHARACTERS or len(cut) < len(data):
        text = text[:MAX_TEXT_CHARACTERS]
        notes.append(tr_plural("the first {n:,} character", "the first {n:,} characters", n=len(text)))
    wrong = text.count("�")
    if wrong:
        notes.append(
            tr_plural(
                "{n:,} place is not valid {charset}", "{n:,} places are not valid {charset}", n=wrong, charset=charset
            )
        )
    return text.replace("\0", "␀"), " · ".join(notes)


def as_json(data: bytes, charset: str = "UTF-8") -> tuple[str, str]:
    """Return ``data`` as indented JSON and "", or "" and a note that says where it is not valid JSON.

    Numbers keep their spelling, objects the order of their names.
    """
    if len(data) > MAX_JSON_BYTES:
        return "", tr(
            "JSON is laid out up to {size}; this has {actual}", size=size(MAX_JSON_BYTES), actual=size(len(data))
        )
    try:
        text = data.decode(charset)
        value = json.loads(text, parse_float=_ExactNumber, parse_int=_ExactNumber, parse_constant=_ExactNumber)
        return _indent_json(value), ""
    except UnicodeDecodeError as error:
        return "", tr("not valid {charset} at byte {at:,}", charset=charset, at=error.start)
    except json.JSONDecodeError as error:
        return "", tr(
            "not valid JSON: {what} in line {line}, column {column}",
            what=error.msg,
            line=error.lineno,
            column=error.colno,
        )
    except RecursionError:
        return "", tr("JSON nested too deeply to lay out")


def as_json_or_text(data: bytes, charset: str = "UTF-8") -> tuple[str, str]:
    """Return ``data`` as indented JSON; if it is not JSON, as text with a note that says why."""
    indented, note = as_json(data, charset)
    if indented:
        return indented, ""
    text, text_note = as_text(data, charset)
    return text, " · ".join(part for part in (note, text_note) if part)


def as_messages(members: Sequence[Member | MemberDamage], charset: str, *, as_indented_json: bool) -> tuple[str, str]:
    """Return the bodies of a batch, one below the other, each under a line with its number, key and tag."""
    pieces: list[str] = []
    length = 0
    for member in members:
        if length > MAX_TEXT_CHARACTERS:
            return "\n\n".join(pieces), tr_plural("the first {n:,} message", "the first {n:,} messages", n=len(pieces))
        head = tr("message {n:,} of the batch", n=member.index + 1)
        if isinstance(member, MemberDamage):
            text = member.reason
        else:
            head = " · ".join(part for part in (head, " ".join(member.keys), member.tags or "") if part)
            text = (as_json_or_text if as_indented_json else as_text)(member.body, charset)[0]
        pieces.append(f"── {head} ──\n{text}")
        length += len(text)
    return "\n\n".join(pieces), ""


class _ExactNumber(str):
    """A JSON number in its original spelling: 1.10 stays 1.10, and no digit of a 64-bit number is lost."""

    __slots__ = ()


def _indent_json(value: object) -> str:
    pieces: list[str] = []
    _write(value, "", pieces)
    return "".join(pieces)


def _write(value: object, indent: str, out: list[str]) -> None:
    inner = indent + "  "
    if isinstance(value, _ExactNumber):
        out.append(str(value))
    elif isinstance(value, dict) and value:
        out.append("{\n")
        for position, (name, item) in enumerate(value.items()):
            out.append(f"{inner}{json.dumps(name, ensure_ascii=False)}: ")
            _write(item, inner, out)
            out.append(",\n" if position < len(value) - 1 else "\n")
        out.append(indent + "}")
    elif isinstance(value, list) and value:
        out.append("[\n")
        for position, item in enumerate(value):
            out.append(inner)
            _write(item, inner, out)
            out.append(",\n" if position < len(value) - 1 else "\n")
        out.append(indent + "]")
    else:
        out.append(json.dumps(value, ensure_ascii=False))


def looks_like_json(data: bytes) -> bool:
    """Return True if the first character is ``{`` or ``[``."""
    return data[:64].lstrip()[:1] in {b"{", b"["}
