"""Entries of a consume queue as columns (docs/formats/capsule.md#queue-entries). Pure."""

from __future__ import annotations

import struct

import numpy as np

from engine.capsule.numbers import BadColumns, ColumnReader, ColumnWriter
from engine.codec.dtypes import CQ_UNIT

ENTRY_BYTES = CQ_UNIT.itemsize


def encode(data: bytes) -> bytes:
    """Return the columns of ``data``, which is a number of whole entries."""
    entries = np.frombuffer(data, CQ_UNIT)
    out = ColumnWriter()
    for name in CQ_UNIT.names or ():
        out.codes(entries[name].astype(np.int64))
    return out.result()


def decode(data: bytes, length: int) -> bytes:
    """Return the ``length`` bytes of the entries. Raises :class:`BadColumns`."""
    try:
        columns = ColumnReader(data)
        entries = np.zeros(length // ENTRY_BYTES, CQ_UNIT)
        for name in CQ_UNIT.names or ():
            entries[name] = columns.codes(len(entries))
    except (ValueError, IndexError, struct.error) as error:
        raise BadColumns from error
    return entries.tobytes()
