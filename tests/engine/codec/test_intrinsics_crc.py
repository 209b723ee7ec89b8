"""The compiled body CRCs equal zlib's for every length around their steps."""

import random
import zlib

import numpy as np

from engine.codec.columns import twin

BYTES = np.frombuffer(random.Random(3).randbytes(5000), np.uint8)
LENGTHS = [*range(300), 511, 512, 513, 1023, 1024, 1039, 4000]


def usable():
    """Return the CRCs that this machine has instructions for."""
    assert twin() is not None
    from engine.codec import intrinsics_crc

    every = [intrinsics_crc.crc_sliced, intrinsics_crc.crc_folded, intrinsics_crc.crc_wide]
    return every[: every.index(intrinsics_crc.crc32) + 1]


def test_every_compiled_crc_is_zlibs():
    for crc in usable():
        assert_zlibs(crc)


def assert_zlibs(crc):
    for position in (16, 17, 31):
        for length in LENGTHS:
            expected = zlib.crc32(BYTES[position : position + length])
            assert crc(BYTES.ctypes.data + position, length) == expected, (position, length)
