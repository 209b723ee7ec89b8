"""Bodies that a client compressed: sysFlag bit 0, kind in bits 8-10 (docs/formats/commit-log.md#sysflag).

Pure and bounded: a few bytes may unpack to gigabytes, so at most ``cap`` bytes come out, and a note says if there
are more. lz4 and zstandard are optional; without them the note names the missing package.
"""

from __future__ import annotations

import importlib.util
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from engine.extras import install_line
from engine.sentences import sentence

COMPRESSED = 0x1
KIND_MASK = 0x700
KINDS = {0: "zlib", 1: "lz4", 2: "zstd", 3: "zlib"}
MAX_UNPACKED_BYTES = 16 << 20
_ZSTD_WINDOW = 64 << 20  # clients write windows of at most 8 MiB; only damaged data asks for more


_PACKAGES = {"lz4": "lz4", "zstd": "zstandard"}


class Unpacked(NamedTuple):
    """The body as its sender wrote it, and a note if it is not complete (None: complete)."""

    data: bytes
    note: str | None


class _Damaged(Exception):
    """The compressed bytes are not valid from here on."""


def kind_of(sys_flag: int) -> str | None:
    """Return ``zlib``, ``lz4`` or ``zstd``; None if the body is not compressed or the kind is unknown."""
    return KINDS.get((sys_flag & KIND_MASK) >> 8) if sys_flag & COMPRESSED else None


def missing_package(kind: str) -> str | None:
    """Return the package that bodies of ``kind`` need, None if it is installed."""
    package = _PACKAGES.get(kind)
    return package if package is not None and importlib.util.find_spec(package) is None else None


def unpack(body: bytes, sys_flag: int, cap: int = MAX_UNPACKED_BYTES) -> Unpacked:
    """Unpack ``body`` as ``sys_flag`` says, at most ``cap`` bytes of it. The note reports damage and missing
    packages.
    """
    if not sys_flag & COMPRESSED:
        return Unpacked(body, None)
    kind = kind_of(sys_flag)
    if kind is None:
        return Unpacked(
            b"", sentence("compression type {n} is unknown; known are 0 to 3", n=(sys_flag & KIND_MASK) >> 8)
        )
    pieces: list[bytes] = []
    size = 0
    step = min(cap + 1, max(1 << 16, 4 * len(body)))
    try:
        for piece in _READERS[kind](body, step):
            pieces.append(piece)
            size += len(piece)
            if size > cap:
                return Unpacked(
                    b"".join(pieces)[:cap], sentence("cut after {cap:,} bytes; the body is longer", cap=cap)
                )
    except ImportError as error:
        return Unpacked(
            b"",
            sentence(
                "{kind} bodies need the package {name}: {command}",
                kind=kind,
                name=error.name,
                command=install_line(error.name or kind),
            ),
        )
    except _Damaged as error:
        return Unpacked(
            b"".join(pieces),
            sentence("{kind} data damaged after {size:,} unpacked bytes: {error}", kind=kind, size=size, error=error),
        )
    return Unpacked(b"".join(pieces), None)


_MAGIC = {b"\x04\x22\x4d\x18": "lz4", b"\x28\xb5\x2f\xfd": "zstd"}


def find_packed_stream(data: bytes) -> str | None:
    """Return ``zlib``, ``lz4`` or ``zstd`` if ``data`` is a complete stream of that kind, else None.

    Such data was compressed twice: a client received a body that was still compressed and sent it again.

    """
    kind = _MAGIC.get(data[:4])
    if kind is None and len(data) > 8 and data[0] == 0x78 and int.from_bytes(data[:2], "big") % 31 == 0:
        kind = "zlib"
    if kind is None:
        return None
    number = next(number for number, name in KINDS.items() if name == kind)
    unpacked = unpack(data, COMPRESSED | number << 8)
    return (
        kind if unpacked.note is None or unpacked.note.startswith("cut after") or "package" in unpacked.note else None
    )


def _zlib(body: bytes, step: int) -> Iterator[bytes]:
    reader = zlib.decompressobj()
    unread = body
    while True:
        try:
            piece = reader.decompress(unread, step)
        except zlib.error as error:
            raise _Damaged(str(error)) from error
        if piece:
            yield piece
        if reader.eof:
            return
        if not piece:
            raise _Damaged(sentence("the data ends before its end mark"))
        unread = reader.unconsumed_tail


def _lz4(body: bytes, step: int) -> Iterator[bytes]:
    from lz4.frame import LZ4FrameDecompressor

    reader = LZ4FrameDecompressor()
    unread = body
    while not reader.eof:
        try:
            piece = reader.decompress(unread, step)
        except (RuntimeError, EOFError, ValueError) as error:
            raise _Damaged(str(error)) from error
        unread = b""
        if piece:
            yield piece
        elif not reader.eof:
            raise _Damaged(sentence("the data ends before its end mark"))


def _zstd(body: bytes, step: int) -> Iterator[bytes]:
    import zstandard

    reader = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).stream_reader(body)
    size = 0
    while True:
        try:
            piece = reader.read(step)
        except zstandard.ZstdError as error:
            raise _Damaged(str(error)) from error
        if not piece:
            break
        size += len(piece)
        yield piece
    _check_zstd_complete(body, size)


def _check_zstd_complete(body: bytes, size: int) -> None:
    """Raise if the frame header declares more bytes than were read: the stream reader ends silently at the end of
    its data.
    """
    import zstandard

    try:
        declared_size = zstandard.frame_content_size(body)
    except zstandard.ZstdError as error:
        raise _Damaged(str(error)) from error
    if declared_size > size or (declared_size < 0 and size == 0):
        raise _Damaged(sentence("the data ends before its end mark"))


_READERS = {"zlib": _zlib, "lz4": _lz4, "zstd": _zstd}
