"""Stores after incidents, made from a real broker's store (``broker-orders``, closed cleanly) by damage."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

from engine.codec.dtypes import CQ_UNIT

CONFIG = {
    "mappedFileSizeCommitLog": 1_048_576,
    "mappedFileSizeConsumeQueue": 6000,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
}
LAST_FILE = 2_097_152
MESSAGES = 2808  # entries of all queues
DELETED = 5  # units of deleted topics in the last file: an abnormal start dispatches them again
_CHECKPOINT = {"physic": 0, "logics": 8, "index": 16, "confirm": 32}


def build(orders: Path, target: Path, state: Callable[[Path], None]) -> Path:
    """Make a copy of ``orders`` at ``target``, spoiled by ``state``."""
    shutil.copytree(orders, target)
    state(target)
    return target


def hole(root: Path) -> None:
    """#467: one entry was never written; a start cuts the queue there."""
    _zero_entries(root / "consumequeue" / "OrderEvents" / "0", lambda number, _: number == 200)


def tail_not_dispatched(root: Path) -> None:
    """#405: a crash before the last units of the last file were dispatched."""
    crashed(root)
    cut_queues(root, LAST_FILE + 300_000)


def tail_of_next_to_last_file(root: Path) -> None:
    """#1434: the tail of the next-to-last file is in no queue; the start begins at the last one."""
    crashed(root)
    cut_queues(root, 2_060_000)


def pages_of_queues_lost(root: Path) -> None:
    """#678: the checkpoint is ahead of the pages of some queues."""
    crashed(root)
    cut_queues(root, 1_200_000, "OrderEvents")


def pages_lost_and_closed(root: Path) -> None:
    """The same without abort: no start goes back at all."""
    cut_queues(root, 2_060_000, "OrderEvents")


def queue_folder_lost(root: Path) -> None:
    crashed(root)
    shutil.rmtree(root / "consumequeue" / "OrderEvents" / "2")


def index_behind_the_checkpoint(root: Path) -> None:
    """#3868: index files of a crashed store end after the checkpoint's index time."""
    crashed(root)
    fifth = sorted((root / "index").iterdir())[4]
    set_checkpoint(root, index=struct.unpack_from(">q", fifth.read_bytes(), 8)[0])


def magic_code_lost(root: Path) -> None:
    """#6767: a unit of the last file has no magic code; the start cuts the log there."""
    from engine.codec.message import Unit
    from engine.inspection.snapshot import open_store

    with open_store(root) as store:
        unit = next(u for u in store.units(2_200_000) if isinstance(u, Unit))
    with (root / "commitlog" / f"{LAST_FILE:020d}").open("r+b") as file:
        file.seek(unit.offset - LAST_FILE + 4)
        file.write(bytes(4))


def tail_of_log_zero(root: Path) -> None:
    """A power cut took the last 60,000 bytes of the log; queues, index and checkpoint know of them."""
    path = root / "commitlog" / f"{LAST_FILE:020d}"
    data = bytearray(path.read_bytes())
    end = len(data.rstrip(b"\0"))
    data[end - 60_000 : end] = bytes(60_000)
    path.write_bytes(data)


def middle_file_lost(root: Path) -> None:
    """#2141."""
    (root / "commitlog" / f"{LAST_FILE // 2:020d}").unlink()


def empty_log_file(root: Path) -> None:
    """#6904: the broker died between creating and filling the next file."""
    (root / "commitlog" / f"{LAST_FILE // 2 * 3:020d}").touch()


def name_that_is_no_number(root: Path) -> None:
    (root / "commitlog" / "copy-of-a-file").write_bytes(bytes(1_048_576))


def simple_folder_of_a_batch_queue(root: Path) -> None:
    """The queue exists a second time as another kind."""
    folder = root / "consumequeue" / "BatchPaymentEvents" / "0"
    folder.mkdir(parents=True)
    (folder / f"{0:020d}").write_bytes(bytes(6000))


def zero_queue_file(root: Path, queue: str, start: int) -> None:
    """Make an empty file of a queue."""
    (root / "consumequeue" / queue / f"{start:020d}").write_bytes(bytes(CONFIG["mappedFileSizeConsumeQueue"]))


def index_files_turned_round(root: Path) -> None:
    """Reverse the names of the index files: the oldest has the name of the newest, and so on."""
    files = sorted((root / "index").iterdir())
    contents = [file.read_bytes() for file in reversed(files)]
    for file, data in zip(files, contents, strict=True):
        file.write_bytes(data)


def zero_log(root: Path, start: int, stop: int = 1 << 62) -> None:
    """Zero the log in [start, stop)."""
    for path in (root / "commitlog").iterdir():
        data = bytearray(path.read_bytes())
        begin, end = max(start - int(path.name), 0), min(stop - int(path.name), len(data))
        if begin < end:
            data[begin:end] = bytes(end - begin)
            path.write_bytes(data)


def set_checkpoint(root: Path, **times: int) -> None:
    """Set the fields ``physic``, ``logics``, ``index`` (ms) and ``confirm`` (bytes of the log)."""
    data = bytearray((root / "checkpoint").read_bytes())
    for name, value in times.items():
        struct.pack_into(">q", data, _CHECKPOINT[name], value)
    (root / "checkpoint").write_bytes(data)


def crashed(root: Path) -> None:
    (root / "abort").write_text("1234")


def cut_queues(root: Path, physical: int, topic: str = "*") -> None:
    """Remove the entries of all units from ``physical`` on in the queues of ``topic``."""
    for folder in root.glob(f"consumequeue/{topic}/*"):
        _zero_entries(folder, lambda _, position: position >= physical)


def _zero_entries(folder: Path, action: Callable[[int, int], bool]) -> None:
    import numpy as np

    for path in folder.iterdir():
        rows = np.frombuffer(bytearray(path.read_bytes()), CQ_UNIT)
        for number, physical in enumerate(rows["physical_offset"].tolist(), int(path.name) // CQ_UNIT.itemsize):
            if action(number, physical):
                rows[number - int(path.name) // CQ_UNIT.itemsize] = 0
        path.write_bytes(rows.tobytes())
