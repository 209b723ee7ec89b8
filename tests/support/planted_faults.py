"""Single faults planted into copies of healthy stores: each kind names the rule and place that the check must report.

A kind is a function of (random numbers, store) that spoils one thing and returns an :class:`Expected`. The program's
own readers read the store before it is spoiled; other tests prove them for healthy stores. The kinds are in
``planted_in_log``, ``planted_in_queues`` and ``planted_in_index``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.codec.message import Unit
from engine.codec.unit_scan import Blank
from engine.inspection.snapshot import open_store


@dataclass(frozen=True)
class Expected:
    """Ids, one of which must be found, at ``offset`` (None: anywhere) of a file whose path ends with ``file``."""

    ids: tuple[str, ...]
    file: str | None = None
    offset: int | None = None


@dataclass(frozen=True)
class Entry:
    """A queue entry, its place, and whether it has neighbours on both sides."""

    path: Path
    position: int
    topic: str
    queue_id: int
    number: int
    physical: int
    size: int
    tags: int


class SpoiledStore:
    """A copy of a store, and its healthy parts."""

    def __init__(self, root: Path) -> None:
        self.root = root
        with open_store(root) as store:
            items = list(store.units())
            self.units = [i for i in items if isinstance(i, Unit)]
            self.blanks = [i for i in items if isinstance(i, Blank)]
            self.log_files = [(Path(f.path), f.start_offset, f.size) for f in store.log.files]
            self.end = store.log.max_offset
            self.queues = {(q.topic, q.queue_id): q for queues in store.topics().values() for q in queues.values()}
            self.entries = [e for q in self.queues.values() if q.kind == "simple" for e in _entries(q)]
            self.index = [(Path(i.path), i.header, i.geometry) for i in store.index_files() if i.geometry]
            self.queue_files = {key: [Path(f.path) for f in q.files] for key, q in self.queues.items()}
        entered = [u for u in self.units if u.transaction_type in (0, 8)]
        self.dispatched = [u for u in entered if (u.topic, u.queue_id) in self.queues]

    def place(self, offset: int) -> tuple[Path, int]:
        """Return file and position of an offset of the log."""
        path, start, _ = next(f for f in self.log_files if f[1] <= offset < f[1] + f[2])
        return path, offset - start

    def write(self, offset: int, data: bytes) -> None:
        """Overwrite bytes of the log."""
        path, position = self.place(offset)
        patch(path, position, data)


def _entries(queue) -> list[Entry]:
    entries = []
    for entry in queue.entries():
        if entry.state != "entry":
            continue
        position = entry.queue_offset * 20
        file = queue.sequence.find(position)
        entries.append(
            Entry(
                Path(file.path),
                position - file.start_offset,
                queue.topic,
                queue.queue_id,
                entry.queue_offset,
                entry.physical_offset,
                entry.size,
                entry.tags_code,
            )
        )
    return entries[1:-1]


def patch(path: Path, position: int, data: bytes) -> None:
    """Overwrite bytes of a file."""
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def read(path: Path, position: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(position)
        return file.read(size)


class NothingToSpoil(Exception):
    """This store has nothing that could be spoiled in this way."""


def pick(rng: random.Random, items: Sequence[Any]) -> Any:
    """Return one of ``items``; a store without any is unsuitable."""
    if not items:
        raise NothingToSpoil
    return rng.choice(items)


Kind = Callable[[random.Random, SpoiledStore], Expected]


class FaultKinds(dict[str, Kind]):
    """Kinds of faults by their names."""

    def add(self, function: Kind) -> Kind:
        """Decorator: add a kind."""
        self[function.__name__] = function
        return function


def some_unit(rng: random.Random, store: SpoiledStore, **options: int) -> Unit:
    """Return a dispatched unit that is neither the first nor the last of the log, with a body if asked for."""
    able = [u for u in store.dispatched[3:-3] if len(u.body) >= options.get("body", 0)]
    return pick(rng, able)
