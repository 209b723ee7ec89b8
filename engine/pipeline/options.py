"""Options of the data sources, and their shared code: partitions of small parts, and the description of a read."""

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
from engine.pipeline.pruning import TrustedFacts
from engine.pipeline.splits import SkippedRange
from engine.sentences import sentence

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
    """The options of a read; raises :class:`UsageError` in one sentence."""

    TASK_BYTES: ClassVar[int] = PART_BYTES

    def __init__(
        self, options: Any, columns: schema.Columns, left_out: Iterable[str] = (), known_names: Iterable[str] = KNOWN
    ) -> None:
        self._raw_options = options
        self._refuse_unknown(list(known_names))
        path = options.get("path") or options.get("location")
        self.paths: list[str] = [*json.loads(options.get("paths", "[]")), *([path] if path else [])]
        for path_option in self.paths:
            refuse_other_storage(path_option)
        self.broker: str | None = options.get("broker")
        names = [name.strip() for name in options.get("columns", "").split(",") if name.strip()]
        self.fails = self.word("unreadable", "row", "fail") == "fail"
        self.headers = self.word("headers", "off", "trust") == "trust"
        self.columns = schema.select_columns(columns, names or [name for name in columns if name not in set(left_out)])
        self.split_bytes = self.number("splitBytes", self.TASK_BYTES)

    def stores(self) -> list[StorePlace]:
        """Return the stores, unreadable ones too, see :func:`find_stores`; raises :class:`NotAStore`."""
        if not self.paths:
            raise UsageError(sentence("name the store: load(PATH)"))
        return seen_from_anywhere(find_stores(self.paths, self.broker))

    def _refuse_unknown(self, known_names: Sequence[str]) -> None:
        words = {name.lower() for name in (*known_names, *_OF_SPARK)}
        for name in self._raw_options:
            if name.lower() not in words and not name.lower().startswith("option."):
                raise UsageError(
                    sentence(
                        "{name} is not an option of this format; the options are {options}",
                        name=name,
                        options=", ".join(known_names),
                    )
                )

    def number(self, name: str, default: int) -> int:
        """Return an option that is a number from 1 on, of bytes also in Spark's words: 64k, 128m, 1gb."""
        match = _SIZE.fullmatch(self._raw_options.get(name, str(default)).strip())
        number = int(match[1].replace("_", "")) << 10 * " kmgtp".index((match[2] or " ").lower()) if match else 0
        if number < 1:
            raise UsageError(
                sentence(
                    "{name}: expected a number from 1 on, or a size like 64k, 128m, 1g, found {value}",
                    name=name,
                    value=self._raw_options.get(name),
                )
            )
        return number

    def yes(self, name: str, default: bool) -> bool:
        """Return an option that is true or false."""
        text = self._raw_options.get(name, str(default)).lower()
        if text not in ("true", "false"):
            raise UsageError(
                sentence("{name}: expected true or false, found {value}", name=name, value=self._raw_options.get(name))
            )
        return bool(text == "true")

    def word(self, name: str, *words: str, **meant: str) -> str:
        """An option that is one of ``words``, the first where it is not given; ``meant`` are older words for them."""
        text = self._raw_options.get(name, words[0]).lower()
        text = meant.get(text, text)
        if text not in words:
            raise UsageError(
                sentence(
                    "{name}: expected {names} or {words}, found {value}",
                    name=name,
                    names=", ".join(words[:-1]),
                    words=words[-1],
                    value=self._raw_options.get(name),
                )
            )
        return str(text)


class LogOptions(Options):
    """The options of ``rocketmq-commitlog``."""

    TASK_BYTES = LOG_BYTES

    def __init__(self, options: Any) -> None:
        without = () if options.get("body", "").lower() == "true" or "body" in options.get("columns", "") else ("body",)
        super().__init__(options, schema.UNIT, without, (*KNOWN, *KNOWN_OF_LOGS))
        self.crc = self.yes("crc", True)
        self.body = self.yes("body", False)
        self.blanks = self.yes("blanks", False)
        queues = self.word("queues", "prove", "trust", "off", true="prove", false="off")
        self.trust = TrustedFacts(queues, self.word("times", "off", "trust") == "trust")
        self.following = Following.of(options, self)


def report_skipped(name: str, left_out: Iterable[splits.SkippedRange]) -> None:
    """Report in Spark's log what the format ``name`` leaves unread."""
    for skipped in left_out:
        sys.stderr.write(f"{name}: {skipped.path}: {skipped.bytes:,} bytes are left unread: {skipped.why}\n")
    sys.stderr.flush()


class Parts(InputPartition):
    """The parts of one task, all small values; the first task's also hold the description of the whole plan."""

    def __init__(self, parts: tuple[Any, ...], description: str = "") -> None:
        super().__init__(parts)
        self.parts = parts
        self.description = description


def group_parts(parts: Sequence[Any], limit_bytes: int) -> list[Parts]:
    """Group parts with a ``start`` and a ``stop`` into partitions of at most ``limit_bytes`` bytes."""
    groups: list[list[Any]] = []
    room = 0
    for part in parts:
        size = part.stop - part.start
        if not groups or size > room:
            groups.append([])
            room = limit_bytes
        groups[-1].append(part)
        room -= size
    return [Parts(tuple(group)) for group in groups]


def make_partitions(parts: Sequence[Any], limit_bytes: int, description: str) -> list[Parts]:
    """Return :func:`group_parts` partitions, the first with the description; never none, for then Spark makes up a
    partition of its own.
    """
    groups = group_parts(parts, limit_bytes) or [Parts(())]
    return [Parts(groups[0].parts, description), *groups[1:]]


@dataclass(frozen=True, slots=True)
class Following:
    """Limits of following: ``since`` (ms), ``limit_bytes`` of logs in one batch; None if not given."""

    latest: bool = False
    since: int | None = None
    fail: bool = True
    limit_bytes: int | None = None

    @classmethod
    def of(cls, raw_options: Any, options: Any) -> Following:
        """Parse the options; ``options`` parses numbers and truths; raises :class:`UsageError`."""
        begins = raw_options.get("startingOffsets", "earliest")
        if begins not in ("earliest", "latest"):
            raise UsageError(sentence("startingOffsets: expected earliest or latest, found {begins}", begins=begins))
        time = raw_options.get("startingTimestamp")
        if time is not None and raw_options.get("startingOffsets") is not None:
            raise UsageError(sentence("expected startingOffsets or startingTimestamp, found both"))
        limit_bytes = (
            options.number("maxBytesPerTrigger", 1) if raw_options.get("maxBytesPerTrigger") is not None else None
        )
        return cls(begins == "latest", _ms(time), options.yes("failOnDataLoss", True), limit_bytes)


def _ms(text: str | None) -> int | None:
    if text is None or text.isdigit():
        return None if text is None else int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            sentence(
                ("startingTimestamp: expected ms since the epoch, or a time like 2026-01-31T08:00:00Z, found {text}"),
                text=text,
            )
        ) from None
    return int((time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp() * 1000)


_MARKS = "<told>", "</told>"
_MAX_TEXT_CHARS = 300
"""Characters of one list: ``IN`` may have a million values."""


def describe_read(
    columns: Iterable[str],
    conditions: Iterable[Condition],
    parts: Sequence[Any],
    skipped: Iterable[SkippedRange],
    crc: bool,
) -> str:
    """Describe a read: the decoded columns, the conditions, the bytes to read, and the bytes passed over with the
    reasons.
    """
    left_out = list(skipped)
    passed = f"passed over: {sum(skipped_part.bytes for skipped_part in left_out):,} bytes"
    if left_out:
        passed += f" ({_shorten('; '.join(dict.fromkeys(skipped_part.why for skipped_part in left_out)))})"
    condition_text = ", ".join(_condition(condition) for condition in conditions)
    description = (
        f"columns: [{', '.join(columns)}]{', CRC of each body' if crc else ''}, "
        f"conditions: [{_shorten(condition_text)}], "
        f"to read: {sum(max(part.stop - part.start, 0) for part in parts):,} bytes, {passed}"
    )
    for mark in _MARKS:
        description = description.replace(mark, "")
    return description.join(_MARKS)


def _condition(condition: Condition) -> str:
    return f"{condition.column} {condition.operator} {', '.join(map(str, condition.values[:10]))}".rstrip()


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_TEXT_CHARS else f"{text[:_MAX_TEXT_CHARS]}…"
