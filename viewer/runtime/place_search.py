"""What only the store can answer for the go-to box: the unit stored at a time, with an id, or with a key. No Qt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.codec.message import Unit
from engine.errors import StoreError
from viewer.runtime.places import Place, Search, log, queue

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot


STEPS = 64


class NothingFound(LookupError):
    """Nothing in the store answers to the text; says where was looked."""


def resolve(store: StoreSnapshot, search: Search) -> Place:
    """The place that ``search`` means in ``store``; raises :class:`NothingFound`."""
    if search.kind == "time":
        return log(offset_at_time(store, search.ms))
    return _find_message(store, search)


def _find_message(store: StoreSnapshot, search: Search) -> Place:
    from engine.inspection.lookup import find_message

    unit = find_message(store, search.text)
    if unit is not None:
        return log(unit.offset)
    if search.text in store.topics():
        return queue(search.text)
    files = len(store.index_files())
    raise NothingFound(
        f"no message, key or topic {search.text} in {files:,} index files and {len(store.topics()):,} topics"
    )


def offset_at_time(store: StoreSnapshot, ms: int) -> int:
    """Offset of the first unit stored at or after ``ms``, the log's last unit where there is none.

    Bisection over the files, then over the bytes of one.
    """
    files = store.log.files
    if not files:
        raise NothingFound("the commit log has no files")
    low, high = 0, len(files) - 1
    while low < high:
        middle = (low + high + 1) // 2
        stamp = _time_from(store, files[middle].start_offset)
        low, high = (middle, high) if stamp is not None and stamp < ms else (low, middle - 1)
    start, end = files[low].start_offset, min(files[low].end_offset, max(store.log.max_offset, files[low].start_offset))
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
    last = start
    for item in store.log.walk(start, crc=False):
        if isinstance(item, Unit):
            last = item.offset
            if item.store_timestamp >= ms:
                break
    return last
