"""The report on the sums of :mod:`engine.pipeline.stats`: one record for all, and rows for each kind of group. Pure.

Fields are named as in the other records of the command line; times are ms since the epoch, sizes bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from engine.codec.dledger import HEADER_SIZE
from engine.codec.tally import estimate_distinct, quantile
from engine.pipeline.stats import HOUR_MS, OTHERS, Sum, Sums, span_ms

if TYPE_CHECKING:
    from engine.pipeline.files import StorePlace
    from engine.pipeline.splits import Split

Row = dict[str, Any]
Place = tuple[str | None, str | None]
"""Store and broker; (None, None) for all stores together."""


@dataclass(frozen=True, slots=True)
class Report:
    """``total`` is the ``stats`` record; ``rows``: type of record → its rows, most bytes first (hours, times and files
    in their order).
    """

    total: Row
    rows: dict[str, list[Row]]


@dataclass(frozen=True, slots=True)
class FileSize:
    """A file of a log and its length; ``start`` is the absolute offset of its first byte. ``has_entries``: each unit
    has the header of a DLedger entry in front.
    """

    store: str
    broker: str | None
    path: str
    start: int
    size: int
    has_entries: bool = False


def files_of(places: Sequence[StorePlace], splits: Sequence[Split] = ()) -> list[FileSize]:
    """Return the log files of ``places``, empty ones too, as long as ``splits`` say that they are."""
    from engine.pipeline.files import log_files

    files: dict[tuple[str, str], FileSize] = {}
    for split in splits:
        key = (split.store, split.path)
        if key not in files:
            files[key] = FileSize(
                split.store, split.broker, split.path, split.file_start, split.file_size, split.has_entries
            )
    for place in places:
        for file in log_files(place):
            files.setdefault(
                (place.path, file.path),
                FileSize(place.path, place.broker, file.path, file.start, file.size, file.has_entries),
            )
    return list(files.values())


def report(sums: Sums, listed: Sequence[FileSize], by_store: bool = False) -> Report:
    """Return the records of ``sums``; ``listed`` are the files that were walked."""
    groups = _merge_sums(sums, by_store)
    sketches = _merge_sketches(sums, by_store)
    files = _files(sums, listed)
    rows = {
        "statsTopic": _topics(groups, sketches),
        "statsQueue": _named(groups["queue"], "statsQueue", "queueId", "number"),
        "statsTag": _named(groups["tag"], "statsTag", "tag", "text"),
        "statsProducer": _named(groups["producer"], "statsProducer", "host", "text"),
        "statsHour": _hours(groups["hour"]),
        "statsTime": _times(groups),
        "statsFile": files,
    }
    return Report(_total(sums, groups, files), rows)


Groups = dict[str, dict[tuple[Place, str | None, int | None, str | None], Sum]]
Sketches = dict[tuple[str, Place, str | None], npt.NDArray[np.uint8]]


def _merge_sums(sums: Sums, by_store: bool) -> Groups:
    groups: Groups = defaultdict(dict)
    for (store, broker, kind, topic, number, text), total in sums.groups.items():
        place: Place = (store, broker) if by_store else (None, None)
        key = (place, topic, number, text)
        groups[kind].setdefault(key, Sum()).add(total.messages, total.bytes, total.smallest, total.largest)
    return groups


def _merge_sketches(sums: Sums, by_store: bool) -> Sketches:
    merged: Sketches = {}
    for (store, broker, kind, topic, _, _), registers in sums.sketches.items():
        key = (kind, (store, broker) if by_store else (None, None), topic)
        merged[key] = np.maximum(merged[key], registers) if key in merged else registers
    return merged


def _head(kind: str, place: Place) -> Row:
    store, broker = place
    return {"type": kind} if store is None else {"type": kind, "store": store, "broker": broker}


def _name(name: str | None) -> str | None:
    return "(others)" if name == OTHERS else name


def _topics(groups: Groups, sketches: Sketches) -> list[Row]:
    buckets: dict[tuple[Place, str | None], dict[int, int]] = defaultdict(dict)
    for (place, topic, bucket, _), total in groups["size"].items():
        assert bucket is not None
        size_buckets = buckets[place, topic]
        size_buckets[bucket] = size_buckets.get(bucket, 0) + total.messages
    rows = []
    for (place, topic, _, _), total in groups["topic"].items():
        size_buckets = buckets.get((place, topic), {})
        bad = groups["crc"].get((place, topic, None, None))
        row = _head("statsTopic", place) | {"topic": _name(topic), "messages": total.messages, "bytes": total.bytes}
        row |= _sizes(total, size_buckets) | {"badCrc": bad.messages if bad else 0}
        for name, kind in (("keys", "key"), ("uniqueKeys", "uniqueKey")):
            registers = sketches.get((kind, place, topic))
            row[name] = estimate_distinct(registers) if registers is not None else None
        rows.append(row)
    return sorted(rows, key=lambda row: (-row["bytes"], row["topic"] or "", row.get("store", "")))


def _sizes(total: Sum, buckets: dict[int, int]) -> Row:
    def at(share: float) -> int | None:
        return quantile(buckets, share, total.smallest, total.largest) if buckets else None

    mean = round(total.bytes / total.messages, 1) if total.messages else None
    return {"smallest": total.smallest, "mean": mean, "p50": at(0.5), "p99": at(0.99), "largest": total.largest}


def _named(
    totals: dict[tuple[Place, str | None, int | None, str | None], Sum], kind: str, field: str, part: str
) -> list[Row]:
    rows = []
    for (place, topic, number, text), total in totals.items():
        named = number if part == "number" else _name(text)
        row = _head(kind, place) | {
            "topic": _name(topic),
            field: named,
            "messages": total.messages,
            "bytes": total.bytes,
        }
        rows.append(row)
    return sorted(rows, key=lambda row: (-row["bytes"], row["topic"] or "", str(row[field]), row.get("store", "")))


def _hours(totals: dict[tuple[Place, str | None, int | None, str | None], Sum]) -> list[Row]:
    rows = []
    for (place, topic, hour, _), total in totals.items():
        row = _head("statsHour", place) | {"hour": hour, "topic": _name(topic), "messages": total.messages}
        row |= {"bytes": total.bytes, "perSecond": round(total.messages / (HOUR_MS / 1000), 3)}
        rows.append(row | {"bytesPerSecond": round(total.bytes / (HOUR_MS / 1000))})
    return sorted(rows, key=lambda row: (row["hour"], row["topic"] or "", row.get("store", "")))


def _times(groups: Groups) -> list[Row]:
    """Return spans of one length below an hour; none if the units are too far apart in time."""
    spans, hours = groups["time"], groups["hour"]
    if sum(total.messages for total in spans.values()) != sum(total.messages for total in hours.values()) or not spans:
        return []  # some task saw too long a time: its units are in no span
    begins = [begin for _, _, begin, _ in spans if begin is not None]
    length = span_ms(min(begins), max(begins), max(int(text or 0) for *_, text in spans))
    if length is None:
        return []
    sums: dict[tuple[Place, str | None, int], Sum] = defaultdict(Sum)
    for (place, topic, begin, _), total in spans.items():
        assert begin is not None
        sums[place, topic, begin // length * length].add(total.messages, total.bytes, total.smallest, total.largest)
    seconds, rows = length / 1000, []
    for (place, topic, begin), total in sums.items():
        row = _head("statsTime", place) | {"time": begin, "spanMs": length, "topic": _name(topic)}
        row |= {"messages": total.messages, "bytes": total.bytes, "perSecond": round(total.messages / seconds, 3)}
        rows.append(row | {"bytesPerSecond": round(total.bytes / seconds)})
    return sorted(rows, key=lambda row: (row["time"], row["topic"] or "", row.get("store", "")))


def _files(sums: Sums, listed: Sequence[FileSize]) -> list[Row]:
    """Return one row a file; its parts in bytes add up to its size."""
    rows = []
    for file in sorted(listed, key=lambda listed_file: (listed_file.store, listed_file.start)):

        def part(kind: str, file: FileSize = file) -> Sum:
            return sums.groups.get((file.store, file.broker, kind, None, None, file.path), Sum())

        parts = {kind: part(kind).bytes for kind in ("units", "stale", "blank", "damage")}
        entries = part("units").messages + part("stale").messages if file.has_entries else 0
        parts["headers"] = entries * HEADER_SIZE
        row = _head("statsFile", (file.store, file.broker))
        row |= {"path": file.path, "startOffset": file.start, "size": file.size}
        row |= {"messages": part("units").messages, **parts, "damaged": part("damage").messages}
        rows.append(row | {"zeros": file.size - sum(parts.values()), "missingBehind": part("missing").bytes})
    return rows


def _total(sums: Sums, groups: Groups, files: list[Row]) -> Row:
    overall = Sum()
    for group_total in groups["units"].values():
        overall.add(group_total.messages, group_total.bytes, group_total.smallest, group_total.largest)
    buckets: dict[int, int] = {}
    for (_, _, bucket, _), group_total in groups["size"].items():
        assert bucket is not None
        buckets[bucket] = buckets.get(bucket, 0) + group_total.messages
    hours = [number for _, _, number, _ in groups["hour"] if number is not None]
    total: Row = {"type": "stats", "stores": len({row["store"] for row in files}), "files": len(files)}
    total |= {"bytes": sum(row["size"] for row in files), "messages": overall.messages, "unitBytes": overall.bytes}
    total |= _sizes(overall, buckets)
    for name in ("headers", "stale", "blank", "damage", "damaged", "zeros", "missingBehind"):
        total[name] = sum(row[name] for row in files)
    total["badCrc"] = sum(group_total.messages for group_total in groups["crc"].values())
    for name, kind in (("keys", "key"), ("uniqueKeys", "uniqueKey")):
        register_sets = [registers for (_, _, k, *_), registers in sums.sketches.items() if k == kind]
        total[name] = estimate_distinct(np.maximum.reduce(register_sets)) if register_sets else None
    total["firstHour"] = min(hours, default=None)
    total["lastHour"] = max(hours, default=None)
    return total
