"""Write files atomically: into a temporary file beside the target, synced, then renamed over it.

This is the only module that does this with the system's own files; a store that is open for writing uses its
``Disk``. Also syncs and removes folders.
"""

from __future__ import annotations

import errno
import io
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO

from engine import system
from engine.errors import UsageError
from engine.sentences import sentence

TEMPORARY_SUFFIX = ".part"
PRIVATE = 0o600
"""Rights of a file that only its owner may read, for example store content in a cache."""
_MAX_FILE_NAME_BYTES = 200
"""Maximum bytes of a file's name that its temporary file's name contains: names have at most 255 bytes."""
_BUFFER_BYTES = 1 << 20


def check_new_file(store: Path, target: Path, *, overwrite: bool) -> None:
    """Raise :class:`UsageError` if ``target`` is inside the folder ``store`` or exists."""
    if target.resolve().is_relative_to(store.resolve()):
        raise UsageError(sentence("expected a file outside the store"), file=str(target))
    if target.is_dir() or (target.exists() and not overwrite):
        raise UsageError(
            sentence("expected a new file, found something there (--overwrite replaces a file)"), file=str(target)
        )


def write_atomically(target: Path, content: bytes | str, mode: int = 0o666) -> None:
    """Write ``content`` (text as UTF-8) to ``target``, creating its folder; on failure the file stays as it was.

    ``mode`` are its rights, limited by the process's mask. Raises ``OSError``.
    """
    with atomic_file(target, mode) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def atomic_text(target: Path, newline: str | None = None) -> Iterator[TextIO]:
    """:func:`atomic_file` for UTF-8 text; ``newline`` as for ``open``."""
    with atomic_file(target) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline=newline)
        try:
            yield text
            text.flush()
        finally:
            text.detach()


@contextmanager
def atomic_file(target: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Yield a new file beside ``target`` with a unique name.

    At the end of the block it is synced and renamed to ``target``; if the block raises, or the disk refuses, it
    is removed. Raises ``OSError``.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    name = os.fsencode(target.name)[:_MAX_FILE_NAME_BYTES].decode("utf-8", "ignore")
    temporary_path = target.with_name(f".{name}.{secrets.token_hex(6)}{TEMPORARY_SUFFIX}")
    with (
        errors_of(target),
        open(temporary_path, "xb", _BUFFER_BYTES, opener=lambda path, flags: os.open(path, flags, mode)) as file,
    ):
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            temporary_path.replace(target)
        except BaseException:
            with suppress(OSError):
                temporary_path.unlink(missing_ok=True)
            raise
    try:
        system.sync_folder(target.parent)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot sync a folder
            raise


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Name ``path`` in errors of the block that name no file: the system does not know the file of a descriptor."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


_MAX_ATTEMPTS, _PAUSE_S = 20, 0.1


def remove_folder_tree(folder: Path) -> None:
    """Remove a folder with its content. A process that is just being stopped may still write into it, so try several
    times.
    """
    for _ in range(_MAX_ATTEMPTS):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(_PAUSE_S)
