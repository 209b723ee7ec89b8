"""Mend the bytes of the commit log: messages whose fields were overwritten, and damage that ends the log too early
(docs/formats/repair.md#log).

A damaged place is divided at the offsets that queue entries name. In each part that a message was in, the message is
put right if all its wrong fields can be told from the others; else a unit without content takes its place and its
queue offset (:mod:`engine.codec.filler`). What lies between the parts is covered by a unit that is in no queue::

    |  message  |  overwritten  |  overwritten  | bytes nobody names |  message  |
                 put right       placeholder     filler
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.codec import filler
from engine.codec import properties as props
from engine.codec.columns import BAD, BLANK, UnitColumns
from engine.codec.crc import crc31
from engine.codec.dledger import REMAINS
from engine.codec.encode import Message, encode_unit
from engine.codec.flipped_bits import explain
from engine.codec.message import (
    BORN_HOST_V6,
    COMMIT,
    COMPRESSED,
    COMPRESSION_MASK,
    INNER_BATCH,
    MULTI_TAGS,
    NEED_UNWRAP,
    STORE_HOST_V6,
    TRANSACTION_MASK,
    Unit,
    decode,
    list_fields,
)
from engine.codec.salvage import Salvage, shorten
from engine.codec.unit_scan import Blank, Damage
from engine.errors import CorruptUnit
from engine.inspection.block_scan import scan_log
from engine.inspection.lost_units import LostUnit, entries_into, entry_at, lost_units
from engine.inspection.snapshot import StoreSnapshot
from engine.patching.patches import WriteBytes
from engine.repair import dledger_entries
from engine.repair.queue_entries import has_light_queues
from engine.repair.queue_numbers import (
    QueuePlace,
    has_batch_queues,
    has_message,
    has_plain_queues,
    light_numbers_around,
    numbers_around,
)
from engine.repair.repair import Certainty, Repair
from engine.rules import mendable
from engine.sentences import join, plural, sentence
from engine.system_names import HALF_TOPIC, LMQ_PREFIX, SCHEDULE_TOPIC

NAME = "log"
MAX_STALE_UNITS = 1000
"""Maximum number of units with a wrong offset field that are looked at."""
MAX_UNITS = 100_000
"""Maximum number of messages in one damaged place; a place with more is left as it is."""
MAX_DAMAGE_BYTES = 256 << 20
MAX_LIGHT_ENTRIES = 64
_SYS_FLAG_AT = 36
_BODY_LENGTH_AT = 84
"""Position of BODYLEN in a unit with IPv4 hosts: fields before it can be told from queue entry and neighbours."""
_CRC_SPAN = range(8, 12)
_ZLIB_HEAD = b"\x78"
_KNOWN_FLAGS = (
    COMPRESSED | MULTI_TAGS | TRANSACTION_MASK | BORN_HOST_V6 | STORE_HOST_V6 | NEED_UNWRAP | INNER_BATCH
) | COMPRESSION_MASK
_CLOCK_TOLERANCE_MS = 60_000
_MAX_NAMED = 20


@dataclass(slots=True)
class _Plan:
    """The patches so far, and what they do."""

    patches: list[WriteBytes] = field(default_factory=list)
    restored: list[LostUnit | Unit] = field(default_factory=list)
    replaced: list[LostUnit | Unit] = field(default_factory=list)
    unnamed_bytes: int = 0
    shortened: list[str] = field(default_factory=list)
    """Messages put right without a property, which is too long for a broker: their names and that of the property."""
    moves_messages: bool = False
    """True if a placeholder begins elsewhere than its message did: queue entries have to lead to it."""
    is_place_guessed: bool = False
    """True if a placeholder stands for a message of which only the queue offset is known."""
    unverified: int = 0
    """Messages put right whose body cannot be checked, because its CRC was overwritten too."""

    def add(self, part: _Plan) -> None:
        """Add the patches and counts of another plan."""
        self.patches += part.patches
        self.restored += part.restored
        self.replaced += part.replaced
        self.unnamed_bytes += part.unnamed_bytes
        self.shortened += part.shortened
        self.moves_messages |= part.moves_messages
        self.is_place_guessed |= part.is_place_guessed
        self.unverified += part.unverified


@dataclass(slots=True)
class _Part:
    """Bytes of a damaged place: those of one message, or bytes that nobody names.

    ``restored`` are the patches that put the message right, None if that is not possible.
    """

    start: int
    size: int
    lost: LostUnit | None = None
    restored: _Plan | None = None

    @property
    def end(self) -> int:
        return self.start + self.size


def repair_log(store: StoreSnapshot, kept_to: int, odd_units: Collection[int] = ()) -> Repair | None:
    """Return the repair of every damaged place of the log that can be mended; None if there is none.

    ``kept_to`` is the place where the next start would cut the log, or its end. ``odd_units`` are the offsets of units
    whose queue entries say another queue or queue offset than they (CL09). Raises :class:`engine.errors.CannotRead` if
    the log cannot be read.
    """
    if store.kind != "store":
        return None
    is_dledger = store.commit_log.dledger is not None
    mender = _LogMender(store)
    last_time = 0
    damages: list[tuple[Damage, int]] = []
    bodies: list[int] = []
    stale: list[int] = []
    for block in scan_log(store.log):
        if isinstance(block, Damage):
            if is_dledger:
                spans = dledger_entries.bodies(store, block.offset, block.offset + block.size)
                damages += [(Damage(span.offset, span.size, block.reason), last_time) for span in spans]
            else:
                damages.append((block, last_time))
        elif isinstance(block, UnitColumns):
            units = block.count - int(block.count > 0 and block.kind[block.count - 1] == BLANK)
            last_time = int(block.store_timestamp[units - 1]) if units else last_time
            bodies += block.offset[: block.count][block["crc"] == BAD].tolist()
            stale += block.offset[:units][block.physical_offset[:units] != block.offset[:units]].tolist()
            if units < block.count and not is_dledger:
                mender.blank(int(block.offset[units]), int(block.size[units]))
        elif is_dledger and block.reason != REMAINS:  # a start keeps the last entry, whatever its body holds
            spans = dledger_entries.bodies(store, block.offset, block.offset + 1)
            covered = {damage.offset for damage, _ in damages}
            damages += [
                (Damage(span.offset, span.size, block.reason), last_time)
                for span in spans
                if span.offset not in covered
            ]
    misplaced = {*stale[:MAX_STALE_UNITS], *odd_units}
    for offset in sorted(misplaced):
        mender.address(offset)
    mender.place_by_number(stale[:MAX_STALE_UNITS])
    for offset in bodies:
        if offset not in misplaced:
            mender.body(offset, kept_to)
    if damages:
        mender.note_missing_numbers([damage for damage, _ in damages])
    for damage, time in damages:
        mender.cover(damage, time)
    plan = mender.plan
    if not plan.patches:
        return None
    plan.patches.sort(key=lambda patch: (patch.file, patch.offset))
    return _as_repair(plan)


def _as_repair(plan: _Plan) -> Repair:
    gains = []
    if plan.restored:
        gains.append(
            plural(
                "{n:,} message is put right and can be read again",
                "{n:,} messages are put right and can be read again",
                n=len(plan.restored),
            )
        )
    gains.append(sentence("a start reads on behind the damage; messages there keep their physical and queue offsets"))
    costs = []
    if plan.replaced:
        costs.append(
            plural(
                "{n:,} message stays lost ({names}); an empty message without content takes its place: Java clients "
                "from 5.0 on skip it, others hand an empty body to the application",
                "{n:,} messages stay lost ({names}); empty messages without content take their places: Java clients "
                "from 5.0 on skip them, others hand an empty body to the application",
                n=sum(_count(unit) for unit in plan.replaced),
                names=_names(plan.replaced),
            )
        )
    if plan.shortened:
        costs.append(
            sentence(
                "left out, because no broker reads properties of over 32,767 bytes: {names}",
                names=", ".join(plan.shortened[:_MAX_NAMED]),
            )
        )
    if plan.unnamed_bytes:
        costs.append(
            plural(
                "{n:,} byte of which no queue entry is known is covered",
                "{n:,} bytes of which no queue entry is known are covered",
                n=plan.unnamed_bytes,
            )
        )
    if plan.unverified:
        costs.append(
            plural(
                "the body of {n:,} message cannot be verified: its CRC was overwritten too",
                "the bodies of {n:,} messages cannot be verified: their CRCs were overwritten too",
                n=plan.unverified,
            )
        )
    certainty: Certainty = "likely" if plan.unverified or plan.unnamed_bytes or plan.is_place_guessed else "certain"
    title = sentence("Mend the damaged bytes of the commit log")
    all_gains, all_costs = join("; ", gains), join("; ", costs)
    new_units = sum(_count(unit) for unit in (*plan.replaced, *plan.restored))
    return Repair(
        NAME, mendable.LOG, title, tuple(plan.patches), all_gains, all_costs, certainty, new_units, plan.moves_messages
    )


def _names(lost: Sequence[LostUnit | Unit]) -> str:
    names = [
        f"{unit.topic}/{unit.queue_id}/{unit.queue_offset}"
        + (f"–{unit.queue_offset + _count(unit) - 1}" if _count(unit) > 1 else "")
        for unit in lost[:_MAX_NAMED]
    ]
    return ", ".join([*names, *(["…"] if len(lost) > _MAX_NAMED else [])])


def _count(unit: LostUnit | Unit) -> int:
    """Return the number of messages of a lost unit, as its queue counts them."""
    return max(unit.batch_size, 1)


class _LogMender:
    """Collects the patches; each of its steps adds all that it needs, or nothing."""

    def __init__(self, store: StoreSnapshot) -> None:
        self._store = store
        self._log = store.log
        self._property_crc = False
        """True if the broker adds a CRC of its own to the properties, as the unit behind the place shows."""
        self._without_place: dict[int, list[QueuePlace]] = {}
        """By the start of a damaged place: messages that were there, of which no queue entry says where."""
        self._without_light: dict[int, dict[str, list[int]]] = {}
        """By the start of a damaged place: the numbers that light queues lack there."""
        self._light: dict[str, list[int]] = {}
        """Those of the place that is being covered."""
        self.plan = _Plan()

    # -- damaged places

    def note_missing_numbers(self, damages: Sequence[Damage]) -> None:
        """Find out which messages of the damaged places no queue entry tells: those whose queue offsets are missing."""
        named = {
            QueuePlace(lost.topic, lost.queue_id, lost.queue_offset, lost.batch_size)
            for damage in damages
            if damage.size <= MAX_DAMAGE_BYTES
            for lost in self._tiles(damage)
        }
        places = [(damage.offset, damage.offset + damage.size) for damage in damages]
        if has_light_queues(self._store):
            light = light_numbers_around(self._store, places)
            self._without_light = {start: names for (start, _), names in zip(places, light, strict=True)}
        for around in numbers_around(self._store, places):
            fresh = [place for place in around.missing() if place not in named]
            lacking = [
                place
                for place in fresh[:MAX_UNITS]
                if has_plain_queues(self._store, place.topic) and not has_message(self._store, place)
            ]
            lacking += [place for place in around.missing_batches(named) if has_batch_queues(self._store, place.topic)]
            named.update(lacking)
            self._without_place[around.start] = lacking[::-1]

    def cover(self, damage: Damage, time_before: int) -> None:
        """Put units in a damaged place behind which the log goes on; ``time_before`` is the store time (ms) of the unit
        in front.
        """
        if damage.unread or damage.size > MAX_DAMAGE_BYTES or self._file_name(damage.offset) is None:
            return
        plan = _Plan()
        self._light = self._without_light.get(damage.offset, {})
        if self._cover(plan, damage, time_before):
            self.plan.add(plan)
        self._light = {}

    def _cover(self, plan: _Plan, damage: Damage, time_before: int) -> bool:
        end = damage.offset + damage.size
        file = self._log.sequence.find(damage.offset)
        following = self._following(end)
        if file is None or (following is None and self._store.commit_log.dledger is None):
            return False  # the log ends here: a start cuts it behind the last message, and loses nothing by it
        time_after = following.store_timestamp if isinstance(following, Unit) else time_before
        if isinstance(following, Unit):
            self._property_crc = props.CRC32 in following.properties
        unplaced = self._without_place.get(damage.offset, [])
        reaches_end = end == file.end_offset and self._store.commit_log.dledger is None
        parts = list(self._parts(plan, damage, time_before, max(time_after, time_before)))
        if not self._make_room(parts, reaches_end=reaches_end):
            return False
        for part in parts:
            if part.restored is not None:
                plan.add(part.restored)
            elif part.lost is not None:
                moved = replace(part.lost, offset=part.start, size=part.size)
                plan.moves_messages |= part.start != part.lost.offset
                if not self._replace(plan, moved, time_before):
                    return False
            elif reaches_end and part is parts[-1]:
                return self._fill_file(plan, part.start, part.end, time_before, unplaced)
            elif not self._fill(plan, part.start, part.end, time_before, unplaced):
                return False
        return True

    def _following(self, offset: int) -> Unit | Blank | None:
        """Return the item behind damaged bytes; in a DLedger log, whose headers are right, the next readable one."""
        item = self._log.unit_at(offset, crc=False)
        if isinstance(item, (Unit, Blank)) or self._store.commit_log.dledger is None:
            return item if isinstance(item, (Unit, Blank)) else None
        return next((item for item in self._log.walk(offset, crc=False) if isinstance(item, Unit)), None)

    def _parts(self, plan: _Plan, damage: Damage, time_before: int, time_after: int) -> Iterator[_Part]:
        """Divide damaged bytes into messages and bytes that nobody names."""
        place, end = damage.offset, damage.offset + damage.size
        unplaced = self._without_place.get(damage.offset, [])
        for named in self._tiles(damage):
            lost = named
            if lost.salvage is None and lost.topic.startswith(LMQ_PREFIX) and unplaced:  # only light queues have it
                lost = _lost_at(lost.offset, lost.size, unplaced.pop())
                plan.is_place_guessed = True
            if lost.offset > place:
                yield _Part(place, lost.offset - place)
            restored = _Plan()
            is_put_right = self._put_right(restored, lost, time_before, time_after)
            yield _Part(lost.offset, lost.size, lost, restored if is_put_right else None)
            place = lost.offset + lost.size
        if place < end:
            yield _Part(place, end - place)

    def _make_room(self, parts: list[_Part], *, reaches_end: bool) -> bool:
        """Let each part that is shorter than what has to stand there take bytes of the part behind or in front of it.

        Returns False if one stays too short. A message of a few bytes without properties is shorter than a placeholder.
        """
        for number, part in enumerate(parts):
            is_last = reaches_end and number == len(parts) - 1
            lacking = self._shortest_of(part, is_last=is_last) - part.size
            if part.restored is not None or lacking <= 0:
                continue
            for beside in (number + 1, number - 1):
                if not 0 <= beside < len(parts) or parts[beside].restored is not None:
                    continue
                donor = parts[beside]
                spare = donor.size - self._shortest_of(donor, is_last=reaches_end and beside == len(parts) - 1)
                if part.lost is None and donor.lost is not None and not is_last:
                    moved_bytes = -part.size  # a few bytes that nobody names go to the message beside them
                elif spare >= lacking:
                    moved_bytes = lacking
                elif donor.lost is None and donor.size >= lacking:
                    moved_bytes = donor.size
                else:
                    continue
                if beside > number:
                    donor.start += moved_bytes
                else:
                    part.start -= moved_bytes
                part.size += moved_bytes
                donor.size -= moved_bytes
                break
            else:
                return False
        parts[:] = [part for part in parts if part.size]
        return True

    def _shortest_of(self, part: _Part, *, is_last: bool) -> int:
        """Return the bytes that the shortest unit for a part needs; a blank, where the file ends behind it."""
        if part.restored is not None or part.size == 0:
            return part.size
        if part.lost is not None:
            return self._shortest(
                QueuePlace(part.lost.topic, part.lost.queue_id, part.lost.queue_offset), is_named=False
            )
        if is_last:
            return filler.BLANK_BYTES
        return filler.shortest_placeholder(filler.FILLER_TOPIC[0], {}, property_crc=self._property_crc, is_named=False)

    def _tiles(self, damage: Damage) -> Iterator[LostUnit]:
        """Yield the messages that were in the damaged bytes; of two that overlap the second is left out."""
        place, end = damage.offset, damage.offset + damage.size
        for lost in lost_units(self._store, damage.offset, damage.size, MAX_UNITS):
            if lost.offset >= place and lost.offset + lost.size <= end:
                yield lost
                place = lost.offset + lost.size

    def _put_right(self, plan: _Plan, lost: LostUnit, time_before: int, time_after: int) -> bool:
        """Put a message right whose wrong fields follow from the others."""
        if lost.salvage is None:
            return False
        unit, raw = lost.salvage.unit, self._log.read(lost.offset, lost.size)
        if any(fault.is_overflow for fault in lost.wrong):
            return self._shorten(plan, lost, lost.salvage, raw)
        if any(fault.likely is None and fault.field != "bodyCRC" for fault in lost.wrong):
            return False
        time = unit.store_timestamp
        is_plausible = time_before - _CLOCK_TOLERANCE_MS <= time <= time_after + _CLOCK_TOLERANCE_MS
        has_entry = entry_at(self._store, lost.offset) is not None
        mended = _encoded(unit, lost, time if is_plausible else time_before, has_entry=has_entry)
        if mended is None or len(mended) != lost.size:
            return False
        changed = [position for position, (old, new) in enumerate(zip(raw, mended, strict=True)) if old != new]
        is_verified = unit.crc == "ok"
        if not changed or not (is_verified or (is_plausible and _only_head_changed(changed, lost))):
            return False
        start, stop = changed[0], changed[-1] + 1
        why = sentence(
            "the message {name} was overwritten in part: {fields}",
            name=f"{lost.topic}/{lost.queue_id}/{lost.queue_offset}",
            fields=join(", ", [fault.words for fault in lost.wrong]),
        )
        self._write(plan, lost.offset + start, mended[start:stop], why)
        plan.restored.append(lost)
        plan.unverified += not is_verified
        return True

    def _shorten(self, plan: _Plan, lost: LostUnit, salvaged: Salvage, raw: bytes) -> bool:
        """Leave out the longest properties of a message that has too many bytes of them; a filler takes their place."""
        unit = shorten(raw, salvaged)
        filler_unit = filler.filler(
            lost.size - len(unit.data),
            physical_offset=lost.offset + len(unit.data),
            store_timestamp=salvaged.unit.store_timestamp,
            property_crc=self._property_crc,
        )
        if filler_unit is None or self._property_crc:
            return False
        name = f"{lost.topic}/{lost.queue_id}/{lost.queue_offset}"
        why = sentence("the properties of the message {name} do not fit their 16-bit length", name=name)
        self._write(plan, lost.offset, unit.data + filler_unit, why)
        plan.restored.append(lost)
        plan.shortened.append(f"{name} ({', '.join(unit.left_out)})")
        return True

    def _replace(self, plan: _Plan, lost: LostUnit, time_before: int) -> bool:
        """Put a placeholder where a message is lost."""
        data = filler.placeholder(
            lost.size,
            physical_offset=lost.offset,
            topic=lost.topic,
            queue_id=lost.queue_id,
            queue_offset=lost.queue_offset,
            store_timestamp=time_before,
            properties={
                **passed_over(lost.topic, lost.queue_id),
                **_batch_properties(lost.queue_offset, lost.batch_size),
                **self._light_properties(plan, lost),
            },
            property_crc=self._property_crc,
        )
        if data is None:
            return False
        name = f"{lost.topic}/{lost.queue_id}/{lost.queue_offset}"
        self._write(plan, lost.offset, data, sentence("the message {name} is lost: a unit without content", name=name))
        plan.replaced.append(lost)
        return True

    def _light_properties(self, plan: _Plan, lost: LostUnit) -> dict[str, str]:
        """Return the properties that name the light queues with entries of a lost message: so they keep their numbers
        when they are built again. Without an entry it takes the next number of each light queue that lacks some.
        """
        entries = [
            entry
            for entry in entries_into(self._store, lost.offset, lost.offset + 1, MAX_LIGHT_ENTRIES)
            if entry.topic.startswith(LMQ_PREFIX) and (entry.topic, entry.number) != (lost.topic, lost.queue_offset)
        ]
        numbers = {entry.topic: entry.number for entry in entries}
        if numbers and self._room_with_light(lost, numbers) < 0:
            return {}
        guessed: list[str] = []
        for name in [name for name in self._light if name not in numbers]:
            if self._room_with_light(lost, {**numbers, name: self._light[name][0]}) >= 0:
                numbers[name] = self._light[name].pop(0)
                guessed.append(name)
        self._light = {name: lacking for name, lacking in self._light.items() if lacking}
        plan.is_place_guessed |= bool(guessed)
        return _light_properties(numbers) if numbers else {}

    def _room_with_light(self, lost: LostUnit, numbers: Mapping[str, int]) -> int:
        """Return the bytes that the placeholder of a message does not need if it names these light queues."""
        properties = {**passed_over(lost.topic, lost.queue_id), **_light_properties(numbers)}
        return lost.size - filler.shortest_placeholder(lost.topic, properties, property_crc=self._property_crc)

    def _size_with_light(self, place: QueuePlace, room: int, unplaced: Sequence[QueuePlace]) -> int:
        """Return the bytes for the placeholder of a message of which only the queue offset is known: as many as it
        needs to name the light queues that lack a number, if the others keep theirs.
        """
        size = self._shortest(place)
        spare = room - sum(map(self._shortest, unplaced))
        numbers = {name: lacking[0] for name, lacking in self._light.items()}
        light_bytes = -self._room_with_light(_lost_at(0, size, place), numbers) if numbers else 0
        return size + max(min(light_bytes, spare), 0)

    def _fill(self, plan: _Plan, start: int, stop: int, time_before: int, unplaced: list[QueuePlace]) -> bool:
        """Cover bytes of which no queue entry is known: with placeholders of messages whose queue offsets are missing,
        as far as they have room.
        """
        while unplaced:
            place = unplaced[-1]
            size = self._size_with_light(place, stop - start, unplaced)
            if size > stop - start:
                break
            if len(unplaced) == 1 or stop - start - size < self._shortest(unplaced[-2]):
                size = stop - start
            lost = _lost_at(start, size, place)
            if not self._replace(plan, lost, time_before):
                break
            unplaced.pop()
            start += size
            plan.is_place_guessed = True
        if start == stop:
            return True
        data = filler.filler(
            stop - start, physical_offset=start, store_timestamp=time_before, property_crc=self._property_crc
        )
        if data is None:
            return False
        why = sentence("bytes of which no queue entry is known: a unit that is in no queue")
        self._write(plan, start, data, why)
        plan.unnamed_bytes += stop - start
        return True

    def _fill_file(self, plan: _Plan, start: int, end: int, time_before: int, unplaced: list[QueuePlace]) -> bool:
        """Cover bytes up to the end of a file: with placeholders of messages whose queue offsets are missing, as far as
        they have room, then a blank. A file begins with a unit.
        """
        file = self._log.sequence.find(start)
        while unplaced:
            size = self._size_with_light(unplaced[-1], end - start - filler.BLANK_BYTES, unplaced)
            if size + filler.BLANK_BYTES > end - start:
                break
            if not self._replace(plan, _lost_at(start, size, unplaced[-1]), time_before):
                break
            unplaced.pop()
            start += size
            plan.is_place_guessed = True
        if file is not None and start == file.start_offset:
            size = filler.shortest_placeholder(filler.FILLER_TOPIC, {}, property_crc=self._property_crc)
            if not self._fill(plan, start, start + size, time_before, []):
                return False
            start += size
        if end - start < filler.BLANK_BYTES:
            return False
        self._write(plan, start, filler.blank(end - start), sentence("the file ends here, and the next one follows"))
        return True

    def _shortest(self, place: QueuePlace, is_named: bool = True) -> int:
        """Return the bytes of the shortest placeholder for a message at ``place``; ``is_named`` with the property that
        says what it is.
        """
        batch = _batch_properties(place.queue_offset, place.batch_size)
        properties = {**passed_over(place.topic, place.queue_id), **batch}
        return filler.shortest_placeholder(place.topic, properties, property_crc=self._property_crc, is_named=is_named)

    # -- wrong fields of units that can be read

    def address(self, offset: int) -> None:
        """Mend a message that says another place, queue or queue offset than the only entry that leads to it.

        Where its CRC was overwritten together with its queue id, the body is taken for whole; a body that is not gets
        a placeholder in its place, for a start would put the message into a wrong queue.
        """
        unit, entry = self._log.unit_at(offset), entry_at(self._store, offset)
        if not isinstance(unit, Unit) or entry is None or entry.size != unit.size or self._file_name(offset) is None:
            return
        lost = LostUnit(offset, unit.size, entry.topic, entry.queue_id, entry.queue_offset, None)
        is_head_only = unit.crc == "bad" and unit.queue_id != entry.queue_id
        if unit.crc == "bad" and not is_head_only:
            self.cover(Damage(offset, unit.size, ""), unit.store_timestamp)
            return
        name = f"{entry.topic}/{entry.queue_id}/{entry.queue_offset}"
        why = sentence("the queue has this message as {name}, and its own fields say something else", name=name)
        if self._rewrite(unit, lost, why):
            self.plan.unverified += is_head_only

    def place_by_number(self, offsets: Sequence[int]) -> None:
        """Mend messages that say another place in the log, and to which no queue entry leads, if the messages around
        them lack just their queue offsets: then they belong where they stand.
        """
        units = [unit for offset in offsets if isinstance(unit := self._log.unit_at(offset), Unit)]
        units = [unit for unit in units if unit.crc != "bad" and entry_at(self._store, unit.offset) is None]
        if not units:
            return
        for unit, around in zip(units, numbers_around(self._store, [(u.offset, u.end) for u in units]), strict=True):
            place = QueuePlace(unit.topic, unit.queue_id, unit.queue_offset)
            if place in around.missing() and self._file_name(unit.offset) is not None:
                lost = _lost_at(unit.offset, unit.size, place)
                name = f"{place.topic}/{place.queue_id}/{place.queue_offset}"
                why = sentence("the messages around it lack {name}: it belongs here", name=name)
                self._rewrite(unit, lost, why)

    def _rewrite(self, unit: Unit, lost: LostUnit, why: str) -> bool:
        """Write the fields of a unit as ``lost`` says them; returns False if nothing can or has to be changed."""
        raw = self._log.read(unit.offset, unit.size)
        following = self._following(unit.end)
        if isinstance(following, Unit):
            unit = _with_hosts_as_long(unit, raw, following.store_timestamp)
        mended = _encoded(unit, lost, unit.store_timestamp, has_entry=True)
        if mended is None or len(mended) != len(raw) or mended == raw:
            return False
        changed = [position for position, (old, new) in enumerate(zip(raw, mended, strict=True)) if old != new]
        start, stop = changed[0], changed[-1] + 1
        self._write(self.plan, unit.offset + start, mended[start:stop], why)
        self.plan.restored.append(lost)
        return True

    def body(self, offset: int, kept_to: int) -> None:
        """Mend a message whose body does not match its CRC.

        One inverted bit is put right. A CRC of zero was never written: it is computed. Any other message is replaced
        only where a start would cut the log at it or in front of it.
        """
        unit = self._log.unit_at(offset)
        if not isinstance(unit, Unit) or unit.crc != "bad" or self._file_name(offset) is None:
            return
        explanation = explain(unit.body, unit.body_crc)
        body_at = next(part.position for part in list_fields(self._log.read(offset, unit.size)) if part.name == "body")
        if unit.body_crc == 0 or explanation.field_bit is not None:
            why = (
                sentence("the writer stored no CRC: that of the body")
                if unit.body_crc == 0
                else sentence("one bit of the stored CRC is inverted: that of the body")
            )
            self._write(self.plan, offset + _CRC_SPAN.start, crc31(unit.body).to_bytes(4, "big"), why)
            self.plan.unverified += unit.body_crc == 0
        elif len(explanation.flips) == 1 and len(explanation.flips[0].bits) == 1:
            flip = explanation.flips[0]
            why = sentence("{bits} is inverted: with it as it was the body matches its CRC", bits=flip.words)
            byte = unit.body[flip.position] ^ flip.mask
            self._write(self.plan, offset + body_at + flip.position, bytes([byte]), why)
        else:
            if offset >= kept_to:
                self._property_crc = props.CRC32 in unit.properties
                lost = LostUnit(offset, unit.size, unit.topic, unit.queue_id, unit.queue_offset, None)
                self._replace(self.plan, lost, unit.store_timestamp)
            return
        self.plan.restored.append(unit)

    def blank(self, offset: int, size: int) -> None:
        """Mend the length of a blank: it reaches to the end of its file."""
        file = self._log.sequence.find(offset)
        if file is None or offset + size == file.end_offset or self._file_name(offset) is None:
            return
        length = (file.end_offset - offset).to_bytes(4, "big")
        self._write(self.plan, offset, length, sentence("the blank reaches to the end of its file"))

    def _file_name(self, offset: int) -> str | None:
        """The file's name below the store's folder; None if it lies elsewhere."""
        file, root = self._log.sequence.find(offset), self._store.path
        if file is None or not Path(file.path).is_relative_to(root):
            return None
        return Path(file.path).relative_to(root).as_posix()

    def _write(self, plan: _Plan, offset: int, new: bytes, why: str) -> None:
        file, name = self._log.sequence.find(offset), self._file_name(offset)
        assert file is not None
        assert name is not None
        old = self._log.read(offset, len(new))
        plan.patches.append(
            WriteBytes(file=name, offset=offset - file.start_offset, old=old, new=new, why=why, name=NAME)
        )


def _only_head_changed(changed: Sequence[int], lost: LostUnit) -> bool:
    """Return True if all signs say that the damage ended in front of the body, whose CRC was overwritten too."""
    outside_crc = [position for position in changed if position not in _CRC_SPAN]
    wrong_fields = {fault.field for fault in lost.wrong}
    return (
        bool(outside_crc)
        and len(outside_crc) < len(changed)
        and max(outside_crc) < _BODY_LENGTH_AT
        and not wrong_fields & {"bodyLength", "sysFlag"}
    )


def _encoded(unit: Unit, lost: LostUnit, store_timestamp: int, *, has_entry: bool) -> bytes | None:
    """Return the unit's bytes with every field as it should be; None if they would not be this unit."""
    sealed = props.CRC32 in unit.properties
    wrong_fields = {fault.field for fault in lost.wrong}
    sys_flag = unit.sys_flag
    if has_entry and (sys_flag & ~_KNOWN_FLAGS or unit.transaction_type not in (0, COMMIT)):  # these have no entry
        packed = unit.body.startswith(_ZLIB_HEAD)
        sys_flag = sys_flag & (BORN_HOST_V6 | STORE_HOST_V6) | (COMPRESSED if packed else 0)
    is_flag_lost = "queueOffset" in wrong_fields and bool(wrong_fields & {"queueId", "bodyCRC"})  # FLAG lies between
    message = Message.of_unit(unit).changed(
        queue_id=lost.queue_id, topic=lost.topic, flag=0 if is_flag_lost else unit.flag, sys_flag=sys_flag
    )
    try:
        data = encode_unit(
            message,
            queue_offset=lost.queue_offset,
            physical_offset=lost.offset,
            store_timestamp=store_timestamp,
            property_crc=sealed,
        )
        decoded = decode(data, base=lost.offset)
    except (ValueError, CorruptUnit):
        return None
    is_same = decoded.body == unit.body and decoded.crc == "ok" and not decoded.stale
    return data if is_same and (decoded.properties_raw == unit.properties_raw or sealed) else None


def _with_hosts_as_long(unit: Unit, raw: bytes, time_after: int) -> Unit:
    """Return the unit with the long address in place of the short one, and the other way round, if only so its store
    time fits that of the next unit: with overwritten flags both have the same length.
    """
    hosts = unit.sys_flag & (BORN_HOST_V6 | STORE_HOST_V6)
    if hosts not in (BORN_HOST_V6, STORE_HOST_V6) or abs(unit.store_timestamp - time_after) <= _CLOCK_TOLERANCE_MS:
        return unit
    flags = (unit.sys_flag ^ (BORN_HOST_V6 | STORE_HOST_V6)) & 0xFFFF_FFFF
    try:
        other = decode(raw[:_SYS_FLAG_AT] + flags.to_bytes(4, "big") + raw[_SYS_FLAG_AT + 4 :], base=unit.offset)
    except CorruptUnit:
        return unit
    return other if abs(other.store_timestamp - time_after) <= _CLOCK_TOLERANCE_MS else unit


def _light_properties(numbers: Mapping[str, int]) -> dict[str, str]:
    """Return the properties of a message that name its light queues, and its number in each."""
    return {
        props.INNER_MULTI_DISPATCH: ",".join(numbers),
        props.INNER_MULTI_QUEUE_OFFSET: ",".join(map(str, numbers.values())),
    }


def _batch_properties(queue_offset: int, batch_size: int) -> dict[str, str]:
    """Return the properties by which the entry of a batch queue says its queue offsets."""
    if not batch_size:
        return {}
    return {props.INNER_BASE: str(queue_offset), props.INNER_NUM: str(batch_size)}


def _lost_at(offset: int, size: int, place: QueuePlace) -> LostUnit:
    """Return the unit of a message of which only the place in its queue is known."""
    return LostUnit(offset, size, place.topic, place.queue_id, place.queue_offset, None, place.batch_size)


def passed_over(topic: str, queue_id: int) -> dict[str, str]:
    """Return the properties by which a broker's service passes over a placeholder in its own topic.

    The delay service discards a message whose real topic would be that of half messages
    (ScheduleMessageService.messageTimeUp). Its level says when.
    """
    if topic != SCHEDULE_TOPIC:
        return {}
    return {props.DELAY: str(queue_id + 1), props.REAL_TOPIC: HALF_TOPIC}
