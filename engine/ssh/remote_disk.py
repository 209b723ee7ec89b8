"""The files of another machine as a disk, so that every reader of a store reads a store there.

Like :class:`engine.capsule.capsule_disk.CapsuleDisk` it is below :class:`engine.mapped.reading.Reading`.

What was fetched may be old. Two rules decide for how long it answers:

- A process holds the store there: it writes through maps, which change files without a new time. A listing and a block
  answer for :data:`MAX_AGE_S`, and each range of a block only once. Then its hash is compared with the file, and it is
  fetched again if that differs. So a reader that reads twice to see whether something changed sees the file both times.
- Nobody holds it: a listing answers for :data:`MAX_QUIET_AGE_S`, and blocks as long as the listings show the same
  length and time of their file.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import threading
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from engine.mapped.file_in_memory import file_in_memory
from engine.mapped.reading import SystemDisk
from engine.sentences import sentence
from engine.ssh.address import SCHEME, SshAddress
from engine.ssh.connection import Answer, SshConnection
from engine.ssh.file_server import BLOCK_BYTES, block_hash

MAX_AGE_S = 1.0
"""Seconds for which a listing and a block answer without a question to the far side."""
MAX_QUIET_AGE_S = 5.0
"""The same where nobody holds the store."""
MAX_AHEAD_AGE_S = 5.0
"""The same for a block that was asked for ahead of its reader."""
CACHE_BYTES = 128 << 20
"""Bytes of blocks that stay in memory."""
MAX_RUN_BLOCKS = 16
"""Blocks that are asked for in one request."""
MAX_AHEAD_BLOCKS = 128
"""Blocks that are asked for ahead of a reader that goes through a file: 8 MiB."""
MAX_LISTED = 20_000
"""Entries from which on a listing does not go into more folders below."""
MAX_RANGES = 256
"""Ranges that are remembered of a block; then it is compared again."""
MAX_FILES_AHEAD = 32
"""Files whose first block is asked for ahead of a reader that opens one file after the other."""
MAX_STAND_INS = 128
_FACTS = 11
NOT_FITTING = sentence("the other machine sent an answer that does not fit")

Identity = tuple[int, int]


@dataclass(slots=True)
class _RemoteFile:
    path: str
    identity: Identity
    facts: list[Any]
    next_block: int = 0
    """The block behind the last one that was read: a reader that continues there gets more ahead each time."""
    ahead: int = 0


@dataclass(slots=True)
class _Block:
    """A block of a file. While it is fetched, ``future`` is set, and it is number ``index`` of that answer."""

    data: bytes = b""
    asked_at: float = 0.0
    is_fetched: bool = False
    ranges: set[tuple[int, int]] = field(default_factory=set)
    """Ranges that were answered."""
    request: dict[str, Any] | None = None
    future: Future[Answer] | None = None
    index: int = 0


@dataclass(slots=True)
class _Listing:
    entries: dict[str, list[Any]]
    listed_at: float
    is_quiet: bool
    problem: dict[str, Any] | None = None


@dataclass(slots=True)
class _Stamp:
    """Length and time of a file at the last listing, and when a listing first showed them."""

    size: int
    modified: int
    since: float


class RemoteDisk(SystemDisk):
    """The files of the machine at ``address``; paths that do not begin with it are the system's.

    Raises :class:`engine.errors.CannotRead` if the machine cannot be reached.
    """

    def __init__(self, address: SshAddress, clock: Callable[[], float] = time.monotonic) -> None:
        self.address = address
        self.connection = SshConnection(address)
        self._home = str(self.connection.server["home"])
        self._prefix = f"{SCHEME}{address.machine}"
        self._clock = clock
        self._lock = threading.RLock()
        self._open_files: dict[Identity, _RemoteFile] = {}
        """The file there for each file in memory that stands for one."""
        self._stand_ins: dict[tuple[str, Identity, int], int] = {}
        """Path, identity and length there → descriptor, the one that was used last at the end."""
        self._blocks: OrderedDict[tuple[Identity, int], _Block] = OrderedDict()
        self._cached_bytes = 0
        self._listings: dict[str, _Listing] = {}
        self._quiet_root: str | None = None
        """The folder that was listed with all below it; nobody holds a store there. None: somebody may."""
        self._listed_at = 0.0
        self._stamps: dict[Identity, _Stamp] = {}
        self._paths: list[str] = []
        """The files of the last listing, in order."""
        self._last_opened = -1
        self._files_ahead = 0

    def close(self) -> None:
        """Close the connection; nothing can be read afterwards."""
        self.connection.close()
        with self._lock:
            self._blocks.clear()
            for descriptor in self._stand_ins.values():
                os.close(descriptor)
            self._stand_ins.clear()

    @property
    def note(self) -> str:
        """A sentence about what is read here."""
        return sentence("A store on another machine: {address}", address=str(self.address))

    def lock_state(self, path: str) -> Literal["free", "held", "absent", "unknown"]:
        """State of the lock file at ``path`` on the far side. Raises ``OSError``."""
        with _fitting_answer():
            answer = self._request("lock", path)[0]["state"]
        return answer if answer in {"free", "held", "absent"} else "unknown"

    def space(self, path: str | Path) -> tuple[int, int, int]:
        """Return the bytes of a path's file system: all, those that are free, and those that its user may take. Raises
        ``OSError``.
        """
        with _fitting_answer():
            total, free, available = (int(count) for count in self._request("space", str(path))[0]["space"])
        return total, free, available

    # -- the system's calls

    def open(self, path: str) -> int:
        remote = self._remote(path)
        if remote is None:
            return super().open(path)
        self._refuse_absent(remote, path, quiet_only=True)
        facts = self._quiet_facts(remote)
        if facts is None:
            facts = self._open_there(remote, path)
        info = _stat(facts)
        if not stat.S_ISREG(info.st_mode):
            return super().open(os.sep)  # a folder, which the caller refuses
        descriptor = self._stand_in(remote, facts)
        self._ask_for_next_files(remote)
        return descriptor

    def _stand_in(self, remote: str, facts: list[Any]) -> int:
        """Return a descriptor of an empty file in memory that stands for a file there. It is made once for a file that
        is opened again and again, or :attr:`_open_files` would grow with each.
        """
        info = _stat(facts)
        identity = info.st_dev, info.st_ino
        key = remote, identity, info.st_size
        with self._lock:
            descriptor = self._stand_ins.pop(key, -1)
            if descriptor < 0:
                descriptor = file_in_memory(b"", info.st_size)
                local = _identity(os.fstat(descriptor))
                self._open_files[local] = _RemoteFile(remote, identity, facts)
            else:
                self._open_files[_identity(os.fstat(descriptor))].facts = facts
            self._stand_ins[key] = descriptor
            if len(self._stand_ins) > MAX_STAND_INS:
                os.close(self._stand_ins.pop(next(iter(self._stand_ins))))
            return os.dup(descriptor)

    def _open_there(self, remote: str, path: str) -> list[Any]:
        """Return the facts of a file; its first block comes with them."""
        asked_at = self._clock()
        try:
            answer, data = self._request("open", path)
        except FileNotFoundError:
            self._forget_listings(remote)
            raise
        with _fitting_answer():
            facts = answer["facts"]
            info = _stat(facts)
        if answer.get("lengths") == [len(data)]:
            block = _Block(data, asked_at, is_fetched=True)
            with self._lock:
                self._drop(((info.st_dev, info.st_ino), 0))
                self._blocks[(info.st_dev, info.st_ino), 0] = block
                self._cached_bytes += len(data)
        return cast("list[Any]", facts)

    def _quiet_facts(self, remote: str) -> list[Any] | None:
        """Return the facts of a file where nobody holds the store and they were listed; None if the file must be
        opened to know.
        """
        folder, _, name = remote.rpartition("/")
        listing = self._listing(folder)
        entry = listing.entries.get(name) if listing is not None and listing.is_quiet else None
        if entry is None or not stat.S_ISREG(entry[0][0]):
            return None
        return cast("list[Any]", entry[0])

    def _ask_for_next_files(self, remote: str) -> None:
        """Ask for the first blocks of the next files where a reader opens one file after the other."""
        with self._lock:
            index = bisect_left(self._paths, remote)
            is_next = 0 < index - self._last_opened <= 3
            self._last_opened = index
            self._files_ahead = min(MAX_FILES_AHEAD, 2 * self._files_ahead + 2) if is_next else 0
            folder = remote.rpartition("/")[0]
            for path in self._paths[index + 1 : index + 1 + self._files_ahead] if self._quiet_root is not None else ():
                facts = self._quiet_facts(path)
                if facts is None or path.split("/")[: folder.count("/")] != folder.split("/")[: folder.count("/")]:
                    continue
                file = _RemoteFile(path, (facts[2], facts[1]), facts)
                if (file.identity, 0) not in self._blocks and facts[6]:
                    block = self._blocks[file.identity, 0] = _Block()
                    self._send(file, [(0, block)])

    def entries(self, folder: str) -> list[os.DirEntry[str]]:
        remote = self._remote(folder)
        if remote is None:
            return super().entries(folder)
        self._refuse_absent(remote, folder)
        listing = self._listing(remote)
        if listing is None:
            listing = self._list(remote)
        if listing.problem is not None:
            raise _os_error(listing.problem, folder)
        listed = [_RemoteEntry(folder, name, facts, self) for name, facts in listing.entries.items()]
        return [cast("os.DirEntry[str]", entry) for entry in listed]

    def status(self, path: str, follow: bool) -> os.stat_result:
        remote = self._remote(path)
        if remote is None:
            return super().status(path, follow)
        self._refuse_absent(remote, path)
        folder, _, name = remote.rpartition("/")
        listing = self._listing(folder)
        entry = listing.entries.get(name) if listing is not None else None
        if entry is not None:
            return _entry_stat(entry, follow, path)
        with _fitting_answer():
            return _stat(self._request("stat", path, follow=follow)[0]["facts"])

    def entry_status(self, entry: os.DirEntry[str], follow: bool) -> os.stat_result:
        return entry.stat(follow_symlinks=follow)

    def descriptor_status(self, descriptor: int) -> os.stat_result:
        """Implement :meth:`ReadingDisk.descriptor_status`: the file there, not the one that stands for it."""
        file = self._file_of(descriptor)
        return super().descriptor_status(descriptor) if file is None else _stat(file.facts)

    def read(self, descriptor: int, size: int, position: int) -> bytes:
        file = self._file_of(descriptor)
        return super().read(descriptor, size, position) if file is None else self._read(file, size, position)

    def read_into(self, descriptor: int, view: memoryview, position: int) -> int:
        file = self._file_of(descriptor)
        if file is None:
            return super().read_into(descriptor, view, position)
        data = self._read(file, len(view), position)
        view[: len(data)] = data
        return len(data)

    def extents(self, descriptor: int, position: int, size: int) -> list[tuple[int, int]]:
        file = self._file_of(descriptor)
        if file is None:
            return super().extents(descriptor, position, size)
        return self._extents(file, position, size, 1 << 30)

    def next_data(self, descriptor: int, position: int, size: int) -> int:
        file = self._file_of(descriptor)
        if file is None:
            return super().next_data(descriptor, position, size)
        extents = self._extents(file, position, size, 1)
        return extents[0][0] if extents else -1

    def is_plain(self, path: str) -> bool:
        """Implement :meth:`ReadingDisk.is_plain`: compiled code cannot read the other machine."""
        return self._remote(path) is None

    # -- the far side

    def _remote(self, path: str) -> str | None:
        """Return the path on the far side; None for a path of this machine."""
        start = 0
        if not path.startswith(self._prefix):
            working_folder = os.path.join(os.getcwd(), "")  # noqa: PTH109, PTH118 (an absolute form of a relative path)
            if not path.startswith(working_folder + self._prefix):
                return None
            start = len(working_folder)
        remote = path[start + len(self._prefix) :]
        if remote == "/~" or remote.startswith("/~/"):
            return self._home + remote[2:]
        return remote if remote.startswith("/") else None

    def _request(self, name: str, path: str, **values: Any) -> Answer:
        remote = self._remote(path)
        try:
            return self.connection.request({"request": name, "path": remote, **values})
        except OSError as error:
            error.filename = path
            raise

    def _listing(self, folder: str) -> _Listing | None:
        """Return the listing of a folder if it is young enough."""
        with self._lock:
            listing = self._listings.get(folder)
        if listing is None:
            return None
        max_age = MAX_QUIET_AGE_S if listing.is_quiet else MAX_AGE_S
        return listing if self._clock() - listing.listed_at <= max_age else None

    def _list(self, folder: str) -> _Listing:
        """List a folder and those below it in one request; where nobody holds the store, all of the store again."""
        root = self._quiet_root
        if root is not None and (folder == root or folder.startswith(f"{root}/")):
            fetched = self._list_tree(root)
            if folder in fetched:
                return fetched[folder]
        return self._list_tree(folder)[folder]

    def _list_tree(self, root: str) -> dict[str, _Listing]:
        listed_at = self._clock()
        answer, data = self._request("list", f"{self._prefix}{root}", limit=MAX_LISTED)
        fetched = {}
        with _fitting_answer():
            is_quiet = all(state in {"free", "absent"} for state in answer["locks"])
            for item in json.loads(data):
                entries = {name: [own, target] for name, own, target in item.get("entries", [])}
                if not all(_are_facts(own) for own, _ in entries.values()):
                    raise ValueError
                fetched[item["folder"]] = _Listing(entries, listed_at, is_quiet, item.get("problem"))
            if root not in fetched:
                raise ValueError
        with self._lock:
            young = {name: listing for name, listing in self._listings.items() if self._listing(name) is not None}
            self._listings = (young if is_quiet else {}) | fetched
            if not is_quiet:
                self._quiet_root = None
            elif self._quiet_root is None or not root.startswith(f"{self._quiet_root}/"):
                self._quiet_root = root
            if is_quiet and root == self._quiet_root:
                self._listed_at = listed_at
                self._stamp_files(fetched, listed_at)
        return fetched

    def _stamp_files(self, listings: dict[str, _Listing], listed_at: float) -> None:
        """Note length and time of every file; blocks of a file with others than before are compared again."""
        stamps: dict[Identity, _Stamp] = {}
        paths = []
        for folder, listing in listings.items():
            for name, (own, _) in listing.entries.items():
                if not stat.S_ISREG(own[0]):
                    continue
                identity, size, modified = (own[2], own[1]), own[6], own[8]
                previous = self._stamps.get(identity)
                is_same = previous is not None and (previous.size, previous.modified) == (size, modified)
                stamps[identity] = previous if previous is not None and is_same else _Stamp(size, modified, listed_at)
                paths.append(f"{folder}/{name}")
        self._stamps, self._paths = stamps, sorted(paths)

    def _refuse_absent(self, remote: str, path: str, *, quiet_only: bool = False) -> None:
        """Raise ``FileNotFoundError`` if the youngest listings say that nothing is at ``remote``."""
        parent, _, name = remote.rpartition("/")
        while parent:
            listing = self._listing(parent)
            if listing is not None:
                if listing.problem is None and name not in listing.entries and (listing.is_quiet or not quiet_only):
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
                return
            parent, _, name = parent.rpartition("/")

    def _forget_listings(self, path: str) -> None:
        with self._lock:
            self._listings.pop(path.rpartition("/")[0], None)

    def _file_of(self, descriptor: int) -> _RemoteFile | None:
        return self._open_files.get(_identity(os.fstat(descriptor)))

    def _extents(self, file: _RemoteFile, position: int, size: int, limit: int) -> list[tuple[int, int]]:
        values = {"identity": file.identity, "position": position, "size": size, "limit": limit}
        answer, _ = self.connection.request({"request": "extents", "path": file.path, **values})
        with _fitting_answer():
            return [(int(start), int(stop)) for start, stop in answer["extents"]]

    # -- blocks

    def _read(self, file: _RemoteFile, size: int, position: int) -> bytes:
        if size <= 0:
            return b""
        if self._quiet_root is not None and self._clock() - self._listed_at > MAX_QUIET_AGE_S:
            with contextlib.suppress(OSError):  # the read that follows reports what is wrong
                self._list_tree(self._quiet_root)
        first, last = position // BLOCK_BYTES, (position + size - 1) // BLOCK_BYTES
        pieces = []
        for start in range(first, last + 1, MAX_AHEAD_BLOCKS):  # a large read does not push out its own blocks
            stop = min(start + MAX_AHEAD_BLOCKS - 1, last)
            span_start, span_end = max(position, start * BLOCK_BYTES), min(position + size, (stop + 1) * BLOCK_BYTES)
            blocks = self._ask_for(file, start, stop, span_start, span_end)
            for number, block in enumerate(blocks, start):
                data = self._wait(file, number, block)
                base = number * BLOCK_BYTES
                piece = data[max(0, span_start - base) : max(0, span_end - base)]
                pieces.append(piece)
                if len(data) < BLOCK_BYTES:  # the file ends here
                    return b"".join(pieces)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _ask_for(self, file: _RemoteFile, first: int, last: int, span_start: int, span_end: int) -> list[_Block]:
        """Return the blocks ``first`` to ``last``, and send requests for those that are missing or must be compared,
        and for some behind them if the reader goes through the file.
        """
        now = self._clock()
        with self._lock:
            if first in {file.next_block, file.next_block - 1} and first:
                file.ahead = min(MAX_AHEAD_BLOCKS, max(2, 2 * file.ahead)) if last >= file.next_block else file.ahead
            else:
                file.ahead = 0
            file.next_block = last + 1
            end = -(-int(file.facts[6]) // BLOCK_BYTES)
            wanted: list[tuple[int, _Block]] = []
            blocks = []
            for number in range(first, last + 1):
                block = self._blocks.get((file.identity, number))
                span = (max(span_start, number * BLOCK_BYTES), min(span_end, (number + 1) * BLOCK_BYTES))
                if block is None:
                    block = self._blocks[file.identity, number] = _Block()
                    wanted.append((number, block))
                elif not self._may_answer(file.identity, block, span, now):
                    wanted.append((number, block))
                    block.ranges.clear()
                if self._quiet_root is None:
                    block.ranges.add(span)
                self._blocks.move_to_end((file.identity, number))
                blocks.append(block)
            for number in range(last + 1, min(last + 1 + file.ahead, end)):
                if (file.identity, number) not in self._blocks:
                    block = self._blocks[file.identity, number] = _Block()
                    wanted.append((number, block))
            self._send(file, wanted)
        return blocks

    def _may_answer(self, identity: Identity, block: _Block, span: tuple[int, int], now: float) -> bool:
        """Return True if what was asked for answers a question about ``span``, now or once it is here."""
        stamp = self._stamps.get(identity) if self._quiet_root is not None else None
        if stamp is not None and now - self._listed_at <= MAX_QUIET_AGE_S:
            return block.asked_at >= stamp.since
        max_age = MAX_AGE_S if block.ranges else MAX_AHEAD_AGE_S
        return now - block.asked_at <= max_age and span not in block.ranges and len(block.ranges) < MAX_RANGES

    def _send(self, file: _RemoteFile, wanted: list[tuple[int, _Block]]) -> None:
        """Ask for blocks, each run of neighbours in one request."""
        asked_at, start = self._clock(), 0
        for index in range(1, len(wanted) + 1):
            is_run = index < len(wanted) and wanted[index][0] == wanted[index - 1][0] + 1
            if is_run and index - start < MAX_RUN_BLOCKS:
                continue
            run = wanted[start:index]
            known = [_hash(block.data) if block.is_fetched else None for _, block in run]
            position, size = run[0][0] * BLOCK_BYTES, len(run) * BLOCK_BYTES
            request = {
                "request": "read",
                "path": file.path,
                "identity": file.identity,
                "position": position,
                "size": size,
                "known": known,
            }
            future = self.connection.send(request)
            for place, (_, block) in enumerate(run):
                block.request, block.future, block.index, block.asked_at = request, future, place, asked_at
            start = index

    def _wait(self, file: _RemoteFile, number: int, block: _Block) -> bytes:
        """Return the data of a block, once its answer is here. Raises ``OSError``."""
        with self._lock:
            request, future = block.request, block.future
            if future is None or request is None:
                return block.data
        try:
            answer, data = self.connection.request(request, future)
        except OSError as error:
            error.filename = f"{self._prefix}{file.path}"
            with self._lock:
                if block.future is future:
                    self._drop((file.identity, number))
            raise
        with _fitting_answer():
            lengths = answer["lengths"]
            length = lengths[block.index]
            if not -1 <= length <= BLOCK_BYTES or sum(item for item in lengths if item > 0) != len(data):
                raise ValueError
        with self._lock:
            if block.future is future:
                if length >= 0:
                    start = sum(item for item in lengths[: block.index] if item > 0)
                    self._cached_bytes += length - len(block.data)
                    block.data = data[start : start + length]
                block.request = block.future = None
                block.is_fetched = True
                self._make_room()
            return block.data

    def _drop(self, key: tuple[Identity, int]) -> None:
        block = self._blocks.pop(key, None)
        if block is not None:
            self._cached_bytes -= len(block.data)

    def _make_room(self) -> None:
        """Forget the blocks that were used longest ago."""
        while self._cached_bytes > CACHE_BYTES:
            self._drop(next(iter(self._blocks)))


def _identity(info: os.stat_result) -> Identity:
    return info.st_dev, info.st_ino


def _are_facts(facts: object) -> bool:
    return isinstance(facts, list) and len(facts) == _FACTS and all(isinstance(fact, int) for fact in facts)


@contextlib.contextmanager
def _fitting_answer() -> Iterator[None]:
    """Turn what goes wrong while an answer is taken apart into an ``OSError``."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise OSError(errno.EIO, NOT_FITTING) from error


def _hash(data: bytes) -> str:
    return str(block_hash(data))  # type: ignore[no-untyped-call]


class _RemoteEntry:
    """A file or folder of the other machine, as a folder lists it."""

    def __init__(self, folder: str, name: str, facts: list[Any], disk: RemoteDisk) -> None:
        self.path = os.path.join(folder, name)  # noqa: PTH118 (as os.scandir spells it)
        self.name = name
        self._facts = facts
        self._disk = disk

    def inode(self) -> int:
        return int(self._facts[0][1])

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return stat.S_ISDIR(self._mode(follow_symlinks))

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return stat.S_ISREG(self._mode(follow_symlinks))

    def is_symlink(self) -> bool:
        return stat.S_ISLNK(self._mode(False))

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return _entry_stat(self._facts, follow_symlinks, self.path)

    def _mode(self, follow: bool) -> int:
        try:
            return self.stat(follow_symlinks=follow).st_mode
        except FileNotFoundError:
            return 0


def _entry_stat(entry: list[Any], follow: bool, path: str) -> os.stat_result:
    own, target = entry
    if not follow or target is None:
        return _stat(own)
    if isinstance(target, dict):
        raise _os_error(target, path)
    return _stat(target)


def _os_error(problem: dict[str, Any], path: str) -> OSError:
    number = getattr(errno, str(problem.get("error")), errno.EIO)
    return OSError(number, os.strerror(number) if number != errno.EIO else str(problem.get("text")), path)


def _stat(facts: list[Any]) -> os.stat_result:
    """Return what :func:`os.stat` would there. Raises ``OSError`` if these are no facts."""
    if not _are_facts(facts):
        raise OSError(errno.EIO, NOT_FITTING)
    mode, inode, device, links, user, group, size, accessed, modified, changed, blocks = facts
    times = {"a": accessed, "m": modified, "c": changed}
    values = (mode, inode, device, links, user, group, size, *(value // 10**9 for value in times.values()))
    exact = {f"st_{name}time": value / 10**9 for name, value in times.items()}
    nanoseconds = {f"st_{name}time_ns": value for name, value in times.items()}
    return os.stat_result(values, {**exact, **nanoseconds, "st_blksize": 4096, "st_blocks": blocks, "st_rdev": 0})
