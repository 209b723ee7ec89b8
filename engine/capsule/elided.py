"""Bytes of a file with the bodies taken out, for units that :mod:`engine.capsule.unit_columns` does not take, such as
those in the entries of a DLedger log (docs/formats/capsule.md#without-bodies). Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.capsule.numbers import BadColumns, ColumnReader, ColumnWriter
from engine.codec.stand_in_bodies import MIN_STAND_IN_BYTES, stand_ins


class LeftOutBody(NamedTuple):
    """A body that is not stored: position in the bytes, length (at least four), CRC-32."""

    position: int
    length: int
    crc: int


def encode(data: bytes | memoryview, bodies: Sequence[LeftOutBody]) -> bytes:
    """Return ``data`` without ``bodies``, which are in the order of their positions."""
    out = ColumnWriter()
    out.number(len(bodies))
    for column in zip(*bodies, strict=True) if bodies else ([], [], []):
        out.numbers(np.array(column, np.int64))
    pieces, position = [], 0
    for body in bodies:
        pieces.append(bytes(data[position : body.position]))
        position = body.position + body.length
    out.blob(b"".join((*pieces, bytes(data[position:]))))
    return out.result()


def decode(data: bytes, length: int) -> bytes:
    """Return the ``length`` bytes with stand-ins for the bodies. Raises :class:`BadColumns`."""
    try:
        columns = ColumnReader(data)
        count = columns.number()
        if count > length:
            raise BadColumns
        places, lengths, crcs = (columns.numbers(count).tolist() for _ in range(3))
        stored = columns.blob()
    except (ValueError, struct.error) as error:
        raise BadColumns from error
    pieces, position, stored_position = [], 0, 0
    for place, body_length, crc in zip(places, lengths, crcs, strict=True):
        if place < position or not MIN_STAND_IN_BYTES <= body_length <= length - place or not 0 <= crc < 1 << 32:
            raise BadColumns
        position = place + body_length
    position = 0
    for place, body in zip(places, stand_ins(lengths, crcs), strict=True):
        step = place - position
        pieces += [stored[stored_position : stored_position + step], body]
        stored_position, position = stored_position + step, place + len(body)
    pieces.append(stored[stored_position:])
    result = b"".join(pieces)
    if len(result) != length:
        raise BadColumns
    return result
