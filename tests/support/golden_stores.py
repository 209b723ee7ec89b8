"""The stores of ``tests/golden``: unpacked once a session, read line by line, and watched for changes."""

from __future__ import annotations

import functools
import hashlib
import json
import lzma
import os
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine import releases
from engine.inspection import archives
from engine.releases import Release

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
MAX_UNPACKED_BYTES = 1 << 32

Fingerprint = dict[str, tuple[object, ...]]
Digests = dict[tuple[int, ...], str]
"""SHA-256 of files that were read before, by device, inode, size and times."""
SETTLED_NS = 1_000_000_000
"""A file that changed later than this before it was read may change again without another time."""


NOT_YET_ANSWERED = (
    "rocks",
    "combine",
    "dledger",
    "broker-dledger",
    "wheel-snapshots",
    "tiered",
    "static-topic",
    "lite-priority",
    "without-mmap",
    "several-log",
    "controller",
)
"""Beginnings of the names of stores that are not part of the general comparisons: their queues, tables or log are in a
RocksDB or a DLedger log, most of the store is in tiered storage, or there is no account of it. A test that
wants one names it.
"""


def names(file: str = "store.tar.xz") -> list[str]:
    """Return the names of the golden stores that have ``file`` beside them, sorted."""
    stores = (path.parent.name for path in GOLDEN.glob(f"*/{file}"))
    return sorted(name for name in stores if not name.startswith(NOT_YET_ANSWERED))


def third_of_names(part: int) -> list[str]:
    """Return every third golden store, from number ``part`` on: tests that do the same with many stores take
    different thirds. With STORESCOPE_GOLDEN=all in the environment: all of them.
    """
    return names() if os.environ.get("STORESCOPE_GOLDEN") == "all" else names()[part % 3 :: 3]


def release_of(name: str) -> Release:
    """Return the release that wrote a golden store: "4.9" for clean-4.9.8, "5.3" where the name tells none."""
    return next((release for release in releases.NAMES if f"-{release}." in name), "5.3")


def account(name: str, file: str) -> Iterator[dict[str, Any]]:
    """Return the lines of one account (``expected.jsonl.xz``, ``truth.jsonl.xz`` ...) of the store ``name``; all
    callers get the same lines, so nobody may change them.
    """
    return iter(_lines(name, file))


@functools.lru_cache(maxsize=2)
def _lines(name: str, file: str) -> list[dict[str, Any]]:
    with lzma.open(GOLDEN / name / file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def fingerprint(directory: Path, digests: Digests | None = None) -> Fingerprint:
    """Return kind, mode, size, time of change and SHA-256 of everything below ``directory``, and of itself.

    A directory's own time reveals files that were created and removed again in between. With ``digests`` a file is not
    read again if its inode has the times of its last reading, including the one of the system (ctime).
    """
    observed: Fingerprint = {}
    for path in [directory, *sorted(directory.rglob("*"))]:
        status = path.lstat()
        digest: str | None = None
        if stat.S_ISREG(status.st_mode):
            digest = _digest(path, status, digests)
        elif stat.S_ISLNK(status.st_mode):
            digest = str(path.readlink())
        size = status.st_size if stat.S_ISREG(status.st_mode) else 0
        observed[str(path.relative_to(directory))] = (status.st_mode, size, status.st_mtime_ns, digest)
    return observed


def _digest(path: Path, status: os.stat_result, digests: Digests | None) -> str:
    key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    if digests is not None and key in digests:
        return digests[key]
    is_settled = time.time_ns() - status.st_ctime_ns > SETTLED_NS
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digests is not None and is_settled:
        digests[key] = digest
    return digest


def changes(before: Fingerprint, after: Fingerprint) -> list[str]:
    """Return the differences between two fingerprints, one line a file."""
    lines = [f"{name}: appeared" for name in after.keys() - before.keys()]
    lines += [f"{name}: gone" for name in before.keys() - after.keys()]
    lines += [f"{name}: changed" for name in before.keys() & after.keys() if before[name] != after[name]]
    return sorted(lines)


class GoldenStores:
    """Unpacks golden stores at their first use and can list every change since."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._stores: dict[str, Path] = {}
        self._prints: dict[str, Fingerprint] = {}
        self._digests: Digests = {}

    def __call__(self, name: str, archive: str = "store") -> Path:
        """Return the unpacked ``archive`` of the store ``name``: store, recovered, store-recovered or client-offsets.

        Read it, never write into it: copy it first (``shutil.copytree`` keeps the times).
        """
        key = f"{name}/{archive}"
        if key not in self._stores:
            target = self._root / name / archive
            staging = target.with_name(f"{archive}.unpacking")
            shutil.rmtree(staging, ignore_errors=True)  # of a test that was ended in the middle of it
            staging.mkdir(parents=True)
            with (GOLDEN / name / f"{archive}.tar.xz").open("rb") as packed:
                archives.unpack(packed, staging, MAX_UNPACKED_BYTES)
            staging.rename(target)
            inner = target / ("client-offsets" if archive == "client-offsets" else "store")
            self._stores[key] = inner
            self._prints[key] = fingerprint(inner)
        return self._stores[key]

    def fingerprint(self, directory: Path) -> Fingerprint:
        """:func:`fingerprint` of any directory; files of unpacked stores are read once, and at the end."""
        return fingerprint(directory, self._digests if self._root in directory.parents else None)

    def changed(self) -> list[str]:
        """Return every change in any unpacked store since it was unpacked; every file is read again."""
        return [
            f"{key}: {line}"
            for key, store in self._stores.items()
            for line in changes(self._prints[key], fingerprint(store))
        ]
