"""Mend the headers of a DLedger log (docs/formats/repair.md#dledger).

An entry of the log is a header of 48 bytes and a message. A start reads the headers only, and ends the log at the first
wrong one. Each field of a header follows from the row of the index, from the message behind it, or from the entries
around it. Messages are mended afterwards, as in any other log (:mod:`engine.repair.log_damage`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from engine.codec import dledger
from engine.codec.dledger import BLANK_HEAD_BYTES, BLANK_MAGIC, HEADER_SIZE, INDEX_UNIT_SIZE, MAGIC, EntryHeader
from engine.codec.message import Unit
from engine.codec.unit_scan import Stop, decode_item
from engine.inspection.snapshot import StoreSnapshot
from engine.mapped.read_only import ReadOnlyFile
from engine.patching.patches import WriteBytes
from engine.repair.repair import Repair
from engine.rules import mendable
from engine.sentences import plural, sentence
from engine.store.recovery.dledger import DLedgerSource, entry_fault, index_row

NAME = "entries"
_BLANK_MAGIC = BLANK_MAGIC.to_bytes(4, "big", signed=True)


class Body(NamedTuple):
    """The message of an entry: its offset in the log, and its bytes."""

    offset: int
    size: int


@dataclass(slots=True)
class _Plan:
    """The patches so far, in the order of the log."""

    patches: list[WriteBytes] = field(default_factory=list)


def repair_entries(store: StoreSnapshot, source: DLedgerSource) -> Repair | None:
    """Return the repair of the headers of the store's DLedger log; None if all are right, or nothing tells them.

    Raises :class:`engine.errors.CannotRead` if the log or its index cannot be read.
    """
    plan = _Plan()
    patch_count = 0
    previous: EntryHeader | None = None
    for file in source.files:
        position = 0
        while position < file.size:
            offset = file.start_offset + position
            if source.remains_from is not None and offset >= source.remains_from:
                return _as_repair(plan, patch_count, source)
            data = file.read(position, HEADER_SIZE)
            if dledger.decode_blank(data) == file.size - position:
                break
            header = dledger.unpack_header(data) if len(data) == HEADER_SIZE else None
            if entry_fault(header, offset, file, previous) is not None or _has_later_term(
                source, file, position, header
            ):
                mended = _header(source, file, position, previous)
                if mended is None:
                    if not _ends_file(source, file, position, previous):
                        return _as_repair(plan, patch_count, source)
                    _write_blank(store, plan, file, position)
                    patch_count = len(plan.patches)
                    break
                why = sentence(
                    "the header of entry {index:,}, as its index row or its message says it", index=mended.index
                )
                _write(store, plan, file, position, dledger.encode_header(mended), why)
                header = mended
            assert header is not None
            if isinstance(_unit(file, position, header), Unit):
                patch_count = len(plan.patches)  # behind the last whole message nothing is mended: a start cuts it
            previous = header
            position += header.size
    return _as_repair(plan, patch_count, source)


def bodies(store: StoreSnapshot, start: int, end: int) -> Iterator[Body]:
    """Yield the messages of the entries that bytes [start, end) of a DLedger log touch; none behind a wrong header."""
    offset = start
    header = store.log.entry_header(offset) or store.log.entry_header(offset + HEADER_SIZE)
    while header is not None and header.position < end:
        yield Body(header.position + HEADER_SIZE, header.body_size)
        header = store.log.entry_header(header.position + header.size + HEADER_SIZE)


def _header(
    source: DLedgerSource, file: ReadOnlyFile, position: int, previous: EntryHeader | None
) -> EntryHeader | None:
    """Return what the header at ``position`` has to be; None if nothing tells it."""
    offset = file.start_offset + position
    index = previous.index + 1 if previous is not None else _first_index(source, file, position)
    if index is None:
        return None
    row = index_row(source.index, index)
    least_term = previous.term if previous is not None else 0
    if (
        row is not None
        and (row.magic, row.index, row.position) == (MAGIC, index, offset)
        and row.size > HEADER_SIZE
        and row.term >= least_term
        and position + row.size <= file.size
    ):
        return EntryHeader(MAGIC, row.size, index, row.term, offset, 0, 0, 0, row.size - HEADER_SIZE)
    item = decode_item(file.read(position + HEADER_SIZE, file.size - position - HEADER_SIZE), 0, file.size, 0)
    if isinstance(item, Unit) and item.physical_offset == offset + HEADER_SIZE:
        return EntryHeader(MAGIC, HEADER_SIZE + item.size, index, least_term, offset, 0, 0, 0, item.size)
    return None


def _has_later_term(source: DLedgerSource, file: ReadOnlyFile, position: int, header: EntryHeader | None) -> bool:
    """Return True if a header says a later term than its index row and the entry behind it: a start refuses that."""
    row = index_row(source.index, header.index) if header is not None else None
    if header is None or row is None or row.term >= header.term:
        return False
    is_of_entry = (row.magic, row.position, row.size, row.index) == (MAGIC, header.position, header.size, header.index)
    following = dledger.decode_header(file.read(position + header.size, HEADER_SIZE))
    return is_of_entry and following is not None and row.term <= following.term < header.term


def _first_index(source: DLedgerSource, file: ReadOnlyFile, position: int) -> int | None:
    """Return the index of the log's first entry by the row that names its place."""
    data = source.index.read(max(source.index.min_offset, 0), INDEX_UNIT_SIZE)
    row = dledger.decode_index_row(data) if len(data) == INDEX_UNIT_SIZE else None
    return row.index if row is not None and row.position == file.start_offset + position else None


def _ends_file(source: DLedgerSource, file: ReadOnlyFile, position: int, previous: EntryHeader | None) -> bool:
    """Return True if the next entry is the first one of the next file: then a blank fills this file."""
    if previous is None or file.size - position < BLANK_HEAD_BYTES or file is source.files[-1]:
        return False
    row = index_row(source.index, previous.index + 1)
    return row is not None and (row.index, row.position) == (previous.index + 1, file.end_offset)


def _unit(file: ReadOnlyFile, position: int, header: EntryHeader) -> Unit | Stop | object:
    data = file.read(position + HEADER_SIZE, header.body_size)
    return decode_item(data, 0, len(data), header.position + HEADER_SIZE, False)


def _write_blank(store: StoreSnapshot, plan: _Plan, file: ReadOnlyFile, position: int) -> None:
    head = _BLANK_MAGIC + (file.size - position).to_bytes(4, "big")
    _write(store, plan, file, position, head, sentence("the file ends here, and the next one follows"))


def _write(store: StoreSnapshot, plan: _Plan, file: ReadOnlyFile, position: int, new: bytes, why: str) -> None:
    path = Path(file.path)
    if path.is_relative_to(store.path):
        name = path.relative_to(store.path).as_posix()
        old = file.read(position, len(new))
        plan.patches.append(WriteBytes(file=name, offset=position, old=old, new=new, why=why, name=NAME))


def _as_repair(plan: _Plan, patch_count: int, source: DLedgerSource) -> Repair | None:
    patches = plan.patches[:patch_count]
    if not patches:
        return None
    gains = plural(
        "{n:,} header of the DLedger log is put right: a start reads on behind it",
        "{n:,} headers of the DLedger log are put right: a start reads on behind them",
        n=len(patches),
    )
    title = sentence("Mend the headers of the DLedger log")
    costs = sentence("the member has to have the same entries as the others of its group")
    return Repair(NAME, mendable.ENTRIES, title, tuple(patches), gains, costs if source.has_other_members else "")
