"""What a power loss may leave of everything that a program did below a folder through the system's own calls.

:class:`WriteRecorder` notes, after each call that changes a file or a name, what programs see and what is surely on the
disk. :meth:`WriteRecorder.states` are the moments at which the power may fail, and :meth:`DiskState.put_back` makes one
of the many possible disks of such a moment. The rules are those of :mod:`engine.mapped.power_loss`, but only a sync of
its folder makes a name durable, and each folder has a journal of its own::

    fsync of a file     its bytes, length, time and rights
    fdatasync           its bytes and length
    fsync of a folder   its names, time and rights; a rename between two folders with either of them
"""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from engine.mapped.backup import JOURNAL
from engine.mapped.power_loss import NameChange, choose_survival_chance, lose_pages, lose_rewritten, surviving_changes

_SYNCS = ("fsync", "fdatasync")
_FILE_CHANGES = ("open", "close", "write", "pwrite", "pwritev", "truncate", "ftruncate", "posix_fallocate")
_OTHER_CHANGES = ("copy_file_range", "chmod", "fchmod", "utime", "link", "symlink", "unlink", "remove")
_CHANGES = (*_FILE_CHANGES, *_OTHER_CHANGES, "mkdir", "rmdir", "rename", "replace")


@dataclass(frozen=True, slots=True)
class Node:
    """A file or a folder (``data`` is None) at one moment."""

    data: bytes | None
    mode: int
    modified_ns: int


Names = dict[str, int]
"""Path below the recorded folder → inode."""


@dataclass(frozen=True, slots=True)
class DiskState:
    """A moment at which the power may fail: ``call`` is the last call before it."""

    top: Path
    call: str
    names: Names
    nodes: dict[int, Node]
    durable_names: Names
    durable_nodes: dict[int, Node]
    pending: tuple[NameChange[int], ...]

    def put_back(self, rng: random.Random, keep: float | None = None) -> None:
        """Let the folder be one of the disks that a power loss leaves; ``keep`` is the chance of what is not synced."""
        chance = choose_survival_chance(rng) if keep is None else keep
        names = dict(self.durable_names)
        for change in self._surviving(rng, chance):
            change.apply(names)
        _empty(self.top)
        new_inodes: dict[int, int] = {}
        first_paths: dict[int, Path] = {}
        placed: list[tuple[Path, Node]] = []
        for name in sorted(names):
            inode, path = names[name], self.top / name
            if not name:
                new_inodes[inode] = path.stat().st_ino
                continue
            if not path.parent.is_dir():
                continue  # the name of its folder is lost
            node = self._lost(inode, rng, chance)
            if node.data is None:
                path.mkdir()
            elif inode in first_paths:
                os.link(first_paths[inode], path)
                continue
            else:
                path.write_bytes(node.data)
            first_paths[inode] = path
            new_inodes[inode] = path.lstat().st_ino
            placed.append((path, node))
        for path in self.top.glob(f"*/{JOURNAL}"):
            _renumber(path, new_inodes)
        for path, node in reversed(placed):
            path.chmod(node.mode)
            os.utime(path, ns=(node.modified_ns, node.modified_ns))

    def _surviving(self, rng: random.Random, chance: float) -> list[NameChange[int]]:
        """Of each folder the first few changes that are not synced."""
        survived: set[int] = set()
        for folder in sorted({_folder_of(change.path) for change in self.pending}):
            own = [change for change in self.pending if _folder_of(change.path) == folder]
            survived |= {change.group for change in surviving_changes(own, rng, chance)}
        return [change for change in self.pending if change.group in survived]

    def _lost(self, inode: int, rng: random.Random, chance: float) -> Node:
        live, durable = self.nodes[inode], self.durable_nodes.get(inode)
        if durable is None:
            durable = replace(live, data=None if live.data is None else b"")
        if live == durable:
            return live
        data = live.data
        if live.data is not None and durable.data is not None and live.data != durable.data:
            data = _lost_bytes(live.data, durable.data, rng, chance)
        known = live if rng.random() < chance else durable
        return Node(data, known.mode, known.modified_ns)


def _lost_bytes(live: bytes, durable: bytes, rng: random.Random, chance: float) -> bytes:
    """Return what may be there of ``live``, of which ``durable`` is surely there."""
    if not durable:
        return lose_rewritten(live, durable, rng, chance)
    size = len(live) if rng.random() < chance else len(durable)
    buffer = bytearray(durable[:size].ljust(size, b"\0"))
    lose_pages(buffer, live[:size].ljust(size, b"\0"), rng, chance)
    return bytes(buffer)


@dataclass(slots=True)
class WriteRecorder:
    """Records what is done below ``top``, which counts as durable when the recording begins."""

    top: Path
    states: list[DiskState] = field(default_factory=list)
    _names: Names = field(default_factory=dict)
    _nodes: dict[int, Node] = field(default_factory=dict)
    _durable_names: Names = field(default_factory=dict)
    _durable_nodes: dict[int, Node] = field(default_factory=dict)
    _pending: list[NameChange[int]] = field(default_factory=list)
    _group: int = 0

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record everything that this process does in the block."""
        self._names, self._nodes = _scan(self.top)
        self._durable_names, self._durable_nodes = dict(self._names), dict(self._nodes)
        with pytest.MonkeyPatch.context() as patch:
            for name in (*_CHANGES, *_SYNCS):
                patch.setattr(os, name, self._watched(name, getattr(os, name)))
            yield
        self._note("the end")

    def _watched(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            result = function(*arguments, **options)
            if name == "open" and not arguments[1] & os.O_CREAT:
                return result
            self._note(f"{name} {arguments[:1]}")
            if name in _SYNCS:
                self._sync(os.fstat(arguments[0]), with_times=name == "fsync")
                self._note(f"{name} {arguments[:1]}, done")
            return result

        return call

    def _note(self, call: str) -> None:
        """Compare what programs see now with what they saw before the call."""
        names, nodes = _scan(self.top)
        if (names, nodes) == (self._names, self._nodes) and self.states and not call.endswith("done"):
            return
        self._group += 1
        for path in sorted({*names, *self._names}, key=lambda path: (path in names, path)):
            if names.get(path) != self._names.get(path):
                self._pending.append(NameChange(path, names.get(path), self._group))
        self._names, self._nodes = names, {**self._nodes, **nodes}
        self.states.append(
            DiskState(
                self.top,
                call,
                dict(names),
                dict(self._nodes),
                dict(self._durable_names),
                dict(self._durable_nodes),
                tuple(self._pending),
            )
        )

    def _sync(self, info: os.stat_result, *, with_times: bool) -> None:
        inode = info.st_ino
        if inode not in self._nodes:
            return
        node, durable = self._nodes[inode], self._durable_nodes.get(inode)
        if not with_times and durable is not None:
            node = replace(node, mode=durable.mode, modified_ns=durable.modified_ns)
        self._durable_nodes[inode] = node
        if not stat.S_ISDIR(info.st_mode):
            return
        folder = next((name for name, number in self._names.items() if number == inode), None)
        if folder is None:
            return
        synced = {change.group for change in self._pending if _folder_of(change.path) == folder}
        for change in self._pending:
            if change.group in synced:
                change.apply(self._durable_names)
        self._pending = [change for change in self._pending if change.group not in synced]


def _folder_of(name: str) -> str:
    return name.rpartition("/")[0]


def _scan(top: Path) -> tuple[Names, dict[int, Node]]:
    """Return everything below ``top`` and, as "", itself."""
    info = top.stat()
    names: Names = {"": info.st_ino}
    nodes = {info.st_ino: Node(None, stat.S_IMODE(info.st_mode), info.st_mtime_ns)}
    pending = [""]
    while pending:
        folder = pending.pop()
        with os.scandir(top / folder) as entries:
            for entry in entries:
                info = entry.stat(follow_symlinks=False)
                name = f"{folder}/{entry.name}" if folder else entry.name
                names[name] = info.st_ino
                data = None
                if stat.S_ISDIR(info.st_mode):
                    pending.append(name)
                elif info.st_ino in nodes:
                    continue
                else:
                    data = Path(entry.path).read_bytes()
                nodes[info.st_ino] = Node(data, stat.S_IMODE(info.st_mode), info.st_mtime_ns)
    return names, nodes


def _empty(top: Path) -> None:
    for path in top.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _renumber(journal: Path, inodes: dict[int, int]) -> None:
    """Write the inodes of the new files into the journal: a disk after a power loss has the old ones."""
    lines = journal.read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1]):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry.get("inode"), int):
            entry["inode"] = inodes.get(entry["inode"], entry["inode"])
        for stamps in (entry.get("before"), entry.get("after")):
            for stamp in stamps.values() if isinstance(stamps, dict) else ():
                stamp[2] = inodes.get(stamp[2], stamp[2])
        lines[number] = json.dumps(entry, separators=(",", ":")).encode()
    journal.write_bytes(b"\n".join(lines))
