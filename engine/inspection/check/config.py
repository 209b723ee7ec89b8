"""A broker's configuration against the files of a store: lengths and paths (docs/formats/configuration.md)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from engine.config import MessageStoreConfig
from engine.files.store_folders import ConfiguredPath, settle_folders
from engine.inspection.index_reader import index_geometry, stored_count
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.undecoded import refused_by_releases
from engine.rules import catalogue
from engine.rules.findings import Finding
from engine.rules.queue_sides import refusal
from engine.sentences import plural, sentence, with_and

CQ_UNIT = 20
BATCH_CQ_UNIT = 46


class _Length(NamedTuple):
    """Configured length of one kind of file, and the lengths of the store's files (bytes)."""

    keys: tuple[str, ...]
    expected: int
    actual: dict[int, str]  # length → a file that has it
    unit: int


def findings(store: StoreSnapshot, config: MessageStoreConfig) -> Iterator[Finding]:
    """CF05: settings under which a broker would refuse the store's files, or read them differently."""
    if store.paths is None:
        return
    for length in _lengths(store, config):
        if length.actual and length.expected not in length.actual:
            yield _wrong_length(
                length, all(key in config.given for key in length.keys), _fitting_settings(store, length)
            )
    yield from _out_of_bounds(config)
    refused = refused_by_releases(config.file)
    if refused is not None:
        evidence = {"expected": "combineCQUseRocksdbForLmq=true", "found": None, "keys": ["rocksdbCQDoubleWriteEnable"]}
        yield catalogue.CF05.finding(refused, config.file, None, evidence, "warn")
    reason = refusal(config, store.release)
    if reason:
        keys = ["combineAssignOffsetCQType", "combineCQPreferCQType", "combineCQLoadingCQTypes"]
        yield catalogue.CF05.finding(reason, config.file, None, {"keys": keys}, "warn")
    folders = settle_folders(store.path, config, reading=True)
    yield from (_outside_path(path, store.path) for path in folders.outside)
    yield from (_mapped_path(path) for path in folders.paths if path.is_mapped)


def _lengths(store: StoreSnapshot, config: MessageStoreConfig) -> list[_Length]:
    queues = [queue for readers in store.queues.used_files().values() for queue in readers.values()]
    simple = {f.size: f.path for queue in queues if queue.kind == "simple" for f in queue.files}
    batch = {f.size: f.path for queue in queues if queue.kind == "batch" for f in queue.files}
    log = {f.size: f.path for f in reversed(store.log.files)}
    index = {i.size: i.path for i in store.index_files()}
    table = 40 + 4 * config.max_hash_slot_num + 20 * config.max_index_num
    entries = _round_up(config.mapped_file_size_consume_queue, CQ_UNIT)
    return [
        _Length(("mappedFileSizeCommitLog",), config.mapped_file_size_commit_log, log, 1),
        _Length(("mappedFileSizeConsumeQueue",), entries, simple, CQ_UNIT),
        _Length(
            ("mapperFileSizeBatchConsumeQueue",),
            _round_up(config.mapper_file_size_batch_consume_queue, BATCH_CQ_UNIT),
            batch,
            BATCH_CQ_UNIT,
        ),
        _Length(("maxHashSlotNum", "maxIndexNum"), table, index, 1),
    ]


def _round_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _fitting_settings(store: StoreSnapshot, length: _Length) -> dict[str, int]:
    """Return settings with which a broker would create files of these lengths; none if they cannot be inferred."""
    actual_size, _ = max(length.actual.items())
    if len(length.keys) == 1:
        return {length.keys[0]: actual_size}
    fullest = max(store.index_files(), key=lambda reader: stored_count(reader.file))
    geometry = index_geometry(fullest.file)[0]
    return {"maxHashSlotNum": geometry.slots, "maxIndexNum": geometry.entries} if geometry is not None else {}


def _out_of_bounds(config: MessageStoreConfig) -> Iterator[Finding]:
    """Yield findings on values that a broker replaces by the nearest allowed value."""
    for key, value, clamped_value in config.clamped():
        if key in config.given:
            text = sentence(
                "{key} is {n:,}; a broker takes {taken:,} instead, without any warning",
                key=key,
                n=value,
                taken=clamped_value,
            )
            evidence = {"expected": clamped_value, "found": value, "keys": [key]}
            yield catalogue.CF05.finding(text, None, None, evidence, "warn", kind="bounds")


def _wrong_length(length: _Length, is_configured: bool, fitting: dict[str, int]) -> Finding:
    """Return the finding on a wrong length; only a note for a default, which the real broker may have changed."""
    actual_size, path = max(length.actual.items())
    keys = ", ".join(length.keys)
    text = plural(
        "{keys} means files of {n:,} byte, the store's have {found:,}",
        "{keys} means files of {n:,} bytes, the store's have {found:,}",
        keys=keys,
        n=length.expected,
        found=actual_size,
    )
    if not is_configured:
        text = sentence(
            "{keys} not in the configuration: a broker would make files of {expected:,} bytes, not {found:,}",
            keys=keys,
            expected=length.expected,
            found=actual_size,
        )
    elif length.unit > 1 and length.expected * length.unit == actual_size:
        text += sentence(": {n:,} entries of {size} bytes were meant", n=length.expected, size=length.unit)
    if fitting:
        named = with_and(f"{key}={value}" for key, value in fitting.items())
        text += "; " + sentence("{fitting} fits", fitting=named)
    evidence = {"expected": length.expected, "found": actual_size, "keys": list(length.keys), "fitting": fitting}
    return catalogue.CF05.finding(text, path, None, evidence, "error" if is_configured else "note")


def _outside_path(path: ConfiguredPath, root: Path) -> Finding:
    """Return the finding on a path to another store: a broker with this setting would write there."""
    text = sentence(
        "{key} is {path}, which is another store than {root}; it was not followed"
        if path.is_there
        else "{key} is {path}, which is not a part of {root}; it was not followed",
        key=path.key,
        path=path.path,
        root=root,
    )
    evidence = {"expected": str(root), "found": path.path, "keys": [path.key]}
    return catalogue.CF05.finding(text, None, None, evidence, kind="outside")


def _mapped_path(path: ConfiguredPath) -> Finding:
    """Return the note on a path that differs only because the store is a copy."""
    text = sentence(
        "{key} is {configured}, this store has {place}", key=path.key, configured=path.path, place=path.place
    )
    return catalogue.CF05.finding(
        text, None, None, {"expected": str(path.place), "found": path.path, "keys": [path.key]}, "note"
    )
