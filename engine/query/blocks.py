"""A filter on the blocks of a scan: the one door through which a log is filtered in bulk.

Columns and bytes decide what they can (:mod:`engine.query.vector`), the plain test of the unit the rest, so the rows
are those that the plain test takes, in whatever way they were found.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from engine.codec.columns import UNIT, UnitColumns
from engine.codec.message import Unit, decode
from engine.codec.topic_table import TopicTable
from engine.query.evaluate import FileOf, closure
from engine.query.tree import Node
from engine.query.vector import verdicts

Rows = npt.NDArray[np.intp]


class BlockFilter:
    """A filter's tree on blocks that are scanned with these ``topics`` and their tags, and with their CRCs where it
    asks for them. Units are decoded with ``crc`` or without.

    ``file_of`` names the commit log file of an offset: without it a unit's ``file`` is null.
    """

    def __init__(self, tree: Node, topics: TopicTable, file_of: FileOf | None = None, *, crc: bool = True) -> None:
        self._tree = tree
        self._topics = topics
        self._file_of = file_of
        self._crc = crc
        self._test = closure(tree, "unit", file_of)

    def rows(self, block: UnitColumns, among: Rows | None = None) -> Rows:
        """The rows of the units that the filter takes, of those ``among``."""
        asked = np.flatnonzero(block["kind"] == UNIT) if among is None else among[block.kind[among] == UNIT]
        found = verdicts(self._tree, block, self._topics, self._file_of, asked)
        keep = found > 0
        for number in np.flatnonzero(found == 0).tolist():
            keep[number] = self._test(unit_of(block, int(asked[number]), self._crc))
        return asked[keep]

    def units(self, block: UnitColumns) -> Iterator[Unit]:
        """The units that the filter takes."""
        for row in self.rows(block).tolist():
            yield unit_of(block, row, self._crc)


def unit_of(block: UnitColumns, row: int, crc: bool = True) -> Unit:
    """The unit at a row, which the scan has proven."""
    offset, size = int(block.offset[row]), int(block.size[row])
    at = offset - block.base
    return decode(block.buffer[at : at + size].tobytes(), 0, offset, crc)
