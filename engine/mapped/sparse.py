"""Sparse files: find the last non-zero byte in a preallocated file, copy and digest a span; holes and zeros are
skipped.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from engine import system
from engine.files.atomic_file import errors_of
from engine.mapped.read_only import ReadOnlyFile
from engine.mapped.reading import data_extents

CHUNK_BYTES = 4 << 20


def last_byte(file: ReadOnlyFile, position: int = 0) -> int:
    """Return the position behind the last non-zero byte of ``file`` at or behind ``position``; ``position`` if there
    is none.

    Raises :class:`engine.errors.CannotRead`.

    """
    for start, end in reversed(file.extents(position)):
        end_position = _last_in(file, start, end)
        if end_position > start:
            return end_position
    return position


def _last_in(file: ReadOnlyFile, start: int, end: int) -> int:
    while end > start:
        piece_start = max(start, end - CHUNK_BYTES)
        data = file.read(piece_start, end - piece_start)
        if np.frombuffer(data, np.uint8).any():
            return piece_start + len(data.rstrip(b"\0"))
        end = piece_start
    return start


_CHUNK = 1 << 20
_ZEROS = bytes(_CHUNK)
_MIN_CLONED_BYTES = 8 << 20
"""Size from which sharing a file's blocks is tried before copying."""


def copy_span(source: Path, target: Path, start: int, stop: int) -> str | None:
    """Copy bytes [start, stop) to the same position of the new file ``target``, skipping zeros, and sync it.

    Returns their SHA-256 (see :func:`digest_span`), None if the blocks are shared. Raises ``OSError``.

    """
    with errors_of(target):
        source_descriptor = os.open(source, os.O_RDONLY | system.OPEN_FLAGS)
        try:
            target_descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | system.OPEN_FLAGS, 0o600)
            try:
                if stop - start >= _MIN_CLONED_BYTES and system.clone_blocks(source_descriptor, target_descriptor):
                    os.fsync(target_descriptor)
                    return None
                os.ftruncate(target_descriptor, stop)
                digest = hashlib.sha256()
                for position, data in pieces(source_descriptor, start, stop):
                    digest.update(b"%d:" % position + data)
                    written = 0
                    while written < len(data):
                        written += system.pwrite(target_descriptor, memoryview(data)[written:], position + written)
                os.fsync(target_descriptor)
                return digest.hexdigest()
            finally:
                os.close(target_descriptor)
        finally:
            os.close(source_descriptor)


def digest_span(descriptor: int, start: int, stop: int) -> str:
    """Return the SHA-256 over position and bytes of each of the :func:`pieces`."""
    digest = hashlib.sha256()
    for position, data in pieces(descriptor, start, stop):
        digest.update(b"%d:" % position + data)
    return digest.hexdigest()


def pieces(descriptor: int, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """Yield (position, bytes) of the parts of [start, stop), cut at whole MiB, that are not all zeros."""
    piece_end = start
    for extent_start, extent_end in data_extents(descriptor, start, stop):
        piece_start = max(extent_start - extent_start % _CHUNK, piece_end)
        while piece_start < extent_end:
            piece_end = min(piece_start - piece_start % _CHUNK + _CHUNK, stop)
            data = system.pread(descriptor, piece_end - piece_start, piece_start)
            if data and data != _ZEROS[: len(data)]:
                yield piece_start, data
            piece_start = piece_end
