"""Options of the data sources, and what all of them share: partitions of small parts, and what is told of them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql.datasource import InputPartition

from engine.errors import UsageError
from engine.pipeline import schema, splits
from engine.pipeline.defaults import LOG_BYTES
from engine.pipeline.files import StorePlace, find_stores, seen_from_anywhere
from engine.pipeline.pruning import Trust
from engine.pipeline.stream_options import Following


class Options:
    """What the options of a read ask for; raises :class:`UsageError` in one sentence."""

    def __init__(self, given: Any, columns: schema.Columns, left_out: Iterable[str] = ()) -> None:
        self._given = given
        self.path: str = given.get("path", "")
        self.broker: str | None = given.get("broker")
        names = [name.strip() for name in given.get("columns", "").split(",") if name.strip()]
        self.fails = self.word("unreadable", "row", "fail") == "fail"
        self.headers = self.word("headers", "off", "trust") == "trust"
        self.columns = schema.chosen(columns, names or [name for name in columns if name not in set(left_out)])

    def stores(self) -> list[StorePlace]:
        """Those that cannot be read too, see :func:`find_stores`; raises :class:`NotAStore`."""
        if not self.path:
            raise UsageError("name the store: load(PATH)")
        return seen_from_anywhere(find_stores(self.path, self.broker))

    def number(self, name: str, default: int) -> int:
        """An option that is a number from 1 on."""
        text = self._given.get(name, str(default)).replace("_", "")
        if not text.isdigit() or int(text) < 1:
            raise UsageError(f"{name}: expected a number from 1 on, found {self._given.get(name)}")
        return int(text)

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

    def __init__(self, given: Any) -> None:
        without = () if given.get("body", "").lower() == "true" or "body" in given.get("columns", "") else ("body",)
        super().__init__(given, schema.UNIT, without)
        self.split_bytes = self.number("splitBytes", LOG_BYTES)
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
