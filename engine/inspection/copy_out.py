"""``snapshot``: copies a store byte by byte, with a manifest of hashes. The source is only read.

Holes, times and modes are preserved. A part that is a link, for example to a folder on another disk, is copied as its
target. A file that changes during the copy (a broker is writing) is copied as it was read and marked in the manifest.
The copy grows in ``DST``, which must be absent or empty; an interrupted copy is removed. Copying a single message is a
command of its own; its text is made here.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.inspection.opening import recognise
from engine.inspection.undecoded import undecoded_parts
from engine.mapped.reading import Reading
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot
    from engine.inspection.where.evidence import WhereResult


MANIFEST = "storescope-manifest.json"
_BLOCK = 1 << 20
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

    ``loops`` are links that lead back into a folder that contains them: they are left out.
    """

    source: Path
    destination: Path
    folders: tuple[str, ...]
    files: tuple[str, ...]
    bytes: int
    left_out: tuple[str, ...]
    loops: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Copied:
    """Result of a copy; ``changed`` names files that were written during it."""

    files: int
    bytes: int
    changed: tuple[str, ...]
    manifest: Path


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
        return CopyPlan(root.parent, target, (), (root.name,), info.st_size if info else 0, ())
    folders, files, left_out, loops, total = [], [], [], [], 0
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
    return CopyPlan(root, target, tuple(folders), tuple(files), total, tuple(left_out), tuple(loops))


def copy_out(plan: CopyPlan, progress: Callable[[int], None] | None = None) -> Copied:
    """Copy as planned. Raises :class:`CannotRead` for the source, ``OSError`` for the destination; then nothing is
    left.
    """
    existed = plan.destination.is_dir()
    reading = Reading()
    listed: list[dict[str, object]] = []
    changed: list[str] = []
    done = 0
    try:
        plan.destination.mkdir(parents=True, exist_ok=True)
        for name in plan.folders:
            (plan.destination / name).mkdir(parents=True, exist_ok=True)
        for name in plan.files:
            entry, moved = _copy_file(plan.source / name, plan.destination / name, reading)
            listed.append({"path": name, **entry, "changedWhileCopied": moved})
            if moved:
                changed.append(name)
            done += plan_size(entry)
            if progress:
                progress(done)
        for name in reversed(plan.folders):
            shutil.copystat(plan.source / name, plan.destination / name)
        manifest = plan.destination / MANIFEST
        text = {"source": str(plan.source), "hash": "sha256", "files": listed, "leftOut": list(plan.left_out)}
        manifest.write_text(json.dumps(text, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except BaseException:
        _remove(plan.destination, keep=existed)
        raise
    return Copied(len(listed), done, tuple(changed), manifest)


def plan_size(entry: dict[str, object]) -> int:
    """The size (bytes) in a manifest entry."""
    size = entry["size"]
    return size if isinstance(size, int) else 0


def _copy_file(source: Path, destination: Path, reading: Reading) -> tuple[dict[str, object], bool]:
    descriptor = reading.open(source)
    try:
        start_stat = os.fstat(descriptor)
        destination.parent.mkdir(parents=True, exist_ok=True)
        with destination.open("xb") as target:
            read = partial(reading.read, str(source), descriptor)
            digest = _copy_data(read, descriptor, target.fileno(), start_stat.st_size)
            os.fchmod(target.fileno(), stat.S_IMODE(start_stat.st_mode) | stat.S_IWUSR)
        end_stat = os.fstat(descriptor)
        os.utime(destination, ns=(start_stat.st_atime_ns, start_stat.st_mtime_ns))
        moved = (start_stat.st_mtime_ns, start_stat.st_size) != (end_stat.st_mtime_ns, end_stat.st_size)
        return {"size": start_stat.st_size, "modified": start_stat.st_mtime_ns // 1_000_000, "sha256": digest}, moved
    finally:
        os.close(descriptor)


def _copy_data(read: Callable[[int, int, int], bytes], source: int, target: int, size: int) -> str:
    """Copy the parts that hold data, leave the holes; the hash covers all bytes, including the zeros of holes."""
    digest = hashlib.sha256()
    os.ftruncate(target, size)
    zeros = bytes(_BLOCK)
    position = 0
    for start, end in _data(source, size):
        while position < start:
            step = min(start - position, _BLOCK)
            digest.update(zeros[:step])
            position += step
        while position < end:
            block = read(min(_BLOCK, end - position), position, size)
            if not block:
                break
            digest.update(block)
            os.pwrite(target, block, position)
            position += len(block)
    while position < size:
        step = min(size - position, _BLOCK)
        digest.update(zeros[:step])
        position += step
    return digest.hexdigest()


def _data(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """(start, end) of each part of the file that is no hole."""
    position = 0
    while position < size:
        try:
            start = os.lseek(descriptor, position, os.SEEK_DATA)
            end = os.lseek(descriptor, start, os.SEEK_HOLE)
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
