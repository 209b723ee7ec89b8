"""Search texts of the units in a block where they lie: bodies and property values, without decoding a unit.

The search compares bytes. For a text without U+FFFD that gives the same result as comparing decoded text
(malformed bytes become U+FFFD, and no byte of a complete character is taken for part of another): equal,
contained, at the beginning, at the end. With numba the compiled twin searches
(:mod:`engine.codec.compiled_texts`). Without it :meth:`Texts.match` and its siblings return None, and the caller
decodes text by text.
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

MatchKind = Literal["equal", "contains", "startswith", "endswith"]
Rows = npt.NDArray[np.intp]
Answers = npt.NDArray[np.int8]

NULL, FALSE, TRUE = -1, 0, 1
NUMBER, NO_NUMBER, UNSURE = 0, 1, 2
ODD, PLAIN, PLAIN_WIDE = 0, 1, 2
ZERO_RUN_BYTES = 16
"""Zero bytes in a row that no client writes into properties: they are damage."""
MAX_PLAIN_ROWS = 2000
"""Rows whose texts are searched for zeros in plain Python: loading the machine code takes longer."""
_MAX_PAIRS = 48
_MATCH_KINDS: dict[str, int] = {"equal": 0, "contains": 1, "startswith": 2, "endswith": 3}
_COMMON = b' etaoinsrhldcumfpgwybvkxjqz":,{}0123456789-_.'
"""Frequent bytes, the most frequent first. A search compares the other bytes first."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts, one for each of some rows: its position in ``buffer`` (−1: the row has none) and its length in bytes."""

    buffer: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.starts)

    def to_list(self) -> list[bytes | None]:
        """Return the bytes of each text, None if the row has none."""
        if not (self.starts >= 0).any():
            return [None] * len(self)
        ends = self.starts + self.sizes
        start = int(self.starts[self.starts >= 0].min())
        data = self.buffer[start : int(ends.max())].tobytes()
        pairs = zip((self.starts - start).tolist(), (ends - start).tolist(), strict=True)
        return [data[begin:end] if begin >= 0 else None for begin, end in pairs]

    def match(self, match_kind: MatchKind, sought: bytes, *, keys: bool = False) -> Answers | None:
        """Compare each text with ``sought``: TRUE, FALSE or NULL (no text). With ``keys`` TRUE means that one of the
        keys in the text matches.
        """
        twin = _twin()
        if twin is None:
            return None
        answers = np.empty(len(self), np.int8)
        needle = np.frombuffer(sought or b"\0", np.uint8)
        rarest, second_rarest = (*rarest_first(sought), 0, 0)[:2]
        (twin.ask_keys if keys else twin.ask)(
            *_span(self.buffer),
            self.starts,
            self.sizes,
            _MATCH_KINDS[match_kind],
            needle.ctypes.data,
            len(sought),
            rarest,
            second_rarest,
            answers,
        )
        return answers

    def parse_numbers(self) -> tuple[npt.NDArray[np.int64], Answers] | None:
        """Return the whole number that each text is, and a state for each: NUMBER, NO_NUMBER or UNSURE."""
        twin = _twin()
        if twin is None:
            return None
        values, states = np.empty(len(self), np.int64), np.empty(len(self), np.int8)
        twin.read_numbers(_span(self.buffer)[0], self.starts, self.sizes, values, states)
        return values, states

    def compare(self, sought: bytes) -> tuple[Answers, npt.NDArray[np.bool_]] | None:
        """Return −1, 0 or 1 for a text before, equal to or behind ``sought``, and a mask of the texts for which that
        is certain (ASCII only).
        """
        twin = _twin()
        if twin is None:
            return None
        signs, plain = np.empty(len(self), np.int8), np.empty(len(self), np.bool_)
        needle = np.frombuffer(sought or b"\0", np.uint8)
        address, _ = _span(self.buffer)
        twin.compare(address, self.starts, self.sizes, needle.ctypes.data, len(sought), signs, plain)
        return signs, plain


def bodies(block: UnitColumns, rows: Rows) -> Texts:
    """Return the bodies as stored."""
    return Texts(block.buffer, block.body_position[rows], block.body_length[rows])


def property_values(block: UnitColumns, rows: Rows, name: bytes) -> Texts:
    """Return the value of the property ``name`` in each unit, as :func:`engine.codec.properties.decode` would give
    it.
    """
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


def rows_with_zero_run(block: UnitColumns, rows: int) -> Rows:
    """Return those of the first ``rows`` units whose property text has :data:`ZERO_RUN_BYTES` zero bytes in a row."""
    positions, lengths = block.properties_position[:rows], block.properties_length[:rows]
    twin = _twin() if rows > MAX_PLAIN_ROWS else None
    if twin is None:
        return _rows_with_zero_run_plain(block.buffer, positions, lengths)
    numbers = np.empty(rows, np.int32)
    count = twin.zero_runs(positions, lengths, _span(block.buffer)[0], ZERO_RUN_BYTES, numbers)
    return numbers[:count].astype(np.intp)


def _rows_with_zero_run_plain(
    buffer: npt.NDArray[np.uint8], positions: npt.NDArray[np.int64], lengths: npt.NDArray[np.int32]
) -> Rows:
    zeros = bytes(ZERO_RUN_BYTES)
    data = memoryview(buffer)  # type: ignore[arg-type]
    pairs = zip(positions.tolist(), lengths.tolist(), strict=True)
    return np.array(
        [row for row, (start, size) in enumerate(pairs) if zeros in bytes(data[start : start + size])], np.intp
    )


def judge_pairs(block: UnitColumns, rows: Rows) -> Answers | None:
    """Classify property texts for JSON: PLAIN if all names differ, every name has a value, and there are no quotes,
    backslashes or control characters; PLAIN_WIDE if it is also not all ASCII; otherwise ODD. None without numba.
    """
    twin = _twin()
    if twin is None:
        return None
    kinds = np.empty(len(rows), np.int8)
    address, names = _span(block.buffer)[0], np.empty((_MAX_PAIRS, 2), np.int64)
    twin.judge_pairs(block.properties_position[rows], block.properties_length[rows], address, names, kinds)
    return kinds


def property_values_plain(
    buffer: npt.NDArray[np.uint8], positions: npt.NDArray[np.int64], lengths: npt.NDArray[np.int32], name: bytes
) -> Texts:
    """:func:`property_values` in plain Python."""
    head = name + b"\x01"
    starts, sizes = np.full(len(positions), -1, np.int64), np.zeros(len(positions), np.int32)
    for number, (position, length) in enumerate(zip(positions.tolist(), lengths.tolist(), strict=True)):
        raw = buffer[position : position + length].tobytes()
        pair_end = len(raw)
        while pair_end >= 0 and starts[number] < 0:
            begin = raw.rfind(b"\x02", 0, pair_end) + 1
            if raw.startswith(head, begin, pair_end) and pair_end > begin + len(head):
                starts[number], sizes[number] = position + begin + len(head), pair_end - begin - len(head)
            pair_end = begin - 1
    return Texts(buffer, starts, sizes)


def fixed_width_bytes(block: UnitColumns, positions: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.bytes_]:
    """Return ``width`` bytes from each of ``positions`` in the buffer. Numpy does not show zero bytes at their ends."""
    matrix = np.ascontiguousarray(block.buffer[positions[:, None] + np.arange(width)])
    return matrix.view(f"S{width}").reshape(len(positions))


def searchable(text: str) -> bytes | None:
    """Return the bytes to search for ``text``, or None if bytes cannot decide (U+FFFD and lone surrogates)."""
    if "\ufffd" in text:
        return None
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def rarest_first(sought: bytes) -> list[int]:
    """Return the positions of the bytes of ``sought``, probably rare bytes first; equally rare ones from the end."""
    common = [_COMMON.find(byte) for byte in sought]
    return sorted(range(len(sought)), key=lambda i: (-1 if common[i] < 0 else -common[i] + len(_COMMON), -i))


def _span(buffer: npt.NDArray[np.uint8]) -> tuple[int, int]:
    address = buffer.ctypes.data
    return address, address + len(buffer)


def prepare() -> None:
    """Load the compiled search. The first time on a machine it is compiled, which takes two seconds."""
    _twin()


def _twin() -> Twins | None:
    if columns.twin() is None:
        return None
    return twins("compiled_texts")
