"""Key hashes of many units at once, as the index stores them (spec 4.2, 4.3), for comparing a log with its index
files.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.codec import properties
from engine.codec.columns import BLANK, UnitColumns, twin
from engine.codec.java import index_key_hash, utf8
from engine.codec.topic_table import TopicTable


def key_hashes(columns: UnitColumns, topics: TopicTable) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """(row, key hash) of everything that the index holds for these rows: UNIQ_KEY first, then each piece of KEYS
    (spec 4.3).

    ROLLBACK units, which RocketMQ does not index, are left to the caller: their rows are here too.
    """
    return hashes_of(columns, topics.prefixes())


def hashes_of(
    columns: UnitColumns, prefixes: npt.NDArray[np.uint32]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """:func:`key_hashes` with :meth:`TopicTable.prefixes` of the topics of these rows: another thread may go on adding
    topics meanwhile.
    """
    compiled = twin()
    rows = columns.count - int(columns.count > 0 and columns.kind[columns.count - 1] == BLANK)
    if compiled is None:
        found = [(row, h) for row in range(rows) for h in _row_hashes(columns, row)]
        pairs = np.array(found, np.int32).reshape(-1, 2)
        return pairs[:, 0].copy(), pairs[:, 1].copy()
    out_row, out_hash = np.empty(4 * rows + 64, np.int32), np.empty(4 * rows + 64, np.int32)
    row, filled = 0, 0
    while row < rows:
        row, filled = compiled.key_hashes(
            columns.buffer.ctypes.data, len(columns.buffer), row, rows, columns.topic_id, columns.properties_position,
            columns.properties_length, prefixes, out_row, out_hash, filled,
        )  # fmt: skip
        if row < rows:
            own = _row_hashes(columns, row)
            while filled + len(own) > len(out_row):
                out_row, out_hash = np.resize(out_row, 2 * len(out_row)), np.resize(out_hash, 2 * len(out_hash))
            out_row[filled : filled + len(own)], out_hash[filled : filled + len(own)] = row, own
            row, filled = row + 1, filled + len(own)
    return out_row[:filled], out_hash[:filled]


def _row_hashes(columns: UnitColumns, row: int) -> list[int]:
    topic, found = utf8(columns.raw_topic(row)), properties.decode(columns.raw_properties(row))
    unique = found.get(properties.UNIQUE_KEY)
    keys = ([unique] if unique else []) + properties.split_keys(found.get(properties.KEYS))
    return [index_key_hash(topic, key) for key in keys]
