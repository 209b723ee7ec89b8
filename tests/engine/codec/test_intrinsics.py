"""Machine instructions for numba: loads and stores at any address, in both byte orders."""

from __future__ import annotations

import numpy as np
import pytest

from engine.codec.columns import twin

BYTES = np.frombuffer(bytes(range(1, 65)), np.uint8).copy()


@pytest.fixture(scope="module")
def functions():
    """Compiled calls of the instructions; numba functions cannot be called otherwise."""
    assert twin() is not None
    from numba import njit

    from engine.codec import intrinsics

    le32, le64, be16, be32, be64 = (getattr(intrinsics, name) for name in ("le32", "le64", "be16", "be32", "be64"))
    equal32, lowest_bit, put_be64, copy_bytes = (
        getattr(intrinsics, name) for name in ("equal32", "lowest_bit", "put_be64", "copy_bytes")
    )

    @njit
    def loads(address):
        return le32(address), le64(address), be16(address), be32(address), be64(address)

    @njit
    def first_equal(address, byte):
        return lowest_bit(equal32(address, byte))

    @njit
    def store(address, number):
        put_be64(address, number)

    @njit
    def copy(target, source, count):
        copy_bytes(target, source, count)

    return loads, first_equal, store, copy


@pytest.mark.parametrize("position", [0, 1, 3, 7])
def test_loads_take_both_byte_orders_at_any_address(functions, position):
    raw = BYTES[position : position + 8].tobytes()
    assert functions[0](BYTES.ctypes.data + position) == (
        int.from_bytes(raw[:4], "little"),
        int.from_bytes(raw, "little"),
        int.from_bytes(raw[:2], "big"),
        int.from_bytes(raw[:4], "big"),
        int.from_bytes(raw, "big"),
    )


def test_the_first_of_thirty_two_equal_bytes_is_found(functions):
    assert functions[1](BYTES.ctypes.data, np.uint8(20)) == 19
    assert functions[1](BYTES.ctypes.data, np.uint8(60)) == 32


def test_a_number_is_stored_big_endian_at_an_odd_address_and_copied(functions):
    _, _, store, copy = functions
    target, further = np.zeros(16, np.uint8), np.zeros(16, np.uint8)
    store(target.ctypes.data + 3, -2)
    assert target.tobytes() == bytes(3) + (-2).to_bytes(8, "big", signed=True) + bytes(5)
    copy(further.ctypes.data + 1, target.ctypes.data + 3, 8)
    assert further[1:9].tobytes() == (-2).to_bytes(8, "big", signed=True)
