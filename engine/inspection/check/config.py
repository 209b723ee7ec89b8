"""A broker's configuration against the files of a store: lengths and paths (docs/formats/configuration.md)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from engine.config import MessageStoreConfig
from engine.inspection.index_reader import index_geometry
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.undecoded_modes import refused_by_releases
from engine.rules import catalogue
from engine.rules.findings import Finding
from engine.store_folders import ConfiguredPath, settle_folders

CQ_UNIT = 20
BATCH_CQ_UNIT = 46


class _Length(NamedTuple):
    """Length of one kind of file as the configuration has it, and the lengths that are there."""

    keys: tuple[str, ...]
    expected: int
    found: dict[int, str]  # length → a file that has it
    unit: int


def findings(store: StoreSnapshot, given: MessageStoreConfig) -> Iterator[Finding]:
    """CF05: what a broker with this configuration would not find as it expects it, or takes otherwise."""
    if store.paths is None:
        return
    for length in _lengths(store, given):
        if length.found and length.expected not in length.found:
            yield _wrong_length(length, all(key in given.given for key in length.keys), _fitting(store, length))
    yield from _out_of_bounds(given)
    refused = refused_by_releases(given.file)
    if refused is not None:
        evidence = {"expected": "combineCQUseRocksdbForLmq=true", "found": None, "keys": ["rocksdbCQDoubleWriteEnable"]}
        yield catalogue.CF05.found(refused, given.file, None, evidence, "warn")
    folders = settle_folders(store.path, given, reading=True)
    yield from (_outside_path(one, store.path) for one in folders.outside)
    yield from (_mapped_path(one) for one in folders.paths if one.is_mapped)


def _lengths(store: StoreSnapshot, given: MessageStoreConfig) -> list[_Length]:
    queues = [queue for found in store.topics().values() for queue in found.values()]
    simple = {f.size: f.path for queue in queues if queue.kind == "simple" for f in queue.files}
    batch = {f.size: f.path for queue in queues if queue.kind == "batch" for f in queue.files}
    log = {f.size: f.path for f in reversed(store.log.files)}
    index = {i.size: i.path for i in store.index_files()}
    table = 40 + 4 * given.max_hash_slot_num + 20 * given.max_index_num
    entries = _whole(given.mapped_file_size_consume_queue, CQ_UNIT)
    return [
        _Length(("mappedFileSizeCommitLog",), given.mapped_file_size_commit_log, log, 1),
        _Length(("mappedFileSizeConsumeQueue",), entries, simple, CQ_UNIT),
        _Length(
            ("mapperFileSizeBatchConsumeQueue",),
            _whole(given.mapper_file_size_batch_consume_queue, BATCH_CQ_UNIT),
            batch,
            BATCH_CQ_UNIT,
        ),
        _Length(("maxHashSlotNum", "maxIndexNum"), table, index, 1),
    ]


def _whole(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _fitting(store: StoreSnapshot, length: _Length) -> dict[str, int]:
    """The values with which a broker would make such files, as far as they can be told."""
    other, _ = max(length.found.items())
    if len(length.keys) == 1:
        return {length.keys[0]: other}
    fullest = max(store.index_files(), key=lambda reader: reader.header.entries)
    known = index_geometry(fullest.file)[0]
    return {"maxHashSlotNum": known.slots, "maxIndexNum": known.entries} if known is not None else {}


def _out_of_bounds(given: MessageStoreConfig) -> Iterator[Finding]:
    """Values that a broker reads and does not take: it goes on with the nearest that it knows."""
    for key, told, taken in given.clamped():
        if key in given.given:
            text = f"{key} is {told:,}; a broker takes {taken:,} instead, without a word"
            evidence = {"expected": taken, "found": told, "keys": [key]}
            yield catalogue.CF05.found(text, None, None, evidence, "warn", kind="bounds")


def _wrong_length(length: _Length, given: bool, fitting: dict[str, int]) -> Finding:
    """Keys that are not written down mean RocketMQ's defaults, which may be meant otherwise: a note only."""
    other, path = max(length.found.items())
    keys = ", ".join(length.keys)
    text = f"{keys} means files of {length.expected:,} bytes, the store's have {other:,}"
    if not given:
        text = f"{keys} not in the configuration: a broker would make files of {length.expected:,} bytes, not {other:,}"
    elif length.unit > 1 and length.expected * length.unit == other:
        text += f": {length.expected:,} entries of {length.unit} bytes were meant"
    if fitting:
        text += f"; {' and '.join(f'{key}={value}' for key, value in fitting.items())} fits"
    evidence = {"expected": length.expected, "found": other, "keys": list(length.keys), "fitting": fitting}
    return catalogue.CF05.found(text, path, None, evidence, "error" if given else "note")


def _outside_path(path: ConfiguredPath, root: Path) -> Finding:
    """Whoever follows it writes into another store."""
    what = f"another store than {root}" if path.is_there else f"not a part of {root}"
    text = f"{path.key} is {path.path}, which is {what}; it was not followed"
    evidence = {"expected": str(root), "found": path.path, "keys": [path.key]}
    return catalogue.CF05.found(text, None, None, evidence, kind="outside")


def _mapped_path(path: ConfiguredPath) -> Finding:
    """A copy of a store lies elsewhere by its nature: a note."""
    text = f"{path.key} is {path.path}, this store has {path.place}"
    return catalogue.CF05.found(
        text, None, None, {"expected": str(path.place), "found": path.path, "keys": [path.key]}, "note"
    )
