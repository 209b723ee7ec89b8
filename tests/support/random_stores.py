"""Stores of any history and in any state, made from a seed: small files, units of few sizes, and damage of every kind.

They contain all targets of conditions: topics that alternate in long stretches, half messages and rolled back ones
(which have no queue entry), light queues, blanks, clocks that were set back; then lost folders, entries that are
zeroed, swapped, shifted, foreign or of an earlier life, torn units, files that are cut or gone.
"""

from __future__ import annotations

import random
import shutil
import struct
from pathlib import Path

from handmade_stores import START, write_queue
from planted_faults import patch
from raw_units import raw_blank, raw_unit

TOPICS = ("A", "B", "C", "RMQ_SYS_TRANS_HALF_TOPIC", "\u540d")
BODIES = (10, 10, 10, 60, 400)
QUEUE_SIZE = 400
Key = tuple[str, int]


class RandomStore:
    """A store below ``root``, written when it is made."""

    def __init__(self, rng: random.Random, root: Path) -> None:
        self.rng, self.root = rng, root
        self.log_size = rng.choice((2048, 4096, 8192))
        self.first = rng.choice((0, 0, 3)) * self.log_size
        self.log = bytearray()
        self.queues: dict[Key, list[bytes]] = {}
        self.entries_begin: dict[Key, int] = {}
        self.units: list[tuple[int, int]] = []
        self.time = START
        self._grow()
        self._write()
        self.done = [self._damage() for _ in range(rng.choice((0, 1, 1, 2, 4)))]

    def _grow(self) -> None:
        rng = self.rng
        for _ in range(rng.randrange(1, 9)):
            topic, queues, run = rng.choice(TOPICS[:4]), rng.choice((1, 1, 3)), rng.choice((1, 3, 12, 30))
            flag = rng.choice((0, 0, 0, 4, 8, 12))
            if rng.random() < 0.2:
                self.time -= rng.choice((5, 90_000, 7_200_000))
            for _ in range(run):
                self._put(topic, rng.randrange(queues), flag)

    def _put(self, topic: str, queue_id: int, flag: int) -> None:
        rng = self.rng
        self.time += rng.choice((0, 1, 1000))
        queue = self.queues.setdefault((topic, queue_id), [])
        fields = {
            "topic": topic.encode() if rng.random() > 0.02 else b"\xff" + topic.encode(),
            "body": rng.randbytes(rng.choice(BODIES)),
            "queue_id": queue_id,
            "queue_offset": len(queue),
            "sys_flag": flag | rng.choice((0, 0, 0, 16, 48)),
            "stored": self.time,
        }
        position = self.first + len(self.log)
        unit = raw_unit(position, **fields)
        room = self.log_size - len(self.log) % self.log_size
        if len(unit) + 8 > room:
            self.log += raw_blank(room).ljust(room, rng.choice((b"\0", b"\0", b"\xda")))
            position += room
            unit = raw_unit(position, **fields)
        self.log += unit
        self.units.append((position, len(unit)))
        entry = struct.pack(">qiq", position, len(unit), 0)
        if flag in (0, 8):
            queue.append(entry)
        if rng.random() < 0.05:
            self.queues.setdefault(("%LMQ%one", 0), []).append(entry)

    def _write(self) -> None:
        folder = self.root / "commitlog"
        folder.mkdir(parents=True)
        for position in range(0, max(len(self.log), 1), self.log_size):
            data = bytes(self.log[position : position + self.log_size]).ljust(self.log_size, b"\0")
            (folder / f"{self.first + position:020d}").write_bytes(data)
        for (topic, queue_id), entries in self.queues.items():
            if entries:
                write_queue(self.root / "consumequeue" / topic / str(queue_id), b"".join(entries), QUEUE_SIZE)

    # -- damage

    def _damage(self) -> str:
        kinds = [name for name in dir(self) if name.startswith("_hurt_")]
        name = self.rng.choice(kinds)
        getattr(self, name)()
        return name

    def _files(self, part: str) -> list[Path]:
        return sorted(path for path in (self.root / part).rglob("*") if path.is_file())

    def _entry(self) -> tuple[Path, int, bytes] | None:
        files = self._files("consumequeue")
        if not files:
            return None
        path = self.rng.choice(files)
        data = path.read_bytes()
        used = max(len(data.rstrip(b"\0")) // 20, 1)
        position = self.rng.randrange(used) * 20
        return path, position, data[position : position + 20]

    def _hurt_lose_folder(self) -> None:
        folders = [path for path in (self.root / "consumequeue").glob("*/*") if path.is_dir()]
        if folders:
            shutil.rmtree(self.rng.choice(folders))

    def _hurt_lose_queues(self) -> None:
        shutil.rmtree(self.root / "consumequeue", ignore_errors=True)

    def _hurt_first_queue_file(self) -> None:
        files = self._files("consumequeue")
        firsts = [path for path in files if int(path.name) == 0 and len(list(path.parent.iterdir())) > 1]
        if firsts:
            self.rng.choice(firsts).unlink()

    def _hurt_zero_entries(self) -> None:
        entry = self._entry()
        if entry:
            patch(entry[0], entry[1], bytes(20 * self.rng.choice((1, 5))))
            with entry[0].open("r+b") as file:
                file.truncate(QUEUE_SIZE)

    def _hurt_swap_entries(self) -> None:
        first_entry, second_entry = self._entry(), self._entry()
        if first_entry and second_entry:
            patch(first_entry[0], first_entry[1], second_entry[2])
            patch(second_entry[0], second_entry[1], first_entry[2])

    def _hurt_swap_queues(self) -> None:
        """Two queues have each other's names: every entry is well-formed, and none is the topic's."""
        folders = [path for path in (self.root / "consumequeue").glob("*/*") if path.is_dir()]
        if len(folders) > 1:
            first_queue, second_queue = self.rng.sample(folders, 2)
            middle = self.root / "middle"
            first_queue.rename(middle)
            second_queue.rename(first_queue)
            middle.rename(second_queue)

    def _hurt_foreign_entry(self) -> None:
        """An entry of one queue covers a unit of another, like one of an earlier life may."""
        entry = self._entry()
        if entry and self.units:
            patch(entry[0], entry[1], struct.pack(">qi", *self.rng.choice(self.units)))

    def _hurt_entries_for_all(self) -> None:
        """A queue of an unknown topic has every unit, even those that never had an entry."""
        entries = b"".join(struct.pack(">qiq", *unit, 0) for unit in self.units)
        write_queue(self.root / "consumequeue" / "old" / "0", entries, QUEUE_SIZE)

    def _hurt_shift_entries(self) -> None:
        files = self._files("consumequeue")
        if files:
            path = self.rng.choice(files)
            path.write_bytes((bytes(20) + path.read_bytes())[: self.rng.choice((QUEUE_SIZE, QUEUE_SIZE - 7))])

    def _hurt_wrong_size(self) -> None:
        entry = self._entry()
        if entry:
            patch(entry[0], entry[1] + 8, struct.pack(">i", self.rng.choice((1, 120, 5000, 1 << 30, -4))))

    def _hurt_log_bytes(self) -> None:
        path = self.rng.choice(self._files("commitlog"))
        size = self.rng.choice((1, 8, 90, 700))
        position = self.rng.randrange(max(path.stat().st_size - size, 1))
        patch(path, position, self.rng.choice((bytes(size), self.rng.randbytes(size))))

    def _hurt_magic(self) -> None:
        """Write a blank, or another topic's name, into the middle of a file."""
        if self.units:
            position, size = self.rng.choice(self.units)
            path = self.root / "commitlog" / f"{position // self.log_size * self.log_size:020d}"
            if path.exists():
                place, data = self.rng.choice(((4, b"\xcb\xd4\x31\x94"), (size - 24, b"BBBB"), (28, bytes(8))))
                patch(path, position % self.log_size + place, data)

    def _hurt_cut_file(self) -> None:
        path = self.rng.choice(self._files("commitlog"))
        with path.open("r+b") as file:
            file.truncate(self.rng.choice((0, self.rng.randrange(self.log_size))))

    def _hurt_lose_file(self) -> None:
        files = self._files("commitlog")
        if len(files) > 2:
            self.rng.choice(files[:-1]).unlink()

    def _hurt_zero_tail(self) -> None:
        path = self.rng.choice(self._files("commitlog"))
        position = self.rng.randrange(self.log_size)
        patch(path, min(position, path.stat().st_size), bytes(max(path.stat().st_size - position, 0)))
