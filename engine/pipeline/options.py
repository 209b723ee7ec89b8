"""Options of the data sources, and what all of them share: partitions of small parts, and what is told of them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from pyspark.sql.datasource import InputPartition

from engine.errors import UsageError
from engine.pipeline import schema, splits
from engine.pipeline.defaults import LOG_BYTES, PART_BYTES
from engine.pipeline.files import StorePlace, find_stores, refuse_other_storage, seen_from_anywhere
from engine.pipeline.filters import Condition
from engine.pipeline.pruning import Trust
from engine.pipeline.splits import Skipped

KNOWN = {
    "path": "a store, a directory that holds store/, or a pattern of these (load(PATH), load([PATH, …]))",
    "broker": "the name of all brokers that are read (else: what the pattern's wild card matched)",
    "columns": "names with commas between: the others are not there",
    "splitBytes": "what a task reads, in Spark's words for sizes: 128m",
    "unreadable": "row or fail: what of a fleet cannot be read is a row of damage, or ends the read (row)",
    "headers": "trust: the ends that headers of index files tell spare reading (off)",
}
"""Options of every format."""
KNOWN_OF_LOGS = {
    "crc": "false: bodies are not held against their CRC",
    "body": "true: the column body too",
    "blanks": "true: rows for blanks too",
    "queues": "prove, trust or off: how far queues are believed to spare reading (prove)",
    "times": "trust: files in the order of their times spare reading (off)",
    "startingOffsets": "of a stream: earliest or latest",
    "startingTimestamp": "of a stream: where it begins, ms or ISO 8601",
    "failOnDataLoss": "of a stream: false tells a loss as a row and goes on",
    "maxBytesPerTrigger": "of a stream: most bytes of a batch",
}
"""Options of ``rocketmq-commitlog`` beside these."""
_OF_SPARK = ("paths", "provider", "owner", "location", "external", "is_managed_location", "comment", "collation")
"""What Spark adds of its own: ``paths`` for several, the others for a table that SQL made (and ``option.…``)."""
_SIZE = re.compile(r"([0-9][0-9_]*)\s*(?:([kmgtp]?)(?:i?b)?)", re.IGNORECASE)


class Options:
    """What the options of a read ask for; raises :class:`UsageError` in one sentence."""

    TASK_BYTES: ClassVar[int] = PART_BYTES

    def __init__(
        self, given: Any, columns: schema.Columns, left_out: Iterable[str] = (), known: Iterable[str] = KNOWN
    ) -> None:
        self._given = given
        self._refuse_unknown(list(known))
        path = given.get("path") or given.get("location")
        self.paths: list[str] = [*json.loads(given.get("paths", "[]")), *([path] if path else [])]
        for each in self.paths:
            refuse_other_storage(each)
        self.broker: str | None = given.get("broker")
        names = [name.strip() for name in given.get("columns", "").split(",") if name.strip()]
        self.fails = self.word("unreadable", "row", "fail") == "fail"
        self.headers = self.word("headers", "off", "trust") == "trust"
        self.columns = schema.chosen(columns, names or [name for name in columns if name not in set(left_out)])
        self.split_bytes = self.number("splitBytes", self.TASK_BYTES)

    def stores(self) -> list[StorePlace]:
        """Those that cannot be read too, see :func:`find_stores`; raises :class:`NotAStore`."""
        if not self.paths:
            raise UsageError("name the store: load(PATH)")
        return seen_from_anywhere(find_stores(self.paths, self.broker))

    def _refuse_unknown(self, known: Sequence[str]) -> None:
        words = {name.lower() for name in (*known, *_OF_SPARK)}
        for name in self._given:
            if name.lower() not in words and not name.lower().startswith("option."):
                raise UsageError(f"{name} is no option of this format; there are {', '.join(known)}")

    def number(self, name: str, default: int) -> int:
        """An option that is a number from 1 on, of bytes also in Spark's words: 64k, 128m, 1gb."""
        found = _SIZE.fullmatch(self._given.get(name, str(default)).strip())
        number = int(found[1].replace("_", "")) << 10 * " kmgtp".index((found[2] or " ").lower()) if found else 0
        if number < 1:
            raise UsageError(
                f"{name}: expected a number from 1 on, or a size like 64k, 128m, 1g, found {self._given.get(name)}"
            )
        return number

    def yes(self, name: str, default: bool) -> bool:
        """An option that is true or false."""
        text = self._given.get(name, str(default)).lower()
        if text not in ("true", "false"):
            raise UsageError(f"{name}: expected true or false, found {self._given.get(name)}")
        return bool(text == "true")

    def word(self, name: str, *words: str, **meant: str) -> str:
        """An option that is one of ``words``, the first where it is not given; ``meant`` are older words for them."""
        text = self._given.get(name, words[0]).lower()
        text = meant.get(text, text)
        if text not in words:
            raise UsageError(f"{name}: expected {', '.join(words[:-1])} or {words[-1]}, found {self._given.get(name)}")
        return str(text)


class LogOptions(Options):
    """The options of ``rocketmq-commitlog``."""

    TASK_BYTES = LOG_BYTES

    def __init__(self, given: Any) -> None:
        without = () if given.get("body", "").lower() == "true" or "body" in given.get("columns", "") else ("body",)
        super().__init__(given, schema.UNIT, without, (*KNOWN, *KNOWN_OF_LOGS))
        self.crc = self.yes("crc", True)
        self.body = self.yes("body", False)
        self.blanks = self.yes("blanks", False)
        queues = self.word("queues", "prove", "trust", "off", true="prove", false="off")
        self.trust = Trust(queues, self.word("times", "off", "trust") == "trust")
        self.following = Following.of(given, self)


def tell(name: str, left_out: Iterable[splits.Skipped]) -> None:
    """Say in Spark's log what the format ``name`` leaves unread."""
    for one in left_out:
        sys.stderr.write(f"{name}: {one.path}: {one.bytes:,} bytes are left unread: {one.why}\n")
    sys.stderr.flush()


class Parts(InputPartition):
    """The parts of one task, small values all; in the first, what is told of the whole plan."""

    def __init__(self, parts: tuple[Any, ...], told: str = "") -> None:
        super().__init__(parts)
        self.parts = parts
        self.told = told


def grouped(parts: Sequence[Any], most: int) -> list[Parts]:
    """Parts with a ``start`` and a ``stop`` as partitions: several together not larger than ``most`` bytes."""
    found: list[list[Any]] = []
    room = 0
    for part in parts:
        size = part.stop - part.start
        if not found or size > room:
            found.append([])
            room = most
        found[-1].append(part)
        room -= size
    return [Parts(tuple(group)) for group in found]


def partitions(parts: Sequence[Any], most: int, told: str) -> list[Parts]:
    """:func:`grouped`, with what is told; never none, for then Spark makes up a partition that is none of ours."""
    found = grouped(parts, most) or [Parts(())]
    return [Parts(found[0].parts, told), *found[1:]]


@dataclass(frozen=True, slots=True)
class Following:
    """``since`` is a time in ms, ``most`` bytes of logs in one batch; None where they are not asked for."""

    latest: bool = False
    since: int | None = None
    fail: bool = True
    most: int | None = None

    @classmethod
    def of(cls, given: Any, asked: Any) -> Following:
        """What ``given`` says, in which ``asked`` reads numbers and truths; raises :class:`UsageError`."""
        begins = given.get("startingOffsets", "earliest")
        if begins not in ("earliest", "latest"):
            raise UsageError(f"startingOffsets: expected earliest or latest, found {begins}")
        time = given.get("startingTimestamp")
        if time is not None and given.get("startingOffsets") is not None:
            raise UsageError("expected startingOffsets or startingTimestamp, found both")
        most = asked.number("maxBytesPerTrigger", 1) if given.get("maxBytesPerTrigger") is not None else None
        return cls(begins == "latest", _ms(time), asked.yes("failOnDataLoss", True), most)


def _ms(text: str | None) -> int | None:
    if text is None or text.isdigit():
        return None if text is None else int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"startingTimestamp: expected ms since the epoch, or a time like 2026-01-31T08:00:00Z, found {text}"
        ) from None
    return int((time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp() * 1000)


_MARKS = "<told>", "</told>"
_LONGEST = 300
"""Characters of one list: ``IN`` may have a million values."""


def words(
    columns: Iterable[str], conditions: Iterable[Condition], parts: Sequence[Any], skipped: Iterable[Skipped], crc: bool
) -> str:
    """Which columns are decoded, by what is chosen, and how many bytes are read and passed over, and why."""
    left_out = list(skipped)
    passed = f"passed over: {sum(one.bytes for one in left_out):,} bytes"
    if left_out:
        passed += f" ({_short('; '.join(dict.fromkeys(one.why for one in left_out)))})"
    asked = ", ".join(_condition(one) for one in conditions)
    told = (
        f"columns: [{', '.join(columns)}]{', CRC of each body' if crc else ''}, conditions: [{_short(asked)}], "
        f"to read: {sum(max(part.stop - part.start, 0) for part in parts):,} bytes, {passed}"
    )
    for mark in _MARKS:
        told = told.replace(mark, "")
    return told.join(_MARKS)


def _condition(one: Condition) -> str:
    return f"{one.column} {one.operator} {', '.join(map(str, one.values[:10]))}".rstrip()


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
