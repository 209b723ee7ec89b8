"""Pairs of stores with known differences, made by chance: each difference is counted once, and nothing else.

Thirty pairs by default; ``--refresh-steps 30000`` makes 3,000.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from controls import FakeControl, StoppedByTest
from written_logs import Message, message, write_log

from engine.codec.message import Unit, list_fields
from engine.inspection import message_differences, store_differences
from engine.inspection.difference_rows import Differences
from engine.inspection.snapshot import open_store
from engine.inspection.store_differences import compare_logs

PLACES = [("Orders", 0), ("Orders", 1), ("Paid", 0), ("Shipped", 3)]
CHANGED_FIELDS = {"queueId", "queueOffset", "physicalOffset", "bornTimestamp", "body", "topic", "properties.UNIQ_KEY"}
"""Fields without which a message can still be read."""
Key = tuple[str, int, int]


def random_messages(chance: random.Random, count: int) -> list[Message]:
    """Make messages of several queues in any order, each queue in the order of its offsets."""
    next_offsets: Counter[tuple[str, int]] = Counter()
    units = []
    for _ in range(count):
        place = chance.choice(PLACES)
        units.append(message(*place, next_offsets[place], chance.randbytes(chance.choice((3, 3, 3, 40, 400)))))
        next_offsets[place] += 1
    return units


def key_of(unit: Message) -> Key:
    return unit["topic"].decode(), unit["queue_id"], unit["queue_offset"]  # type: ignore[attr-defined, return-value]


def other_messages(chance: random.Random, units: list[Message]) -> list[Message]:
    """Return the messages of the other store: some are gone, new, changed, elsewhere in the log, or behind its end."""
    others = list(units)
    for _ in range(chance.choice((0, 0, 1, 3, 12))):
        del others[chance.randrange(len(others))]
    for number in range(chance.choice((0, 0, 1, 5))):
        others.insert(chance.randrange(len(others)), message("New", 0, number, b"new"))
    for _ in range(chance.choice((0, 1, 4))):
        index = chance.randrange(len(others))
        body = others[index]["body"]
        assert isinstance(body, bytes)
        others[index] = {**others[index], "body": body[:-1] + bytes([body[-1] ^ 1])}
    if chance.random() < 0.3:
        others = others[: chance.randrange(len(others) // 2, len(others))]
    if chance.random() < 0.2:
        others = others[chance.randrange(len(others) // 3) :]
    if chance.random() < 0.2:
        start = chance.randrange(len(others))
        others = others[start:] + others[:start]
    return others


def expected(units: list[Message], other_units: list[Message]) -> dict[tuple[str, int], Counter[str]]:
    """Return the number of differences of each kind by topic and queue."""
    here, there = ({key_of(unit): unit["body"] for unit in side} for side in (units, other_units))
    counts: dict[tuple[str, int], Counter[str]] = {}
    for key in here.keys() | there.keys():
        side = "differs" if key in here and key in there else "here" if key in here else "there"
        if side != "differs" or here[key] != there[key]:
            counts.setdefault(key[:2], Counter())[side] += 1
    return counts


def test_pairs_made_by_chance(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_differences, "MAX_STEPS_APART", 30)
    monkeypatch.setattr(message_differences, "MAX_PASS_UNITS", 60)
    for seed in range(request.config.getoption("--refresh-steps") // 10):
        chance = random.Random(seed)
        units = random_messages(chance, chance.choice((30, 60, 250)))
        other_units = other_messages(chance, units)
        sizes = chance.choice(((1 << 13, 1 << 13), (1 << 13, 1 << 13), (1 << 13, 1 << 12), (1 << 14, 1 << 13)))
        paths = write_log(tmp_path / "a", units, sizes[0]), write_log(tmp_path / "b", other_units, sizes[1])
        result = Differences()
        with open_store(paths[0]) as store, open_store(paths[1]) as other_store:
            compare_logs(FakeControl(0, StoppedByTest), store, other_store, result)
        counts = {
            place: Counter({side: units.count for side, units in sides.items()})
            for place, sides in result.queues.items()
        }
        assert counts == expected(units, other_units), f"seed {seed}"
        rows = Counter[str]()
        for row in result.rows:
            assert row.kind == "unit"
            if row.queue is not None:  # not the blank at the end of a file
                rows[row.side] += row.count
        shutil.rmtree(tmp_path / "a")
        shutil.rmtree(tmp_path / "b")


def test_each_flipped_bit_is_one_difference_at_its_offset(tmp_path: Path) -> None:
    """A changed byte in a unique key made one message two others. With a second one, all messages of both logs were
    compared as if they had moved, which took ten times as long, and a changed topic counted as two messages.
    """
    for seed in range(10):
        chance = random.Random(seed)
        units = random_messages(chance, 250)
        path = write_log(tmp_path / f"{seed}a", units)
        other_path = write_log(tmp_path / f"{seed}b", units)
        (file,) = (other_path / "commitlog").iterdir()
        data = bytearray(file.read_bytes())
        with open_store(path) as store:
            placed_units = [unit for unit in store.units() if isinstance(unit, Unit)]
        changed = chance.sample(placed_units[1:-1], 40)
        for unit in changed:
            fields = list_fields(bytes(data[unit.offset : unit.end]))
            field = chance.choice([field for field in fields if field.name in CHANGED_FIELDS])
            data[unit.offset + field.position + chance.randrange(field.length)] ^= 1 << chance.randrange(7)
        file.write_bytes(data)
        result = Differences()
        with open_store(path) as store, open_store(other_path) as other_store:
            compare_logs(FakeControl(0, StoppedByTest), store, other_store, result)
        assert result.alignment == "offsets", f"seed {seed}"
        assert {row.side for row in result.rows} == {"differs"}, f"seed {seed}"
        assert sum(row.count for row in result.rows) == len(changed), f"seed {seed}"
