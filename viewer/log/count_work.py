"""Count rows and values of the log, in the worker process. No Qt.

Rows are counted by building the side index, which stays in the cache. Values of numeric fields and topics are counted
by columns, all others unit by unit. At most :data:`MAX_VALUES` different values are counted separately; units with
later values are counted together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.codec.unit_scan import Stop
from viewer.runtime.control import Control

if TYPE_CHECKING:
    from engine.codec.columns import UnitColumns
    from engine.codec.topic_table import TopicTable
    from engine.config import MessageStoreConfig
    from engine.query import Filter


def count(control: Control, path: Path, config: MessageStoreConfig | None, cache: Path) -> bool:
    """Build the side index of the store at ``path`` in ``cache``. Return False if it was stopped before the end."""
    from engine.inspection import open_store
    from engine.inspection.side_index import SideIndex

    with open_store(path, config) as store:
        return SideIndex(store.log, cache).build(lambda: control.cancelled, control.report)


MAX_VALUES = 20_000
"""Maximum number of different values that are counted separately."""
MAX_VALUE_CHARACTERS = 200
"""Characters by which values are compared. Longer values, such as bodies, differ in their first ones."""


@dataclass(frozen=True, slots=True)
class Frequencies:
    """Values of a field, each with its number of units, most frequent first.

    ``other_units`` have values beyond the first :data:`MAX_VALUES`. The log was read up to the offset ``counted_to``.
    """

    values: tuple[tuple[Any, int], ...]
    units: int
    other_units: int
    counted_to: int
    complete: bool


def count_values(
    control: Control,
    path: Path,
    config: MessageStoreConfig | None,
    field: str,
    where: str,
    now_ms: int,
    start: int,
    end: int,
) -> Frequencies:
    """Count the values of ``field`` (a field of the filter language) among the units that match ``where``.

    Of a list each item is counted; an absent value is None. ``start`` and ``end`` are used only to report progress.
    """
    from engine.codec.columns import UnitColumns
    from engine.codec.topic_table import TopicTable
    from engine.inspection import open_store
    from engine.inspection.block_scan import scan_log
    from engine.query import parse

    unit_filter, topics = parse(where, now_ms=now_ms), TopicTable()
    counted_to = start
    with open_store(path, config) as store:
        counter = _Counter(field, unit_filter, topics, store.log.file_name)
        for block in scan_log(store.log, start, crc=counter.crc, topics=topics):
            if isinstance(block, Stop):
                return counter.frequencies(max(counted_to, block.offset), True)
            if not isinstance(block, UnitColumns):
                counted_to = block.offset + block.size
                continue
            counter.add(block)
            counted_to = int(block.offset[block.count - 1]) + int(block.size[block.count - 1])
            control.report(counted_to - start, max(1, end - start))
            if control.cancelled:
                return counter.frequencies(counted_to, False)
    return counter.frequencies(counted_to, True)


class _Counter:
    """Counts the values of one field, block by block."""

    def __init__(
        self, field: str, unit_filter: Filter, topics: TopicTable, file_of: Callable[[int], str | None]
    ) -> None:
        from engine.query import FIELDS
        from engine.query.fields import property_getters

        self._topics, self._field, self._file_of = topics, field, file_of
        spec = FIELDS.get(field)
        self._get = spec.unit if spec is not None else property_getters(field.removeprefix("properties."))[0]
        self._column = spec.column if spec is not None else None
        self.crc = field == "crc" or "crc" in unit_filter.fields
        self._rows_filter = unit_filter.on_blocks(topics, file_of, crc=self.crc)
        self._counts: Counter[Any] = Counter()
        self._units = self._other_units = 0

    def add(self, block: UnitColumns) -> None:
        """Count the units of a block."""
        import numpy as np

        rows = self._rows_filter.rows(block)
        if self._column is not None:
            values, unit_counts = np.unique(block[self._column][rows], return_counts=True)
            for value, unit_count in zip(values.tolist(), unit_counts.tolist(), strict=True):
                self._count(value, unit_count)
        elif self._field == "topic":
            numbers, unit_counts = np.unique(block["topic_id"][rows], return_counts=True)
            names = self._topics.names
            for number, unit_count in zip(numbers.tolist(), unit_counts.tolist(), strict=True):
                self._count(names[number] if number >= 0 else None, unit_count)
        else:
            for row in rows.tolist():
                self._add_unit(block, row)

    def _add_unit(self, block: UnitColumns, row: int) -> None:
        from engine.query.vector import unit_of

        unit = unit_of(block, row, self.crc)
        value = self._file_of(unit.offset) if self._field == "file" else self._get(unit)
        if isinstance(value, list):
            self._units += 1
            for item in value:
                self._count(item, 1, units=0)
        else:
            self._count(value, 1)

    def _count(self, value: Any, value_count: int, units: int | None = None) -> None:
        if isinstance(value, str) and len(value) > MAX_VALUE_CHARACTERS:
            value = value[:MAX_VALUE_CHARACTERS]
        if value in self._counts or len(self._counts) < MAX_VALUES:
            self._counts[value] += value_count
        else:
            self._other_units += value_count
        self._units += value_count if units is None else units

    def frequencies(self, counted_to: int, complete: bool) -> Frequencies:
        """Return the counts, most frequent first."""
        ordered = sorted(self._counts.items(), key=lambda item: (-item[1], item[0] is None, str(item[0])))
        return Frequencies(tuple(ordered), self._units, self._other_units, counted_to, complete)
