"""Machine instructions that numba does not offer: unaligned big-endian loads and stores, comparing 32 bytes at once,
prefetch, and copies (docs/formats/commit-log.md#unit, docs/formats/consume-queue.md#entry,
docs/formats/index-file.md#layout).

Only :mod:`engine.codec.compiled` and its siblings import this, when a compiled walk is wanted: numba's import
takes a second. Nothing here checks an address: callers check first that the bytes exist.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def _load(bits: int, swap: bool) -> Any:
    """Return an intrinsic that loads ``bits`` from any address, big-endian if ``swap`` (on a little-endian machine)."""

    @intrinsic
    def load(_typing: Any, _address: Any) -> Any:
        result = {8: types.uint8, 16: types.uint16, 32: types.uint32, 64: types.uint64}[bits]

        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            kind = ir.IntType(bits)
            value = builder.load(builder.inttoptr(args[0], kind.as_pointer()), align=1)
            return builder.bswap(value) if swap else value

        return result(types.intp), generate

    return load


u8, le32, le64 = _load(8, False), _load(32, False), _load(64, False)
be16, be32, be64 = _load(16, True), _load(32, True), _load(64, True)


def _store(bits: int) -> Any:
    @intrinsic
    def store(_typing: Any, _address: Any, _value: Any) -> Any:
        kind = {8: types.uint8, 32: types.int32, 64: types.int64}[bits]

        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            builder.store(args[1], builder.inttoptr(args[0], ir.IntType(bits).as_pointer()), align=bits // 8)
            return context.get_dummy_value()

        return types.void(types.intp, kind), generate

    return store


put8, put32, put64 = _store(8), _store(32), _store(64)


def pointer_to(item: str) -> Any:
    """Return an intrinsic that turns an address into a pointer to items of the numpy type ``item``."""
    kind = types.CPointer(from_dtype(np.dtype(item)))

    @intrinsic
    def pointer(_typing: Any, _address: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(kind))

        return kind(types.intp), generate

    return pointer


@intrinsic
def equal32(_typing: Any, _address: Any, _byte: Any) -> Any:
    """Set bit i if the byte at ``address + i`` equals ``byte``, for 32 bytes that must all exist."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        vector = ir.VectorType(_I8, 32)
        loaded = builder.load(builder.inttoptr(args[0], vector.as_pointer()), align=1)
        first_lane = builder.insert_element(ir.Constant(vector, ir.Undefined), args[1], _I32(0))
        all_lanes = builder.shuffle_vector(
            first_lane, ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(_I32, 32), [0] * 32)
        )
        return builder.bitcast(builder.icmp_unsigned("==", loaded, all_lanes), _I32)

    return types.uint32(types.intp, types.uint8), generate


@intrinsic
def lowest_bit(_typing: Any, _mask: Any) -> Any:
    """Return the number of the lowest set bit; 32 for 0."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.zext(builder.cttz(args[0], ir.IntType(1)(0)), _I64)

    return types.int64(types.uint32), generate


@intrinsic
def prefetch(_typing: Any, _address: Any) -> Any:
    """Prefetch the cache line at ``address``; harmless at any address."""

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        pointer = _I8.as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, _I32, _I32, _I32])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [builder.inttoptr(args[0], pointer), _I32(0), _I32(3), _I32(1)])
        return context.get_dummy_value()

    return types.void(types.intp), generate


def _put(bits: int) -> Any:
    """Return an intrinsic that stores the low ``bits`` of a number big-endian at any address (on a little-endian
    machine).
    """

    @intrinsic
    def store(_typing: Any, _address: Any, _value: Any) -> Any:
        kind = {16: types.int16, 32: types.int32, 64: types.int64}[bits]

        def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            builder.store(builder.bswap(args[1]), pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.intp, kind), generate

    return store


put_be16, put_be32, put_be64 = _put(16), _put(32), _put(64)


@intrinsic
def copy_bytes(_typing: Any, _target: Any, _source: Any, _count: Any) -> Any:
    """Copy ``count`` bytes between addresses that do not overlap (``memcpy``)."""

    def generate(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        target, source = (builder.inttoptr(address, ir.IntType(8).as_pointer()) for address in args[:2])
        cgutils.raw_memcpy(builder, target, source, args[2], 1)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), generate
