"""Files without a name: in memory where the system has that, else deleted at once."""

from __future__ import annotations

import os
import tempfile


def file_in_memory(content: bytes, zeros: int = 0) -> int:
    """Return a descriptor of a file without a name that holds ``content``, then ``zeros`` zero bytes, which take no
    memory. The caller must close it.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("storescope", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.ftruncate(descriptor, len(content) + zeros)
    return descriptor
