"""Write the entries of index files again from the log: of a file that was overwritten in part, that was cut, or that is
empty (docs/formats/repair.md#index).

RocketMQ appends the keys of the messages in the order of the log, and begins a new file when one is full. So what a
file holds follows from the log and from the files beside it::

    previous file: … keys up to the message at 4,711 │ this file: entries − 1 keys │ next file: from 9,432 on …

A file is written again only if the log gives exactly as many keys as it holds, and most of what is left in it agrees.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from engine.codec.columns import BLANK, UnitColumns
from engine.codec.dtypes import INDEX_ENTRY
from engine.codec.index import HEADER_SIZE, Geometry, IndexHeader, encode_header, next_header
from engine.codec.index_builder import IndexKeys, build_keys, put_entries
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage
from engine.errors import CorruptUnit
from engine.inspection.block_scan import scan_log
from engine.inspection.index_reader import IndexReader
from engine.inspection.snapshot import StoreSnapshot
from engine.patching.patches import Patch, RemoveFile, ResizeFile
from engine.repair.index_ends import without_last_entries
from engine.repair.queue_entries import differences
from engine.repair.repair import Repair, sample_of
from engine.rules import mendable
from engine.rules.findings import Finding, at_least
from engine.sentences import plural, sentence

NAME = "index-entries"
MAX_FILE_BYTES = 1 << 30
MAX_NEW_BYTES = 64 << 20
"""Maximum number of bytes that are written again in one file: patches hold them in memory."""
_LENGTHS = frozenset({"IX08", "IX10"})


@dataclass(frozen=True, slots=True)
class _Neighbour:
    """The entry of the file beside a damaged one that is next to it: where its message is, and how many entries of that
    file belong to this message.
    """

    offset: int
    keys: int
    header: IndexHeader


def repair_index_entries(store: StoreSnapshot, findings: Collection[Finding]) -> Repair | None:
    """Return the repair of the index files whose entries ``findings`` doubt; None if there is none.

    Raises :class:`engine.errors.CannotRead` if the log or a file cannot be read.
    """
    reported = {
        finding.file
        for finding in findings
        if finding.id in mendable.INDEX_ENTRIES and at_least(finding.severity, "warn")
    }
    geometry = store.geometry.index
    if store.kind != "store" or geometry is None or not reported:
        return None
    readers = [reader for reader in store.index_files() if Path(reader.path).is_relative_to(store.path)]
    has_lost_end = any(finding.id in mendable.LOST_END or finding.id == "IX07" for finding in findings)
    lost_files: list[IndexReader] = []
    if has_lost_end:
        readers, lost_files = _without_lost_end(store, readers)
    if any(_is_foreign(finding, readers, lost_files) for finding in findings):
        return None
    if has_lost_end and readers:
        reported.add(readers[-1].path)
    if any(finding.id in _LENGTHS for finding in findings):  # one of them may stand for several files
        reported |= {reader.path for reader in readers if reader.size != geometry.file_size}
    changed_units = [finding.offset for finding in findings if finding.id == "CL04" and finding.offset is not None]
    patches: list[Patch] = [_removal(store, reader) for reader in lost_files]
    mended_files = len(patches)
    for number, reader in enumerate(readers):
        previous_file = readers[number - 1] if number else None
        next_file = readers[number + 1] if number + 1 < len(readers) else None
        neighbour_paths = {file.path for file in (previous_file, next_file) if file is not None}
        if reader.path not in reported or neighbour_paths & reported or geometry.file_size > MAX_FILE_BYTES:
            continue
        if not _remembers(reader, changed_units):
            file_patches = _patches(store, geometry, reader, previous_file, next_file)
        elif has_lost_end and next_file is None and reader.size == geometry.file_size:
            file_patches = _end_patches(store, geometry, reader)
        else:
            continue
        patches += file_patches
        mended_files += bool(file_patches)
    if not patches:
        return None
    gains = plural(
        "{n:,} index file has its entries again: queries by key find its messages",
        "{n:,} index files have their entries again: queries by key find their messages",
        n=mended_files,
    )
    if has_lost_end:
        gains = plural(
            "{n:,} index file is changed: queries by key find messages that the log has, and no others",
            "{n:,} index files are changed: queries by key find messages that the log has, and no others",
            n=mended_files,
        )
    title = sentence("Write the entries of index files again from the commit log")
    return Repair(NAME, mendable.INDEX_ENTRIES, title, tuple(patches), gains)


def _without_lost_end(
    store: StoreSnapshot, readers: Sequence[IndexReader]
) -> tuple[list[IndexReader], list[IndexReader]]:
    """Return the files with keys of messages that the log has, and those behind them: all of whose entries lead behind
    the end of the log.
    """
    count = len(readers)
    while count and _is_behind(readers[count - 1], store.log.max_offset):
        count -= 1
    return list(readers[:count]), list(readers[count:])


def _is_behind(reader: IndexReader, log_end: int) -> bool:
    first_entry, geometry = reader.entry(1), reader.geometry
    if first_entry is None or geometry is None or first_entry.phy_offset < log_end or reader.size > MAX_FILE_BYTES:
        return False
    entries = np.frombuffer(
        reader.file.read(0, reader.size), INDEX_ENTRY, reader.last_entry, geometry.entry_position(1)
    )
    return int(entries["phy_offset"].min()) >= log_end


def _removal(store: StoreSnapshot, reader: IndexReader) -> RemoveFile:
    size, sample = sample_of(store, Path(reader.path))
    why = sentence("all entries of {file} lead behind the end of the log", file=reader.name)
    name = Path(reader.path).relative_to(store.path).as_posix()
    return RemoveFile(file=name, size=size, sample=sample, why=why, name=NAME)


def _is_foreign(finding: Finding, readers: Sequence[IndexReader], lost_files: Sequence[IndexReader]) -> bool:
    """Return True if the index may be of another store or log: then the log does not tell its entries. Entries behind
    the end of the log stand in the last files only, if the log lost its end.
    """
    last_files = {reader.path for reader in (*readers[-1:], *lost_files)}
    return finding.id == "IX11" or (finding.id == "IX07" and finding.file not in last_files)


def _remembers(reader: IndexReader, changed_units: Sequence[int]) -> bool:
    """Return True if the file may have keys that messages lost with their properties: the log does not have them."""
    try:
        header = reader.header
    except CorruptUnit:
        return False
    return any(header.begin_phy_offset <= offset <= header.end_phy_offset for offset in changed_units)


def _end_patches(store: StoreSnapshot, geometry: Geometry, reader: IndexReader) -> list[Patch]:
    """Return the patches without the entries behind the end of the log; the others stay as they are."""
    old_bytes = reader.file.read(0, reader.size)
    new_bytes = without_last_entries(old_bytes, reader.header, geometry, store.log)
    if new_bytes is None:
        return []
    why = sentence("entries of {file} that lead behind the end of the log", file=reader.name)
    return list(differences(Path(reader.path).relative_to(store.path).as_posix(), old_bytes, new_bytes, why, NAME))


def _patches(
    store: StoreSnapshot,
    geometry: Geometry,
    reader: IndexReader,
    previous_file: IndexReader | None,
    next_file: IndexReader | None,
) -> list[Patch]:
    try:
        preceding, following = _end_of(previous_file), _begin_of(next_file)
    except CorruptUnit:
        return []
    if (previous_file is not None and preceding is None) or (next_file is not None and following is None):
        return []
    old_bytes = reader.file.read(0, min(reader.size, geometry.file_size)).ljust(geometry.file_size, b"\0")
    for has_tags in (False, True):
        keys = _keys_between(store, preceding, following, has_tags=has_tags)
        if keys is None or not 0 < len(keys.key_hash) < geometry.entries:
            continue
        if next_file is not None and len(keys.key_hash) != geometry.entries - 1:
            continue
        if not _agrees(old_bytes, geometry, keys, store.log.max_offset, is_counted=next_file is not None):
            continue
        new_bytes = np.zeros(geometry.file_size, np.uint8)
        header = next_header(preceding.header) if preceding is not None else IndexHeader(0, 0, 0, 0, 0, 1)
        header = put_entries(new_bytes, header, geometry, keys.key_hash, keys.phy_offset, keys.store_timestamp)
        new_bytes[:HEADER_SIZE] = np.frombuffer(encode_header(header), np.uint8)
        return list(_changes(store, reader, old_bytes, new_bytes.tobytes()))
    return []


def _changes(store: StoreSnapshot, reader: IndexReader, old_bytes: bytes, new_bytes: bytes) -> Iterator[Patch]:
    name = Path(reader.path).relative_to(store.path).as_posix()
    why = sentence("entries of {file} as the messages of the log say them", file=reader.name)
    changes = list(differences(name, old_bytes, new_bytes, why, NAME))
    if sum(len(change.new) for change in changes) > MAX_NEW_BYTES:
        return
    if reader.size != len(new_bytes):
        size, sample = sample_of(store, Path(reader.path))
        yield ResizeFile(file=name, size=size, new_size=len(new_bytes), sample=sample, why=why, name=NAME)
    yield from changes


def _end_of(reader: IndexReader | None) -> _Neighbour | None:
    """Return the last entry of the previous file; None if there is none."""
    if reader is None or not reader.last_entry:
        return None
    number, keys = reader.last_entry, 0
    last_entry = reader.entry(number)
    while last_entry is not None and (entry := reader.entry(number - keys)) is not None:
        if entry.phy_offset != last_entry.phy_offset:
            break
        keys += 1
    return None if last_entry is None else _Neighbour(last_entry.phy_offset, keys, reader.header)


def _begin_of(reader: IndexReader | None) -> _Neighbour | None:
    """Return the first entry of the next file; None if there is none."""
    if reader is None or not reader.last_entry:
        return None
    keys = 0
    first_entry = reader.entry(1)
    for _, entry in reader.entries():
        if first_entry is None or entry.phy_offset != first_entry.phy_offset:
            break
        keys += 1
    return None if first_entry is None else _Neighbour(first_entry.phy_offset, keys, reader.header)


def _keys_between(
    store: StoreSnapshot, preceding: _Neighbour | None, following: _Neighbour | None, *, has_tags: bool
) -> IndexKeys | None:
    """Return the keys of the log between the entries of both neighbours; None if a part of the log is damaged."""
    topics = TopicTable()
    blocks: list[IndexKeys] = []
    start_offset = preceding.offset if preceding is not None else store.log.min_offset
    stop_offset = store.log.max_offset
    if following is not None:
        unit = store.log.unit_at(following.offset, crc=False)
        stop_offset = following.offset + getattr(unit, "size", 0)
    for block in scan_log(store.log, start_offset, stop_offset, crc=False, topics=topics):
        if isinstance(block, Damage):
            return None
        if isinstance(block, UnitColumns):
            unit_count = block.count - int(block.count > 0 and block.kind[block.count - 1] == BLANK)
            in_place = np.flatnonzero(block.physical_offset[:unit_count] == block.offset[:unit_count])
            blocks.append(build_keys(block, topics.prefixes(), in_place, tags=has_tags))
    if not blocks:
        return None
    hashes = np.concatenate([keys.key_hash for keys in blocks])
    offsets = np.concatenate([keys.phy_offset for keys in blocks])
    times = np.concatenate([keys.store_timestamp for keys in blocks])
    key_start = preceding.keys if preceding is not None else 0
    key_end = len(hashes)
    if following is not None:
        key_end -= following.keys if len(offsets) and int(offsets[-1]) == following.offset else 0
    this_file = slice(key_start, key_end)
    return IndexKeys(hashes[this_file], offsets[this_file], times[this_file], 0, later_units=False)


def _agrees(old_bytes: bytes, geometry: Geometry, keys: IndexKeys, log_end: int, *, is_counted: bool) -> bool:
    """Return True if most entries that are left in a file are those of ``keys``; those of messages behind the end of
    the log do not count. A file without any agrees if the files around it say how many it had (``is_counted``).
    """
    entries = np.frombuffer(old_bytes, INDEX_ENTRY, offset=geometry.entry_position(1))
    is_written = (entries["phy_offset"] != 0) | (entries["key_hash"] != 0)
    written = np.flatnonzero(is_written & (entries["phy_offset"] < log_end))
    if not len(written):
        return is_counted
    count = len(keys.key_hash)
    compared = written[written < count]
    is_equal = (entries["key_hash"][compared] == keys.key_hash[compared]) & (
        entries["phy_offset"][compared] == keys.phy_offset[compared]
    )
    return bool(2 * np.count_nonzero(is_equal) > len(written))
