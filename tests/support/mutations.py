"""Faults planted in a copy of a store, and taken back afterwards. Everything follows from the seed."""

from __future__ import annotations

import os
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

INTEGERS = (0, 1, -1, 2, 127, 128, 255, 256, 65_535, 2**31 - 1, -(2**31), 2**31, 2**40, 2**63 - 1, -(2**63))
MAGICS = (b"\xda\xa3\x20\xa7", b"\xda\xa3\x20\xab", b"\xcb\xd4\x31\x94")
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
        self._files = sorted(path for path in store.rglob("*") if path.is_file())
        self._kept: dict[Path, tuple[bytes, int, int]] = {}
        self._made: list[Path] = []

    def plant(self, pick: random.Random) -> list[str]:
        """One to four faults; gives a word on each."""
        kinds: list[Callable[[random.Random], str]] = [self._bytes] * 8
        kinds += [self._size, self._size, self._table, self._folder, self._neighbour]
        return [pick.choice(kinds)(pick) for _ in range(pick.randrange(1, 5))]

    def undo(self) -> None:
        """Everything as it was, times included."""
        for path in reversed(self._made):
            if path.is_symlink() or path.is_file():
                path.unlink()
            elif path.is_dir():
                shutil.rmtree(path)
        for path, (held, accessed, modified) in self._kept.items():
            path.write_bytes(held)
            os.utime(path, ns=(accessed, modified))
        self._made.clear()
        self._kept.clear()

    def _file(self, pick: random.Random, *folders: str) -> Path:
        chosen = [
            path for path in self._files if not folders or path.relative_to(self.store).parts[0] in folders
        ] or self._files
        path = pick.choice(chosen)
        if path not in self._kept:
            status = path.stat()
            self._kept[path] = (path.read_bytes(), status.st_atime_ns, status.st_mtime_ns)
        return path

    def _bytes(self, pick: random.Random) -> str:
        path = self._file(pick)
        if path.is_dir() or not path.exists():
            return "nothing"
        data = bytearray(path.read_bytes())
        used = len(data.rstrip(b"\0")) or len(data)
        if not used:
            return "nothing"
        # Most of a file is often zeros: places within the data and near its heads tell more.
        at = pick.choice([pick.randrange(used), pick.randrange(min(used, 200)), max(0, used - 1 - pick.randrange(200))])
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
        data[at : at + len(new)] = new
        path.write_bytes(data)
        return f"{path.name} at {at}: {len(new)} bytes {new[:12].hex()}"

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
        """A folder that a store does not have, or one where a file belongs."""
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
        made = self.store / parent / pick.choice(FOLDERS).replace("..", "...")
        if made.exists() or not made.parent.is_dir():
            return "nothing"
        (made / "0").mkdir(parents=True)
        (made / "0" / f"{pick.choice(INTEGERS):020d}").write_bytes(pick.randbytes(pick.choice([0, 7, 20, 6000])))
        self._made.append(made)
        return f"{parent}/{made.name!r}: made"

    def _neighbour(self, pick: random.Random) -> str:
        """A file beside another: a copy under another name, a stray one, a link out of the store."""
        path = self._file(pick)
        if path.is_dir() or not path.exists():
            return "nothing"
        stray = ["00000000000000000000.bak", "x", "20260101000000000"]
        other = path.with_name(pick.choice([f"{pick.choice(INTEGERS):020d}", *stray]))
        if other.exists() or other.is_symlink():
            return "nothing"
        if pick.random() < 0.3:
            other.symlink_to(pick.choice(["/dev/zero", "/etc/hostname", "/nowhere", ".", path.name]))
        else:
            other.write_bytes(path.read_bytes())
        self._made.append(other)
        return f"{other.name!r} beside {path.name}"
