"""Index files built from the keys of a log's parts, each file by one task (spec 4.2, 4.5).

All files of a store are one sequence: which keys a file takes follows from how many come before, and its header begins
with the end of the file in front of it. Both are known from the counts of keys, so files need not wait for each other.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from engine.codec.index import HEADER_SIZE, Geometry, IndexHeader, encode_header, following
from engine.codec.index_builder import put_entries
from engine.layout import index_file_name
from engine.pipeline.rebuild_parts import KEY, path_of

KEYS = 1 << 18
"""Keys that are in memory together."""


class Counted(Protocol):
    """What has to be known of a part: its units, its keys, whether units stand behind the one with the last key."""

    units: int
    keys: int
    later_units: bool


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """One index file: the keys ``first`` to ``stop`` of the store, counted from its first."""

    name: str
    first: int
    stop: int


def plan_index(parts: Sequence[Counted], geometry: Geometry, now: int) -> list[IndexPlan]:
    """The files that a dispatch of these parts makes, named from ``now`` (ms) on.

    A file is made for the first unit, and whenever a key, or a unit behind the last key, finds the last one full.
    """
    keys = sum(part.keys for part in parts)
    if not any(part.units for part in parts):
        return []
    each = max(geometry.entries - 1, 1)
    files = max(-(-keys // each), 1)
    if keys and keys % each == 0 and _units_behind_the_last_key(parts):
        files += 1
    plans: list[IndexPlan] = []
    for number in range(files):
        name = index_file_name(now, plans[-1].name if plans else "")
        plans.append(IndexPlan(name, min(number * each, keys), min((number + 1) * each, keys)))
    return plans


def _units_behind_the_last_key(parts: Sequence[Counted]) -> bool:
    for part in reversed(parts):
        if part.keys:
            return part.later_units
        if part.units:
            return True
    return False


def build_index(plan: IndexPlan, geometry: Geometry, path: Path, folder: Path, counts: Sequence[int]) -> IndexHeader:
    """Write the file at ``path`` out of the keys of the parts in ``folder``, of which there are ``counts``; it is on
    the disk afterwards. Gives its header. Raises ``OSError``.
    """
    header = IndexHeader(0, 0, 0, 0, 0, 1)
    if plan.first:
        last = next(_keys(folder, counts, plan.first - 1, plan.first))
        stored, offset = int(last["store_timestamp"][0]), int(last["phy_offset"][0])
        header = following(IndexHeader(0, stored, 0, offset, 0, 1))
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.ftruncate(descriptor, geometry.file_size)
        stop = geometry.entry_position(1 + plan.stop - plan.first)
        os.posix_fallocate(descriptor, 0, min(stop, geometry.file_size))  # a full disk is an error here, no fault below
        with mmap.mmap(descriptor, geometry.file_size) as mapped:
            header = _fill(
                np.frombuffer(mapped, np.uint8), header, geometry, _keys(folder, counts, plan.first, plan.stop)
            )
            mapped[:HEADER_SIZE] = encode_header(header)
            mapped.flush()
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return header


def _fill(
    raw: npt.NDArray[np.uint8], header: IndexHeader, geometry: Geometry, pieces: Iterator[npt.NDArray[np.void]]
) -> IndexHeader:
    for keys in pieces:
        columns = [np.ascontiguousarray(keys[name]) for name in ("key_hash", "phy_offset", "store_timestamp")]
        header = put_entries(raw, header, geometry, *columns)
    return header


def _keys(folder: Path, counts: Sequence[int], first: int, stop: int) -> Iterator[npt.NDArray[np.void]]:
    """The keys ``first`` to ``stop`` of the store, in pieces."""
    before = 0
    for number, count in enumerate(counts):
        low, high = max(first - before, 0), min(stop - before, count)
        before += count
        if low >= high:
            continue
        with path_of(folder, number, "keys").open("rb", buffering=0) as file:
            for at in range(low, high, KEYS):
                size = min(KEYS, high - at) * KEY.itemsize
                yield np.frombuffer(os.pread(file.fileno(), size, at * KEY.itemsize), KEY)
