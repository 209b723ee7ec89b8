"""The plain C loops of ``tests/bench/scan.c`` as functions, compiled at first use."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from engine.codec.columns import BLOCK_ROWS, BUFFER_BYTES, CHUNK_BYTES, UnitColumns
from engine.files.atomic_file import write_atomically

SOURCE = Path(__file__).parents[2] / "tests" / "bench" / "scan.c"
FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")
_TOPICS = 4 + 64 * 4 + 64 * 128


def why_unavailable() -> str | None:
    """Return the reason why the C loops cannot be compiled here, None if they may be."""
    if shutil.which("cc") is None:
        return "there is no C compiler (cc) here"
    return None if SOURCE.is_file() else f"there is no {SOURCE.name} here, which lies in a checkout only"


def find_yardstick(folder: Path) -> Yardstick | None:
    """Return the yardstick, compiled into ``folder``; None without its source or a compiler."""
    library = compile_library(SOURCE, folder)
    return None if library is None else Yardstick(library)


def compile_library(source: Path, folder: Path) -> ctypes.CDLL | None:
    """Compile ``source`` (and the files that it includes) to a library in ``folder``; None without it or a compiler."""
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
            write_atomically(library, draft.read_bytes(), 0o777)
    return ctypes.CDLL(str(library))


class Yardstick:
    """The C functions and the columns that they fill, of the same layout as ours."""

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
        """Map a file with all its pages loaded; only for measuring, the program itself never maps a store that it
        inspects.
        """
        size = ctypes.c_int64()
        address = self.loops.yard_map(path.encode(), ctypes.byref(size))
        if not address:
            raise OSError(0, "cannot be mapped", path)
        return MappedFile(self, address, size.value)

    def read_walk(self, path: str, full: bool) -> int:
        """Walk a file that is read in pieces into one buffer; returns the number of units."""
        buffer = ctypes.c_void_p(self._buffer.ctypes.data)
        arguments = (self.addresses, ctypes.c_int64(BLOCK_ROWS), self.topics, int(full))
        return int(self.loops.yard_read_walk(path.encode(), buffer, ctypes.c_int64(CHUNK_BYTES), *arguments))


class MappedFile:
    """A file in memory for the C loops; never unmapped, since a measurement's process ends soon."""

    def __init__(self, yardstick: Yardstick, address: int, size: int) -> None:
        self._yardstick = yardstick
        self._address = ctypes.c_void_p(address)
        self._size = ctypes.c_int64(size)

    def walk(self, full: bool) -> int:
        """Walk every unit by the plain C loop; returns their number."""
        yardstick = self._yardstick
        arguments = (yardstick.addresses, ctypes.c_int64(BLOCK_ROWS), yardstick.topics, int(full))
        return int(yardstick.loops.yard_walk(self._address, self._size, *arguments))

    def sum(self) -> int:
        """Return the sum of all words: the memory floor."""
        return int(self._yardstick.loops.yard_sum(self._address, self._size))
