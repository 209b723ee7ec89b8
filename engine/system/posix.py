"""The calls of :mod:`engine.system` for Linux and macOS."""

from __future__ import annotations

import sys

assert sys.platform != "win32"

import contextlib
import errno
import fcntl
import os
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine.system.name import IS_LINUX

if TYPE_CHECKING:
    import subprocess

CAN_LIMIT_PROCESSES: Final[bool] = True
"""Whether time and memory of a child process can be limited."""
CAN_LOCK_FOLDERS: Final[bool] = True
"""Whether a process can show with :func:`hold_folder`, and nothing beside the folder, that it uses a folder."""
HAS_POSITIONED_READS: Final[bool] = True
"""Whether the C library has ``pread``, which compiled code calls."""
HAS_UNIX_SOCKETS: Final[bool] = True
INTERRUPT: int = signal.SIGINT
"""The signal of :func:`interrupt`."""
NO_WAIT: int = os.O_NONBLOCK
"""Flag with which opening a pipe that nobody writes to does not wait."""
OPEN_FLAGS: int = os.O_CLOEXEC
"""Flags for every ``os.open`` of a file: child processes do not get it, and its bytes stay as they are."""
if sys.platform == "linux":
    NO_ACCESS_TIME: int = os.O_NOATIME if IS_LINUX else 0
    _LOCK = struct.Struct("hhqqi4x")  # type, whence, start, length, pid
    _LOCK_FIELDS = (0, 4)
    _FIRST_BYTE = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
else:
    NO_ACCESS_TIME: int = 0
    _LOCK = struct.Struct("qqihh")  # start, length, pid, type, whence
    _LOCK_FIELDS = (3, 2)
    _FIRST_BYTE = _LOCK.pack(0, 1, 0, fcntl.F_WRLCK, os.SEEK_SET)
PROC: Final[Path] = Path("/proc" if IS_LINUX else "/no-folder-of-processes")
"""The folder in which Linux shows processes; elsewhere a folder that does not exist."""
_HELD_ELSEWHERE = (errno.EAGAIN, errno.EACCES)
_CLONE = 0x40049409  # Linux's FICLONE

pread = os.pread
pwrite = os.pwrite


def read_into(descriptor: int, view: memoryview, position: int) -> int:
    """Fill ``view``, or a part of it, from ``position`` on; returns the number of bytes. Raises ``OSError``."""
    if sys.platform == "linux" and IS_LINUX:
        return os.preadv(descriptor, [view], position)
    data = os.pread(descriptor, len(view), position)  # macOS has preadv since 11
    view[: len(data)] = data
    return len(data)


def next_data(descriptor: int, position: int) -> int:
    """Return the next position that holds data. Raises ``OSError``: ENXIO if there is none, another if the file system
    does not say.
    """
    return os.lseek(descriptor, position, os.SEEK_DATA)


def next_hole(descriptor: int, position: int) -> int:
    """Return the start of the next hole, or the file's end. Raises ``OSError``."""
    return os.lseek(descriptor, position, os.SEEK_HOLE)


def advise_sequential(descriptor: int, position: int) -> None:
    """Tell the system that the bytes from ``position`` on will be read in order. Raises ``OSError``."""
    if sys.platform == "linux" and IS_LINUX:
        os.posix_fadvise(descriptor, position, 0, os.POSIX_FADV_SEQUENTIAL)


def allocate(descriptor: int, start: int, length: int) -> bool:
    """Allocate disk blocks; False if system or file system cannot. Raises ``OSError``, ENOSPC if there are none."""
    if sys.platform == "linux" and IS_LINUX:
        try:
            os.posix_fallocate(descriptor, start, length)
        except OSError as error:
            if error.errno in {errno.EOPNOTSUPP, errno.ENOSYS}:
                return False
            raise
        return True
    return False


def allocated_bytes(info: os.stat_result) -> int:
    """Return the bytes that a file takes on the disk; its length if the system does not say."""
    return 512 * info.st_blocks


def clone_blocks(source: int, target: int) -> bool:
    """Let the empty file ``target`` share all blocks of ``source``; False if system or file system cannot."""
    if sys.platform == "linux" and IS_LINUX:
        with contextlib.suppress(OSError):
            fcntl.ioctl(target, _CLONE, source)
            return True
    return False


def copy_range(source: int, target: int, size: int, position: int) -> int:
    """Let the system copy bytes to the same position of another file; returns their number, 0 where it cannot."""
    if sys.platform == "linux" and IS_LINUX:
        with contextlib.suppress(OSError):
            return os.copy_file_range(source, target, size, position, position)
    return 0


def disk_space(path: str | Path) -> tuple[int, int, int]:
    """Return the bytes of ``path``'s file system: all, those that are free, and those that its user may take. Raises
    ``OSError``.
    """
    info = os.statvfs(path)
    return info.f_blocks * info.f_frsize, info.f_bfree * info.f_frsize, info.f_bavail * info.f_frsize


def sync_data(descriptor: int) -> None:
    """Make a file's bytes and length durable. Raises ``OSError``."""
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # fsync leaves the bytes in the drive's memory there
    elif sys.platform == "linux" and IS_LINUX:
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)


def sync_file(path: str | Path) -> None:
    """Make bytes, length and time of a file durable. Raises ``OSError``."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: str | Path) -> None:
    """Make the names in ``folder`` durable. Raises ``OSError``."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file_system(folder: str | Path) -> None:
    """Make everything on the file system of ``folder`` durable. Raises ``OSError``."""
    if sys.platform == "linux" and IS_LINUX:
        import ctypes

        system_call = getattr(c_library(), "syncfs", None)
        if system_call is not None:
            descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if system_call(descriptor) != 0:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(folder))
            finally:
                os.close(descriptor)
            return
    os.sync()


def nameless_file() -> int:
    """Return a descriptor of a new empty file without a name, in memory where the system has that."""
    if sys.platform == "linux" and IS_LINUX:
        return os.memfd_create("storescope", os.MFD_CLOEXEC)
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def link_nameless_file(path: Path, size: int) -> None:
    """Create a file of ``size`` zeros that gets its name last. Raises ``OSError``, also where the system cannot."""
    if sys.platform == "linux" and IS_LINUX:
        descriptor = os.open(path.parent, os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o644)
        try:
            os.ftruncate(descriptor, size)
            # src_dir_fd has no meaning for an absolute path, but it makes Python follow the link in /proc.
            os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor)
        finally:
            os.close(descriptor)
        return
    raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), str(path))


def change_owner(path: Path, user: int, group: int) -> None:
    """Set owner and group of a file or link. Raises ``OSError``."""
    os.chown(path, user, group, follow_symlinks=False)


def user_id() -> int | None:
    """Return the number of the effective user; None where users have none."""
    return os.geteuid()


def group_id() -> int | None:
    """Return the number of the user's group; None where groups have none."""
    return os.getegid()


def lock_first_byte(descriptor: int) -> None:
    """Lock byte 0 against every other process. Raises ``OSError`` (EAGAIN, EACCES) if another one has it.

    Linux's lock belongs to the open file: it also excludes a second holder in this process.
    """
    if sys.platform == "linux" and IS_LINUX:
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FIRST_BYTE)
        except OSError as error:
            if error.errno in _HELD_ELSEWHERE:
                raise
        else:
            return
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)


def first_byte_lock(descriptor: int) -> tuple[bool, int]:
    """Return whether another holder has byte 0 locked, and its process, or a number below 1. Raises ``OSError``."""
    fields = _LOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, _FIRST_BYTE))
    kind, pid = (fields[index] for index in _LOCK_FIELDS)
    return kind != fcntl.F_UNLCK, int(pid)


def lock_file(descriptor: int) -> bool:
    """Lock a whole file against every other holder; False if another one has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def hold_folder(folder: Path) -> int:
    """Return a descriptor that locks the folder until it is closed. Raises ``OSError``, ``BlockingIOError`` if another
    holder has it.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def c_library() -> Any:
    """Return the C library, with ``errno`` kept for :func:`ctypes.get_errno`. Raises ``OSError`` if there is none."""
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def read_only_shared_map() -> tuple[int, int]:
    """Return the protection and the flags of C's ``mmap`` for a shared map that is only read."""
    import mmap

    return mmap.PROT_READ, mmap.MAP_SHARED


def descriptor_limit() -> tuple[int | None, int | None] | None:
    """Return how many descriptors this process may have, and how many it may allow itself; None means no limit, and
    None alone that the system has no such limit.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    return None if soft == unlimited else soft, None if hard == unlimited else hard


def set_descriptor_limit(limit: int) -> None:
    """Allow this process ``limit`` descriptors. Raises ``OSError``, ``ValueError``."""
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def limit_memory(size: int) -> None:
    """Limit this process's address space to ``size`` bytes. Raises ``OSError``, ``ValueError``."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (size if hard == resource.RLIM_INFINITY else min(size, hard), hard))


def peak_memory_bytes() -> int:
    """Return the most memory that this process had; 0 if unknown."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def own_memory_bytes() -> int:
    """Return the memory that this process has now, without pages of files; 0 if unknown."""
    try:
        resident, of_files = (PROC / "self" / "statm").read_text("ascii").split()[1:3]
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(of_files)) * os.sysconf("SC_PAGE_SIZE")


def memory_bytes() -> int | None:
    """Return the memory of this machine; None if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def processor_count() -> int:
    """Return how many processors this process may use."""
    if sys.platform == "linux" and IS_LINUX:
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load_average() -> float | None:
    """Return the machine's load of the last minute; None if unknown."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


def lower_priority(niceness: int) -> None:
    """Give all threads of this process, and those started later, this nice value if theirs is lower."""
    tasks = [0]
    with contextlib.suppress(OSError):
        tasks = [int(task.name) for task in (PROC / "self" / "task").iterdir()]
    for task in tasks:
        with contextlib.suppress(OSError):
            if os.getpriority(os.PRIO_PROCESS, task) < niceness:
                os.setpriority(os.PRIO_PROCESS, task, niceness)


def mount_type(path: Path) -> str | None:
    """Return the type of the file system that holds ``path``, None where the system does not list its mounts."""
    try:
        lines = (PROC / "self" / "mountinfo").read_text("utf-8", "surrogateescape").splitlines()
        device = path.stat().st_dev
    except OSError:
        return None
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in reversed(lines):
        mount, _, description = line.partition(" - ")
        if mount.split()[2] == number:
            return description.split()[0]
    return None


def set_unblocking(descriptor: int) -> None:
    """Let writes that would wait fail or be short instead."""
    os.set_blocking(descriptor, False)


def wait_ready(descriptor: int, seconds: float, *, to_write: bool) -> bool:
    """Wait until a pipe can be written or read; False if it cannot within ``seconds``."""
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLOUT if to_write else select.POLLIN)
    return bool(poll.poll(seconds * 1000))


@contextmanager
def postponed_signals() -> Iterator[None]:
    """Postpone the signals of the terminal and of an orderly stop until the end of the block."""
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)


def new_group() -> dict[str, Any]:
    """Return the arguments of ``Popen`` with which a process and its children can be interrupted and killed alone."""
    return {"start_new_session": True}


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """Stop a process as Ctrl+C does. Raises ``OSError``."""
    process.send_signal(signal.SIGINT)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process of :func:`new_group` and its children. Raises ``OSError``."""
    os.killpg(process.pid, signal.SIGKILL)
