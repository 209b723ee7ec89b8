"""The unique keys of a block of units, as numbers: who made them, and when (docs/formats/commit-log.md#message-ids)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.codec import block_texts, properties
from engine.codec.columns import UnitColumns

_ADDRESS_BYTES = (4, 16)
_BYTES_BEHIND_ADDRESS = 12  # process, class loader, time, counter
_HEX = np.full(256, 255, np.uint8)
_HEX[np.frombuffer(b"0123456789ABCDEF", np.uint8)] = np.arange(16)
_HEX[np.frombuffer(b"abcdef", np.uint8)] = np.arange(10, 16)
_MIX_1, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)

Numbers = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]


class UniqueKeys(NamedTuple):
    """Hashes of keys and of the processes that made them, 0 where there is none; the time in each key (ms since the
    client's month began) and its number among the keys of its process (modulo 65,536), −1 where there is none.
    """

    keys: Numbers
    clients: Numbers
    times: Ints
    counters: Ints


def unique_keys(block: UnitColumns, rows: npt.NDArray[np.intp]) -> UniqueKeys:
    """Return the unique keys of the units in ``rows``."""
    keys, clients = np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.uint64)
    times, counters = np.full(len(rows), -1, np.int64), np.full(len(rows), -1, np.int64)
    if not len(rows):
        return UniqueKeys(keys, clients, times, counters)
    texts = block_texts.property_values(block, rows, properties.UNIQUE_KEY.encode())
    owners = np.flatnonzero(texts.starts >= 0)
    values = texts.starts[owners]
    ends = values + texts.sizes[owners]
    is_other = np.ones(len(values), np.bool_)
    for address_bytes in _ADDRESS_BYTES:
        raw, fits = _decoded(block.buffer, values, ends, address_bytes + _BYTES_BEHIND_ADDRESS)
        is_other &= ~fits
        if not len(raw):
            continue
        owner = owners[fits]
        words = np.ascontiguousarray(np.pad(raw, ((0, 0), (0, -raw.shape[1] % 8)))).view(">u8").astype(np.uint64)
        keys[owner] = _mixed(words)
        tail = np.ascontiguousarray(raw[:, -8:]).view(">u8")[:, 0].astype(np.uint64)  # class loader, time, counter
        times[owner] = (tail >> np.uint64(16) & np.uint64(0xFFFFFFFF)).astype(np.int64)
        counters[owner] = (tail & np.uint64(0xFFFF)).astype(np.int64)
        process = np.ascontiguousarray(np.pad(raw[:, :-6], ((0, 0), (0, -(raw.shape[1] - 6) % 8))))
        clients[owner] = _mixed(process.view(">u8").astype(np.uint64))
    for i in np.flatnonzero(is_other).tolist():
        value = block.buffer[int(values[i]) : int(ends[i])].tobytes()
        keys[owners[i]] = np.uint64(hash(value) & (1 << 64) - 1 | 1)
    return UniqueKeys(keys, clients, times, counters)


def _decoded(
    buffer: npt.NDArray[np.uint8], values: Ints, ends: Ints, size: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Return the bytes of the keys that are exactly ``size`` bytes in hex, and which ones those are."""
    fits = values + 2 * size == ends
    chosen = np.flatnonzero(fits)
    digits = _HEX[buffer[values[chosen][:, None] + np.arange(2 * size)]]
    is_hex = (digits < 16).all(1)
    fits[chosen[~is_hex]] = False
    digits = digits[is_hex]
    return digits[:, 0::2] << 4 | digits[:, 1::2], fits


def _mixed(words: Numbers) -> Numbers:
    """Return one number other than 0 for each row of ``words``."""
    total = np.zeros(len(words), np.uint64)
    for column in words.T:
        total = (total ^ column) * _MIX_1
        total ^= total >> np.uint64(29)
    return total * _MIX_2 | np.uint64(1)
