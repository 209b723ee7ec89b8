"""The compiled body CRCs give what zlib gives, for every length around their steps."""

import random
import zlib

import numpy as np
import pytest

from engine.codec.columns import twin

BYTES = np.frombuffer(random.Random(3).randbytes(5000), np.uint8)
LENGTHS = [*range(300), 511, 512, 513, 1023, 1024, 1039, 4000]


@pytest.mark.parametrize("name", ["crc_sliced", "crc32"])
def test_a_compiled_crc_is_zlibs(name):
    assert twin() is not None
    from engine.codec import intrinsics

    crc = getattr(intrinsics, name)
    for at in (16, 17, 31):
        for length in LENGTHS:
            expected = zlib.crc32(BYTES[at : at + length])
            assert crc(BYTES.ctypes.data + at, length) == expected, (at, length)
