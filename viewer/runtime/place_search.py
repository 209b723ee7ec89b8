"""Answers for the go-to box that need the store: the unit stored at a time, with an id, or with a key. No Qt."""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from engine.codec.message import Unit
from engine.errors import CannotRead, StoreError
from engine.inspection import tables
from engine.inspection.rocksdb_rows import FAMILIES
from engine.rules import catalogue
from engine.system_names import is_system_topic
from viewer.look.assets import tr, tr_plural
from viewer.look.formats import moment
from viewer.runtime.places import RECOVERY, Place, Search, log, parse_time, queue

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot


STEPS = 64
MAX_COPIES = 1000
"""Units with one id or key that are compared."""
MAX_LISTED = 20
"""Queues of a topic that are named."""
MAX_DAYS = 400
"""Days back from the last message on which a time without a day is looked for."""


class NothingFound(LookupError):
    """Nothing in the store answers to the text; says where was looked."""


class ResolvedPlace(NamedTuple):
    """The place that a text leads to, and a note if there were several messages to choose from."""

    place: Place
    note: str = ""


def resolve(store: StoreSnapshot, search: Search) -> ResolvedPlace:
    """Return the place that ``search`` means in ``store``; raises :class:`NothingFound`."""
    if search.kind == "time":
        return ResolvedPlace(log(_offset_of_time(store, search)))
    return _find_message(store, search)


def checked(store: StoreSnapshot, place: Place) -> ResolvedPlace:
    """Return ``place`` if the store has it; else raises :class:`NothingFound`, which names those there are."""
    if place.kind == "log" and place.offset is not None:
        min_offset, end_offset = max(store.log.min_offset, 0), store.log.end_offset
        if not min_offset <= place.offset < end_offset:
            raise NothingFound(
                tr(
                    "The commit log has no byte {offset:,}: it has {low:,} to {high:,}.",
                    offset=place.offset,
                    low=min_offset,
                    high=max(end_offset - 1, 0),
                )
            )
    if place.kind == "queue" and place.topic:
        _check_entry(store, place)
    if place.name:
        with contextlib.suppress(CannotRead):  # the store may have it; its view says what cannot be read
            _check_name(store, place)
    return ResolvedPlace(place)


def _check_name(store: StoreSnapshot, place: Place) -> None:
    """Raise :class:`NothingFound` if there is no rule, index file, group or table of that name."""
    name = place.name
    match place.kind:
        case "findings" if name != RECOVERY and name not in catalogue.RULES:
            raise NothingFound(tr("There is no rule {rule}.", rule=name))
        case "index" if name not in {file.name for file in store.index.files(note_undecoded=False)}:
            raise NothingFound(tr("No index file is named {name}.", name=name))
        case "groups" if name not in _groups(store):
            raise NothingFound(tr("There is no group {group} in this store.", group=name))
        case "config" if name not in _tables(store):
            raise NothingFound(tr("There is no table {table} in this store.", table=name))
        case "rows" if name not in FAMILIES:
            raise NothingFound(tr("There are no rows of {subject}.", subject=name))


def _groups(store: StoreSnapshot) -> set[str]:
    """Groups with an offset, and declared groups. Raises :class:`engine.errors.CannotRead`."""
    return {row.group for row in tables.offsets(store)} | (tables.groups(store) or set())


def _tables(store: StoreSnapshot) -> set[str]:
    """Names of the store's tables, with and without the suffix of their files."""
    names = {table.name for table in tables.read_tables(store)}
    return names | {name.removesuffix(".json") for name in names}


def _check_entry(store: StoreSnapshot, place: Place) -> None:
    if place.queue_id is None and store.why_unknown("queues") is not None:
        return
    queues = store.queues.by_topic_with_moved().get(place.topic)
    if queues is None:
        raise NothingFound(tr("There is no topic {topic} in this store.", topic=place.topic))
    if place.queue_id is None:
        return
    queue = queues.get(place.queue_id)
    if queue is None:
        listed = ", ".join(str(number) for number in sorted(queues)[:MAX_LISTED])
        raise NothingFound(
            tr("{topic} has no queue {queue}: it has {queues}.", topic=place.topic, queue=place.queue_id, queues=listed)
        )
    if place.queue_offset is None:
        return
    min_offset, max_offset = queue.min_offset, max(queue.max_offset, queue.raw_end // queue.unit_size)
    try:
        moved = store.tiered.queue(place.topic, place.queue_id) if store.tiered is not None else None
    except CannotRead:
        return  # what was copied to tiered storage is not known
    if moved is not None:
        min_offset, max_offset = min(min_offset, moved.min_offset), max(max_offset, moved.max_offset)
    if not min_offset <= place.queue_offset < max_offset:
        if min_offset >= max_offset:
            raise NothingFound(tr("{topic}/{queue} has no entry.", topic=place.topic, queue=place.queue_id))
        raise NothingFound(
            tr(
                "{topic}/{queue} has no queue offset {offset:,}: it has {low:,} to {high:,}.",
                topic=place.topic,
                queue=place.queue_id,
                offset=place.queue_offset,
                low=min_offset,
                high=max_offset - 1,
            )
        )


def _find_message(store: StoreSnapshot, search: Search) -> ResolvedPlace:
    from engine.inspection.lookup import by_key, by_offset_id

    unit = by_offset_id(store, search.text)
    if unit is not None:
        return ResolvedPlace(log(unit.offset))
    units = list(islice(by_key(store, search.text), MAX_COPIES))
    if units:
        readable = [message for message in units if _is_readable(store, message)]
        chosen = (readable or units)[0]
        if len(units) == 1:
            return ResolvedPlace(log(chosen.offset))
        number = units[::-1].index(chosen) + 1
        note = tr("unit {part:,} of {n:,} with this id or key", part=number, n=len(units))
        if len(readable) == 1:
            note += ", " + tr("the one that consumers read")
        return ResolvedPlace(log(chosen.offset), note)
    if search.text in store.queues.by_topic_with_moved():
        return ResolvedPlace(queue(search.text))
    files = len(store.index_files())
    raise NothingFound(
        tr(
            "No message, key or topic {text} in {files} and {topics}.",
            text=search.text,
            files=tr_plural("{n:,} index file", "{n:,} index files", n=files),
            topics=tr_plural("{n:,} topic", "{n:,} topics", n=len(store.queues.by_topic_with_moved())),
        )
    )


def _is_readable(store: StoreSnapshot, unit: Unit) -> bool:
    """True if consumers find the unit: its topic is a user's, and its queue's entry leads to it."""
    if is_system_topic(unit.topic):
        return False
    reader = store.queues.by_topic().get(unit.topic, {}).get(unit.queue_id)
    entry = reader.entry(unit.queue_offset) if reader is not None and reader.kind == "simple" else None
    return reader is not None and (
        reader.kind != "simple" or (entry is not None and entry.physical_offset == unit.offset)
    )


def _offset_of_time(store: StoreSnapshot, search: Search) -> int:
    """Offset of the first message stored at or after that time; a time without a day is on one of the log's days."""
    bounds = _time_bounds(store)
    if bounds is None:
        raise NothingFound(tr("No message in the commit log shows its time."))
    first_ms, last_ms = bounds
    ms = search.ms if search.dated else _within_days(search, first_ms, last_ms)
    if ms > last_ms:
        raise NothingFound(
            tr(
                "No message was stored at {time} or later: those of the log are of {first} to {last}.",
                time=moment(ms),
                first=moment(first_ms),
                last=moment(last_ms),
            )
        )
    return offset_at_time(store, ms)


def _within_days(search: Search, first_ms: int, last_ms: int) -> int:
    """The time on the newest day on which the log has messages around it, else on the last day."""
    today = datetime.fromtimestamp(last_ms / 1000).astimezone().date()
    oldest = datetime.fromtimestamp(first_ms / 1000).astimezone().date()
    for _ in range(MAX_DAYS):
        ms = parse_time(search.text, today)
        if ms is not None and first_ms <= ms <= last_ms:
            return ms
        if today <= oldest:
            break
        today -= timedelta(days=1)
    fallback = parse_time(search.text, datetime.fromtimestamp(last_ms / 1000).astimezone().date())
    return search.ms if fallback is None else fallback


def _time_bounds(store: StoreSnapshot) -> tuple[int, int] | None:
    """Store times of the first and the last message that can be read; None for none."""
    first_ms = _time_from(store, max(store.log.min_offset, 0)) if store.log.files else None
    if first_ms is None:
        return None
    last_items = store.log.items_before(store.log.max_offset, 4, crc=False)
    last_ms = max((item.store_timestamp for item in last_items if isinstance(item, Unit)), default=first_ms)
    return first_ms, max(first_ms, last_ms)


def offset_at_time(store: StoreSnapshot, ms: int) -> int:
    """Offset of the first unit stored at or after ``ms``, the log's last unit where there is none.

    Bisection over the files, then over the bytes of one.
    """
    files = store.log.files
    if not files:
        raise NothingFound(tr("The commit log has no files."))
    first_index, last_index = 0, len(files) - 1
    while first_index < last_index:
        middle = (first_index + last_index + 1) // 2
        stamp = _time_from(store, files[middle].start_offset)
        first_index, last_index = (
            (middle, last_index) if stamp is not None and stamp < ms else (first_index, middle - 1)
        )
    start, end = (
        files[first_index].start_offset,
        min(files[first_index].end_offset, max(store.log.max_offset, files[first_index].start_offset)),
    )
    for _ in range(STEPS):
        if end - start < 1 << 16:
            break
        middle = store.log.align((start + end) // 2)
        stamp = _time_from(store, middle)
        if stamp is None or stamp >= ms or middle >= end:
            end = min(middle, (start + end) // 2)
        else:
            start = middle
    return _first_not_before(store, start, ms)


def _time_from(store: StoreSnapshot, offset: int) -> int | None:
    """Store time of the first unit at or behind ``offset`` among the next few items."""
    try:
        for item in store.log.items(offset, 4, crc=False):
            if isinstance(item, Unit):
                return item.store_timestamp
    except StoreError:
        return None
    return None


def _first_not_before(store: StoreSnapshot, start: int, ms: int) -> int:
    last_offset = start
    for item in store.log.walk(start, crc=False):
        if isinstance(item, Unit):
            last_offset = item.offset
            if item.store_timestamp >= ms:
                break
    return last_offset
