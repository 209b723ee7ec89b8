"""Damage that matters to recovery, planted by seed: effects of crashes, disks and hands on a store's files.

Unlike :mod:`planted_faults` nothing is expected here: the real RocketMQ store recovers the result.
"""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from planted_faults import patch

from engine.codec.consume_queue import CQ_UNIT_SIZE
from engine.codec.message import Unit
from engine.inspection.snapshot import open_store


class Anatomy:
    """The parts of a store that can be damaged."""

    def __init__(self, root: Path) -> None:
        self.root = root
        with open_store(root) as store:
            self.units = [u for u in store.units() if isinstance(u, Unit)]
            self.end = store.log.max_offset
            self.log = [(Path(f.path), f.start_offset, f.size) for f in store.log.files]
            actual_queues = [queue for queues in store.topics().values() for queue in queues.values() if queue.files]
            self.queues = [[Path(f.path) for f in queue.files] for queue in actual_queues]
            self.unit_sizes = [queue.unit_size for queue in actual_queues]
            self.written = [queue.raw_end - max(queue.sequence.min_offset, 0) for queue in actual_queues]

    def place(self, offset: int) -> tuple[Path, int]:
        path, start, _ = next(f for f in self.log if f[1] <= offset < f[1] + f[2])
        return path, offset - start


Damage = Callable[[random.Random, Anatomy], None]


def abort_appears(_: random.Random, store: Anatomy) -> None:
    (store.root / "abort").write_text("4711")


def abort_vanishes(_: random.Random, store: Anatomy) -> None:
    (store.root / "abort").unlink(missing_ok=True)


def checkpoint_changes(rng: random.Random, store: Anatomy) -> None:
    time = rng.choice(store.units).store_timestamp + rng.choice((2999, 3000, 3001, 0, 10**6))
    times = (time, time + rng.randrange(-5, 5), rng.choice((0, time, time + 10**9)))
    patch(store.root / "checkpoint", 0, struct.pack(">qqq", *times))


def checkpoint_offset_changes(rng: random.Random, store: Anatomy) -> None:
    """The sixth number, by which 5.5 begins after a crash; older releases ignore it."""
    offset = rng.choice((0, -1, 1, rng.choice(store.units).offset, rng.choice(store.units).offset, 1 << 40))
    patch(store.root / "checkpoint", 40, struct.pack(">q", offset))


def queues_time_is_zero(_: random.Random, store: Anatomy) -> None:
    """A broker of 5.5 leaves this in its first minute."""
    patch(store.root / "checkpoint", 8, bytes(8))


def every_queue_vanishes(_: random.Random, store: Anatomy) -> None:
    """Batch queues stay: without a table of topics only their folders show their topics."""
    for files, unit_size in zip(store.queues, store.unit_sizes, strict=True):
        if unit_size == CQ_UNIT_SIZE:
            shutil.rmtree(files[0].parent, ignore_errors=True)


def first_unit_of_a_file_breaks(rng: random.Random, store: Anatomy) -> None:
    path = rng.choice(store.log)[0]
    patch(path, rng.choice((0, 4, 8, 28, 56, 90)), rng.randbytes(4))


def checkpoint_vanishes(_: random.Random, store: Anatomy) -> None:
    (store.root / "checkpoint").unlink(missing_ok=True)


def queue_vanishes(rng: random.Random, store: Anatomy) -> None:
    shutil.rmtree(rng.choice(store.queues)[0].parent)


def queue_file_vanishes(rng: random.Random, store: Anatomy) -> None:
    rng.choice(store.queues)[rng.choice((0, -1))].unlink()


def queue_file_appears(rng: random.Random, store: Anatomy) -> None:
    last_file = rng.choice(store.queues)[-1]
    size = last_file.stat().st_size
    (last_file.parent / f"{int(last_file.name) + size:020d}").write_bytes(bytes(size))


def queue_tail_is_zero(rng: random.Random, store: Anatomy) -> None:
    number = rng.randrange(len(store.queues))
    last_file, unit = store.queues[number][-1], store.unit_sizes[number]
    size = last_file.stat().st_size
    position = rng.randrange(size // unit) * unit
    patch(last_file, position, bytes(size - position))


def entry_points_elsewhere(rng: random.Random, store: Anatomy) -> None:
    number = rng.randrange(len(store.queues))
    files, unit = store.queues[number], store.unit_sizes[number]
    position = rng.randrange(max(store.written[number] // unit, 1)) * unit
    size = files[0].stat().st_size
    wrong = rng.choice((store.end, store.end + 5000, 0, rng.randrange(store.end), -1))
    patch(files[position // size], position % size, struct.pack(">q", wrong))


def log_tail_is_zero(rng: random.Random, store: Anatomy) -> None:
    offset = rng.randrange(max(store.end - 200_000, store.log[0][1]), store.end)
    for path, start, size in store.log:
        position = max(offset - start, 0)
        if position < size:
            patch(path, position, bytes(size - position))


def log_bit_flips(rng: random.Random, store: Anatomy) -> None:
    unit = rng.choice(store.units)
    path, position = store.place(unit.offset + rng.randrange(unit.size))
    patch(path, position, bytes([path.read_bytes()[position] ^ 1 << rng.randrange(8)]))


def unit_field_changes(rng: random.Random, store: Anatomy) -> None:
    path, position = store.place(rng.choice(store.units[-50:]).offset)
    patch(path, position + rng.choice((0, 12, 20, 28, 36, 84)), rng.randbytes(4))


def old_unit_follows_the_end(rng: random.Random, store: Anatomy) -> None:
    unit = rng.choice(store.units)
    path, position_of_unit = store.place(unit.offset)
    target, position = store.place(store.end)
    if position + unit.size < store.log[0][2]:
        patch(target, position, path.read_bytes()[position_of_unit : position_of_unit + unit.size])


def log_file_vanishes(rng: random.Random, store: Anatomy) -> None:
    store.log[rng.choice((0, -1))][0].unlink()


def log_file_appears(rng: random.Random, store: Anatomy) -> None:
    last_file, start, size = store.log[-1]
    (last_file.parent / f"{start + size:020d}").write_bytes(bytes(rng.choice((0, size, 100))))


KINDS: tuple[Damage, ...] = (
    abort_appears,
    abort_vanishes,
    checkpoint_changes,
    checkpoint_offset_changes,
    queues_time_is_zero,
    every_queue_vanishes,
    first_unit_of_a_file_breaks,
    checkpoint_vanishes,
    queue_vanishes,
    queue_file_vanishes,
    queue_file_appears,
    queue_tail_is_zero,
    entry_points_elsewhere,
    log_tail_is_zero,
    log_bit_flips,
    unit_field_changes,
    old_unit_follows_the_end,
    log_file_vanishes,
    log_file_appears,
)


def damage(rng: random.Random, root: Path) -> list[str]:
    """Plant one to three kinds of damage in the store at ``root``; return their names."""
    store = Anatomy(root)
    chosen = rng.choices(KINDS, k=rng.choice((1, 1, 2, 3)))
    for kind in chosen:
        with suppress(FileNotFoundError, StopIteration, IndexError, ValueError):  # an earlier one took the file away
            kind(rng, store)
    return [kind.__name__ for kind in chosen]
