"""``snapshot``: copies a store byte by byte, with a manifest of hashes. The source is only read.

Holes, times and modes are preserved. A part that is a link, for example to a folder on another disk, is copied as its
target. A file that changes during the copy (a broker is writing) is copied as it was read and marked in the manifest.
The copy grows in ``DST``, which must be absent or empty; an interrupted copy is removed. Where the file system can, a
copied file shares its blocks with the source until one of them is written (btrfs, xfs); a second name of the same file
would not do: a broker on the copy would write into the source. Copying a single message is a command of its own; its
text is made here.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shlex
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from engine import system
from engine.errors import StoreError, UsageError
from engine.files.atomic_file import errors_of
from engine.inspection.opening import recognise
from engine.inspection.undecoded import undecoded_parts
from engine.mapped.reading import Reading
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.inspection.where.evidence import WhereResult


MANIFEST = "storescope-manifest.json"
_BLOCK = 1 << 20
_ZEROS = bytes(_BLOCK)
_STEP_BYTES = 16 << 20
"""Bytes that the system copies between two reports of progress."""
_RECOVERY_FOLDERS = (
    "commitlog",
    "consumequeue",
    "consumequeue_ext",
    "batchconsumequeue",
    "index",
    "timerlog",
    "config",
)
_RECOVERY_FILES = ("checkpoint", "abort", "abort.bak", "lock", "timerwheel", "epochFileCheckpoint")
_LOG_FILES_FOR_RECOVERY = 4


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """Files to copy, as paths relative to ``source``; ``bytes`` is their apparent size.

    ``loops`` are links that lead back into a folder that contains them: they are left out. ``allocated`` are the bytes
    that the files take on the disk: less than ``bytes`` where they have holes.
    """

    source: Path
    destination: Path
    folders: tuple[str, ...]
    files: tuple[str, ...]
    bytes: int
    left_out: tuple[str, ...]
    loops: tuple[str, ...] = ()
    allocated: int = 0


@dataclass(frozen=True, slots=True)
class Copied:
    """Result of a copy; ``changed`` names files that were written during it, ``shared`` are the bytes of files that
    share their blocks with the source.
    """

    files: int
    bytes: int
    changed: tuple[str, ...]
    manifest: Path | None
    shared: int = 0


def plan_copy(source: str | Path, destination: str | Path, *, recovery_set: bool = False) -> CopyPlan:
    """Decide what to copy.

    Raises :class:`UsageError` if ``destination`` is in use or lies inside the source, :class:`CannotRead` if a folder
    cannot be listed or a file cannot be opened; nothing is written then.
    """
    reading = Reading()
    opening = recognise(source, reading)
    root, target = opening.path, Path(destination)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(sentence("expected a new or empty folder, found something there"), file=str(target))
    if opening.kind != "file" and target.resolve().is_relative_to(root.resolve()):
        raise UsageError(sentence("expected a folder outside the store that is copied"), file=str(target))
    if opening.kind == "file":
        os.close(reading.open(root))
        info = reading.status(root, listed=True)
        size, allocated = (info.st_size, _allocated(info)) if info else (0, 0)
        return CopyPlan(root.parent, target, (), (root.name,), size, (), (), allocated)
    folders, files, left_out, loops, total, allocated = [], [], [], [], 0, 0
    chosen = _recovery_choice(root, reading) if recovery_set else None
    for name, info in _tree(root, reading):
        if stat.S_ISDIR(info.st_mode):
            if chosen is None or Path(name).parts[0] in _RECOVERY_FOLDERS:
                folders.append(name)
        elif not stat.S_ISREG(info.st_mode) or (chosen is not None and not chosen(name)):
            left_out.append(name)
            loops += [name] if stat.S_ISLNK(info.st_mode) else []
        else:
            os.close(reading.open(root / name))
            files.append(name)
            total += info.st_size
            allocated += _allocated(info)
    return CopyPlan(root, target, tuple(folders), tuple(files), total, tuple(left_out), tuple(loops), allocated)


def copy_out(
    plan: CopyPlan, progress: Callable[[int], None] = lambda _done: None, *, with_manifest: bool = True
) -> Copied:
    """Copy as planned; without a manifest the bytes of files that share their blocks are not even read.

    ``progress`` is called with the bytes done; what it raises ends the copy. Raises :class:`CannotRead` for the source,
    :class:`StoreError` if there is no room, ``OSError`` for the destination; then nothing is left.
    """
    existed = plan.destination.is_dir()
    reading = Reading()
    _require_room(plan, reading)
    listed: list[dict[str, object]] = []
    changed: list[str] = []
    done = shared = 0
    try:
        plan.destination.mkdir(parents=True, exist_ok=True)
        for name in plan.folders:
            (plan.destination / name).mkdir(parents=True, exist_ok=True)
        for name in plan.files:
            copied = _FileCopy(plan.source / name, plan.destination / name, reading, hashed=with_manifest)
            copied.make(partial(_report, progress, done))
            listed.append({"path": name, **copied.entry, "changedWhileCopied": copied.changed})
            if copied.changed:
                changed.append(name)
            done += copied.size
            shared += copied.size if copied.is_shared else 0
            progress(done)
        for name in reversed(plan.folders):
            shutil.copystat(plan.source / name, plan.destination / name)
        manifest = plan.destination / MANIFEST if with_manifest else None
        if manifest is not None:
            text = {"source": str(plan.source), "hash": "sha256", "files": listed, "leftOut": list(plan.left_out)}
            manifest.write_text(json.dumps(text, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except BaseException:
        _remove(plan.destination, keep=existed)
        raise
    return Copied(len(listed), done, tuple(changed), manifest, shared)


def _report(progress: Callable[[int], None], done: int, position: int) -> None:
    progress(done + position)


def _allocated(info: os.stat_result) -> int:
    return min(info.st_size, system.allocated_bytes(info))


def _require_room(plan: CopyPlan, reading: Reading) -> None:
    """Raise :class:`StoreError` if the destination's file system has no room for the files, and cannot share blocks."""
    place = next(folder for folder in (plan.destination, *plan.destination.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(place).free
    if plan.allocated > free and not _shares_blocks(plan, place, reading):
        message = sentence(
            "the copy needs {needed:,} bytes, and {free:,} bytes are free: nothing was copied",
            needed=plan.allocated,
            free=free,
        )
        raise StoreError(message, file=str(plan.destination))


def _shares_blocks(plan: CopyPlan, place: Path, reading: Reading) -> bool:
    """Return True if a file in ``place`` can share the blocks of the first file of the source that has any."""
    for name in plan.files:
        path = plan.source / name
        info = reading.status(path, listed=True)
        if info is not None and system.allocated_bytes(info) and reading.is_plain(str(path)):
            descriptor = reading.open(path)
            try:
                with tempfile.TemporaryFile(dir=place) as target:
                    return system.clone_blocks(descriptor, target.fileno())
            finally:
                os.close(descriptor)
    return False


class _FileCopy:
    """The copy of one file: ``entry`` is its part of the manifest, ``changed`` says that it was written meanwhile."""

    def __init__(self, source: Path, destination: Path, reading: Reading, *, hashed: bool) -> None:
        self.entry: dict[str, object] = {}
        self.size = 0
        self.changed = False
        self.is_shared = False
        self._source, self._destination, self._reading = source, destination, reading
        self._digest = hashlib.sha256() if hashed else None

    def make(self, progress: Callable[[int], None]) -> None:
        """Make the copy. Raises :class:`CannotRead`, ``OSError``, and what ``progress`` raises."""
        descriptor = self._reading.open(self._source)
        try:
            before = os.fstat(descriptor)
            self.size = before.st_size
            self._destination.parent.mkdir(parents=True, exist_ok=True)
            with errors_of(self._destination), self._destination.open("x+b") as target:
                self._copy_data(descriptor, target.fileno(), progress)
            self._destination.chmod(stat.S_IMODE(before.st_mode) | stat.S_IWUSR)
            after = os.fstat(descriptor)
            os.utime(self._destination, ns=(before.st_atime_ns, before.st_mtime_ns))
        finally:
            os.close(descriptor)
        self.changed = (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size)
        self.entry = {"size": self.size, "modified": before.st_mtime_ns // 1_000_000}
        if self._digest is not None:
            self.entry["sha256"] = self._digest.hexdigest()

    def _copy_data(self, source: int, target: int, progress: Callable[[int], None]) -> None:
        """Copy the parts that hold data, leave the holes; the hash covers all bytes, including the zeros of holes."""
        is_plain = self._reading.is_plain(str(self._source))
        self.is_shared = self.size > 0 and is_plain and system.clone_blocks(source, target)
        os.ftruncate(target, self.size)
        position = 0
        for start, end in _data(source, self.size) if self._digest is not None or not self.is_shared else ():
            self._hash_zeros(start - position)
            position = self._copy_part(source, target, start, end, progress)
        self._hash_zeros(self.size - position)

    def _copy_part(self, source: int, target: int, position: int, end: int, progress: Callable[[int], None]) -> int:
        """Copy the bytes from ``position`` to ``end``; returns the end, or where the file ends now."""
        by_system = self._digest is None and self._reading.is_plain(str(self._source))
        while position < end:
            step = min(end - position, _STEP_BYTES)
            count = system.copy_range(source, target, step, position) if by_system else 0
            if not count:
                by_system = False
                # bytes that are shared already are hashed as the copy has them: the source may change meanwhile
                block = self._reading.read(
                    str(self._source),
                    target if self.is_shared else source,
                    min(_BLOCK, end - position),
                    position,
                    self.size,
                )
                if not block:
                    break
                if self._digest is not None:
                    self._digest.update(block)
                written = len(block) if self.is_shared else 0
                while written < len(block):  # a disk that is nearly full takes a part
                    written += system.pwrite(target, memoryview(block)[written:], position + written)
                count = len(block)
            position += count
            progress(position)
        return position

    def _hash_zeros(self, size: int) -> None:
        while self._digest is not None and size > 0:
            self._digest.update(_ZEROS[:size])
            size -= _BLOCK


def _data(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """(start, end) of each part of the file that is no hole."""
    position = 0
    while position < size:
        try:
            start = system.next_data(descriptor, position)
            end = system.next_hole(descriptor, start)
        except OSError as error:
            if error.errno != errno.ENXIO:
                yield position, size
            return
        yield start, min(end, size)
        position = end


def _tree(root: Path, reading: Reading) -> Iterator[tuple[str, os.stat_result]]:
    """Everything below ``root``: names with their entries or link targets.

    A link that leads back into a folder that contains it is reported as a link. Raises :class:`CannotRead`, also for a
    link to nothing: its target may be on a disk that is not mounted.
    """
    top = reading.status(root, listed=True)
    pending = [("", frozenset({_identity(top)} if top is not None else ()))]
    while pending:
        folder, above = pending.pop()
        for entry in reading.entries(root / folder, listed=True):
            name = str(Path(folder) / entry.name)
            info = reading.entry_status(entry, follow=False)
            if stat.S_ISLNK(info.st_mode):
                target = reading.entry_status(entry)
                info = info if _identity(target) in above else target
            if stat.S_ISDIR(info.st_mode):
                pending.append((name, above | {_identity(info)}))
            yield name, info


def _identity(info: os.stat_result) -> tuple[int, int]:
    return info.st_dev, info.st_ino


def _recovery_choice(root: Path, reading: Reading) -> Callable[[str], bool]:
    """Return a test for the files that a start reads: the newest log files, all of queues, index and state, and
    undecoded parts.
    """
    undecoded = tuple(f"{part.folder}{os.sep}" for part in undecoded_parts(reading, root) if part.forbids_writing)
    logs = [entry.name for entry in reading.entries(root / "commitlog")][-_LOG_FILES_FOR_RECOVERY:]

    def chosen(name: str) -> bool:
        top_folder, _, file_name = name.partition(os.sep)
        if top_folder == "commitlog":
            return file_name in logs
        return top_folder in _RECOVERY_FOLDERS or name in _RECOVERY_FILES or name.startswith(undecoded)

    return chosen


def _remove(folder: Path, keep: bool) -> None:
    if not folder.is_dir():
        return
    for child in folder.iterdir():
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child, ignore_errors=True)
        else:
            child.unlink(missing_ok=True)
    if not keep:
        folder.rmdir()


def copy_one(store: str, offset: int, *, readable: bool) -> str:
    """The command that copies one message: into a new store, or its remains as JSON with its body."""
    path = shlex.quote(store)
    if readable:
        return f"storescope copy {path} NEW --where 'physicalOffset == {offset}'"
    return f"storescope message {path} {offset} --json --body"


def copy_found(store: StoreSnapshot, result: WhereResult) -> str:
    """The command that copies the message of ``result``; "" if no byte of it exists, or if the store is a bare log."""
    was = any(evidence.what == "was" for evidence in result.evidence)  # unreadable bytes whose message was identified
    if store.kind != "store" or result.physical_offset is None or not (result.life or was):
        return ""
    return copy_one(str(store.path), result.physical_offset, readable=bool(result.life))
