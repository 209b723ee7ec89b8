"""The files of another machine as a disk, so that every reader of a store reads a store there.

Like :class:`engine.capsule.capsule_disk.CapsuleDisk` it is below :class:`engine.mapped.reading.Reading`. What was
fetched may be old: :mod:`engine.ssh.listings` and :mod:`engine.ssh.block_cache` decide for how long it answers.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, cast

from engine.mapped.stand_in_disk import StandInDisk
from engine.sentences import sentence
from engine.ssh.address import SCHEME, SshAddress
from engine.ssh.block_cache import BlockCache, RemoteFile
from engine.ssh.connection import Answer, SshConnection
from engine.ssh.listings import RemoteListings
from engine.ssh.remote_facts import Facts, fitting_answer, identity_of, problem_error, stat_of


class RemoteDisk(StandInDisk[RemoteFile]):
    """The files of the machine at ``address``; paths that do not begin with it are the system's.

    Raises :class:`engine.errors.CannotRead` if the machine cannot be reached.
    """

    def __init__(self, address: SshAddress, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self.address = address
        self.connection = SshConnection(address)
        self._home = str(self.connection.server["home"])
        self._prefix = f"{SCHEME}{address.machine}"
        self._clock = clock
        self._listings = RemoteListings(self.connection, self._prefix, clock)
        self._blocks = BlockCache(self.connection, self._listings, self._prefix, clock)

    def close(self) -> None:
        """Close the connection; nothing can be read afterwards."""
        self.connection.close()
        self._blocks.clear()
        self.close_stand_ins()

    @property
    def note(self) -> str:
        """A sentence about what is read here."""
        return sentence("A store on another machine: {address}", address=str(self.address))

    def lock_state(self, path: str) -> Literal["free", "held", "absent", "unknown"]:
        """State of the lock file at ``path`` on the far side. Raises ``OSError``."""
        with fitting_answer():
            state = self._request("lock", path)[0]["state"]
        return state if state in {"free", "held", "absent"} else "unknown"

    def space(self, path: str | Path) -> tuple[int, int, int]:
        """Return the bytes of a path's file system: all, those that are free, and those that its user may take. Raises
        ``OSError``.
        """
        with fitting_answer():
            total, free, available = (int(count) for count in self._request("space", str(path))[0]["space"])
        return total, free, available

    # -- the system's calls

    def open(self, path: str) -> int:
        remote = self._remote(path)
        if remote is None:
            return super().open(path)
        self._listings.refuse_absent(remote, path, quiet_only=True)
        facts = self._listings.quiet_facts(remote) or self._open_there(remote, path)
        info = stat_of(facts)
        if not stat.S_ISREG(info.st_mode):
            return super().open(os.sep)  # a folder, which the caller refuses
        key = remote, identity_of(facts), info.st_size
        file = self.file_of_key(key) or RemoteFile(remote, facts)
        file.facts = facts
        descriptor = self.stand_in(key, file, info.st_size)
        for name, facts_ahead in self._listings.files_behind(remote):
            self._blocks.ask_for_first(RemoteFile(name, facts_ahead))
        return descriptor

    def entries(self, folder: str) -> list[os.DirEntry[str]]:
        remote = self._remote(folder)
        if remote is None:
            return super().entries(folder)
        self._listings.refuse_absent(remote, folder)
        listing = self._listings.of(remote)
        if listing.problem is not None:
            raise problem_error(listing.problem, folder)
        return [cast("os.DirEntry[str]", entry.in_folder(folder)) for entry in listing.entries.values()]

    def status(self, path: str, follow: bool) -> os.stat_result:
        remote = self._remote(path)
        if remote is None:
            return super().status(path, follow)
        self._listings.refuse_absent(remote, path)
        entry = self._listings.entry(remote)
        if entry is not None:
            return entry.in_folder(os.path.dirname(path)).stat(follow_symlinks=follow)  # noqa: PTH120 (as it is spelled)
        with fitting_answer():
            return stat_of(self._request("stat", path, follow=follow)[0]["facts"])

    def entry_status(self, entry: os.DirEntry[str], follow: bool) -> os.stat_result:
        return entry.stat(follow_symlinks=follow)

    def is_plain(self, path: str) -> bool:
        """Implement :meth:`ReadingDisk.is_plain`: compiled code cannot read the other machine."""
        return self._remote(path) is None

    # -- the files there

    def file_status(self, file: RemoteFile) -> os.stat_result:
        return stat_of(file.facts)

    def file_bytes(self, file: RemoteFile, size: int, position: int) -> bytes:
        return self._blocks.read(file, size, position)

    def file_extents(self, file: RemoteFile, position: int, size: int) -> list[tuple[int, int]]:
        return self._extents(file, position, size, 1 << 30)

    def file_next_data(self, file: RemoteFile, position: int, size: int) -> int:
        extents = self._extents(file, position, size, 1)
        return extents[0][0] if extents else -1

    def _extents(self, file: RemoteFile, position: int, size: int, limit: int) -> list[tuple[int, int]]:
        values = {"identity": file.identity, "position": position, "size": size, "limit": limit}
        request = {"request": "extents", "path": file.path, **values}
        answer, _ = self.connection.request_for(f"{self._prefix}{file.path}", request)
        with fitting_answer():
            return [(int(start), int(stop)) for start, stop in answer["extents"]]

    def _open_there(self, remote: str, path: str) -> Facts:
        """Return the facts of a file; its first block comes with them."""
        asked_at = self._clock()
        try:
            answer, data = self._request("open", path)
        except FileNotFoundError:
            self._listings.forget(remote)
            raise
        with fitting_answer():
            facts = answer["facts"]
            stat_of(facts)
        if answer.get("lengths") == [len(data)]:
            self._blocks.put_first(identity_of(facts), data, asked_at)
        return cast("Facts", facts)

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
        return self.connection.request_for(path, {"request": name, "path": self._remote(path), **values})
