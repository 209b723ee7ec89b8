"""Where the log lost its end, entries of queues and index that lead behind it are removed."""

from __future__ import annotations

import struct
from pathlib import Path

from broken_stores import BROKEN
from handmade_stores import healthy
from planted_faults import patch

from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.mapped.disk import RealDisk
from engine.patching.apply import apply_patches
from engine.patching.patches import PatchList
from engine.repair.queue_ends import repair_queue_ends
from engine.repair.repair import Repair
from engine.repair.repair_plan import plan_repairs
from engine.rules.findings import Finding

ENTRY = struct.Struct(">qiq")


def repair_of(root: Path) -> Repair | None:
    with open_store(root) as store:
        findings = [item for item in check(store) if isinstance(item, Finding)]
        return repair_queue_ends(store, findings, store.log.max_offset, ())


def offsets(root: Path) -> set[int]:
    """Return the offsets in the log to which the entries of all queues lead."""
    data = b"".join(file.read_bytes() for file in (root / "consumequeue").glob("*/*/*"))
    return {offset for offset, size, _ in ENTRY.iter_unpack(data) if size}


def test_no_entry_leads_behind_the_end_of_the_log(tmp_path):
    """A start moves only the end of a queue. Once new messages were in the place of the lost ones, the second start
    took the old entries for messages: a consumer of Orders got bytes of another topic.
    """
    store = healthy(count=300)
    root = store.write(tmp_path / "store")
    BROKEN["CL11"](root, store)
    with open_store(root) as opened:
        end = opened.log.max_offset
    assert max(offsets(root)) > end
    kept = {offset for offset in offsets(root) if offset < end}
    plan = plan_repairs(root, None, "4.9")
    apply_patches(root, PatchList(plan.patches), RealDisk())
    assert offsets(root) == kept
    with open_store(root) as opened:
        assert all(entry.phy_offset < end for file in opened.index_files() for _, entry in file.entries())
        assert not {item.id for item in check(opened) if isinstance(item, Finding)} & {"CL11", "CQ13", "IX07"}


def test_the_file_with_which_a_queue_begins_stays(tmp_path):
    """A broker numbers a queue by the names of its files: without one it would begin again at 0."""
    store = healthy()
    root = store.write(tmp_path / "store")
    (file,) = (root / "consumequeue/Payments/1").iterdir()
    size = file.stat().st_size
    later_file = file.rename(file.with_name(f"{size:020d}"))
    later_file.write_bytes(bytes(size))
    patch(later_file, 0, ENTRY.pack(store.end, 200, 0))
    repair = repair_of(root)
    assert repair is None or not any("Payments/1" in item.file for item in repair.patches)


def test_a_queue_with_such_entries_only_has_no_file(tmp_path):
    """All entries of a delay level led behind the end of the log, and became zeros. A start counts the first 20 bytes
    of such a file as an entry, and 5.4.0 never answered the pull of it.
    """
    store = healthy(count=300)
    root = store.write(tmp_path / "store")
    (size,) = {path.stat().st_size for path in (root / "consumequeue").glob("*/*/*")}
    BROKEN["CL11"](root, store)
    file = root / "consumequeue/Orders/7" / f"{0:020d}"
    file.parent.mkdir()
    file.write_bytes(ENTRY.pack(store.end - 200, 200, 0).ljust(size, b"\0"))
    repair = repair_of(root)
    assert repair is not None
    apply_patches(root, PatchList(repair.patches), RealDisk())
    assert not file.exists()


def test_a_later_file_with_such_entries_only_goes(tmp_path):
    store = healthy()
    root = store.write(tmp_path / "store")
    BROKEN["CQ13"](root, store)
    (file,) = (root / "consumequeue/Payments/1").iterdir()
    size = file.stat().st_size
    later_file = file.with_name(f"{size:020d}")
    later_file.write_bytes(ENTRY.pack(store.end + 500, 200, 0).ljust(size, b"\0"))
    repair = repair_of(root)
    assert repair is not None
    assert f"consumequeue/Payments/1/{later_file.name}" in {item.file for item in repair.patches}
    apply_patches(root, PatchList(repair.patches), RealDisk())
    assert not later_file.exists()
    assert max(offsets(root)) < store.end
