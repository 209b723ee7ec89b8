"""The check of the entries of a DLedger log, in small logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.codec import dledger
from engine.codec.dledger import EntryHeader
from engine.mapped.read_only import DescriptorCache, FileSequence
from engine.store.recovery.dledger import DLedgerSource, entry_fault, recover_entries

FILE_BYTES = 1000
ENTRIES_PER_FILE = 4
ENTRY_BYTES = 148


def header_of(number: int) -> EntryHeader:
    file, index = divmod(number, ENTRIES_PER_FILE)
    position = file * FILE_BYTES + index * ENTRY_BYTES
    return EntryHeader(1, ENTRY_BYTES, number, 0, position, 0, 0, 0, ENTRY_BYTES - 48)


class SmallLog:
    """The files of a member, with 4 entries in each data file of 1,000 bytes."""

    def __init__(self, folder: Path, file_count: int) -> None:
        self.folder = folder
        (folder / "data").mkdir(parents=True)
        (folder / "index").mkdir()
        headers = [header_of(number) for number in range(file_count * ENTRIES_PER_FILE)]
        rows = b"".join(
            dledger.encode_index_row(dledger.IndexRow(1, header.position, header.size, header.index, 0))
            for header in headers
        )
        (folder / "index" / f"{0:020d}").write_bytes(rows.ljust(len(rows) + 320, b"\0"))
        for file in range(file_count):
            entries = b"".join(
                dledger.encode_header(header).ljust(ENTRY_BYTES, b"b")
                for header in headers[file * ENTRIES_PER_FILE : (file + 1) * ENTRIES_PER_FILE]
            )
            blank = dledger.encode_blank(FILE_BYTES - len(entries)) if file < file_count - 1 else b""
            self.data(file).write_bytes((entries + blank).ljust(FILE_BYTES, b"\0"))
        self._cache = DescriptorCache()

    def data(self, file: int) -> Path:
        return self.folder / "data" / f"{file * FILE_BYTES:020d}"

    def overwrite(self, number: int, data: bytes) -> None:
        """Overwrite the beginning of an entry."""
        file, index = divmod(number, ENTRIES_PER_FILE)
        content = bytearray(self.data(file).read_bytes())
        content[index * ENTRY_BYTES : index * ENTRY_BYTES + len(data)] = data
        self.data(file).write_bytes(content)

    def zero_index_row(self, number: int) -> None:
        with (self.folder / "index" / f"{0:020d}").open("r+b") as index:
            index.seek(number * 32)
            index.write(bytes(32))

    def source(self, committed_index: int | None = None) -> DLedgerSource:
        files, index = (FileSequence((self.folder / name,), self._cache) for name in ("data", "index"))
        return DLedgerSource(tuple(files.files), index, self.folder, committed_index)

    def close(self) -> None:
        self._cache.close()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SmallLog]:
    log = SmallLog(tmp_path / "dledger-n0", 5)
    yield log
    log.close()


def test_the_check_begins_at_the_third_last_file(log):
    entries = recover_entries(log.source(committed_index=19))
    assert (entries.start_number, entries.entries, entries.last_index) == (2, 12, 19)
    assert entries.end_offset == entries.committed_end == 4 * FILE_BYTES + 4 * ENTRY_BYTES


def test_the_check_begins_earlier_where_the_index_does_not_know_the_first_entry(log):
    log.zero_index_row(8)
    entries = recover_entries(log.source())
    assert (entries.start_number, entries.index_rebuilt_from, entries.committed_end) == (1, 8, -1)


@pytest.mark.parametrize(("committed", "end"), [(17, 4 * FILE_BYTES + 2 * ENTRY_BYTES), (9, 2 * FILE_BYTES + 2 * 148)])
def test_the_end_of_the_committed_entry_comes_from_the_index_or_from_the_log(log, committed, end):
    log.zero_index_row(15)  # rows from there on are written again, so they are not read
    assert recover_entries(log.source(committed)).committed_end == end


def test_entries_behind_a_fault_are_cut(log):
    log.overwrite(17, dledger.encode_header(replace(header_of(17), magic=3)))
    entries = recover_entries(log.source())
    assert (entries.last_index, entries.fault.offset, entries.fault.reason) == (
        16,
        header_of(17).position,
        "magic code 3",
    )


def test_zero_bytes_are_the_end_and_no_fault(log):
    log.overwrite(17, bytes(ENTRY_BYTES))
    entries = recover_entries(log.source())
    assert (entries.last_index, entries.fault) == (16, None)


def test_a_missing_file_and_an_end_far_before_the_last_file_are_refused(log):
    log.overwrite(8, bytes(ENTRY_BYTES))  # of the third-last file: the check begins at the file before
    assert "more than one file before the last data file" in recover_entries(log.source()).refusal[0]
    log.data(3).unlink()
    assert "expected the file that begins at 3,000, found 4,000" in recover_entries(log.source()).refusal[0]


HEADER = header_of(3)
FAULTS = [
    (None, "end of the file"),
    (replace(HEADER, size=0), "no size"),
    (replace(HEADER, position=1), "its position says 1"),
    (replace(HEADER, body_size=1), "its size 148 is not that of the body and the header"),
    (replace(HEADER, size=900, body_size=852), "its size 900 leads beyond the file"),
    (replace(HEADER, magic=2), "magic code 2"),
    (replace(HEADER, index=9), "its index is 9, expected 3"),
    (replace(HEADER, term=-1), "its term is -1, that of the entry before 0"),
    (replace(HEADER, size=48, body_size=0), "it has no body"),
    (HEADER, None),
]


@pytest.mark.parametrize(("header", "reason"), FAULTS)
def test_why_a_start_ends_the_log_at_a_header(header, reason):
    file = SimpleNamespace(end_offset=FILE_BYTES)
    assert entry_fault(header, HEADER.position, file, header_of(2)) == reason
