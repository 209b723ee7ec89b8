"""Files without a name: in memory where the system has that, else deleted at once."""

from __future__ import annotations

import os

from engine import system


def file_in_memory(content: bytes, zeros: int = 0) -> int:
    """Return a descriptor of a file without a name that holds ``content``, then ``zeros`` zero bytes, which take no
    memory. The caller must close it.
    """
    descriptor = system.nameless_file()
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.ftruncate(descriptor, len(content) + zeros)
    return descriptor
