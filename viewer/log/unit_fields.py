"""A unit in words: its fields by group, what each says, and where it leads; no Qt.

Names of fields are RocketMQ's and the same as those of the painted bytes, so that both can be chosen together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from engine.codec import message, properties
from engine.codec.batch import Member, MemberDamage
from engine.codec.compression import kind_of
from engine.codec.crc import MASK
from engine.codec.dledger import HEADER_SIZE, EntryHeader
from engine.codec.flipped_bits import Explanation
from engine.codec.java import jhash
from engine.codec.message import Unit
from engine.codec.salvage import FieldFault
from engine.codec.unit_flavours import BY_VERSION
from engine.codec.words import MAX_LISTED, TEXTS, TIMES, UnitNote, op_offsets
from engine.system_names import HALF_TOPIC, OP_TOPIC
from viewer.look.assets import tr, tr_plural, words
from viewer.look.formats import full_moment, hexadecimal, moment, number, plain, span
from viewer.runtime import places

MEMBER = "member."
"""Begins the name of the lines of a batch's message; its number follows."""
MAX_MEMBERS = 200
"""Messages of a batch that are listed."""
LINKED_TOPICS = (properties.REAL_TOPIC, properties.RETRY_TOPIC)


@dataclass(frozen=True, slots=True)
class Line:
    """A field: name, value as text, a remark, a link. ``tone`` is a colour role of the remark."""

    name: str
    value: str
    note: str = ""
    place: object | None = None
    tone: str = "text3"
    label: str = ""
    lines: tuple[Line, ...] = ()
    folded: bool = False
    """Whether its own lines are hidden at first."""
    term: str = ""
    """The condition of the filter language that the field has this value, where its name and text do not give it."""

    @property
    def is_sentence(self) -> bool:
        """True if it has no name: the value is a sentence over the full width."""
        return not self.name and not self.label


@dataclass(frozen=True, slots=True)
class Group:
    """Fields that belong together."""

    title: str
    summary: str = ""
    lines: tuple[Line, ...] = ()
    opened: bool = True


@dataclass(frozen=True, slots=True)
class DecodedUnit:
    """A unit decoded off the loop: positions of its fields, why its CRC is wrong, its members."""

    unit: Unit
    parts: Sequence[tuple[str, int, int]] = ()
    explanation: Explanation | None = None
    property_crc: bool | None = None
    members: Sequence[Member | MemberDamage] = field(default=())
    levels: tuple[int, ...] = message.DEFAULT_DELAY_LEVELS
    words: Sequence[UnitNote] = ()
    wrong: Sequence[FieldFault] = ()
    """Fields that contradict the rest: the unit is as it would be with them mended."""
    entry: EntryHeader | None = None
    """In a DLedger log: the header of the entry around the unit."""
    origin: str = ""
    """Whose log its physical offset is in, where that is not the log of the open store."""


def describe(decoded: DecodedUnit) -> list[Group]:
    """All groups of a unit in the order they are read."""
    unit = decoded.unit
    groups = [
        Group(words("DLedger entry"), _entry_summary(decoded), _entry(decoded), opened=False),
        Group(
            words("Identity"),
            f"{plain(unit.topic)} / {unit.queue_id} / {number(unit.queue_offset)}",
            _identity(decoded),
        ),
        Group(words("In words"), "", _in_words(decoded)),
        Group(
            words("Transaction"),
            _transaction_words(unit) or tr("none"),
            _transaction(unit),
            opened=bool(unit.prepared_transaction_offset or _transaction_words(unit)),
        ),
        Group(words("Times"), "", _times(unit)),
        Group(words("Hosts"), f"{unit.born_host} → {unit.store_host}", _hosts(unit), opened=False),
        Group(words("Body"), number(len(unit.body)) + " B", _body(unit), opened=False),
        Group(words("Topic"), plain(unit.topic), _topic(unit), opened=False),
        Group(
            words("Properties"),
            f"{len(unit.properties)} · {number(len(unit.properties_raw))} B",
            _properties(decoded),
        ),
        Group(words("Batch"), _batch_words(decoded), _members(decoded)),
    ]
    return [_with_wrong(group, decoded.wrong) for group in groups if group.lines]


def _with_wrong(group: Group, wrong: Sequence[FieldFault]) -> Group:
    """Return the group with its wrong fields as stored, and their right values."""
    wrong_by_field = {wrong_field.field: wrong_field for wrong_field in wrong if wrong_field.likely is not None}
    if not wrong_by_field.keys() & {line.name for line in group.lines}:
        return group
    lines = [
        _wrong_line(line, wrong_by_field[line.name]) if line.name in wrong_by_field else line for line in group.lines
    ]
    return replace(group, lines=tuple(lines), opened=True)


def _wrong_line(line: Line, wrong: FieldFault) -> Line:
    hexed = line.value.startswith("0x")
    value = hexadecimal(wrong.stored & 0xFFFFFFFF) if hexed else number(wrong.stored)
    return replace(
        line, value=value, note=tr("wrong: it should be {value}", value=line.value), place=None, tone="error"
    )


def _entry_summary(decoded: DecodedUnit) -> str:
    entry = decoded.entry
    return "" if entry is None else tr("{index:,} of term {term:,}", index=entry.index, term=entry.term)


def _entry(decoded: DecodedUnit) -> tuple[Line, ...]:
    """Return the fields of the header around a unit of a DLedger log."""
    entry = decoded.entry
    if entry is None:
        return ()
    return (
        Line("entryMagic", number(entry.magic)),
        Line("entrySize", number(entry.size), tr("bytes, header and body")),
        Line("entryIndex", number(entry.index)),
        Line("entryTerm", number(entry.term)),
        Line("entryPosition", number(entry.position), tr("the unit begins {n} bytes behind it", n=HEADER_SIZE)),
        Line("entryChannel", number(entry.channel)),
        Line("entryChainCrc", hexadecimal(entry.chain_crc & 0xFFFFFFFF), "" if entry.chain_crc else tr("not used")),
        Line("entryBodyCrc", hexadecimal(entry.body_crc & 0xFFFFFFFF), "" if entry.body_crc else tr("not used")),
        Line("entryBodySize", number(entry.body_size), tr("bytes")),
    )


def _identity(decoded: DecodedUnit) -> tuple[Line, ...]:
    unit = decoded.unit
    if unit.stale:
        where = Line(
            "physicalOffset",
            number(unit.physical_offset),
            tr("found at {offset:,}: left over in a reused file", offset=unit.offset),
            places.log(unit.physical_offset),
            "warn",
        )
    else:
        where = Line("physicalOffset", number(unit.physical_offset), decoded.origin or tr("equals its place"))
    flavour = BY_VERSION[unit.version]
    return (
        where,
        Line("totalSize", number(unit.size), tr("bytes")),
        Line("magicCode", hexadecimal(flavour.magic), flavour.word),
        _crc_line(decoded),
        Line("queueId", number(unit.queue_id)),
        Line("flag", number(unit.flag), tr("the application's own") if unit.flag else ""),
        Line("queueOffset", number(unit.queue_offset), _queue_note(unit), _queue_place(unit)),
        Line("sysFlag", f"0x{unit.sys_flag & 0xFFFFFFFF:X}", ", ".join(message.sys_flag_words(unit.sys_flag))),
        Line("reconsumeTimes", number(unit.reconsume_times), tr("retries so far") if unit.reconsume_times else ""),
        Line("offsetMsgId", unit.offset_msg_id, lines=_message_id(unit.offset_msg_id)),
    )


def _message_id(text: str) -> tuple[Line, ...]:
    """Return the parts of an offset message id: the broker's address and the physical offset."""
    address_and_offset = message.parse_offset_message_id(text)
    if address_and_offset is None:
        return ()
    return (
        Line("", message.host_text(address_and_offset[0]), label=tr("broker")),
        Line("", number(address_and_offset[1]), label=tr("Physical offset")),
    )


def _queue_place(unit: Unit) -> object | None:
    if unit.transaction_type in {message.PREPARED, message.ROLLBACK}:
        return None
    return places.queue(unit.topic, unit.queue_id, unit.queue_offset)


def _queue_note(unit: Unit) -> str:
    if unit.transaction_type in {message.PREPARED, message.ROLLBACK}:
        return tr("in no queue: a transaction that is not committed")
    return tr("→ queue entry")


def _crc_line(decoded: DecodedUnit) -> Line:
    unit = decoded.unit
    stored = hexadecimal(unit.body_crc)
    if unit.crc == "ok":
        return Line("bodyCRC", stored, tr("matches"))
    if unit.crc == "unchecked":
        return Line("bodyCRC", stored, tr("not checked"))
    computed = hexadecimal((unit.raw_crc or 0) & MASK)
    lines = []
    explained = decoded.explanation
    if explained is not None:
        for flip in explained.flips[:8]:
            lines.append(
                Line(
                    f"flip.{flip.position}",
                    tr("byte {position:,} of the body", position=flip.position),
                    _bits(flip.bits),
                    label=tr("one flip"),
                    tone="text3",
                )
            )
        if explained.field_bit is not None:
            lines.append(
                Line("flip.field", tr("bit {bit} of bodyCRC itself", bit=explained.field_bit), label=tr("one flip"))
            )
        if not lines:
            lines.append(Line("", explained.words, label=tr("cause")))
    return Line("bodyCRC", stored, tr("bad: the body gives {crc}", crc=computed), tone="error", lines=tuple(lines))


def _bits(bits: list[int]) -> str:
    return tr("bit {bits} would explain it", bits=", ".join(map(str, bits)))


def _transaction_words(unit: Unit) -> str:
    if unit.topic == HALF_TOPIC:
        return tr("half message: waits for commit or rollback")
    if unit.topic == OP_TOPIC:
        return tr("operation: names half messages that are done")
    return {
        message.PREPARED: tr("half message"),
        message.COMMIT: tr("commit of a half message"),
        message.ROLLBACK: tr("rollback of a half message"),
    }.get(unit.transaction_type, "")


def _transaction(unit: Unit) -> tuple[Line, ...]:
    offset = unit.prepared_transaction_offset
    linked = offset > 0 or unit.transaction_type == message.COMMIT
    return (
        Line(
            "preparedTransactionOffset",
            number(offset),
            tr("→ half message") if linked else tr("none"),
            places.log(offset) if linked else None,
        ),
    )


def _times(unit: Unit) -> tuple[Line, ...]:
    later = unit.store_timestamp - unit.born_timestamp
    note = (
        tr("{time} after born", time=span(later))
        if later >= 0
        else tr("{time} before born: clocks differ", time=span(-later))
    )
    return (
        Line("bornTimestamp", moment(unit.born_timestamp), tr("the producer's clock")),
        Line("storeTimestamp", moment(unit.store_timestamp), note),
    )


def _hosts(unit: Unit) -> tuple[Line, ...]:
    return Line("bornHost", unit.born_host, tr("producer")), Line("storeHost", unit.store_host, tr("broker"))


def _body(unit: Unit) -> tuple[Line, ...]:

    kind = kind_of(unit.sys_flag)
    note = tr("bytes, compressed with {kind}", kind=kind) if kind else tr("bytes")
    return (
        Line("bodyLength", number(len(unit.body)), note),
        Line("body", plain(unit.body[:80].decode("utf-8", "replace"))),
    )


def _topic(unit: Unit) -> tuple[Line, ...]:
    return Line("topicLength", number(len(unit.topic.encode("utf-8", "replace"))), tr("bytes")), Line(
        "topic", plain(unit.topic)
    )


def _properties(decoded: DecodedUnit) -> tuple[Line, ...]:
    unit = decoded.unit
    lines = [Line("propertiesLength", number(len(unit.properties_raw)), tr("bytes"))]
    order = (properties.KEYS, properties.UNIQUE_KEY, properties.TAGS)
    names = [name for name in order if name in unit.properties] + [n for n in unit.properties if n not in order]
    return tuple(lines + [_property(decoded, name) for name in names])


def _trace_of(unit: Unit, key: str) -> object:
    """The way of a key of this unit through the index, as far back as this unit."""
    return places.trace(unit.topic, key, unit.offset, unit.store_timestamp)


def _property(decoded: DecodedUnit, name: str) -> Line:
    unit = decoded.unit
    value = unit.properties[name]
    key, label, shown = f"properties.{name}", plain(name), plain(value)
    if name == properties.KEYS:
        each = tuple(
            Line("", plain(unit_key), tr("→ trace"), _trace_of(unit, unit_key), label=tr("key"))
            for unit_key in unit.keys
        )
        if len(each) == 1:
            return Line(key, shown, tr("→ trace"), each[0].place, label=label)
        return Line(key, shown, label=label, lines=each)
    if name == properties.UNIQUE_KEY:
        return Line(
            key,
            shown,
            tr("→ trace"),
            _trace_of(unit, value),
            label=label,
            lines=_unique_key(value, unit.born_timestamp),
        )
    note, place = _property_note(decoded, name, value)
    parts = _message_id(value) if name == properties.ORIGIN_MESSAGE_ID else ()
    return Line(key, shown, note, place, label=label, lines=parts)


def _unique_key(value: str, born: int) -> tuple[Line, ...]:
    parsed = message.parse_unique_key(value)
    if parsed is None:
        return ()
    lines = [Line("", parsed.ip, f"PID {parsed.pid}", label=tr("client"))]
    try:
        month_start = datetime.fromtimestamp(born / 1000, UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        made_ms = int(month_start.timestamp() * 1000) + parsed.ms_in_month
        zone = round((made_ms - born) / 1_800_000) * 1_800_000  # the client counts from midnight in its own zone
        lines.append(Line("", moment(made_ms - zone), tr("counter {number}", number=parsed.counter), label=tr("made")))
    except (OverflowError, OSError, ValueError):
        lines.append(
            Line(
                "",
                number(parsed.ms_in_month),
                tr("ms into its month, counter {number}", number=parsed.counter),
                label=tr("made"),
            )
        )
    return tuple(lines)


def _property_note(decoded: DecodedUnit, name: str, value: str) -> tuple[str, object | None]:
    if name == properties.TAGS:
        return tr("hash {hash:,}", hash=jhash(value)), None
    if name == properties.DELAY:
        return _level_words(value, decoded.levels), None
    if name in LINKED_TOPICS:
        return "", None
    if name == properties.ORIGIN_MESSAGE_ID:
        address_and_offset = message.parse_offset_message_id(value)
        return (
            (tr("→ its first unit"), places.log(address_and_offset[1]))
            if address_and_offset is not None
            else ("", None)
        )
    if name.startswith("TIMER_") and name.endswith("_MS") and value.isascii() and value.isdigit():
        ms = int(value)
        return (full_moment(ms) if ms > 10**11 else span(ms)), None
    if name == properties.CRC32:
        crc_words = {True: tr("matches"), False: tr("bad: the unit's bytes give another"), None: ""}
        return crc_words[decoded.property_crc], None
    return tr(NOTES[name]) if name in NOTES else "", None


NOTES = {
    properties.WAIT: words("waits for the flush"),
    properties.PRODUCER_GROUP: words("producer group"),
    properties.TRANSACTION_PREPARED: words("part of a transaction"),
    properties.TRANSACTION_CHECK_TIMES: words("times the broker asked the producer"),
    properties.TRANSACTION_ID: words("transaction id"),
    properties.REAL_QUEUE_ID: words("queue it is meant for"),
    properties.INNER_NUM: words("messages in this unit"),
    properties.INNER_BASE: words("queue offset of the first of them"),
    properties.INNER_MULTI_DISPATCH: words("queues that it is dispatched to as well"),
    properties.INNER_MULTI_QUEUE_OFFSET: words("its offsets there"),
    properties.FIRST_POP_TIME: words("first time it was popped"),
    "MSG_REGION": words("the broker's region"),
    "TRACE_ON": words("whether the client traces it"),
    "CLUSTER": words("the broker's cluster"),
    "__SHARDINGKEY": words("key that orders its queue"),
    "__STARTDELIVERTIME": words("asked time of delivery"),
}


def _level_words(value: str, levels: tuple[int, ...]) -> str:
    try:
        level = min(int(value), len(levels))
    except ValueError:
        return tr("no level")
    return (
        tr("level {level}: {time}", level=level, time=span(levels[level - 1])) if level > 0 else tr("level 0: no delay")
    )


def _batch_words(decoded: DecodedUnit) -> str:
    count = len(decoded.members)
    return tr_plural("{n:,} message in this unit", "{n:,} messages in this unit", n=count) if count else ""


def _members(decoded: DecodedUnit) -> tuple[Line, ...]:
    lines = []
    for member in decoded.members[:MAX_MEMBERS]:
        if isinstance(member, MemberDamage):
            lines.append(
                Line(
                    "",
                    plain(member.reason),
                    tr_plural("{n:,} byte left", "{n:,} bytes left", n=member.size),
                    tone="error",
                    label=str(member.index),
                )
            )
            continue
        lines.append(_member(decoded.unit, member))
    if len(decoded.members) > MAX_MEMBERS:
        lines.append(Line("", tr("{count:,} more", count=len(decoded.members) - MAX_MEMBERS), label="…"))
    return tuple(lines)


def _member(unit: Unit, member: Member) -> Line:
    """A message of a batch: its key, its body's length; below it its body and each of its properties."""
    name, keys = f"{MEMBER}{member.index}", member.keys
    inner = [Line(name, plain(member.body[:80].decode("utf-8", "replace")), label=tr("body"))]
    for key, value in member.properties.items():
        linked = key in {properties.KEYS, properties.UNIQUE_KEY}
        traced = value if key == properties.UNIQUE_KEY else keys[0] if keys else ""
        place = _trace_of(unit, traced) if linked and traced else None
        inner.append(Line(name, plain(value), tr("→ trace") if place else "", place, label=plain(key)))
    place = _trace_of(unit, keys[0]) if keys else None
    label = plain(" ".join(keys)) or tr("no key")
    note = f"{number(len(member.body))} B"
    offset = number(unit.queue_offset + member.index)
    return Line(name, label, note, place, label=offset, lines=tuple(inner), folded=True)


def _in_words(decoded: DecodedUnit) -> tuple[Line, ...]:
    """Sentences, then the places that they speak of."""
    unit = decoded.unit
    lines = [Line("", say(word)) for word in decoded.words]
    done = op_offsets(unit.body) if unit.topic == OP_TOPIC else None
    for offset in (done or [])[:16]:
        place = places.queue(HALF_TOPIC, unit.queue_id, offset)
        lines.append(Line("", number(offset), tr("→ half message"), place, label=tr("done")))
    return tuple(lines)


def say(word: UnitNote) -> str:
    """Return one sentence, without a full stop."""
    return tr(TEXTS[word.kind]).format_map({name: _fact_text(name, value) for name, value in word.facts.items()})


def _fact_text(name: str, value: object) -> str:
    if value is None:
        return "?"
    if isinstance(value, int) and not isinstance(value, bool):
        return moment(value) if name in TIMES else number(value)
    if isinstance(value, list):
        listed = ", ".join(_fact_text(name, item) for item in value[:MAX_LISTED])
        more_count = len(value) - MAX_LISTED
        return listed + (" " + tr("and {rest:,} more", rest=more_count) if more_count > 0 else "")
    return plain(str(value))
