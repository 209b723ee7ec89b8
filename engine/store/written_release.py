"""Guess the RocketMQ release that wrote a store last, from traces that only some releases leave.

The guess always comes with its evidence. Each kind of evidence says "this release or a later one"; a store that an
older release continued after an upgrade still has the marks of the newer one, unless its newest units say
otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

from engine.codec import checkpoint as codec
from engine.errors import CannotRead, CorruptUnit
from engine.files.layout import LAB_MARKER, StorePaths
from engine.releases import NAMES, Release, parse, rules_of
from engine.sentences import sentence

_NAMES_OF_5 = ("timerwheel", "timerlog", "compaction", "batchconsumequeue", "abort.bak")
_TABLES_OF_5 = ("topicQueueMapping.json", "consumerOrderInfo.json", "timercheck", "timermetrics")
_ORDER_TABLE, _ORDER_LEVEL = "consumerOrderInfo.json", b"orderedConsumptionLevel"
_ROCKSDB, _OPTIONS = "rocksdbstore", "OPTIONS-"
_SEPARATE_QUEUES = "consumequeue_rocksdb"
_ROCKSDB_VERSION = re.compile(rb"^\s*rocksdb_version=(\d+)\.(\d+)\.(\d+)", re.MULTILINE)
_ROCKSDB_OF_5_5_1 = (8, 4, 4)
"""The version that 5.5.1 links; 5.4.0 and 5.5.0 link 8.4.0."""


class WrittenRelease(NamedTuple):
    """A release, and the evidence for it as a clause."""

    release: Release
    evidence: str


class StoreFiles(Protocol):
    """The files of a store that the guess reads."""

    def exists(self, path: Path) -> bool: ...

    def read(self, path: Path) -> bytes | None:
        """Return the bytes of a small file, None if it is absent."""

    def names(self, folder: Path) -> Iterable[str]: ...


class TagEntries(NamedTuple):
    """A sample of the newest indexed units with tags, and the number of them whose tags have an index entry."""

    units: int
    with_entry: int


def guess(
    paths: StorePaths, reading: StoreFiles, tag_entries: Callable[[], TagEntries | None] = lambda: None
) -> WrittenRelease | None:
    """Return the release that seems to have written the store last; None if nothing shows it.

    ``tag_entries`` is called only if the files cannot tell a release from an older one that continued its store.
    """
    try:
        raw = reading.read(paths.checkpoint)
        checkpoint = codec.decode(raw) if raw is not None else None
    except CorruptUnit:
        checkpoint = None
    if checkpoint is not None and checkpoint.impossible:
        checkpoint = None  # whatever overwrote it shows no release
    newer = _since_5_4(paths, reading, checkpoint)
    made_for = _lab_release(paths, reading)
    if made_for is not None and rules_of(made_for.release).writes_tag_entries and not _is_later(newer, made_for):
        newer = made_for
    entries = tag_entries()
    if newer is None and entries is not None and entries.with_entry:
        newer = WrittenRelease("5.4", sentence("its index has entries of tags"))
    if newer is not None:
        if entries is not None and entries.units and not entries.with_entry:
            return WrittenRelease(
                "5.3",
                sentence(
                    "{evidence}, but its newest units have no index entry of their tags: an older release continued it",
                    evidence=newer.evidence,
                ),
            )
        return newer
    named = next((name for name in _NAMES_OF_5 if reading.exists(paths.root / name)), None)
    named = named or next((f"config/{name}" for name in _TABLES_OF_5 if reading.exists(paths.config / name)), None)
    if named is not None:
        return WrittenRelease("5.3", sentence("it has {name}", name=named))
    if checkpoint is None:
        return made_for
    if checkpoint.confirm_phy_offset or checkpoint.master_flushed_offset:
        return WrittenRelease("5.3", sentence("its checkpoint has a confirm offset"))
    return WrittenRelease("4.9", sentence("it has no timerwheel and no confirm offset"))


def _is_later(written: WrittenRelease | None, than: WrittenRelease) -> bool:
    return written is not None and NAMES.index(written.release) > NAMES.index(than.release)


def _lab_release(paths: StorePaths, reading: StoreFiles) -> WrittenRelease | None:
    """Return the release for which the lab made the store: its marker names it before the first message is written."""
    try:
        raw = reading.read(paths.root.parent / LAB_MARKER) if paths.root.name == "store" else None
        marker = json.loads(raw) if raw is not None else None
        if not isinstance(marker, dict) or marker.get("lab") != 1:
            return None
        release = parse(str(marker.get("like", "")))
    except (OSError, ValueError, CannotRead):  # a file beside the store: without it the store's own files decide
        return None
    return WrittenRelease(release, sentence("the lab made it for {release}", release=rules_of(release).title))


def _since_5_4(paths: StorePaths, reading: StoreFiles, checkpoint: codec.Checkpoint | None) -> WrittenRelease | None:
    """Return which release of 5.4 or later the files show."""
    if checkpoint is not None and checkpoint.logics_physical_offset:
        return WrittenRelease("5.5", sentence("its checkpoint has a logicsPhysicalOffset"))
    folder = paths.root / _ROCKSDB
    if reading.exists(folder):
        version = _rocksdb_version(folder, reading)
        if version is not None and version >= _ROCKSDB_OF_5_5_1:
            return WrittenRelease(
                "5.5",
                sentence(
                    "its {folder} is of RocksDB {version}, which came with 5.5.1",
                    folder=_ROCKSDB,
                    version=".".join(map(str, version)),
                ),
            )
        evidence = sentence("it has {name}", name=_ROCKSDB)
    else:
        orders = reading.read(paths.config / _ORDER_TABLE)
        if orders is None or _ORDER_LEVEL not in orders:
            return None
        evidence = sentence("{file} names an orderedConsumptionLevel", file=f"config/{_ORDER_TABLE}")
    if checkpoint is not None and checkpoint.logics_msg_timestamp:
        return WrittenRelease(
            "5.4", sentence("{evidence}, and its checkpoint no logicsPhysicalOffset", evidence=evidence)
        )
    if reading.exists(paths.root / _SEPARATE_QUEUES):
        return WrittenRelease("5.5", sentence("it has {name}", name=_SEPARATE_QUEUES))
    if reading.exists(paths.consumequeue / "CURRENT"):  # such a store never has the queues' time in its checkpoint
        return WrittenRelease("5.4", sentence("{evidence} of an older RocksDB than that of 5.5.1", evidence=evidence))
    if checkpoint is not None and checkpoint.physic_msg_timestamp:
        return WrittenRelease(
            "5.5",
            sentence(
                "{evidence}, and its checkpoint no logicsMsgTimestamp, as after a short run of 5.5", evidence=evidence
            ),
        )
    return WrittenRelease("5.5", evidence)


def _rocksdb_version(folder: Path, reading: StoreFiles) -> tuple[int, ...] | None:
    """Return the newest RocksDB version in the OPTIONS files, or None."""
    versions = []
    for name in reading.names(folder):
        if name.startswith(_OPTIONS):
            version_match = _ROCKSDB_VERSION.search(reading.read(folder / name) or b"")
            if version_match is not None:
                versions.append(tuple(int(number) for number in version_match.groups()))
    return max(versions, default=None)
