"""Big-endian stores to any address, for the compiled twins that write (spec 2.1, 3.1, 4.1).

The stores of :mod:`engine.codec.intrinsics` want aligned addresses and the machine's own order. The callers prove first
that the bytes exist.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _store(bits: int) -> Any:
    """A big-endian store of the low ``bits`` of a number to any address (on a little-endian machine)."""

    @intrinsic
    def store(_typing: Any, _address: Any, _value: Any) -> Any:
        kind = {16: types.int16, 32: types.int32, 64: types.int64}[bits]

        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            builder.store(builder.bswap(args[1]), pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.intp, kind), generate

    return store


put_be16, put_be32, put_be64 = _store(16), _store(32), _store(64)


@intrinsic
def copy_bytes(_typing: Any, _target: Any, _source: Any, _count: Any) -> Any:
    """Copy ``count`` bytes between addresses that do not overlap (``memcpy``)."""

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        target, source = (builder.inttoptr(address, ir.IntType(8).as_pointer()) for address in args[:2])
        cgutils.raw_memcpy(builder, target, source, args[2], 1)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), generate
