"""A store with patches over it reads as a copy in which they were made; the store stays as it is."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from golden_stores import changes, fingerprint
from handmade_stores import HandmadeStore, healthy
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.codec import columns
from engine.codec.columns import CHUNK_BYTES
from engine.codec.message import Unit
from engine.inspection.block_scan import scan_log
from engine.inspection.recovery import plan
from engine.inspection.snapshot import open_store, read_as_patched
from engine.mapped.disk import RealDisk
from engine.mapped.reading import FAR, Reading, read_through
from engine.patching import patched_disk
from engine.patching.apply import apply_patches
from engine.patching.patched_disk import MAX_IN_MEMORY_BYTES, PatchedDisk
from engine.patching.patches import (
    BadPatch,
    MoveFile,
    Patch,
    PatchList,
    RemoveFile,
    ResizeFile,
    WriteBytes,
    WriteFile,
    sample_digest,
)

LARGE = MAX_IN_MEMORY_BYTES + 4096


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a small file, a large one with a hole, and a folder."""
    root = tmp_path / "store"
    (root / "config").mkdir(parents=True)
    (root / "small").write_bytes(b"0123456789")
    (root / "config" / "table").write_bytes(b"{}")
    with (root / "large").open("wb") as file:
        file.write(b"head")
        file.seek(LARGE - 4)
        file.write(b"tail")
    return root


def sample(path: Path) -> str:
    content = path.read_bytes()
    return sample_digest(content[: 64 << 10], content[-(64 << 10) :])


def some_patches(root: Path) -> PatchList:
    return PatchList(
        [
            WriteBytes(file="small", offset=2, old=b"23", new=b"xx", why="1"),
            WriteBytes(file="small", offset=3, old=b"x4", new=b"yz", why="2: over the first"),
            WriteBytes(file="large", offset=500_000, old=b"\0" * 100, new=b"a" * 100, why="3: in a hole"),
            WriteBytes(file="large", offset=500_050, old=b"a" * 10, new=b"b" * 10, why="4: over the third"),
            WriteFile(file="new/deep/file", old=None, new=b"new", why="5"),
            MoveFile(file="config/table", target="config/moved", size=2, sample=sample(root / "config/table"), why=""),
            WriteFile(file="config/moved", old=b"{}", new=b"{ }", why="6: of a moved file"),
            WriteFile(file="gone", old=None, new=b"", why="7"),
            RemoveFile(file="gone", size=0, sample=sample_digest(b"", b""), why="8"),
        ]
    )


def contents(root: Path) -> dict[str, bytes]:
    """Everything below ``root``, as a :class:`Reading` reads it."""
    reading, content_by_name, pending = Reading(), {}, [root]
    while pending:
        folder = pending.pop()
        pending += reading.folders(folder)
        for entry in reading.entries(folder):
            if entry.is_dir():
                continue
            info = reading.entry_status(entry)
            descriptor = reading.open(entry.path, identity=(info.st_dev, info.st_ino))
            data = reading.read(entry.path, descriptor, info.st_size, 0, info.st_size)
            into = bytearray(info.st_size)
            assert reading.read_into(entry.path, descriptor, memoryview(into), 0, info.st_size) == info.st_size
            assert data == bytes(into)
            status = reading.status(entry.path)
            assert status is not None
            assert (status.st_size, status.st_mtime_ns, status.st_ino) == (info.st_size, info.st_mtime_ns, info.st_ino)
            os.close(descriptor)
            content_by_name[os.path.relpath(entry.path, root)] = data
    assert reading.unread == ()
    return content_by_name


def test_reading_through_the_patches_is_reading_a_copy_with_the_changes(folder: Path, tmp_path: Path) -> None:
    patches = some_patches(folder)
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    files_before = fingerprint(folder)
    disk = PatchedDisk(folder, patches)
    with read_through(disk):
        patched = contents(folder)
    disk.close()
    apply_patches(copy, patches, RealDisk())
    assert patched == contents(copy)
    assert patched["small"] == b"01xyz56789"
    assert patched["new/deep/file"] == b"new"
    assert "config/table" not in patched
    assert changes(files_before, fingerprint(folder)) == []


@pytest.mark.parametrize("name", ["small", "large"])
@pytest.mark.parametrize("change", [-5, 5, 70_000])
def test_a_file_that_becomes_longer_or_shorter_reads_as_the_changed_copy(
    folder: Path, tmp_path: Path, name: str, change: int
) -> None:
    size = (folder / name).stat().st_size
    new_size = size + change
    patches = PatchList(
        [
            WriteBytes(file=name, offset=size - 6, old=(folder / name).read_bytes()[-6:], new=b"patchd", why="1"),
            ResizeFile(
                file=name,
                size=size,
                new_size=new_size,
                sample=sample_digest(*_ends((folder / name).read_bytes()[:-6] + b"patchd")),
                why="2",
            ),
            WriteBytes(file=name, offset=new_size - 1, old=b"\0" if change > 0 else b"p", new=b"!", why="3"),
        ]
    )
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    disk = PatchedDisk(folder, patches)
    with read_through(disk):
        patched = contents(folder)
        assert Reading().is_plain(str(folder / name)) == (name == "small")
    disk.close()
    apply_patches(copy, patches, RealDisk())
    assert patched == contents(copy)
    assert len(patched[name]) == new_size


def _ends(content: bytes) -> tuple[bytes, bytes]:
    return content[: 64 << 10], content[-(64 << 10) :]


def test_without_patches_nothing_differs(folder: Path) -> None:
    disk = PatchedDisk(folder, PatchList())
    plain = contents(folder)
    with read_through(disk):
        assert contents(folder) == plain
        assert Reading().is_plain(str(folder / "large"))
    disk.close()


def test_a_patched_span_in_a_hole_is_data(folder: Path) -> None:
    disk = PatchedDisk(folder, some_patches(folder))
    descriptor = os.open(folder / "large", os.O_RDONLY)
    extents = disk.extents(descriptor, 0, LARGE)
    assert any(start <= 500_000 and stop >= 500_100 for start, stop in extents)
    assert extents == sorted(extents)
    assert not disk.is_plain(str(folder / "large"))
    assert disk.is_plain(str(folder / "other"))
    os.close(descriptor)
    disk.close()


@pytest.mark.parametrize("new_size", [None, 400_000, LARGE + 5000])
def test_the_next_data_is_that_of_the_patched_copy(folder: Path, tmp_path: Path, new_size: int | None) -> None:
    """Each look at the Log view of a patched store asked for all data to the end of the file, 5 ms a time."""
    patches = list(some_patches(folder))
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    apply_patches(copy, PatchList(patches), RealDisk())
    if new_size is not None:
        ends = sample_digest(*_ends((copy / "large").read_bytes()))
        patches.append(ResizeFile(file="large", size=LARGE, new_size=new_size, sample=ends, why=""))
        os.truncate(copy / "large", new_size)
    content, size = (copy / "large").read_bytes(), new_size or LARGE
    disk = PatchedDisk(folder, patches)
    descriptor = os.open(folder / "large", os.O_RDONLY)
    for position in (0, 8192, 499_999, 500_040, 500_100, 600_000, size - 1):
        start = disk.next_data(descriptor, position, size)
        following = next((n for n in range(position, min(size, len(content))) if content[n]), size)
        assert position <= start <= following if start >= 0 else following == size
    assert disk.next_data(descriptor, 500_040, size) == (500_040 if size > 500_040 else -1)
    os.close(descriptor)
    disk.close()


def test_another_time_of_change_keeps_caches_apart(folder: Path) -> None:
    times = set()
    for new in (b"23", b"aa", b"bb"):
        patch = WriteBytes(file="small", offset=2, old=b"23", new=new, why="")
        disk = PatchedDisk(folder, [patch])
        times.add(disk.status(str(folder / "small"), True).st_mtime_ns)
        disk.close()
    assert len(times) == 3


@pytest.mark.parametrize(
    "patch",
    [
        WriteBytes(file="small", offset=2, old=b"2x", new=b"..", why=""),
        WriteBytes(file="small", offset=9, old=b"99", new=b"..", why=""),
        WriteBytes(file="missing", offset=0, old=b"1", new=b".", why=""),
        WriteBytes(file="large", offset=0, old=b"tail", new=b"....", why=""),
        WriteFile(file="small", old=b"other", new=b"", why=""),
        WriteFile(file="small", old=b"0123456789+", new=b"", why=""),
        WriteFile(file="small", old=None, new=b"", why=""),
        WriteFile(file="missing", old=b"", new=b"", why=""),
        WriteFile(file="config", old=None, new=b"", why=""),
        RemoveFile(file="small", size=9, sample="", why=""),
        RemoveFile(file="small", size=10, sample="", why=""),
        RemoveFile(file="missing", size=0, sample=sample_digest(b"", b""), why=""),
        MoveFile(file="small", target="large", size=10, sample=sample_digest(b"0123456789", b"0123456789"), why=""),
    ],
    ids=str,
)
def test_a_patch_that_does_not_fit_is_refused_and_nothing_is_written(folder: Path, patch) -> None:
    files_before = fingerprint(folder)
    good = WriteBytes(file="small", offset=0, old=b"0", new=b"!", why="would be first")
    with pytest.raises(BadPatch) as refused:
        PatchedDisk(folder, [patch])
    assert refused.value.file in {patch.file, getattr(patch, "target", "")}
    with pytest.raises(BadPatch):
        apply_patches(folder, PatchList([patch, good]), RealDisk())
    assert changes(files_before, fingerprint(folder)) == []


@pytest.mark.golden
@pytest.mark.parametrize("max_in_memory", [MAX_IN_MEMORY_BYTES, 4096])
def test_a_store_is_planned_as_a_patched_copy_is(golden, tmp_path: Path, monkeypatch, max_in_memory: int) -> None:
    """The log of a healthy store is cut before its last units, in a file that compiled code reads otherwise."""
    monkeypatch.setattr(patched_disk, "MAX_IN_MEMORY_BYTES", max_in_memory)
    root = golden("broker-orders")
    with open_store(root) as store:
        healthy = plan(store)
        *_, cut, _last = (item for item in store.log.walk() if isinstance(item, Unit))
        file = store.log.sequence.find(cut.offset)
        assert file is not None
        position = cut.offset - file.start_offset
        patch = WriteBytes(
            file=f"commitlog/{file.name}", offset=position, old=file.read(position, 8), new=bytes(8), why="cut"
        )
    patches = PatchList([patch])
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    apply_patches(copy, patches, RealDisk())
    with open_store(root, patches=patches) as patched, open_store(copy) as changed:
        ours, theirs = plan(patched), plan(changed)
    assert ours.end_offset == theirs.end_offset == cut.offset < healthy.end_offset
    assert (ours.queues, ours.units_dropped, ours.exit) == (theirs.queues, theirs.units_dropped, theirs.exit)


@pytest.fixture(scope="module")
def long_log(tmp_path_factory) -> Path:
    """A store with one log file of 1.5 MiB of messages, twelve pieces as compiled code reads them."""
    store = HandmadeStore(log_size=1 << 21)
    while len(store.log) < 3 << 19:
        store.put(body=b"x" * (200 + len(store.units) % 300))
    return store.write(tmp_path_factory.mktemp("long") / "store")


@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("seed", range(3))
def test_a_walk_over_patches_is_the_walk_of_a_patched_copy(
    long_log: Path, tmp_path: Path, monkeypatch, count: int, seed: int
) -> None:
    """Patches at the ends of pieces, across them, one behind the other, and a file that is cut or longer."""
    monkeypatch.setattr(patched_disk, "MAX_IN_MEMORY_BYTES", 4096)
    rng = random.Random(seed)
    log = long_log / "commitlog" / f"{0:020d}"
    content = bytearray(log.read_bytes())
    patches: list[Patch] = []
    for _ in range(count):
        place = rng.choice((rng.randrange(12) * CHUNK_BYTES - rng.randrange(9), rng.randrange(3 << 19)))
        place, size = max(place, 0), rng.choice((1, 8, 5000))
        old = bytes(content[place : place + size])
        new = old if rng.random() < 0.8 else bytes([old[0] ^ 255]) + old[1:]
        content[place : place + size] = new
        patches.append(WriteBytes(file=f"commitlog/{log.name}", offset=place, old=old, new=new, why=""))
    if seed:
        new_size = len(content) + rng.choice((-(1 << 20), -70_001, 5000))
        digest = sample_digest(*_ends(bytes(content)))
        patches.append(
            ResizeFile(file=f"commitlog/{log.name}", size=len(content), new_size=new_size, sample=digest, why="")
        )
    copy = tmp_path / "copy"
    shutil.copytree(long_log, copy)
    apply_patches(copy, PatchList(patches), RealDisk())
    assert _walked(long_log, patches) == _walked(copy, ())


def test_compiled_code_reads_what_lies_between_the_patches(long_log: Path, monkeypatch) -> None:
    """A patched file was read in large pieces by calls: a check of 1,000,000 messages took 16 % more."""
    monkeypatch.setattr(patched_disk, "MAX_IN_MEMORY_BYTES", 4096)
    name = f"commitlog/{0:020d}"
    old = (long_log / name).read_bytes()[600_000:600_008]
    sizes: list[int] = []
    read_into = PatchedDisk.read_into

    def counting(self: PatchedDisk, descriptor: int, view: memoryview, position: int) -> int:
        sizes.append(len(view))
        return read_into(self, descriptor, view, position)

    monkeypatch.setattr(PatchedDisk, "read_into", counting)
    _walked(long_log, [WriteBytes(file=name, offset=600_000, old=old, new=old, why="")])
    assert sum(sizes) <= (CHUNK_BYTES if columns.twin() else 1 << 22)


def test_the_ends_of_what_is_plain(folder: Path) -> None:
    disk = PatchedDisk(folder, some_patches(folder))
    large = str(folder / "large")
    assert [disk.plain_end(large, position) for position in (0, 499_999, 500_000, 500_099)] == [
        500_000,
        500_000,
        500_000,
        500_099,
    ]
    assert disk.plain_end(large, 500_100) == disk.plain_end(str(folder / "other"), 0) == FAR
    disk.close()


def _walked(root: Path, patches: Iterable[Patch]) -> list[tuple[int, int, int, int]]:
    """Offset, size, kind and verdict of the CRC of each unit, and the damage between them."""
    found: list[tuple[int, int, int, int]] = []
    with open_store(root, patches=patches) as store:
        for block in scan_log(store.log):
            if isinstance(block, columns.UnitColumns):
                fields = (block[name][: block.count].tolist() for name in ("offset", "size", "kind", "crc"))
                found += zip(*fields, strict=True)
            else:
                found.append((block.offset, getattr(block, "size", 0), -1, -1))
    return found


def test_a_store_is_read_as_patched_inside_a_block(tmp_path):
    root = healthy().write(tmp_path / "store")
    old = (root / "checkpoint").read_bytes()[:8]
    patch = WriteBytes(file="checkpoint", offset=0, old=old, new=bytes(8), why="")
    with read_as_patched(root, [patch]), open_store(root) as store, open_store(root, None, [_back(patch)]) as other:
        assert store.small_file(store.paths.checkpoint)[:8] == bytes(8)
        assert other.small_file(other.paths.checkpoint)[:8] == bytes([1]) * 8
        own = store.reading.with_own_records()
        assert own.small(store.paths.checkpoint, 1 << 20)[:8] == bytes(8)
    with open_store(root) as store:
        assert store.small_file(store.paths.checkpoint)[:8] == old


def _back(patch):
    return replace(patch, new=bytes([1]) * 8)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.binary(min_size=1, max_size=12)), max_size=12), st.integers(0, 50))
def test_later_spans_lie_over_earlier_ones_and_spans_stay_disjoint(writes, position):
    content, spans = bytearray(64), []
    for offset, data in writes:
        content[offset : offset + len(data)] = data
        patched_disk._lay(spans, offset, data)
    ends = [offset + len(data) for offset, data in spans]
    assert all(end <= start for end, (start, _) in zip(ends, spans[1:], strict=False))
    assert patched_disk._laid_over(bytes(64)[position:60], position, spans) == content[position:60]
