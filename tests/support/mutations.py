"""Faults planted in a copy of a store, and removed afterwards. Everything follows from the seed.

Files are changed in place and only their data is restored: a timer wheel of 38 MB has a few KB of it.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

from small_stores import spans, write_spans

INTEGERS = (0, 1, -1, 2, 127, 128, 255, 256, 65_535, 2**31 - 1, -(2**31), 2**31, 2**40, 2**63 - 1, -(2**63))
MAGICS = (b"\xda\xa3\x20\xa7", b"\xda\xa3\x20\xab", b"\xcb\xd4\x31\x94")
UNIT_FIELDS = (0, 4, 8, 12, 16, 20, 28, 36, 40, 48, 52, 56, 64, 72, 80, 84, 88, 92, 96, 100)
FOLDERS = ("..", "a\nb", "\x1b[2J", "t" * 200, "%RETRY%", " ", "-", "0", "😀")
TABLES = (
    b"[" * 100_000,
    b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
    b"{",
    b"",
    b"\x00" * 64,
    b'{"offsetTable":{"T@G":{0:99999999999999999999,-1:1}}}',
    b'{"topicConfigTable":null} leftover',
    b'{"offsetTable":{{"a":1}:2}}',
    b"\xff\xfe\xfd",
)


class Mutations:
    """Plants faults in ``store`` (a copy) and can undo them all."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.files = sorted(path for path in store.rglob("*") if path.is_file())
        self._folders = [(path.relative_to(store).parts[0], path) for path in self.files]
        self._kept: dict[Path, tuple[list[tuple[int, bytes]], os.stat_result]] = {}
        self._made: list[Path] = []

    def plant(self, pick: random.Random) -> list[str]:
        """Plant one to four faults; return a description of each."""
        kinds: list[Callable[[random.Random], str]] = [self._bytes] * 6 + [self._field] * 5
        kinds += [self._size, self._size, self._table, self._folder, self._neighbour]
        return [pick.choice(kinds)(pick) for _ in range(pick.randrange(1, 5))]

    def undo(self) -> None:
        """Restore everything, times included."""
        for path in reversed(self._made):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.exists() or path.is_symlink():
                path.unlink()
        for path, (spans_, status) in self._kept.items():
            write_spans(path, status.st_size, spans_)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        self._made.clear()
        self._kept.clear()

    def _file(self, pick: random.Random, *folders: str) -> Path:
        chosen = [path for folder, path in self._folders if folder in folders] if folders else self.files
        path = pick.choice(chosen or self.files)
        if path not in self._kept:
            self._kept[path] = (spans(path), path.stat())
        return path

    def _bytes(self, pick: random.Random) -> str:
        path = self._file(pick)
        if path.is_dir() or not path.exists():
            return "nothing"
        data_start, data = next(
            ((span_start, content) for span_start, content in spans(path) if content.strip(b"\0")), (0, _head(path))
        )
        used = len(data.rstrip(b"\0")) or len(data)
        if not used:
            return "nothing"
        # Most of a file is often zeros: places within the data and near its heads tell more.
        position = pick.choice(
            [pick.randrange(used), pick.randrange(min(used, 200)), max(0, used - 1 - pick.randrange(200))]
        )
        new = pick.choice(
            [
                bytes([pick.randrange(256)]),
                struct.pack(">i", pick.choice(INTEGERS) % 2**32 - 2**31),
                struct.pack(">q", pick.choice(INTEGERS)),
                pick.randbytes(pick.randrange(1, 64)),
                bytes(pick.randrange(1, 4096)),
                pick.choice(MAGICS),
                bytes(data[(start := pick.randrange(used)) : start + pick.randrange(1, 2000)]),
            ]
        )
        _patch(path, data_start + position, new)
        return f"{path.name} at {data_start + position}: {len(new)} bytes {new[:12].hex()}"

    def _field(self, pick: random.Random) -> str:
        """Change one number of a unit, an entry or a header, at its own place."""
        path = self._file(pick, "commitlog", "consumequeue", "batchconsumequeue", "consumequeue_ext", "index")
        if path.is_dir() or not path.exists():
            return "nothing"
        data = path.read_bytes()
        match path.relative_to(self.store).parts[0]:
            case "commitlog":
                start = data.find(MAGICS[0][:3], pick.randrange(len(data) + 1)) - 4
                position, size = start + pick.choice(UNIT_FIELDS), pick.choice([2, 4, 8])
            case "consumequeue":
                position, size = pick.randrange(len(data) // 20 + 1) * 20 + pick.choice([0, 8, 12]), pick.choice([4, 8])
            case "batchconsumequeue":
                position = pick.randrange(len(data) // 46 + 1) * 46 + pick.choice([0, 8, 12, 20, 28, 36, 38])
                size = pick.choice([2, 4, 8])
            case "consumequeue_ext":
                position, size = pick.randrange(10) * 20 + pick.choice([0, 2, 10, 18]), pick.choice([2, 8])
            case _:
                position = pick.choice([pick.randrange(10) * 4, pick.randrange(len(data) // 4 + 1) * 4])
                size = pick.choice([4, 8])
        if position < 0 or position >= len(data):
            return "nothing"
        near = int.from_bytes(data[position : position + size], "big") + pick.choice([-20, -1, 1, 20])
        value = pick.choice([*INTEGERS, near])
        _patch(path, position, (value % (1 << 8 * size)).to_bytes(size, "big"))
        return f"{path.name} at {position}: {size} bytes hold {value}"

    def _size(self, pick: random.Random) -> str:
        path = self._file(pick)
        if path.is_dir() or not path.exists():
            return "nothing"
        size = path.stat().st_size
        new = pick.choice([0, 1, pick.randrange(size + 1), max(0, size - 1), size + 1, size + pick.randrange(1, 5000)])
        os.truncate(path, new)
        return f"{path.name}: size {new} instead of {size}"

    def _table(self, pick: random.Random) -> str:
        path = self._file(pick, "config")
        if path.is_dir() or not path.exists():
            return "nothing"
        path.write_bytes(pick.choice(TABLES))
        return f"{path.name}: another table"

    def _folder(self, pick: random.Random) -> str:
        """Make an unusual folder, or a folder instead of a file."""
        parent = pick.choice(["commitlog", "consumequeue", "index", "config", "."])
        if pick.random() < 0.4:
            path = self._file(pick)
            if path.is_dir() or not path.exists():
                return "nothing"
            path.unlink()
            if pick.random() < 0.5:
                path.mkdir()
                self._made.append(path)
                return f"{path.name}: a folder"
            return f"{path.name}: gone"
        sample = self.store / parent / pick.choice(FOLDERS).replace("..", "...")
        if sample.exists() or not sample.parent.is_dir():
            return "nothing"
        (sample / "0").mkdir(parents=True)
        (sample / "0" / f"{pick.choice(INTEGERS):020d}").write_bytes(pick.randbytes(pick.choice([0, 7, 20, 6000])))
        self._made.append(sample)
        return f"{parent}/{sample.name!r}: made"

    def _neighbour(self, pick: random.Random) -> str:
        """Make a file beside another: a copy under another name, a stray one, a link out of the store, a pipe."""
        path = self._file(pick)
        if path.is_dir() or not path.exists():
            return "nothing"
        stray = ["00000000000000000000.bak", "x", "20260101000000000"]
        neighbour = path.with_name(pick.choice([f"{pick.choice(INTEGERS):020d}", *stray]))
        if neighbour.exists() or neighbour.is_symlink():
            return "nothing"
        chance = pick.random()
        if chance < 0.3:
            neighbour.symlink_to(pick.choice(["/dev/zero", "/etc/hostname", "/nowhere", ".", "..", path.name]))
        elif chance < 0.4:
            os.mkfifo(neighbour)
        else:
            write_spans(neighbour, path.stat().st_size, spans(path))
        self._made.append(neighbour)
        return f"{neighbour.name!r} beside {path.name}"


def _patch(path: Path, position: int, data: bytes) -> None:
    """Write ``new`` over the file's bytes from ``at`` on."""
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4096)
