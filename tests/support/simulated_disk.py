"""A disk in memory that separates the programs' view from the bytes that would survive a power loss.

It replaces :class:`engine.mapped.disk.RealDisk` in crash tests: the power can fail at any call, calls can fail or be
slow, and :meth:`SimulatedDisk.after_power_loss` returns one of the many possible disks afterwards: flushed bytes are
there, of the other pages any subset, some torn between their sectors; of the changes of names those that were synced
and, like in file systems with a journal, the first so many of the others.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Protocol

from engine.errors import StoreLocked
from engine.mapped.power_loss import (
    PAGE,
    NameChange,
    PowerLoss,
    choose_survival_chance,
    lose_pages,
    lose_rewritten,
    surviving_changes,
)

# What a simulated disk holds of one file: the bytes that programs see, and the bytes that would survive a power loss.
#
# Pure: no disk is touched here.


class Node:
    """Content of a file. ``live`` is the result of reading, ``durable`` is surely on the disk.

    Pages in which the two differ are dirty: each of them may reach the disk at any moment, in any order.
    """

    __slots__ = ("durable", "durable_modified", "live", "modified")

    def __init__(self, size: int, modified: int) -> None:
        self.live = bytearray(size)
        self.durable = bytes(size)
        self.modified = modified
        self.durable_modified = modified

    def flush(self) -> None:
        """Put everything on the disk."""
        self.durable = bytes(self.live)
        self.durable_modified = self.modified

    def dirty_pages(self) -> list[int]:
        """Return the numbers of the pages that differ; all of them if the length differs."""
        live, durable = memoryview(self.live), memoryview(self.durable)
        if live == durable:
            return []
        starts = range(0, max(len(live), len(durable)), PAGE)
        return [start // PAGE for start in starts if live[start : start + PAGE] != durable[start : start + PAGE]]

    def write_back(self, rng: random.Random) -> None:
        """Let some of the dirty pages reach the disk, like a kernel may."""
        if len(self.live) != len(self.durable):
            return
        buffer = bytearray(self.durable)
        for page in self.dirty_pages():
            if rng.random() < 0.5:
                buffer[page * PAGE : (page + 1) * PAGE] = self.live[page * PAGE : (page + 1) * PAGE]
        self.durable = bytes(buffer)

    def after_power_loss(self, rng: random.Random, keep: float) -> bytes:
        """Return the content afterwards: ``keep`` is the chance of each dirty page; some pages are torn between
        sectors.
        """
        if len(self.live) != len(self.durable):
            return lose_rewritten(self.live, self.durable, rng, keep)
        buffer = bytearray(self.durable)
        if self.live != buffer:
            lose_pages(buffer, self.live, rng, keep)
        return bytes(buffer)


# One open file of a simulated disk, and its store lock.


class Host(Protocol):
    """The part of a disk that a file needs."""

    guard: threading.RLock

    def wait(self, kind: str) -> None:
        """Take the time that a call of ``kind`` takes."""

    def refuse(self, kind: str, path: str) -> None:
        """Raise the error of this call, if it has one."""

    def call(self, kind: str, path: str) -> None:
        """Count a call; the power may fail here."""

    def flush(self, path: str, node: Node) -> None:
        """Make bytes and name survive a power loss."""

    def now(self) -> int:
        """Return the disk's clock, ms."""

    def delete(self, path: Path) -> None:
        """Remove a file."""


class SimulatedFile:
    """See :class:`engine.mapped.disk.DiskFile`; its map is the same memory that programs see."""

    __slots__ = ("_disk", "_failure", "_node", "path", "size")

    def __init__(self, disk: Host, path: str, size: int, node: Node) -> None:
        self._disk = disk
        self.path = path
        self.size = size
        self._node = node
        self._failure: OSError | None = None

    @property
    def view(self) -> memoryview:
        return memoryview(self._node.live)[: self.size]

    @property
    def is_mapped(self) -> bool:
        return False

    def read(self, position: int, size: int) -> bytes:
        with self._disk.guard:
            self._disk.refuse("read", self.path)
            return bytes(self._node.live[position : position + size]) if position >= 0 < size else b""

    def lend(self, position: int, size: int) -> memoryview | None:
        return self.view[position : position + size]

    def read_into(self, view: memoryview, position: int) -> int:
        data = self.read(position, len(view))
        view[: len(data)] = data
        return len(data)

    def extents(self, position: int = 0) -> list[tuple[int, int]]:
        return [(position, self.size)] if position < self.size else []

    def overwrite(self, position: int, data: bytes | memoryview) -> None:
        """Write bytes."""
        self.write(position, data)

    def write(self, position: int, data: bytes | memoryview) -> None:
        """Write bytes. A failed write may have written the first half, like on a full disk."""
        self._disk.wait("write")
        with self._disk.guard:
            try:
                self._disk.refuse("write", self.path)
            except OSError:
                half = bytes(data)[: len(data) // 2]
                self._node.live[position : position + len(half)] = half
                raise
            self._node.live[position : position + len(data)] = data
            self._node.modified = self._disk.now()
            self._disk.call("write", self.path)

    def reserve(self, start: int, stop: int, *, touch: bool = False) -> None:
        with self._disk.guard:
            self._disk.refuse("reserve", self.path)
            self._disk.call("reserve", self.path)

    def flush(self, start: int, stop: int) -> None:
        self._disk.wait("flush")
        with self._disk.guard:
            if self._failure is not None:
                raise OSError(self._failure.errno, self._failure.strerror, self.path)
            try:
                self._disk.flush(self.path, self._node)
            except OSError as error:
                self._failure = error
                raise

    def close(self) -> None:
        """Release nothing: there is nothing to release."""

    def delete(self) -> None:
        self._disk.delete(Path(self.path))


class SimulatedLock:
    """The store lock of a simulated disk, taken."""

    def __init__(self, locked_paths: set[str], path: str) -> None:
        self._held = locked_paths
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)


__all__ = ["Fault", "PowerLoss", "SimulatedDisk"]


@dataclass(slots=True)
class Fault:
    """Calls of ``kind`` on files whose path fits ``path`` fail with ``number``, except for the first ``after`` of
    them.
    """

    number: int
    kind: str
    path: str
    after: int
    times: int | None

    def strikes(self, kind: str, path: str) -> bool:
        """Return True if this call fails; count it."""
        if not (fnmatch.fnmatchcase(kind, self.kind) and fnmatch.fnmatchcase(path, self.path)):
            return False
        if self.after > 0:
            self.after -= 1
            return False
        if self.times is None:
            return True
        self.times -= 1
        return self.times >= 0


class SimulatedDisk:
    """Files in memory behind the protocol :class:`engine.mapped.disk.Disk`.

    ``crash_at``: the call of this number raises :class:`PowerLoss`. ``on_call``: gets every call before it reaches the
    disk, as (number, kind, path). ``write_back``: lets dirty pages reach the disk at random as time goes by. Kinds of
    calls: ``create open write reserve flush write_file replace move_folder delete remove_folder sync_folder``, and
    ``read``, which is not counted.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], int] = lambda: 0,
        crash_at: int | None = None,
        on_call: Callable[[int, str, str], None] | None = None,
        write_back: random.Random | None = None,
    ) -> None:
        self.calls = 0
        self.crash_at = crash_at
        self.on_call = on_call
        self.used = 0.1
        """What :meth:`usage` answers."""
        self.capacity = 1 << 40
        """What :meth:`total` answers, bytes."""
        self._clock = clock
        self._write_back = write_back
        self.guard = threading.RLock()
        self._nodes: dict[str, Node] = {}
        self._durable_names: dict[str, Node] = {}
        self._pending: list[NameChange[Node]] = []
        self._folders: set[str] = set()
        self._faults: list[Fault] = []
        self._locked: set[str] = set()
        self._slow_ms: dict[str, int] = {}
        self._dead = False

    # What may go wrong

    def fail(self, number: int, *, kind: str = "*", path: str = "*", after: int = 0, times: int | None = None) -> None:
        """Let calls fail with error ``number``; ``kind`` and ``path`` are patterns; the first ``after`` fitting calls
        succeed, and ``times`` many fail (None: all).
        """
        self._faults.append(Fault(number, kind, path, after, times))

    def heal(self) -> None:
        """End all failures and delays."""
        self._faults.clear()
        self._slow_ms.clear()

    def slow(self, ms: int, kind: str = "flush") -> None:
        """Make every call of ``kind`` take so long."""
        self._slow_ms[kind] = ms

    def cut_power(self) -> None:
        """Make every later call raise :class:`PowerLoss`."""
        self._dead = True

    def after_power_loss(self, rng: random.Random, keep: float | None = None) -> SimulatedDisk:
        """Return one of the possible disks after the power loss; this one continues as if nothing had happened.

        ``keep`` is the chance (0 to 1) of each unflushed part to be there; random if not given.
        """
        with self.guard:
            chance = keep if keep is not None else choose_survival_chance(rng)
            names = dict(self._durable_names)
            for change in surviving_changes(self._pending, rng, chance):
                change.apply(names)
            disk = SimulatedDisk(clock=self._clock)
            for path, node in names.items():
                content = node.after_power_loss(rng, chance)
                copy = Node(len(content), node.durable_modified)
                copy.live[:] = content
                copy.flush()
                disk._nodes[path] = disk._durable_names[path] = copy
                disk._folders.update(str(parent) for parent in PurePath(path).parents)
            return disk

    # The protocol

    def open(self, path: Path, size: int) -> SimulatedFile:
        with self.guard:
            node = self._nodes.get(str(path))
            if node is None:
                self.refuse("create", str(path))
                node = Node(size, self._clock())
                self._make_parents(path)
                self._rename({str(path): node})
                self.call("create", str(path))
            elif len(node.live) < size:
                self.call("open", str(path))
                node.live = bytearray(bytes(node.live).ljust(size, b"\0"))
            return SimulatedFile(self, str(path), size, node)

    def names(self, folder: Path) -> list[tuple[str, int]]:
        with self.guard:
            self._check_alive()
            inside = str(folder)
            return sorted(
                (os.path.basename(path), len(node.live))  # noqa: PTH119 (no Path for each of many)
                for path, node in self._nodes.items()
                if os.path.dirname(path) == inside  # noqa: PTH120
            )

    def entries(self, folder: Path) -> list[tuple[str, int, bool]]:
        files = [(name, size, False) for name, size in self.names(folder)]
        return sorted(files + [(name, 0, True) for name in self.folders(folder)])

    def folders(self, path: Path) -> list[str]:
        with self.guard:
            self._check_alive()
            inside = str(path)
            return sorted(
                PurePath(folder).name
                for folder in self._folders
                if str(PurePath(folder).parent) == inside and folder != inside
            )

    def read_file(self, path: Path) -> bytes | None:
        with self.guard:
            self._check_alive()
            node = self._nodes.get(str(path))
            return None if node is None else bytes(node.live)

    def write_file(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        self.wait("write_file")
        with self.guard:
            text = str(path)
            self.refuse("write_file", text)
            node = self._nodes.get(text)
            if node is None:
                node = Node(0, self._clock())
                self._make_parents(path)
                self._rename({text: node})
            node.live = bytearray(data)
            node.modified = self._clock()
            self.call("write_file", text)
            if sync:
                self.flush(text, node)

    def replace(self, source: Path, target: Path) -> None:
        with self.guard:
            self.refuse("replace", str(target))
            node = self._nodes.get(str(source))
            if node is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(source))
            self._rename({str(target): node, str(source): None})
            self.call("replace", str(target))

    def move_folder(self, source: Path, target: Path) -> None:
        with self.guard:
            text = str(source)
            self.refuse("move_folder", text)
            if text not in self._folders:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), text)
            self._make_parents(target / "x")
            changes: dict[str, Node | None] = {}
            for path, node in self._nodes.items():
                if path.startswith(text + "/"):
                    changes[str(target) + path[len(text) :]] = node
                    changes[path] = None
            moved = {folder for folder in self._folders if folder == text or folder.startswith(text + "/")}
            self._folders = self._folders - moved | {str(target) + folder[len(text) :] for folder in moved}
            self._rename(changes)
            self.call("move_folder", text)

    def delete(self, path: Path) -> None:
        with self.guard:
            if str(path) in self._nodes:
                self.refuse("delete", str(path))
                self._rename({str(path): None})
                self.call("delete", str(path))

    def remove_folder(self, path: Path) -> bool:
        with self.guard:
            text = str(path)
            if self.names(path) or self.folders(path):
                return False
            if text in self._folders:
                self.refuse("remove_folder", text)
                self._folders.discard(text)
                self.call("remove_folder", text)
            return True

    def exists(self, path: Path) -> bool:
        with self.guard:
            self._check_alive()
            return str(path) in self._nodes or str(path) in self._folders

    def linked_file(self, folder: Path) -> Path | None:
        return None

    def modified(self, path: Path) -> int:
        with self.guard:
            self._check_alive()
            return self._node(str(path)).modified

    def set_modified(self, path: Path, ms: int) -> None:
        with self.guard:
            self._node(str(path)).modified = ms

    def set_size(self, path: Path, size: int) -> None:
        with self.guard:
            text = str(path)
            self.refuse("set_size", text)
            node = self._node(text)
            del node.live[size:]
            node.live.extend(bytes(size - len(node.live)))
            self.call("set_size", text)
            self.flush(text, node)

    def usage(self, path: Path) -> float:
        return self.used if self.exists(path) else -1.0

    def total(self, path: Path) -> int:
        return self.capacity if self.exists(path) else 0

    def sync_folder(self, path: Path) -> None:
        with self.guard:
            self.refuse("sync_folder", str(path))
            self.call("sync_folder", str(path))
            self._commit_names()

    def lock(self, path: Path) -> SimulatedLock:
        with self.guard:
            text = str(path)
            if text in self._locked:
                raise StoreLocked("somebody has the store open for writing", file=text, pid=os.getpid())
            self.write_file(path, b"lock", sync=True)
            self._locked.add(text)
            return SimulatedLock(self._locked, text)

    def close(self) -> None:
        """Release nothing: there is nothing to release."""

    # What files ask of their disk

    def now(self) -> int:
        return self._clock()

    def wait(self, kind: str) -> None:
        if kind in self._slow_ms:
            time.sleep(self._slow_ms[kind] / 1000)

    def flush(self, path: str, node: Node) -> None:
        """Flush in two steps, like a file system: the bytes, then the name; the power may fail before each."""
        self.refuse("flush", path)
        self.call("flush", path)
        node.flush()
        if self._pending:
            self.call("flush", path)
            self._commit_names()

    def refuse(self, kind: str, path: str) -> None:
        """Raise the error of this call, if it has one."""
        self._check_alive()
        for fault in self._faults:
            if fault.strikes(kind, path):
                raise OSError(fault.number, os.strerror(fault.number), path)

    def call(self, kind: str, path: str) -> None:
        """Count a call that has reached the cache, and is about to reach the disk."""
        self._check_alive()
        self.calls += 1
        if self._write_back is not None and self._nodes and self._write_back.random() < 0.3:
            self._write_back.choice(list(self._nodes.values())).write_back(self._write_back)
        if self.on_call is not None:
            self.on_call(self.calls, kind, path)
        if self.crash_at is not None and self.calls >= self.crash_at:
            self._dead = True
            raise PowerLoss

    # Inside

    def _node(self, path: str) -> Node:
        node = self._nodes.get(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return node

    def _make_parents(self, path: Path) -> None:
        self._folders.update(str(parent) for parent in path.parents)

    def _rename(self, changes: dict[str, Node | None]) -> None:
        group = self._pending[-1].group + 1 if self._pending else 0
        for path, node in changes.items():
            change = NameChange(path, node, group)
            self._pending.append(change)
            change.apply(self._nodes)

    def _commit_names(self) -> None:
        for change in self._pending:
            change.apply(self._durable_names)
        self._pending.clear()

    def _check_alive(self) -> None:
        if self._dead:
            raise PowerLoss
