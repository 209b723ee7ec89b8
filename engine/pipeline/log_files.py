"""Files of a log, and where the entries of a DLedger log end in them (docs/formats/dledger.md#replaced-entries)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.codec import dledger
from engine.codec.unit_scan import find_in_file
from engine.errors import CannotRead
from engine.pipeline.storage import OpenFile, join, open_path, storage_of


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of a log: ``start`` is the absolute offset of its first byte, ``size`` its length, both in bytes.
    ``has_entries``: it is a data file of a DLedger log, each unit has the header of an entry in front.
    """

    path: str
    start: int
    size: int
    has_entries: bool = False

    @property
    def end(self) -> int:
        return self.start + self.size


def without_remains(data_folder: str, files: list[LogFile]) -> list[LogFile]:
    """Return ``files``; that with the newest entry ends behind it, if bytes of entries follow that a leader replaced.

    Raises :class:`CannotRead`.
    """
    member = data_folder.rpartition("/")[0]
    index = _index_files(join(member, "index"))
    checkpoint, vote = _small_file(join(member, "checkpoint")), _small_file(join(member, "currterm"))
    end = dledger.find_remains_by(
        dledger.decode_checkpoint(checkpoint) if checkpoint is not None else None,
        dledger.decode_vote(vote) if vote is not None else None,
        lambda number: _index_row(index, number),
        lambda position: _header_at(files, position),
        lambda position: _next_header(files, position),
    )
    if end is None:
        return files
    return [replace(file, size=end - file.start) if file.start < end < file.end else file for file in files]


def _index_files(folder: str) -> list[LogFile]:
    storage, local = storage_of(folder)
    names = [(entry, entry.name) for entry in storage.listing(local)]
    return [LogFile(entry.path, int(name), entry.size) for entry, name in names if name.isdigit() and entry.size >= 0]


def _small_file(path: str) -> bytes | None:
    try:
        with open_path(path) as file:
            return file.read(0, _MAX_SMALL_BYTES)
    except CannotRead:
        return None


_MAX_SMALL_BYTES = 4096


def _index_row(files: Sequence[LogFile], number: int) -> dledger.IndexRow | None:
    data = _read(files, number * dledger.INDEX_UNIT_SIZE, dledger.INDEX_UNIT_SIZE)
    return dledger.decode_index_row(data) if len(data) == dledger.INDEX_UNIT_SIZE else None


def _header_at(files: Sequence[LogFile], position: int) -> dledger.EntryHeader | None:
    header = dledger.decode_header(_read(files, position, dledger.HEADER_SIZE))
    return header if header is not None and header.position == position else None


def _next_header(files: Sequence[LogFile], position: int) -> dledger.EntryHeader | None:
    file = next((file for file in files if file.start <= position < file.end), None)
    if file is None:
        return None
    with open_path(file.path) as opened_file:
        start, stop = position - file.start, min(position - file.start + dledger.MAX_REMAINS_BYTES, file.size)
        while (unit := find_in_file(_FileBytes(file, opened_file), start, stop)) >= 0:
            header = _header_at(files, file.start + unit - dledger.HEADER_SIZE)
            if header is not None:
                return header
            start = unit + 1
    return None


def _read(files: Sequence[LogFile], position: int, size: int) -> bytes:
    file = next((file for file in files if file.start <= position < file.end), None)
    if file is None:
        return b""
    with open_path(file.path) as opened_file:
        return opened_file.read(position - file.start, size)


class _FileBytes:
    """A file with the interface that a search for units needs."""

    __slots__ = ("next_data", "read", "size", "start_offset")

    def __init__(self, file: LogFile, opened_file: OpenFile) -> None:
        self.start_offset = file.start
        self.size = file.size
        self.read = opened_file.read
        self.next_data = opened_file.next_data

    def is_followed(self) -> bool:
        """Return False: nothing is asked about later files."""
        return False
