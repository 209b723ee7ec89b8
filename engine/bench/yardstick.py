"""The plain C loops of ``tests/bench/scan.c`` as functions, compiled when they are first asked for."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from engine.codec.columns import BLOCK_ROWS, BUFFER_BYTES, CHUNK_BYTES, UnitColumns
from engine.whole_file import put_whole

SOURCE = Path(__file__).parents[2] / "tests" / "bench" / "scan.c"
FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")
_TOPICS = 4 + 64 * 4 + 64 * 128


def why_none() -> str | None:
    """Why there is nothing to compare with, where that can be told before it is compiled."""
    if shutil.which("cc") is None:
        return "there is no C compiler (cc) here"
    return None if SOURCE.is_file() else f"there is no {SOURCE.name} here, which lies in a checkout only"


def find_yardstick(folder: Path) -> Yardstick | None:
    """The yardstick, compiled into ``folder``; None without its source or a compiler."""
    library = compiled(SOURCE, folder)
    return None if library is None else Yardstick(library)


def compiled(source: Path, folder: Path) -> ctypes.CDLL | None:
    """``source`` (and what it includes from its folder) as a library in ``folder``; None without it or a compiler."""
    compiler = shutil.which("cc")
    if compiler is None or not source.is_file():
        return None
    text = b"".join(path.read_bytes() for path in sorted(source.parent.glob("*.c")))
    digest = hashlib.sha256(text + repr(FLAGS).encode()).hexdigest()[:16]
    library = folder / f"{source.stem}-{digest}.so"
    if not library.is_file():
        with tempfile.TemporaryDirectory() as place:
            draft = Path(place) / library.name
            command = [compiler, *FLAGS, "-o", str(draft), str(source)]
            done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603  our own source
            if done.returncode:
                return None
            put_whole(library, draft.read_bytes(), 0o777)
    return ctypes.CDLL(str(library))


class Yardstick:
    """The C functions and the columns they fill, of the same shape as ours."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.loops = library
        library.yard_map.restype = ctypes.c_void_p
        library.yard_sum.restype = ctypes.c_uint64
        library.yard_walk.restype = ctypes.c_int64
        library.yard_read_walk.restype = ctypes.c_int64
        self.columns = UnitColumns(BLOCK_ROWS)
        self.addresses = (ctypes.c_void_p * len(self.columns.addresses))(*self.columns.addresses.tolist())
        self.topics = ctypes.create_string_buffer(_TOPICS)
        raw = np.zeros(BUFFER_BYTES + 64, np.uint8)
        self._buffer = raw[-raw.ctypes.data % 64 :][:BUFFER_BYTES]

    def map(self, path: str) -> MappedFile:
        """A file as memory, all its pages present; for measuring only, the program itself never maps a store."""
        size = ctypes.c_int64()
        address = self.loops.yard_map(path.encode(), ctypes.byref(size))
        if not address:
            raise OSError(0, "cannot be mapped", path)
        return MappedFile(self, address, size.value)

    def read_walk(self, path: str, full: bool) -> int:
        """The same walk over a file read in pieces into one buffer; gives the number of units."""
        buffer = ctypes.c_void_p(self._buffer.ctypes.data)
        arguments = (self.addresses, ctypes.c_int64(BLOCK_ROWS), self.topics, int(full))
        return int(self.loops.yard_read_walk(path.encode(), buffer, ctypes.c_int64(CHUNK_BYTES), *arguments))


class MappedFile:
    """A file in memory for the C loops; never unmapped, a measurement's process ends soon."""

    def __init__(self, yardstick: Yardstick, address: int, size: int) -> None:
        self._yardstick = yardstick
        self._address = ctypes.c_void_p(address)
        self._size = ctypes.c_int64(size)

    def walk(self, full: bool) -> int:
        """Every unit by the plain C loop; gives their number."""
        own = self._yardstick
        arguments = (own.addresses, ctypes.c_int64(BLOCK_ROWS), own.topics, int(full))
        return int(own.loops.yard_walk(self._address, self._size, *arguments))

    def sum(self) -> int:
        """The sum of all words: the memory floor."""
        return int(self._yardstick.loops.yard_sum(self._address, self._size))
