"""Plans of starts on a DLedger log, compared with what real brokers made of the same stores; and the check of entries
in small logs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import golden_stores
import pytest
from dledger_damage import DAMAGE, as_dledger, copy_store
from handmade_stores import healthy

from engine.codec import dledger
from engine.codec.dledger import EntryHeader
from engine.config import read_config
from engine.inspection.recovery import plan
from engine.inspection.snapshot import open_store
from engine.mapped.read_only import DescriptorCache, FileSequence
from engine.store.recovery.dledger import DLedgerSource, entry_fault, recover_entries
from engine.store.recovery.plan import RecoveryPlan

NAME = "dledger-crash-5.5.1"
STARTS = json.loads((golden_stores.GOLDEN / NAME / "starts.json").read_text(encoding="utf-8"))


@pytest.mark.golden
@pytest.mark.parametrize("case", sorted(STARTS))
def test_a_plan_says_what_a_real_start_made_of_a_damaged_dledger_log(golden, tmp_path, case):
    """There was no plan for a DLedger log: a start after a crash cuts entries off the queues that it never adds."""
    root = copy_store(golden(NAME), tmp_path / "store")
    DAMAGE[case](root)
    with open_store(root) as store:
        start = plan(store, "5.5", losses=False)
    expected = STARTS[case]
    assert start.will_start == expected["started"]
    if not start.will_start:
        return
    assert start.end_offset == expected["maxOffset"]
    assert f"endIndex={start.dledger.last_index}\n" in expected["checkpoint"]
    queues = {f"{queue.topic}/{queue.queue_id}": queue.max_offset for queue in start.queues}
    assert {**dict.fromkeys(queues, 0), **expected["queues"]} == queues


@pytest.mark.golden
def test_the_messages_that_a_start_after_a_crash_takes_out_of_their_queues_are_named(golden):
    with open_store(golden(NAME)) as store:
        start = plan(store, "5.5")
    lost = {(row.topic, row.queue_id): row.messages for row in start.undispatched.queues}
    assert lost == {("CartUpdates", 0): 27, ("ClickStream", 1): 28}
    assert start.dledger.queues_cut_at == 2_573_513


@pytest.mark.golden
def test_a_release_without_that_fault_cuts_nothing(golden):
    with open_store(golden(NAME)) as store:
        start = plan(store, "4.9")
    assert start.undispatched.messages == 0
    ends = {(queue.topic, queue.queue_id): queue.max_offset for queue in start.queues}
    assert ends["CartUpdates", 0] == 391


@pytest.mark.golden
def test_a_crash_of_5_5_cuts_no_queue_before_the_checkpoint_knows_where_queue_entries_end(golden, tmp_path):
    """The end that 5.5 compares is the checkpoint's logicsPhysicalOffset, not that of the queues: real 5.5.1 brokers
    that were killed in their first minute kept all queue entries, and the plan said that they lose some.
    """
    root = copy_store(golden(NAME), tmp_path / "store")
    with (root / "checkpoint").open("r+b") as file:
        file.seek(40)
        file.write(bytes(8))
    for release, cut in (("5.5", None), ("5.4", 2_573_513), ("5.3", 2_573_513)):
        with open_store(root) as store:
            start = plan(store, release)
        assert start.dledger.queues_cut_at == cut, release
        assert (start.undispatched.messages == 0) == (cut is None), release


@pytest.mark.golden
def test_a_start_in_a_group_puts_what_is_not_committed_into_queues_as_a_real_one_did(golden):
    """The plan took each group for one member, which commits its entries itself."""
    name = "dledger-old-leader-5.5.1"
    expected = json.loads((golden_stores.GOLDEN / name / "start.json").read_text(encoding="utf-8"))
    config = read_config(golden_stores.GOLDEN / name / "broker.conf")
    with open_store(golden(name), config) as store:
        start = plan(store, "5.5")
        older = plan(store, "5.4", losses=False)
    queues = {f"{queue.topic}/{queue.queue_id}": queue.max_offset for queue in start.queues}
    assert queues == expected["queues"]
    assert start.dledger.undecided_offset == expected["maxOffset"] + 48
    assert (start.dledger.queues_undecided, older.dledger.queues_undecided) == (True, False)
    assert (start.undispatched.messages, start.dropped.messages) == (0, 0)
    assert max(queue.max_offset for queue in older.queues if queue.topic == "Doomed") == 0


@pytest.mark.golden
def test_a_clean_start_keeps_queue_entries_of_replaced_messages_before_the_end(golden):
    name = "dledger-replaced-5.5.1"
    expected = json.loads((golden_stores.GOLDEN / name / "start.json").read_text(encoding="utf-8"))
    with open_store(golden(name)) as store:
        start = plan(store, "5.5")
    queues = {f"{queue.topic}/{queue.queue_id}": queue.max_offset for queue in start.queues}
    assert (start.end_offset, start.units_dropped, queues) == (expected["maxOffset"], 0, expected["queues"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store of 40 messages in a DLedger log."""
    healthy(40).write(tmp_path / "store")
    as_dledger(tmp_path / "store")
    return tmp_path / "store"


def plan_of(root: Path, release: str = "5.5") -> RecoveryPlan:
    with open_store(root) as store:
        return plan(store, release)


def test_a_clean_start_keeps_all_entries(root):
    start = plan_of(root)
    assert (start.exit, start.units_kept, start.bytes_dropped) == ("normal", 40, 0)
    assert (start.dledger.last_index, start.dledger.index_rebuilt_from) == (39, None)
    assert start.end_reason == "the end of the last entry"


@pytest.mark.parametrize(("release", "header_bytes"), [("4.9", 0), ("5.4", 40 * 48)])
def test_a_start_after_a_crash_walks_the_messages(root, release, header_bytes):
    """Releases from 5.0 on count the bytes of the messages, without the headers around them."""
    (root / "abort").touch()
    start = plan_of(root, release)
    assert (start.exit, start.units_kept, start.end_offset) == ("abnormal", 40, start.log_max)
    assert start.dledger.queues_cut_at == start.end_offset - header_bytes


def test_a_wrong_header_ends_the_log(tmp_path):
    healthy(40).write(tmp_path / "store")
    as_dledger(tmp_path / "store", index=50)
    start = plan_of(tmp_path / "store")
    assert (start.units_kept, start.dledger.last_index) == (39, 38)
    assert start.end_reason.endswith("its index is 50, expected 39")


def test_notes_name_what_the_group_decides_and_what_is_written_again(root):
    (root / "dledger-n0" / "checkpoint").write_text("committedIndex=5\nendIndex=39\n")
    with (root / "dledger-n0" / "index" / f"{0:020d}").open("r+b") as index:
        index.seek(20 * 32)
        index.write(bytes(32))
    start = plan_of(root)
    committed, rebuilt = start.notes
    assert committed.startswith("The checkpoint calls entries up to 5 committed, the log goes on to 39")
    assert rebuilt == "The index does not fit from entry 20 on: the start writes it again from there"


def test_an_index_file_of_another_length_stops_the_start(root):
    with (root / "dledger-n0" / "index" / f"{0:020d}").open("r+b") as index:
        index.truncate(3200)
    start = plan_of(root)
    assert "DL02" in {blocker.finding for blocker in start.blockers}


# -- entries alone

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
