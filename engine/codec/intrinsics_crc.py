"""The CRC of bodies by carry-less multiplication, in machine instructions that numba does not offer
(docs/formats/commit-log.md#unit); by tables on a machine without them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types, uint32, uint64
from numba.core import cgutils
from numba.core.datamodel import models, register_default
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from engine.codec.intrinsics import le64, u8

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_V2, _V4, _V16 = ir.VectorType(_I64, 2), ir.VectorType(_I64, 4), ir.VectorType(_I8, 16)


class _Vector(types.Type):
    """128 bits in one register."""

    def __init__(self) -> None:
        super().__init__("vector128")


class _WideVector(types.Type):
    """256 bits in one register: two steps of the CRC at once."""

    def __init__(self) -> None:
        super().__init__("vector256")


_vector, _wide_vector = _Vector(), _WideVector()


@register_default(_Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _V2)


@register_default(_WideVector)
class _WideVectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _V4)


def _constant(low_word: int, high_word: int) -> Any:
    return ir.Constant(_V2, [_I64(low_word), _I64(high_word)])


# Folding constants of the reflected polynomial: x^(d+32) and x^(d-32) mod P for a distance of d bits, then Barrett's.
_FOLD_1024 = (0x1E88EF372, 0x14A7FE880)
_FOLD = {1024: _constant(*_FOLD_1024), 512: _constant(0x154442BD4, 0x1C6E41596)}
_FOLD[128] = _constant(0x1751997D0, 0x0CCAA009E)
_FOLD_64, _BARRETT = _constant(0x163CD6124, 0), _constant(0x1DB710641, 0x1F7011641)
_LOW_HALVES = _constant(0xFFFFFFFF, 0xFFFFFFFF)
_SHIFT = bytes([128] * 16) + bytes(range(16)) + bytes([128] * 16)
_KEEP = bytes(16) + bytes([255] * 16)


def _multiply(builder: Any, multiplicand: Any, multiplier: Any, halves: int) -> Any:
    kind = ir.FunctionType(_V2, [_V2, _V2, _I8])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.pclmulqdq")
    return builder.call(function, [multiplicand, multiplier, _I8(halves)])


def _fold(builder: Any, value: Any, distance: int, data: Any) -> Any:
    k = _FOLD[distance]
    return builder.xor(builder.xor(_multiply(builder, value, k, 0x00), _multiply(builder, value, k, 0x11)), data)


def _window(builder: Any, name: str, table: bytes, position: Any) -> Any:
    """Load sixteen bytes of a constant table from ``position`` on."""
    constant = cgutils.global_constant(builder, name, ir.Constant(ir.ArrayType(_I8, len(table)), bytearray(table)))
    place = builder.gep(builder.bitcast(constant, _I8.as_pointer()), [position], source_etype=_I8)
    return builder.load(builder.bitcast(place, _V16.as_pointer()), align=1)


def _shuffle(builder: Any, value: Any, order: Any) -> Any:
    kind = ir.FunctionType(_V16, [_V16, _V16])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.ssse3.pshuf.b.128")
    return builder.bitcast(builder.call(function, [builder.bitcast(value, _V16), order]), _V2)


def _load_vector(builder: Any, address: Any) -> Any:
    return builder.load(builder.inttoptr(address, _V2.as_pointer()), align=1)


@intrinsic
def _first(_typing: Any, _address: Any) -> Any:
    """Load sixteen bytes and mix in the CRC's initial one bits."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.xor(_load_vector(builder, args[0]), _constant(0xFFFFFFFF, 0))

    return _vector(types.intp), generate


@intrinsic
def _next(_typing: Any, _address: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return _load_vector(builder, args[0])

    return _vector(types.intp), generate


def _folder(distance: int) -> Any:
    @intrinsic
    def fold(_typing: Any, _value: Any, _data: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return _fold(builder, args[0], distance, args[1])

        return _vector(_vector, _vector), generate

    return fold


_fold1024, _fold512, _fold128 = _folder(1024), _folder(512), _folder(128)


@intrinsic
def _rest(_typing: Any, _value: Any, _end: Any, _count: Any) -> Any:
    """Fold in the last ``count`` (1 to 15) bytes before ``end``; the sixteen bytes before ``end`` must exist."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        value, end, count = args
        head = _shuffle(builder, value, _window(builder, "crc_shift", _SHIFT, count))
        tail = _shuffle(builder, value, _window(builder, "crc_shift", _SHIFT, builder.add(count, _I64(16))))
        byte_mask = builder.bitcast(_window(builder, "crc_keep", _KEEP, count), _V2)
        tail_bytes = builder.and_(_load_vector(builder, builder.sub(end, _I64(16))), byte_mask)
        return _fold(builder, head, 128, builder.or_(tail, tail_bytes))

    return _vector(_vector, types.intp, types.intp), generate


@intrinsic
def _short(_typing: Any, _end: Any, _count: Any) -> Any:
    """Return the state after a message of 4 to 15 bytes that ends at ``end``; the sixteen bytes before ``end`` must
    exist.
    """

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        end, count = args
        initial_bits = _shuffle(builder, _constant(0xFFFFFFFF, 0), _window(builder, "crc_shift", _SHIFT, count))
        byte_mask = builder.bitcast(_window(builder, "crc_keep", _KEEP, count), _V2)
        return builder.xor(builder.and_(_load_vector(builder, builder.sub(end, _I64(16))), byte_mask), initial_bits)

    return _vector(types.intp, types.intp), generate


@intrinsic
def _reduce(_typing: Any, _value: Any) -> Any:
    """Return the 32-bit CRC of a 128-bit state."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        def shift(value: Any, count: int) -> Any:
            order = ir.Constant(ir.VectorType(_I32, 16), [count + i for i in range(16)])
            zero = ir.Constant(_V16, [_I8(0)] * 16)
            return builder.bitcast(builder.shuffle_vector(builder.bitcast(value, _V16), zero, order), _V2)

        x = builder.xor(shift(args[0], 8), _multiply(builder, args[0], _FOLD[128], 0x10))
        x = builder.xor(shift(x, 4), _multiply(builder, builder.and_(x, _LOW_HALVES), _FOLD_64, 0x00))
        t = _multiply(builder, builder.and_(x, _LOW_HALVES), _BARRETT, 0x10)
        t = _multiply(builder, builder.and_(t, _LOW_HALVES), _BARRETT, 0x00)
        words = builder.bitcast(builder.xor(x, t), ir.VectorType(_I32, 4))
        return builder.not_(builder.extract_element(words, _I32(1)))

    return types.uint32(_vector), generate


@intrinsic
def _wide_next(_typing: Any, _address: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], _V4.as_pointer()), align=1)

    return _wide_vector(types.intp), generate


@intrinsic
def _wide_first(_typing: Any, _address: Any) -> Any:
    """Load thirty-two bytes and mix in the CRC's initial one bits."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        initial_bits = ir.Constant(_V4, [_I64(0xFFFFFFFF), _I64(0), _I64(0), _I64(0)])
        return builder.xor(builder.load(builder.inttoptr(args[0], _V4.as_pointer()), align=1), initial_bits)

    return _wide_vector(types.intp), generate


@intrinsic
def _wide_fold(_typing: Any, _value: Any, _data: Any) -> Any:
    """Fold both halves over 128 bytes."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        low_word, high_word = _FOLD_1024
        k = ir.Constant(_V4, [_I64(low_word), _I64(high_word), _I64(low_word), _I64(high_word)])
        kind = ir.FunctionType(_V4, [_V4, _V4, _I8])
        multiply = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.pclmulqdq.256")
        products = [builder.call(multiply, [args[0], k, _I8(halves)]) for halves in (0x00, 0x11)]
        return builder.xor(builder.xor(*products), args[1])

    return _wide_vector(_wide_vector, _wide_vector), generate


def _half(start_lane: int) -> Any:
    @intrinsic
    def half(_typing: Any, _value: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            order = ir.Constant(ir.VectorType(_I32, 2), [start_lane, start_lane + 1])
            return builder.shuffle_vector(args[0], ir.Constant(_V4, ir.Undefined), order)

        return _vector(_wide_vector), generate

    return half


_low_half, _high_half = _half(0), _half(2)


def _tables() -> np.ndarray:
    tables = np.zeros((16, 256), np.uint32)
    for i in range(256):
        c = i
        for _ in range(8):
            c = (c >> 1) ^ (0xEDB88320 if c & 1 else 0)
        tables[0, i] = c
    for j in range(1, 16):
        tables[j] = (tables[j - 1] >> np.uint32(8)) ^ tables[0][tables[j - 1] & np.uint32(255)]
    return tables


_TABLES = _tables()


@njit(cache=True, nogil=True)
def crc_sliced(address: int, size: int) -> int:
    """Return the CRC-32 of ``size`` bytes, by sixteen tables: runs on any machine."""
    c = uint32(0xFFFFFFFF)
    p, end = address, address + size
    m = uint64(255)
    while p + 16 <= end:
        v, w = le64(p) ^ uint64(c), le64(p + 8)
        a = _TABLES[15, v & m] ^ _TABLES[14, (v >> uint64(8)) & m] ^ _TABLES[13, (v >> uint64(16)) & m]
        a ^= (
            _TABLES[12, (v >> uint64(24)) & m] ^ _TABLES[11, (v >> uint64(32)) & m] ^ _TABLES[10, (v >> uint64(40)) & m]
        )
        a ^= _TABLES[9, (v >> uint64(48)) & m] ^ _TABLES[8, v >> uint64(56)]
        b = _TABLES[7, w & m] ^ _TABLES[6, (w >> uint64(8)) & m] ^ _TABLES[5, (w >> uint64(16)) & m]
        b ^= _TABLES[4, (w >> uint64(24)) & m] ^ _TABLES[3, (w >> uint64(32)) & m] ^ _TABLES[2, (w >> uint64(40)) & m]
        b ^= _TABLES[1, (w >> uint64(48)) & m] ^ _TABLES[0, w >> uint64(56)]
        c = uint32(a ^ b)
        p += 16
    while p < end:
        c = (c >> uint32(8)) ^ _TABLES[0, uint64((c ^ uint32(u8(p))) & uint32(255))]
        p += 1
    return c ^ uint32(0xFFFFFFFF)


@njit(cache=True, nogil=True)
def crc_folded(address: int, size: int) -> int:
    """Return the CRC-32 of ``size`` bytes, by carry-less multiplication (x86_64). The sixteen bytes before the end
    must exist.
    """
    if size < 4:
        return crc_sliced(address, size)
    end = address + size
    if size < 16:
        return _reduce(_short(end, size))
    p = address + 16
    x = _first(address)
    if size >= 64:
        y, z, w = _next(p), _next(p + 16), _next(p + 32)
        p += 48
        if end - p >= 64:
            a, b, c, d = _next(p), _next(p + 16), _next(p + 32), _next(p + 48)
            p += 64
            while end - p >= 128:
                x, y = _fold1024(x, _next(p)), _fold1024(y, _next(p + 16))
                z, w = _fold1024(z, _next(p + 32)), _fold1024(w, _next(p + 48))
                a, b = _fold1024(a, _next(p + 64)), _fold1024(b, _next(p + 80))
                c, d = _fold1024(c, _next(p + 96)), _fold1024(d, _next(p + 112))
                p += 128
            x, y, z, w = _fold512(x, a), _fold512(y, b), _fold512(z, c), _fold512(w, d)
        return _finish(x, y, z, w, p, end)
    while end - p >= 16:
        x = _fold128(x, _next(p))
        p += 16
    if p < end:
        x = _rest(x, end, end - p)
    return _reduce(x)


@njit(cache=True, nogil=True, forceinline=True)
def _finish(x: Any, y: Any, z: Any, w: Any, p: int, end: int) -> int:
    """Return the CRC from four consecutive states and the bytes from ``p`` to ``end``."""
    if end - p >= 64:
        x, y = _fold512(x, _next(p)), _fold512(y, _next(p + 16))
        z, w = _fold512(z, _next(p + 32)), _fold512(w, _next(p + 48))
        p += 64
    x = _fold128(_fold128(_fold128(x, y), z), w)
    while end - p >= 16:
        x = _fold128(x, _next(p))
        p += 16
    if p < end:
        x = _rest(x, end, end - p)
    return _reduce(x)


@njit(cache=True, nogil=True)
def crc_wide(address: int, size: int) -> int:
    """:func:`crc_folded` with registers of 256 bits: twice as fast where bodies are long."""
    if size < 256:
        return crc_folded(address, size)
    end, p = address + size, address + 128
    x, y, z, w = _wide_first(address), _wide_next(address + 32), _wide_next(address + 64), _wide_next(address + 96)
    while end - p >= 128:
        x, y = _wide_fold(x, _wide_next(p)), _wide_fold(y, _wide_next(p + 32))
        z, w = _wide_fold(z, _wide_next(p + 64)), _wide_fold(w, _wide_next(p + 96))
        p += 128
    a, b = _fold512(_low_half(x), _low_half(z)), _fold512(_high_half(x), _high_half(z))
    c, d = _fold512(_low_half(y), _low_half(w)), _fold512(_high_half(y), _high_half(w))
    return _finish(a, b, c, d, p, end)


def _best() -> Callable[[int, int], int]:
    triple, _, listed = cpu_target.target_context.codegen().magic_tuple()
    features = set(listed.split(","))
    if not triple.startswith("x86_64") or not {"+pclmul", "+ssse3", "+sse4.1"} <= features:
        return crc_sliced
    return crc_wide if {"+avx2", "+vpclmulqdq"} <= features else crc_folded


crc32: Callable[[int, int], int] = _best()
"""The fastest of them on the machine that numba compiles for."""
