"""Texts of the units in a block, asked where they stand: bodies and property values, without a unit being decoded.

Questions are asked of bytes. For a text without U+FFFD that is the same as asking the decoded text (malformed bytes
become U+FFFD, and no byte of a whole character is taken for part of them): equal, contained, at the beginning, at the
end. With numba the compiled twin answers (:mod:`engine.codec.compiled_texts`); without it :meth:`Texts.ask` and its
like say None, and whoever asks decodes text by text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from engine.codec import columns
from engine.codec.columns import UnitColumns
from engine.codec.machine_code import Twins
from engine.codec.machine_code_build import twins

How = Literal["equal", "contains", "startswith", "endswith"]
Rows = npt.NDArray[np.intp]
Answers = npt.NDArray[np.int8]

NULL, FALSE, TRUE = -1, 0, 1
NUMBER, NO_NUMBER, UNSURE = 0, 1, 2
ODD, PLAIN, PLAIN_WIDE = 0, 1, 2
_MOST_PAIRS = 48
_HOW: dict[str, int] = {"equal": 0, "contains": 1, "startswith": 2, "endswith": 3}
_COMMON = b' etaoinsrhldcumfpgwybvkxjqz":,{}0123456789-_.'
"""Bytes that are found everywhere, the most frequent first; what is not among them is sought first."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Where one text of each of some rows stands in ``buffer``: position (−1: the row has none) and bytes."""

    buffer: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.starts)

    def every(self) -> list[bytes | None]:
        """The bytes of each text."""
        if not (self.starts >= 0).any():
            return [None] * len(self)
        ends = self.starts + self.sizes
        low = int(self.starts[self.starts >= 0].min())
        data = self.buffer[low : int(ends.max())].tobytes()
        pairs = zip((self.starts - low).tolist(), (ends - low).tolist(), strict=True)
        return [data[at:end] if at >= 0 else None for at, end in pairs]

    def ask(self, how: How, sought: bytes, *, keys: bool = False) -> Answers | None:
        """TRUE, FALSE or NULL (no text) of each; with ``keys`` whether one of the keys in it does."""
        twin = _twin()
        if twin is None:
            return None
        answers = np.empty(len(self), np.int8)
        needle = np.frombuffer(sought or b"\0", np.uint8)
        first, second = (*rarest_first(sought), 0, 0)[:2]
        (twin.ask_keys if keys else twin.ask)(
            *_span(self.buffer),
            self.starts,
            self.sizes,
            _HOW[how],
            needle.ctypes.data,
            len(sought),
            first,
            second,
            answers,
        )
        return answers

    def numbers(self) -> tuple[npt.NDArray[np.int64], Answers] | None:
        """The whole number that each text is, and whether it is one: NUMBER, NO_NUMBER, or UNSURE."""
        twin = _twin()
        if twin is None:
            return None
        values, states = np.empty(len(self), np.int64), np.empty(len(self), np.int8)
        twin.read_numbers(_span(self.buffer)[0], self.starts, self.sizes, values, states)
        return values, states

    def compare(self, sought: bytes) -> tuple[Answers, npt.NDArray[np.bool_]] | None:
        """−1, 0 or 1 for a text before, equal to or behind ``sought``, and where that is sure: of ASCII."""
        twin = _twin()
        if twin is None:
            return None
        signs, plain = np.empty(len(self), np.int8), np.empty(len(self), np.bool_)
        needle = np.frombuffer(sought or b"\0", np.uint8)
        at, _ = _span(self.buffer)
        twin.compare(at, self.starts, self.sizes, needle.ctypes.data, len(sought), signs, plain)
        return signs, plain


def bodies(block: UnitColumns, rows: Rows) -> Texts:
    """Bodies as stored."""
    return Texts(block.buffer, block.body_position[rows], block.body_length[rows])


def property_values(block: UnitColumns, rows: Rows, name: bytes) -> Texts:
    """The value of the property ``name`` in each unit: :func:`engine.codec.properties.decode` of this one name."""
    positions, lengths = block.properties_position[rows], block.properties_length[rows]
    twin = _twin()
    if not name or b"\x01" in name or b"\x02" in name:
        return Texts(block.buffer, np.full(len(rows), -1, np.int64), np.zeros(len(rows), np.int32))
    if twin is None:
        return property_values_plain(block.buffer, positions, lengths, name)
    starts, sizes = np.empty(len(rows), np.int64), np.empty(len(rows), np.int32)
    needle = np.frombuffer(name, np.uint8)
    twin.property_values(*_span(block.buffer), positions, lengths, needle.ctypes.data, len(name), starts, sizes)
    return Texts(block.buffer, starts, sizes)


def judge_pairs(block: UnitColumns, rows: Rows) -> Answers | None:
    """PLAIN or PLAIN_WIDE (not all ASCII) for property texts that are pairs with names of their own and values,
    without quotes, backslashes or control characters in them; ODD for others. None without numba.
    """
    twin = _twin()
    if twin is None:
        return None
    kinds = np.empty(len(rows), np.int8)
    at, names = _span(block.buffer)[0], np.empty((_MOST_PAIRS, 2), np.int64)
    twin.judge_pairs(block.properties_position[rows], block.properties_length[rows], at, names, kinds)
    return kinds


def property_values_plain(
    buffer: npt.NDArray[np.uint8], positions: npt.NDArray[np.int64], lengths: npt.NDArray[np.int32], name: bytes
) -> Texts:
    """:func:`property_values` in plain Python."""
    head = name + b"\x01"
    starts, sizes = np.full(len(positions), -1, np.int64), np.zeros(len(positions), np.int32)
    for number, (position, length) in enumerate(zip(positions.tolist(), lengths.tolist(), strict=True)):
        raw = buffer[position : position + length].tobytes()
        at = len(raw)
        while at >= 0 and starts[number] < 0:
            begin = raw.rfind(b"\x02", 0, at) + 1
            if raw.startswith(head, begin, at) and at > begin + len(head):
                starts[number], sizes[number] = position + begin + len(head), at - begin - len(head)
            at = begin - 1
    return Texts(buffer, starts, sizes)


def pieces(block: UnitColumns, at: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.bytes_]:
    """``width`` bytes at each position ``at`` in the buffer; numpy shows them without the zero bytes at their ends."""
    found = np.ascontiguousarray(block.buffer[at[:, None] + np.arange(width)])
    return found.view(f"S{width}").reshape(len(at))


def searchable(text: str) -> bytes | None:
    """The bytes to seek for ``text``; None where bytes cannot tell: U+FFFD and lone surrogates."""
    if "\ufffd" in text:
        return None
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def rarest_first(sought: bytes) -> list[int]:
    """Places of the bytes of ``sought``, those that are likely to be rare first; the last ones where they are alike."""
    common = [_COMMON.find(byte) for byte in sought]
    return sorted(range(len(sought)), key=lambda i: (-1 if common[i] < 0 else -common[i] + len(_COMMON), -i))


def _span(buffer: npt.NDArray[np.uint8]) -> tuple[int, int]:
    at = buffer.ctypes.data
    return at, at + len(buffer)


def prepare() -> None:
    """Load the compiled search. The first time on a machine it is compiled, which takes two seconds."""
    _twin()


def _twin() -> Twins | None:
    if columns.twin() is None:
        return None
    return twins("compiled_texts")
