"""Columns of a capsule's block: numbers as differences in byte planes, texts by their common parts. Pure.

A column is written as what compresses best afterwards. Everything here is exact: what is read is what was written.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Sequence
from enum import IntEnum
from itertools import islice
from typing import Final

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt8 = npt.NDArray[np.uint8]
_U32, _I64 = struct.Struct(">I"), struct.Struct(">q")
RAW, DELTA = 0, 1
_MAX_TABLE: Final = 256
_MIN_REPEATS: Final = 8
"""A number that occurs less often is not worth its place in a table."""
_UNIQUE_TAIL_BYTES: Final = 6
"""Bytes of a unique key that count: four of the time, two of the counter."""
_UNIQUE_TEXT = re.compile(rb"(?:[0-9A-F]{32}|[0-9A-F]{56})")
_NUMBER_TAIL = re.compile(rb"\d+$")
_MAX_DIGITS: Final = 18
_MAX_PACKED_TEXT_BYTES: Final = 256
_MAX_SYMBOLS: Final = 128
"""Different bytes at one place of texts of one length; more are not worth packing."""


class TextForm(IntEnum):
    """The way a column of texts is written."""

    SAME = 0
    """One text for all rows."""
    TABLE = 1
    """A table of texts, and for each row its number."""
    DECIMAL = 2
    """A common beginning, then a decimal number."""
    UNIQUE = 3
    """Unique keys of RocketMQ's clients: address, process and loader, then time and counter."""
    FIXED = 4
    """Texts of one length, their first bytes first."""
    LENGTHS = 5
    """Lengths, then all texts."""
    PACKED = 6
    """Texts of one length; places without any order take as many bits as they have different bytes."""


class BadColumns(ValueError):
    """The bytes of a block are no columns."""


class ColumnWriter:
    """Collects the columns of one block."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def result(self) -> bytes:
        return b"".join(self._pieces)

    def number(self, value: int) -> None:
        self._pieces.append(_U32.pack(value))

    def blob(self, data: bytes) -> None:
        self.number(len(data))
        self._pieces.append(data)

    def long(self, value: int) -> None:
        self._pieces.append(_I64.pack(value))

    def flags(self, values: npt.NDArray[np.bool_]) -> None:
        self._pieces.append(np.packbits(values).tobytes())

    def numbers(self, values: Int64) -> None:
        """Write numbers as they are or as differences, whichever compresses better."""
        forms = [_planes(values)]
        if len(values) > 1:
            forms.append(_planes(np.diff(values, prepend=np.int64(0))))
        costs = [len(zlib.compress(planes, 1)) if width else 0 for width, planes in forms]
        chosen = costs.index(min(costs))
        width, planes = forms[chosen]
        self._pieces += [bytes((chosen, width)), planes]

    def codes(self, values: Int64) -> None:
        """Write numbers of which few are different as a table and their numbers there, others as :meth:`numbers`."""
        table, ids = np.unique(values, return_inverse=True)
        if not 1 < len(table) <= _MAX_TABLE:
            self._pieces.append(b"\0")
            self.numbers(values)
            return
        self._pieces.append(b"\1")
        self.number(len(table))
        self.numbers(table)
        self._pieces.append(ids.astype(np.uint8).tobytes())

    def words(self, values: Int32) -> None:
        """Write numbers without any order: those that repeat as a table and their places there, of all others the bytes
        of each place, one after the other.
        """
        distinct, ids, counts = np.unique(values, return_inverse=True, return_counts=True)
        repeated = np.flatnonzero(counts >= _MIN_REPEATS)
        repeated = repeated[np.argsort(counts[repeated])[::-1][: _MAX_TABLE - 1]]
        self.number(len(repeated))
        self._pieces.append(distinct[repeated].astype(">i4").tobytes())
        codes = np.zeros(len(distinct), np.uint8)
        codes[repeated] = np.arange(1, len(repeated) + 1)
        codes = codes[ids]
        if len(repeated):
            self._pieces.append(codes.tobytes())
        rows = values[codes == 0].astype(">i4").view(np.uint8).reshape(-1, 4)
        self._pieces.append(np.ascontiguousarray(rows.T).tobytes())

    def texts(self, values: Sequence[bytes]) -> None:
        """Write texts by what they have in common."""
        distinct = dict.fromkeys(values)
        if len(distinct) == 1:
            self._pieces.append(bytes((TextForm.SAME,)))
            self.blob(values[0])
        elif len(distinct) <= min(_MAX_TABLE, max(len(values) // 4, 2)):
            self._pieces.append(bytes((TextForm.TABLE,)))
            self.number(len(distinct))
            for text in distinct:
                self.blob(text)
            ids = {text: number for number, text in enumerate(distinct)}
            self._pieces.append(np.array([ids[text] for text in values], np.uint8).tobytes())
        elif not (self._unique_keys(values) or self._decimals(values)):
            self._other_texts(values)

    def _unique_keys(self, values: Sequence[bytes]) -> bool:
        length = len(values[0])
        if any(len(value) != length or _UNIQUE_TEXT.fullmatch(value) is None for value in values):
            return False
        rows = np.frombuffer(bytes.fromhex(b"".join(values).decode()), np.uint8).reshape(len(values), -1)
        tail = rows[:, -_UNIQUE_TAIL_BYTES:]
        self._pieces.append(bytes((TextForm.UNIQUE,)))
        heads = [row.tobytes() for row in rows[:, :-_UNIQUE_TAIL_BYTES]]
        self.texts(heads)
        groups = _group_order(heads)
        for start, stop in ((0, 4), (4, 6)):
            self.numbers(_big_endian(tail[:, start:stop])[groups])
        return True

    def _decimals(self, values: Sequence[bytes]) -> bool:
        prefix = _common_prefix(values)
        prefix = _NUMBER_TAIL.sub(b"", prefix)
        digits = [value[len(prefix) :] for value in values]
        if not all(text.isdigit() and len(text) <= _MAX_DIGITS for text in digits):
            return False
        width = len(digits[0])
        if any(len(text) != width for text in digits):
            if any(text.startswith(b"0") and len(text) > 1 for text in digits):
                return False
            width = 0
        self._pieces.append(bytes((TextForm.DECIMAL, width)))
        self.blob(prefix)
        self.numbers(np.array([int(text) for text in digits], np.int64))
        return True

    def _other_texts(self, values: Sequence[bytes]) -> None:
        length = len(values[0])
        joined = b"".join(values)
        if length and all(len(value) == length for value in values):
            planes = np.ascontiguousarray(np.frombuffer(joined, np.uint8).reshape(len(values), length).T)
            symbols = [_symbols_to_pack(plane) for plane in planes] if length <= _MAX_PACKED_TEXT_BYTES else []
            if any(symbols):
                self._packed(planes, symbols)
                return
            self._pieces.append(bytes((TextForm.FIXED,)))
            self.number(length)
            self._pieces.append(planes.tobytes())
            return
        self._pieces.append(bytes((TextForm.LENGTHS,)))
        self.numbers(np.array([len(value) for value in values], np.int64))
        self.blob(joined)

    def _packed(self, planes: UInt8, symbols: Sequence[bytes]) -> None:
        self._pieces.append(bytes((TextForm.PACKED,)))
        self.number(len(planes))
        self._pieces += [bytes((len(place_symbols),)) + place_symbols for place_symbols in symbols]
        self._pieces += [plane.tobytes() for plane, packed in zip(planes, symbols, strict=True) if not packed]
        bits = []
        for plane, packed in zip(planes, symbols, strict=True):
            if packed:
                numbers = np.searchsorted(np.frombuffer(packed, np.uint8), plane).astype(np.uint8)
                bits.append(np.unpackbits(numbers[:, None], axis=1)[:, 8 - _bits_of(packed) :])
        self._pieces.append(np.packbits(np.hstack(bits)).tobytes())


class ColumnReader:
    """Reads the columns of one block in the order in which they were written. Raises :class:`BadColumns`."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, size: int) -> bytes:
        start, self._position = self._position, self._position + size
        if size < 0 or self._position > len(self._data):
            raise BadColumns
        return self._data[start : self._position]

    def number(self) -> int:
        (value,) = _U32.unpack(self.take(4))
        return int(value)

    def long(self) -> int:
        (value,) = _I64.unpack(self.take(8))
        return int(value)

    def blob(self) -> bytes:
        return self.take(self.number())

    def flags(self, count: int) -> npt.NDArray[np.bool_]:
        packed = np.frombuffer(self.take(-(-count // 8)), np.uint8)
        return np.unpackbits(packed, count=count).astype(np.bool_)

    def numbers(self, count: int) -> Int64:
        form, width = self.take(2)
        if width > 8 or form > DELTA:
            raise BadColumns
        planes = np.frombuffer(self.take(width * count), np.uint8).reshape(width, count)
        zigzag = np.zeros((count, 8), np.uint8)
        zigzag[:, :width] = planes.T
        unsigned = zigzag.view("<u8").reshape(count).astype(np.uint64)
        values = (unsigned >> np.uint64(1)).view(np.int64) ^ -(unsigned & np.uint64(1)).view(np.int64)
        return np.cumsum(values) if form == DELTA else values

    def codes(self, count: int) -> Int64:
        if not self.take(1)[0]:
            return self.numbers(count)
        table = self.numbers(self.number())
        return table[np.frombuffer(self.take(count), np.uint8)]

    def words(self, count: int) -> Int32:
        repeated = np.frombuffer(self.take(4 * self.number()), ">i4").astype(np.int32)
        codes = np.frombuffer(self.take(count), np.uint8) if len(repeated) else np.zeros(count, np.uint8)
        others = np.flatnonzero(codes == 0)
        rows = np.frombuffer(self.take(4 * len(others)), np.uint8).reshape(4, len(others))
        values = np.concatenate((np.zeros(1, np.int32), repeated))[codes]
        values[others] = np.ascontiguousarray(rows.T).view(">i4").reshape(len(others))
        return values

    def texts(self, count: int) -> list[bytes]:
        form = self.take(1)[0]
        match form:
            case TextForm.SAME:
                return [self.blob()] * count
            case TextForm.TABLE:
                table = [self.blob() for _ in range(self.number())]
                ids = self.take(count)
                if ids and max(ids) >= len(table):
                    raise BadColumns
                return [table[number] for number in ids]
            case TextForm.DECIMAL:
                width = self.take(1)[0]
                prefix = self.blob()
                return [prefix + b"%0*d" % (width, number) for number in self.numbers(count).tolist()]
            case TextForm.UNIQUE:
                return self._unique_keys(count)
            case TextForm.FIXED:
                length = self.number()
                rows = np.frombuffer(self.take(length * count), np.uint8).reshape(length, count)
                return _cut(np.ascontiguousarray(rows.T).tobytes(), [length] * count)
            case TextForm.PACKED:
                return self._packed(count)
            case TextForm.LENGTHS:
                lengths = self.numbers(count).tolist()
                return _cut(self.blob(), lengths)
            case _:
                raise BadColumns

    def _packed(self, count: int) -> list[bytes]:
        length = self.number()
        if length > _MAX_PACKED_TEXT_BYTES:
            raise BadColumns
        symbols = [self.take(self.take(1)[0]) for _ in range(length)]
        planes = np.empty((length, count), np.uint8)
        for plane, packed in zip(planes, symbols, strict=True):
            if not packed:
                plane[:] = np.frombuffer(self.take(count), np.uint8)
        row_bits = sum(map(_bits_of, symbols))
        stored = np.frombuffer(self.take(-(-count * row_bits // 8)), np.uint8)
        bits = np.unpackbits(stored, count=count * row_bits).reshape(count, row_bits)
        bit_planes = iter(np.ascontiguousarray(bits.T))
        for plane, packed in zip(planes, symbols, strict=True):
            if packed:
                numbers = np.zeros(count, np.uint8)
                for bit_plane in islice(bit_planes, _bits_of(packed)):
                    numbers = (numbers << np.uint8(1)) | bit_plane
                if count and int(numbers.max()) >= len(packed):
                    raise BadColumns
                plane[:] = np.frombuffer(packed, np.uint8)[numbers]
        return _cut(planes.T.tobytes(), [length] * count)

    def _unique_keys(self, count: int) -> list[bytes]:
        heads = self.texts(count)
        rows = np.frombuffer(b"".join(heads), np.uint8).reshape(count, -1)
        groups = _group_order(heads)
        tail = np.empty((count, _UNIQUE_TAIL_BYTES), np.uint8)
        for start, stop in ((0, 4), (4, 6)):
            values = np.empty(count, np.int64)
            values[groups] = self.numbers(count)
            tail[:, start:stop] = values.astype(">u8").view(np.uint8).reshape(count, 8)[:, start - stop :]
        text = np.hstack((rows, tail)).tobytes().hex().upper().encode()
        length = 2 * (rows.shape[1] + _UNIQUE_TAIL_BYTES)
        return [text[start : start + length] for start in range(0, len(text), length)]


def _planes(values: Int64) -> tuple[int, bytes]:
    """Return the width in bytes, and the bytes of each place of all numbers one after the other."""
    unsigned = ((values << np.int64(1)) ^ (values >> np.int64(63))).view(np.uint64)
    width = (int(unsigned.max()).bit_length() + 7) // 8 if len(values) else 0
    rows = unsigned.astype("<u8").view(np.uint8).reshape(len(values), 8)[:, :width]
    return width, np.ascontiguousarray(rows.T).tobytes()


def _symbols_to_pack(plane: UInt8) -> bytes:
    """Return the different bytes of ``plane`` in their order if a number of bits for each is shorter than what
    compression makes of them, else nothing.
    """
    symbols = np.unique(plane)
    if not 1 < len(symbols) <= _MAX_SYMBOLS:
        return b""
    packed = symbols.tobytes()
    return packed if len(zlib.compress(plane.tobytes(), 1)) * 8 >= _bits_of(packed) * len(plane) else b""


def _bits_of(symbols: bytes) -> int:
    return max(len(symbols) - 1, 0).bit_length()


def _group_order(texts: Sequence[bytes]) -> npt.NDArray[np.intp]:
    """Return the row numbers so that equal texts come one after the other in their order, and small texts first."""
    ids = {text: number for number, text in enumerate(sorted(set(texts)))}
    numbers = np.array([ids[text] for text in texts], np.min_scalar_type(len(ids)))
    return np.argsort(numbers, kind="stable")


def _big_endian(rows: UInt8) -> Int64:
    values = np.zeros(len(rows), np.int64)
    for column in range(rows.shape[1]):
        values = (values << np.int64(8)) | rows[:, column]
    return values


def _common_prefix(values: Sequence[bytes]) -> bytes:
    lowest, highest = min(values), max(values)
    length = next(
        (n for n, (byte, other_byte) in enumerate(zip(lowest, highest, strict=False)) if byte != other_byte),
        min(len(lowest), len(highest)),
    )
    return lowest[:length]


def _cut(data: bytes, lengths: Sequence[int]) -> list[bytes]:
    texts, position = [], 0
    for length in lengths:
        texts.append(data[position : position + length])
        position += length
    if position != len(data) or min(lengths, default=0) < 0:
        raise BadColumns
    return texts
