"""Which spans of a file hold data, as the file system tells."""

from __future__ import annotations

import errno
import os


def data_extents(descriptor: int, position: int, size: int) -> list[tuple[int, int]]:
    """Spans (start, stop) from ``position`` to ``size`` that hold data; one to the end where nobody can tell."""
    found: list[tuple[int, int]] = []
    try:
        while position < size:
            start = os.lseek(descriptor, position, os.SEEK_DATA)
            position = min(os.lseek(descriptor, start, os.SEEK_HOLE), size)
            found.append((start, position))
    except OSError as error:
        if error.errno != errno.ENXIO:  # that one says: nothing but a hole to the end
            found.append((position, size))
    return found
