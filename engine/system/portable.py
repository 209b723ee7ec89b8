"""The calls of :mod:`engine.system` for every system that has Python: Windows, and tests of it on Linux."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import subprocess

    from _typeshed import ReadableBuffer

CAN_LIMIT_PROCESSES: Final[bool] = False
CAN_LOCK_FOLDERS: Final[bool] = False
HAS_POSITIONED_READS: Final[bool] = False
HAS_UNIX_SOCKETS: Final[bool] = False
NO_ACCESS_TIME: int = 0
NO_WAIT: int = 0
PROC: Final[Path] = Path("/no-folder-of-processes")
if sys.platform == "win32":
    OPEN_FLAGS: int = os.O_BINARY | os.O_NOINHERIT
    INTERRUPT: int = signal.SIGBREAK
else:
    OPEN_FLAGS: int = os.O_CLOEXEC
    INTERRUPT: int = signal.SIGINT
_positions = threading.Lock()
"""Held while a descriptor's position is moved: other threads use the same one."""


def pread(descriptor: int, size: int, position: int, /) -> bytes:
    with _at(descriptor, position):
        return os.read(descriptor, size)


def read_into(descriptor: int, view: memoryview, position: int) -> int:
    data = pread(descriptor, len(view), position)
    view[: len(data)] = data
    return len(data)


def pwrite(descriptor: int, data: ReadableBuffer, position: int, /) -> int:
    with _at(descriptor, position):
        return os.write(descriptor, data)


@contextmanager
def _at(descriptor: int, position: int) -> Iterator[None]:
    with _positions:
        old_position = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, position, os.SEEK_SET)
        try:
            yield
        finally:
            os.lseek(descriptor, old_position, os.SEEK_SET)


def next_data(descriptor: int, position: int) -> int:  # noqa: ARG001
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def next_hole(descriptor: int, position: int) -> int:  # noqa: ARG001
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def advise_sequential(descriptor: int, position: int) -> None:
    """Do nothing."""


def allocate(descriptor: int, start: int, length: int) -> bool:  # noqa: ARG001
    return False


def allocated_bytes(info: os.stat_result) -> int:
    blocks: int | None = getattr(info, "st_blocks", None)
    return info.st_size if blocks is None else 512 * blocks


def clone_blocks(source: int, target: int) -> bool:  # noqa: ARG001
    return False


def copy_range(source: int, target: int, size: int, position: int) -> int:  # noqa: ARG001
    return 0


def disk_space(path: str | Path) -> tuple[int, int, int]:
    import shutil

    usage = shutil.disk_usage(path)
    return usage.total, usage.free, usage.free


def sync_data(descriptor: int) -> None:
    os.fsync(descriptor)


def sync_file(path: str | Path) -> None:
    descriptor = os.open(path, os.O_RDWR | OPEN_FLAGS)  # Windows syncs only what may be written
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: str | Path) -> None:
    """Do nothing, unless there is no such folder: Windows has no descriptor of a folder."""
    os.stat(folder)  # noqa: PTH116


def sync_file_system(folder: str | Path) -> None:
    """Do nothing: callers sync their files, too."""


def nameless_file() -> int:
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def link_nameless_file(path: Path, size: int) -> None:  # noqa: ARG001
    raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), str(path))


def change_owner(path: Path, user: int, group: int) -> None:
    """Do nothing."""


def user_id() -> int | None:
    return None


def group_id() -> int | None:
    return None


def lock_first_byte(descriptor: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        os.fstat(descriptor)  # an open file, and nothing to lock it with


def first_byte_lock(descriptor: int) -> tuple[bool, int]:
    """Read the byte: Windows refuses to read what another process has locked, and does not name that process."""
    try:
        pread(descriptor, 1, 0)
    except PermissionError:
        return True, -1
    return False, 0


def lock_file(descriptor: int) -> bool:
    try:
        lock_first_byte(descriptor)
    except OSError:
        return False
    return True


def hold_folder(folder: Path) -> int:
    """Lock a file beside the folder, which stays."""
    beside = folder.with_name(f"{folder.name}.lock")
    descriptor = os.open(beside, os.O_RDWR | os.O_CREAT | OPEN_FLAGS, 0o600)
    if not lock_file(descriptor):
        os.close(descriptor)
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), str(folder))
    return descriptor


def c_library() -> Any:
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def read_only_shared_map() -> tuple[int, int]:
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def descriptor_limit() -> tuple[int | None, int | None] | None:
    return None


def set_descriptor_limit(limit: int) -> None:
    """Do nothing: Windows has no such limit."""


def limit_memory(size: int) -> None:  # noqa: ARG001
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def peak_memory_bytes() -> int:
    return 0


def own_memory_bytes() -> int:
    return 0


def memory_bytes() -> int | None:
    return None


def processor_count() -> int:
    return os.cpu_count() or 1


def load_average() -> float | None:
    return None


def lower_priority(niceness: int) -> None:
    """Do nothing."""


def mount_type(path: Path) -> str | None:  # noqa: ARG001
    return None


def set_unblocking(descriptor: int) -> None:  # noqa: ARG001
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def wait_ready(descriptor: int, seconds: float, *, to_write: bool) -> bool:  # noqa: ARG001
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


@contextmanager
def postponed_signals() -> Iterator[None]:
    """Ignore Ctrl+C in the block, where this thread may."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    old_handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, old_handler)


def new_group() -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    if sys.platform == "win32":
        import subprocess

        arguments["creationflags"] = subprocess.CREATE_NEW_PROCESS_GROUP
    return arguments


def interrupt(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.send_signal(signal.CTRL_BREAK_EVENT)
    else:
        process.send_signal(signal.SIGINT)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the process alone."""
    process.kill()
