"""Folders of another machine as they were listed, and for how long a listing answers.

A process holds the store there: a listing answers for :data:`MAX_AGE_S`. Nobody holds it: it answers for
:data:`MAX_QUIET_AGE_S`, and tells since when each file has had its length and time.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.ssh.connection import SshConnection
from engine.ssh.remote_facts import Facts, Identity, RemoteEntry, are_facts, fitting_answer, identity_of

MAX_AGE_S = 1.0
"""Seconds for which a listing and a block answer without a question to the far side."""
MAX_QUIET_AGE_S = 5.0
"""The same where nobody holds the store."""
MAX_LISTED = 20_000
"""Entries from which on a listing does not go into more folders below."""
MAX_FILES_AHEAD = 32
"""Files that are named ahead of a reader that opens one file after the other."""


@dataclass(slots=True)
class Listing:
    """A folder's entries, and what went wrong while it was listed. Quiet: nobody holds the store that it is in."""

    entries: dict[str, RemoteEntry]
    listed_at: float
    is_quiet: bool
    problem: dict[str, Any] | None = None


@dataclass(slots=True)
class _Stamp:
    """Length and time of a file at the last listing, and when a listing first showed them."""

    size: int
    modified_ns: int
    since: float


class RemoteListings:
    """The listings of a machine. ``prefix`` before a path there is the path that the user sees."""

    def __init__(self, connection: SshConnection, prefix: str, clock: Callable[[], float]) -> None:
        self._connection = connection
        self._prefix = prefix
        self._clock = clock
        self._lock = threading.RLock()
        self._listings: dict[str, Listing] = {}
        self._quiet_root: str | None = None
        """The folder that was listed with all below it; nobody holds a store there. None: somebody may."""
        self._quiet_at = 0.0
        """When it was listed last."""
        self._stamps: dict[Identity, _Stamp] = {}
        self._paths: list[str] = []
        """The files of the last listing, in order."""
        self._last_opened = -1
        self._files_ahead = 0

    @property
    def is_quiet(self) -> bool:
        """True if nobody held the store when it was listed last."""
        return self._quiet_root is not None

    def young(self, folder: str) -> Listing | None:
        """Return the listing of a folder if it is young enough."""
        with self._lock:
            listing = self._listings.get(folder)
        if listing is None:
            return None
        max_age = MAX_QUIET_AGE_S if listing.is_quiet else MAX_AGE_S
        return listing if self._clock() - listing.listed_at <= max_age else None

    def of(self, folder: str) -> Listing:
        """Return the listing of a folder: a young one, or a new one of it and the folders below in one request. Where
        nobody holds the store, all of the store is listed again. Raises ``OSError``.
        """
        listing = self.young(folder)
        if listing is not None:
            return listing
        root = self._quiet_root
        if root is not None and (folder == root or folder.startswith(f"{root}/")):
            listings = self._list_tree(root)
            if folder in listings:
                return listings[folder]
        return self._list_tree(folder)[folder]

    def refresh(self) -> None:
        """List a quiet store again if its listing is old. Raises ``OSError``."""
        if self._quiet_root is not None and self._clock() - self._quiet_at > MAX_QUIET_AGE_S:
            self._list_tree(self._quiet_root)

    def forget(self, path: str) -> None:
        """Forget the listing of the folder that ``path`` is in."""
        with self._lock:
            self._listings.pop(path.rpartition("/")[0], None)

    def entry(self, path: str) -> RemoteEntry | None:
        """Return the entry of a file or folder if a young listing has it."""
        folder, _, name = path.rpartition("/")
        listing = self.young(folder)
        return listing.entries.get(name) if listing is not None else None

    def quiet_facts(self, path: str) -> Facts | None:
        """Return the facts of a file where nobody holds the store and they were listed; None if the file must be
        opened to know.
        """
        folder, _, name = path.rpartition("/")
        listing = self.young(folder)
        entry = listing.entries.get(name) if listing is not None and listing.is_quiet else None
        return entry.facts if entry is not None and stat.S_ISREG(entry.facts[0]) else None

    def refuse_absent(self, path: str, shown_path: str, *, quiet_only: bool = False) -> None:
        """Raise ``FileNotFoundError`` if the youngest listings say that nothing is at ``path``."""
        parent, _, name = path.rpartition("/")
        while parent:
            listing = self.young(parent)
            if listing is not None:
                if listing.problem is None and name not in listing.entries and (listing.is_quiet or not quiet_only):
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown_path)
                return
            parent, _, name = parent.rpartition("/")

    def unchanged_since(self, identity: Identity) -> float | None:
        """Return when a listing first showed the present length and time of a file; None if somebody may write it, or
        the last listing is old.
        """
        if self._quiet_root is None or self._clock() - self._quiet_at > MAX_QUIET_AGE_S:
            return None
        stamp = self._stamps.get(identity)
        return stamp.since if stamp is not None else None

    def files_behind(self, path: str) -> list[tuple[str, Facts]]:
        """Return the files that come next, more of them each time, where a reader opens one file after the other."""
        with self._lock:
            index = bisect_left(self._paths, path)
            is_next = 0 < index - self._last_opened <= 3
            self._last_opened = index
            self._files_ahead = min(MAX_FILES_AHEAD, 2 * self._files_ahead + 2) if is_next else 0
            if self._quiet_root is None:
                return []
            paths = self._paths[index + 1 : index + 1 + self._files_ahead]
        depth = path.count("/") - 1  # files beside it, and in the folders beside its own
        beside = [name for name in paths if name.split("/")[:depth] == path.split("/")[:depth]]
        return [(name, facts) for name in beside if (facts := self.quiet_facts(name)) is not None]

    def _list_tree(self, root: str) -> dict[str, Listing]:
        listed_at = self._clock()
        answer, data = self._connection.request_for(
            f"{self._prefix}{root}", {"request": "list", "path": root, "limit": MAX_LISTED}
        )
        listings = {}
        with fitting_answer():
            is_quiet = all(state in {"free", "absent"} for state in answer["locks"])
            for item in json.loads(data):
                entries = {}
                for name, facts, target in item.get("entries", []):
                    if not are_facts(facts):
                        raise ValueError
                    entries[name] = RemoteEntry(item["folder"], name, facts, target)
                listings[item["folder"]] = Listing(entries, listed_at, is_quiet, item.get("problem"))
            if root not in listings:
                raise ValueError
        with self._lock:
            young = {name: listing for name, listing in self._listings.items() if self.young(name) is not None}
            self._listings = (young if is_quiet else {}) | listings
            if not is_quiet:
                self._quiet_root = None
            elif self._quiet_root is None or not root.startswith(f"{self._quiet_root}/"):
                self._quiet_root = root
            if is_quiet and root == self._quiet_root:
                self._quiet_at = listed_at
                self._stamp_files(listings, listed_at)
        return listings

    def _stamp_files(self, listings: dict[str, Listing], listed_at: float) -> None:
        """Note length and time of every file. A file with others than before is stamped with this listing."""
        stamps: dict[Identity, _Stamp] = {}
        paths = []
        for folder, listing in listings.items():
            for name, entry in listing.entries.items():
                mode, size, modified_ns = entry.facts[0], entry.facts[6], entry.facts[8]
                if not stat.S_ISREG(mode):
                    continue
                identity = identity_of(entry.facts)
                stamp = self._stamps.get(identity)
                if stamp is None or (stamp.size, stamp.modified_ns) != (size, modified_ns):
                    stamp = _Stamp(size, modified_ns, listed_at)
                stamps[identity] = stamp
                paths.append(f"{folder}/{name}")
        self._stamps, self._paths = stamps, sorted(paths)
