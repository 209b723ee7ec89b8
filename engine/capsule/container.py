"""The file of a capsule: blocks, each compressed by itself, and a directory that says which file they are from
(docs/formats/capsule.md).

Reading opens the directory only; a block is read and checked when its bytes are needed.
"""

from __future__ import annotations

import json
import lzma
import os
import struct
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import Any, BinaryIO, Final, Literal

from engine import system
from engine.capsule.recognition import MAGIC
from engine.errors import StoreError
from engine.sentences import sentence

VERSION: Final = 2
"""Version that is written. A reader knows every version from 1 on: a later one adds kinds of blocks and of columns."""
_HEADER = struct.Struct(">20sHHQIII")
"""Magic, version, zero, offset of the directory, stored bytes, unpacked bytes, CRC-32 of the stored bytes."""
HEADER_BYTES: Final = _HEADER.size
_BLOCK = struct.Struct(">IBQQQIII")
"""File number, kind, start, length, offset in the capsule, stored bytes, unpacked bytes, CRC-32 of the stored bytes."""
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 8 << 20}]
MAX_DIRECTORY_BYTES: Final = 1 << 30
MAX_BLOCK_BYTES: Final = 1 << 28
"""Maximum unpacked bytes of a block, and bytes of a file that a block stands for unless it is zero or left out."""


class BadCapsule(StoreError):
    """The capsule is damaged, incomplete, or of a version that is not known here."""


class BlockKind(IntEnum):
    """The meaning of a block's bytes: how the range of the file comes from them."""

    ZERO = 0
    """Only zero bytes; nothing is stored."""
    BYTES = 1
    """The bytes themselves."""
    WITHOUT_BODIES = 2
    """Bytes with the places of the bodies that are left out (:mod:`engine.capsule.elided`)."""
    UNITS = 3
    """Units of a commit log by columns (:mod:`engine.capsule.unit_columns`)."""
    LEFT_OUT = 4
    """Nothing is stored, and the bytes are not known: reading them fails."""
    QUEUE_ENTRIES = 5
    """Entries of a consume queue by columns (:mod:`engine.capsule.queue_columns`)."""
    INDEX_SLOTS = 6
    """The differences in the slots of an index file (:mod:`engine.capsule.index_columns`)."""
    INDEX_ENTRIES = 7
    """Entries of an index file by columns."""
    DLEDGER_ENTRIES = 8
    """Entries of a DLedger log with their units by columns (:mod:`engine.capsule.dledger_columns`)."""
    DLEDGER_INDEX = 9
    """Index rows of a DLedger log by columns."""
    QUEUE_FROM_UNITS = 10
    """What differs in entries of a consume queue from those that follow from the units of the log."""
    INDEX_FROM_UNITS = 11
    """What differs in entries of an index file from those that follow from the keys of the units."""
    INDEX_TAIL = 12
    """The last entries of an index file as they are: most readers need no others."""


@dataclass(frozen=True, slots=True)
class Block:
    """``length`` bytes of a file from ``start`` on, and where the capsule has them."""

    file: int
    kind: BlockKind
    start: int
    length: int
    offset: int = 0
    stored: int = 0
    unpacked: int = 0
    crc: int = 0

    @property
    def stop(self) -> int:
        return self.start + self.length


@dataclass(slots=True)
class CapsuleFile:
    """A file or folder of the store, or a link to nothing; other links are what they lead to.

    ``path`` is relative to the store, ``slots`` the number of slots of an index file. ``error`` is the reason why it
    could not be read when the capsule was made.
    """

    path: str
    mode: int
    size: int = 0
    modified_ns: int = 0
    allocated_blocks: int = 0
    links: int = 1
    error: str = ""
    slots: int = 0


@dataclass(slots=True)
class Directory:
    """The content of a capsule, without its blocks. ``store`` is the folder's name, ``made_ms`` the time (ms)."""

    store: str
    made_ms: int
    program: str
    lock_state: Literal["free", "held", "absent", "unknown"]
    disk_use: list[float] = field(default_factory=lambda: [-1.0, -1.0])
    """Used share of the disks of log and queues when the capsule was made; −1 if unknown."""
    masked: list[str] = field(default_factory=list)
    interrupted_command: str = ""
    """A command that was stopped while it changed the store; its backup folder is ``interrupted_backup`` beside it, ""
    without one.
    """
    interrupted_backup: str = ""
    was_undone: bool = False
    """True if not the command was stopped, but its undo."""
    files: list[CapsuleFile] = field(default_factory=list)
    root: CapsuleFile = field(default_factory=lambda: CapsuleFile("", 0o40755))


def compress(data: bytes) -> bytes:
    """Return ``data`` as a block stores it."""
    return lzma.compress(data, lzma.FORMAT_RAW, filters=_FILTERS)


def _decompress(data: bytes, size: int) -> bytes:
    """Return the ``size`` bytes that ``data`` stands for. Raises ``lzma.LZMAError``, ``EOFError``."""
    reader = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=_FILTERS)
    unpacked = reader.decompress(data, size + 1)
    if len(unpacked) != size:
        raise EOFError
    return unpacked


class CapsuleWriter:
    """Writes blocks, then the directory, into a file that is open for writing."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._blocks: list[Block] = []
        file.write(bytes(HEADER_BYTES))
        self._position = HEADER_BYTES

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._position

    def add(self, file: int, kind: BlockKind, start: int, length: int, data: bytes = b"") -> None:
        """Add the block for ``length`` bytes of ``file`` from ``start`` on. Raises ``OSError``."""
        previous = self._blocks[-1] if self._blocks else None
        if kind in {BlockKind.ZERO, BlockKind.LEFT_OUT}:
            if previous is not None and (previous.file, previous.kind, previous.stop) == (file, kind, start):
                self._blocks[-1] = Block(file, kind, previous.start, previous.length + length)
            else:
                self._blocks.append(Block(file, kind, start, length))
            return
        stored = compress(data)
        self._file.write(stored)
        self._blocks.append(
            Block(file, kind, start, length, self._position, len(stored), len(data), zlib.crc32(stored))
        )
        self._position += len(stored)

    def finish(self, directory: Directory) -> None:
        """Write the directory, and the header that leads to it. Raises ``OSError``."""
        text = json.dumps(asdict(directory), ensure_ascii=True, separators=(",", ":")).encode()
        table = b"".join(
            _BLOCK.pack(
                block.file, block.kind, block.start, block.length, block.offset, block.stored, block.unpacked, block.crc
            )
            for block in self._blocks
        )
        data = struct.pack(">I", len(text)) + text + table
        stored = compress(data)
        self._file.write(stored)
        header = _HEADER.pack(MAGIC, VERSION, 0, self._position, len(stored), len(data), zlib.crc32(stored))
        self._position += len(stored)
        self._file.seek(0)
        self._file.write(header)
        self._file.seek(0, os.SEEK_END)


class CapsuleReader:
    """A capsule that is open for reading. Raises :class:`BadCapsule` with file and offset, ``OSError``."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.descriptor = os.open(path, os.O_RDONLY | system.OPEN_FLAGS)
        try:
            self.size = os.fstat(self.descriptor).st_size
            self.directory, self.blocks = self._read_directory()
        except BaseException:
            os.close(self.descriptor)
            raise

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def unpacked(self, block: Block) -> bytes:
        """Return the bytes that are stored for ``block``."""
        return self._unpack(block.offset, block.stored, block.unpacked, block.crc)

    def bad(self, offset: int, problem: str) -> BadCapsule:
        """Return the error about ``problem`` at ``offset`` of the capsule."""
        return BadCapsule(problem, file=self.path, offset=offset)

    def _read_directory(self) -> tuple[Directory, list[list[Block]]]:
        data = system.pread(self.descriptor, HEADER_BYTES, 0)
        if len(data) < HEADER_BYTES or not data.startswith(MAGIC):
            raise self.bad(0, sentence("expected a capsule, found something else"))
        _, written_version, _, offset, stored, unpacked, crc = _HEADER.unpack(data)
        if not 1 <= written_version <= VERSION:
            problem = sentence(
                "expected a capsule of version 1 to {known}, found version {found}",
                known=VERSION,
                found=written_version,
            )
            raise self.bad(len(MAGIC), problem)
        if unpacked > MAX_DIRECTORY_BYTES:
            raise self.bad(0, sentence("expected a directory, found a length of {n:,} bytes", n=unpacked))
        data = self._unpack(offset, stored, unpacked, crc)
        try:
            return _parse(data, self.size)
        except (ValueError, TypeError, KeyError, struct.error) as error:
            raise self.bad(offset, sentence("expected the directory of a capsule, found something else")) from error

    def _unpack(self, offset: int, stored: int, unpacked: int, crc: int) -> bytes:
        data = system.pread(self.descriptor, stored, offset)
        if len(data) < stored:
            raise self.bad(
                offset,
                sentence(
                    "expected {n:,} bytes, found {found:,}: the capsule is not complete", n=stored, found=len(data)
                ),
            )
        if zlib.crc32(data) != crc:
            raise self.bad(
                offset, sentence("expected the checksum of the block, found another: the capsule is damaged")
            )
        try:
            return _decompress(data, unpacked)
        except (lzma.LZMAError, EOFError) as error:
            raise self.bad(offset, sentence("expected {n:,} bytes of a block, found other data", n=unpacked)) from error


def _parse(data: bytes, capsule_size: int) -> tuple[Directory, list[list[Block]]]:
    (text_length,) = struct.unpack_from(">I", data)
    fields: dict[str, Any] = json.loads(data[4 : 4 + text_length])
    files = [CapsuleFile(**entry) for entry in fields.pop("files")]
    directory = Directory(files=files, root=CapsuleFile(**fields.pop("root")), **fields)
    blocks: list[list[Block]] = [[] for _ in files]
    for file, kind, *numbers in _BLOCK.iter_unpack(data[4 + text_length :]):
        block = Block(file, BlockKind(kind), *numbers)
        is_stored = block.kind not in {BlockKind.ZERO, BlockKind.LEFT_OUT}
        previous_stop = blocks[file][-1].stop if blocks[file] else 0
        if (
            block.start != previous_stop
            or block.stop > files[file].size
            or (is_stored and max(block.length, block.unpacked) > MAX_BLOCK_BYTES)
            or block.offset + block.stored > capsule_size
        ):
            raise ValueError
        blocks[file].append(block)
    _check_names(files)
    for file_blocks, entry in zip(blocks, files, strict=True):
        if file_blocks and file_blocks[-1].stop != entry.size:
            raise ValueError
    return directory, blocks


def _check_names(files: Sequence[CapsuleFile]) -> None:
    for entry in files:
        if any(part in {"", ".", ".."} or "\0" in part for part in entry.path.split("/")):
            raise ValueError
