"""Report what this installation has and lacks: packages, the window, Java, machine code, limits, the file system of a
store.

Each check reads only, except that the folder of machine code is made as every command makes it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from engine import __version__, system
from engine.errors import StoreError, cause_of
from engine.extras import PACKAGES, is_archive, line_of

State = Literal["ok", "missing", "problem"]
FEW_OPEN_FILES = 4096
"""A served store keeps a file of each queue open."""
MAX_MAP_COUNT = 65_530
"""Linux's default number of mapped ranges of a process; a served store maps a file of each queue."""
REFLINK_TYPES = {"btrfs", "bcachefs", "xfs", "ocfs2"}
"""File systems that can copy a file without copying its bytes. XFS may be made without it."""
PROBE_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Component:
    """A checked part of the installation: its value, and the command to run where it is missing or a problem.

    ``missing`` is something optional; a ``problem`` keeps a part of the program from working as installed.
    """

    group: str
    name: str
    state: State
    value: str | None
    fix: str | None = None

    def record(self) -> dict[str, Any]:
        return {
            "type": "component",
            "group": self.group,
            "name": self.name,
            "state": self.state,
            "value": self.value,
            "fix": self.fix,
        }


def components(store: Path | None) -> Iterator[Component]:
    """Yield everything that is looked at, in the order of reading."""
    yield from _program()
    yield from _packages()
    yield from _window()
    yield _java()
    yield from _machine_code()
    yield from _limits()
    if store is not None:
        yield from _file_system(store)


def _program() -> Iterator[Component]:
    yield Component("program", "storescope", "ok", __version__)
    yield Component("program", "Python", "ok", f"{platform.python_version()} ({sys.executable})")
    yield Component("program", "system", "ok", f"{platform.platform()}, {platform.machine()}")


def _packages() -> Iterator[Component]:
    for package in PACKAGES:
        group = f"extra {package.extra}" if package.extra else "packages"
        if _is_installed(package.module):
            yield Component(group, package.name, "ok", _version_of(package.name))
        else:
            state: State = "missing" if package.extra or is_archive() else "problem"
            yield Component(group, package.name, state, f"for {package.purpose}", line_of(package.extra))


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package above it
        return False


def _version_of(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _window() -> Iterator[Component]:
    """Ask a process of its own: Qt aborts where a library of the system is missing."""
    if not _is_installed("PySide6"):
        return
    command = [sys.executable, "-m", "viewer.shell.window_probe"]
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    try:
        done = subprocess.run(  # noqa: S603  this program
            command, capture_output=True, text=True, check=False, timeout=PROBE_TIMEOUT_S, env=environment
        )
        answer = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        yield Component(
            "window", "Qt", "problem", f"it does not start: {type(error).__name__}", "storescope view --debug"
        )
        return
    for row in answer:
        yield Component("window", row["name"], row["state"], row["value"], row["fix"])


def _java() -> Component:
    from engine.pipeline.java import find_java

    try:
        java = find_java()
    except StoreError as error:
        return Component("Java", "Java", "missing", str(error), "apt-get install openjdk-17-jre-headless")
    return Component("Java", "Java", "ok", f"{java.version}, from {java.source} ({java.home})")


def _machine_code() -> Iterator[Component]:
    from engine.codec import compiled_cache

    try:
        folder = compiled_cache.folder()
        sizes = [entry.stat().st_size for entry in os.scandir(folder) if entry.is_file()]
    except OSError as error:
        yield Component("machine code", "cache", "problem", cause_of(error), "export NUMBA_CACHE_DIR=FOLDER")
        return
    fill = (
        f"{len(sizes):,} files, {sum(sizes):,} bytes"
        if sizes
        else "empty: the first scan compiles, some seconds once; storescope doctor --compile does it now"
    )
    yield Component("machine code", "cache", "ok", f"{folder} ({fill})")
    if os.environ.get("STORESCOPE_PLAIN") == "1":
        yield Component("machine code", "use", "problem", "STORESCOPE_PLAIN=1 turns it off", "unset STORESCOPE_PLAIN")


def _limits() -> Iterator[Component]:
    limit = system.descriptor_limit()
    if limit is None:
        return
    soft, hard = limit
    if soft is None:
        yield Component("limits", "open files", "ok", "unlimited")
    else:
        is_low = 0 <= soft < FEW_OPEN_FILES
        highest = "unlimited" if hard is None else f"{hard:,}"
        value = f"{soft:,}, at most {highest}" + (": few for serving a store with many queues" if is_low else "")
        wanted = 65_536 if hard is None else min(hard, 65_536)
        yield Component(
            "limits", "open files", "missing" if is_low else "ok", value, f"ulimit -n {wanted}" if is_low else None
        )
    try:
        ranges = int((system.PROC / "sys" / "vm" / "max_map_count").read_text("ascii"))
    except (OSError, ValueError):
        return
    is_low = ranges < MAX_MAP_COUNT
    fix = f"sysctl -w vm.max_map_count={MAX_MAP_COUNT}" if is_low else None
    yield Component("limits", "mapped ranges", "missing" if is_low else "ok", f"{ranges:,}", fix)


def _file_system(store: Path) -> Iterator[Component]:
    try:
        usage = shutil.disk_usage(store)
    except OSError as error:
        yield Component("file system", "store", "problem", cause_of(error))
        return
    kind = system.mount_type(store)
    yield Component("file system", "type", "ok", kind or "unknown")
    yield Component("file system", "free", "ok", f"{usage.free:,} of {usage.total:,} bytes")
    if kind in REFLINK_TYPES:
        reflink = f"copies share their bytes, as {kind} usually can (not tried: looking never writes)"
    else:
        reflink = f"copies take their full size: {kind or 'this file system'} is not known to share bytes"
    yield Component("file system", "reflink", "ok", reflink)
    yield Component("file system", "sparse files", "ok", _sparse_files(store))


def _sparse_files(store: Path) -> str:
    """Return what the files of the log show: a file with fewer bytes on the disk than its length has holes."""
    folder = next((place for place in (store / "commitlog", store / "store" / "commitlog") if place.is_dir()), store)
    count = sparse_count = 0
    try:
        for entry in os.scandir(folder):
            if entry.is_file():
                facts = entry.stat()
                count += 1
                sparse_count += getattr(facts, "st_blocks", facts.st_size // 512 + 1) * 512 < facts.st_size
    except OSError as error:
        return f"unknown: {cause_of(error)}"
    if sparse_count:
        return f"yes: {sparse_count:,} of {count:,} files in {folder.name}/ have holes"
    return f"unknown: none of {count:,} files in {folder.name}/ has holes"
