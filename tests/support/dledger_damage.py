"""Damage to copies of the golden store dledger-crash-5.5.1, as its ``starts.json`` names it; small DLedger logs."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from engine.codec import dledger
from engine.codec.dledger import EntryHeader
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store
from engine.store.recovery.dledger import headers

FILE_BYTES = 1 << 20


def entries(root: Path) -> list[EntryHeader]:
    """Every entry of the store's DLedger log."""
    with open_store(root) as store:
        return [
            header
            for file in store.log.files
            for _, header in headers(file)
            if isinstance(header, EntryHeader) and header.plausible
        ]


def write(root: Path, offset: int, data: bytes) -> None:
    """Overwrite bytes at ``offset`` of the log."""
    path = root / "dledger-n0" / "data" / f"{offset // FILE_BYTES * FILE_BYTES:020}"
    with path.open("r+b") as file:
        file.seek(offset % FILE_BYTES)
        file.write(data)


def _last(root: Path) -> EntryHeader:
    return entries(root)[-1]


def _middle(root: Path) -> EntryHeader:
    """The entry number 100 of the newest file."""
    all_entries = entries(root)
    newest = all_entries[-1].position // FILE_BYTES * FILE_BYTES
    return [entry for entry in all_entries if entry.position >= newest][100]


def _cut_queue(root: Path) -> None:
    """Zero the newest ten entries of a queue."""
    path = max((root / "consumequeue" / "CartUpdates" / "0").iterdir())
    data = bytearray(path.read_bytes())
    end = len(data.rstrip(b"\0")) + 19
    end -= end % 20
    data[end - 200 : end] = bytes(200)
    path.write_bytes(data)


def _wrong_row(root: Path) -> None:
    with (root / "dledger-n0" / "index" / f"{0:020}").open("r+b") as file:
        file.seek(_middle(root).index * 32 + 4)
        file.write(struct.pack(">q", 5))


def _without_blank(root: Path) -> None:
    entry = [entry for entry in entries(root) if entry.position < 2 * FILE_BYTES][-1]
    write(root, entry.position + entry.size, bytes(8))


DAMAGE: dict[str, Callable[[Path], object]] = {
    "crash": lambda root: None,
    "clean": lambda root: (root / "abort").unlink(),
    "crash-queuetail": _cut_queue,
    "clean-queuetail": lambda root: (_cut_queue(root), (root / "abort").unlink()),
    "torn-header": lambda root: write(root, _last(root).position, bytes(48)),
    "torn-body": lambda root: write(root, _last(root).position + 52, bytes(_last(root).size - 52)),
    "gap": lambda root: write(root, _middle(root).position + 8, struct.pack(">q", _middle(root).index + 5)),
    "term": lambda root: write(root, _middle(root).position + 16, struct.pack(">q", 3)),
    "indexrow": _wrong_row,
    "committed": lambda root: (root / "dledger-n0" / "checkpoint").write_text("committedIndex=2000\nendIndex=2812\n"),
    "noindex": lambda root: shutil.rmtree(root / "dledger-n0" / "index"),
    "midbody": lambda root: write(root, _middle(root).position + 52, bytes(100)),
    "secondfile-gone": lambda root: (root / "dledger-n0" / "data" / f"{FILE_BYTES:020}").unlink(),
    "blank-lost": _without_blank,
}
"""Name → function that makes the damage in a store's folder."""


def copy_store(source: Path, target: Path, member: str = "dledger-n0") -> Path:
    """Copy a store with its sparse index file."""
    shutil.copytree(source, target, ignore=lambda folder, names: ["index"] if folder.endswith(member) else [])
    index = source / member / "index" / f"{0:020}"
    (target / member / "index").mkdir()
    with index.open("rb") as file, (target / member / "index" / index.name).open("wb") as copy:
        copy.write(file.read(1 << 20))
        copy.truncate(index.stat().st_size)
    return target


def as_dledger(root: Path, **spoilt: int) -> None:
    """Write the units of a store into a DLedger log of the member n0, with its index, checkpoint and vote, and the
    queues for it; the store has no index files then. ``spoilt`` replaces a field of the last entry's header.
    """
    with open_store(root) as store:
        items = [item for item in store.units() if isinstance(item, Unit)]
        units = [store.log.read(item.offset, item.size) for item in items]
        queues = {
            f"{topic}/{number}": [(entry.physical_offset, entry.size, entry.tags_code) for entry in queue.entries()]
            for topic, by_id in store.topics().items()
            for number, queue in by_id.items()
        }
    data, rows = bytearray(), bytearray()
    bodies: dict[int, int] = {}
    for number, unit in enumerate(units):
        position = len(data)
        bodies[items[number].offset] = position + 48
        header = dledger.EntryHeader(1, 48 + len(unit), number, 0, position, 0, 0, 0, len(unit))
        rows += dledger.encode_index_row(dledger.IndexRow(1, position, header.size, number, 0))
        if number == len(units) - 1:
            header = replace(header, **spoilt)
        data += dledger.encode_header(header) + unit[:28] + struct.pack(">q", position + 48) + unit[36:]
    for folder in ("commitlog", "consumequeue", "index"):
        shutil.rmtree(root / folder)
    for name, entries in queues.items():
        (root / "consumequeue" / name).mkdir(parents=True)
        rows_of_queue = b"".join(struct.pack(">qiq", bodies[offset], size, code) for offset, size, code in entries)
        (root / "consumequeue" / name / f"{0:020d}").write_bytes(rows_of_queue.ljust(len(rows_of_queue) + 400, b"\0"))
    member = root / "dledger-n0"
    for part in ("data", "index"):
        (member / part).mkdir(parents=True)
    (member / "data" / f"{0:020d}").write_bytes(data.ljust(1 << 20, b"\0"))
    with (member / "index" / f"{0:020d}").open("wb") as file:
        file.write(rows)
        file.truncate(dledger.INDEX_FILE_BYTES)
    (member / "checkpoint").write_text(f"committedIndex={len(units) - 1}\nendIndex={len(units) - 1}\n")
    (member / "currterm").write_text("voteLeader=n0\ncurrTerm=0\n")
