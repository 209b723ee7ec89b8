"""A file without a name has its content, then zero bytes."""

from __future__ import annotations

import os

from engine.mapped.file_in_memory import file_in_memory


def test_it_holds_its_content_and_zero_bytes(tmp_path):
    descriptor = file_in_memory(b"content", 1 << 40)
    try:
        assert os.fstat(descriptor).st_size == 7 + (1 << 40)
        assert os.pread(descriptor, 9, 0) == b"content\0\0"
        assert os.fstat(descriptor).st_blocks < 100
    finally:
        os.close(descriptor)
