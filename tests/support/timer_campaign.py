"""Stores with timers by seed, damaged in the ways that the repair of timers is made for, and what the timer service of
a mended one has to deliver.
"""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from planted_faults import patch

from engine.codec import timer
from engine.inspection.snapshot import open_store

Plan = dict[str, Any]
DELIVERED_MS, OVERDUE_MS, FAR_MS = 1_500, 6_000, 3_600_000
"""When messages are due, after they were put: before the store is closed, after it is mended, and much later."""
TIMERS = "rmq_sys_wheel_timer"


def shape(seed: int) -> Plan:
    """Return a plan with timers in their topic, as a broker puts them there, among other messages."""
    rng = random.Random(f"timers {seed}")
    now = int(time.time() * 1000)
    messages = []
    for number in range(rng.randrange(60, 140)):
        if rng.random() < 0.3:
            messages.append({"topic": "Orders", "queue": 1, "body": "x" * rng.randrange(300)})
            continue
        due = now + rng.choice((DELIVERED_MS, OVERDUE_MS, FAR_MS)) + rng.randrange(1000)
        properties = {"REAL_TOPIC": "Orders", "REAL_QID": "0", "TIMER_OUT_MS": str(due), "UNIQ_KEY": f"K{number}"}
        messages.append({"topic": TIMERS, "queue": 0, "body": f"{number}", "properties": properties})
    return {
        "config": {
            "mappedFileSizeCommitLog": rng.choice((65_536, 262_144)),
            "mappedFileSizeConsumeQueue": 20 * rng.choice((50, 300)),
            "maxHashSlotNum": 100,
            "maxIndexNum": 400,
            "timerWheelEnable": "true",
            "mappedFileSizeTimerLog": timer.UNIT_SIZE * rng.choice((20, 100)),
        },
        "topics": [{"name": "Orders", "queues": 2}, {"name": TIMERS, "queues": 1}],
        "messages": messages,
        "count": 0,
        "services": True,
        "servicesUntil": now + DELIVERED_MS + 3000,
        "seed": seed,
    }


def due_keys(plan: Plan) -> set[str]:
    """Return the unique keys of the messages that are due before the mended store is looked at."""
    return {key for key, due in _dues(plan) if due < plan["servicesUntil"] + FAR_MS // 2}


def far_keys(plan: Plan) -> set[str]:
    """Return the unique keys of the messages that are due much later."""
    return {key for key, _ in _dues(plan)} - due_keys(plan)


def _dues(plan: Plan) -> list[tuple[str, int]]:
    timers = [message["properties"] for message in plan["messages"] if message["topic"] == TIMERS]
    return [(properties["UNIQ_KEY"], int(properties["TIMER_OUT_MS"])) for properties in timers]


def _damage(root: Path, rng: random.Random, path: Path) -> None:
    used = max(len(path.read_bytes()[: 1 << 20].rstrip(b"\0")), 1)
    patch(path, rng.randrange(used) // 4 * 4, rng.choice((bytes, rng.randbytes))(rng.choice((4, 52, 520)))[:used])


def _timer_log(rng: random.Random, root: Path) -> Path:
    return rng.choice(sorted((root / "timerlog").iterdir()))


def damage_in_the_timer_log(rng: random.Random, root: Path) -> None:
    _damage(root, rng, _timer_log(rng, root))


def a_lost_file_of_the_timer_log(rng: random.Random, root: Path) -> None:
    _timer_log(rng, root).unlink()


def no_timer_log(_: random.Random, root: Path) -> None:
    shutil.rmtree(root / "timerlog")


def a_wheel_of_another_length(rng: random.Random, root: Path) -> None:
    with (root / "timerwheel").open("r+b") as file:
        file.truncate(rng.choice((0, 4096, 1 << 20)))


def no_wheel(_: random.Random, root: Path) -> None:
    (root / "timerwheel").unlink()


def a_timercheck_ahead(_: random.Random, root: Path) -> None:
    path = root / "config" / "timercheck"
    check = timer.decode_check(path.read_bytes())
    path.write_bytes(
        timer.TimerCheck(
            check.last_read_time + 10**8, 0, check.queue_offset + 999, check.queue_offset + 999, 0, 0, 0
        ).encoded()
    )


def nothing_of_the_timer(_: random.Random, root: Path) -> None:
    shutil.rmtree(root / "timerlog")
    (root / "timerwheel").unlink()
    (root / "config" / "timercheck").unlink()


KINDS: dict[str, Callable[[random.Random, Path], None]] = {
    kind.__name__.replace("_", " "): kind
    for kind in (
        damage_in_the_timer_log,
        a_lost_file_of_the_timer_log,
        no_timer_log,
        a_wheel_of_another_length,
        no_wheel,
        a_timercheck_ahead,
        nothing_of_the_timer,
    )
}


def waiting_in_log(root: Path) -> set[str]:
    """Return the unique keys of the messages to which the timer log of a store leads."""
    keys = set()
    with open_store(root) as store:
        sequence = store.timer_log()
        for file in sequence.files if sequence is not None else ():
            for item in timer.walk(file.read(0, file.size), file.start_offset):
                unit = store.log.seen_at(item.physical_offset, crc=False) if hasattr(item, "physical_offset") else None
                keys |= {unit.properties["UNIQ_KEY"]} if hasattr(unit, "properties") else set()
    return keys


def deliveries(rows: list[dict[str, Any]]) -> Counter[str]:
    """Return how often each timer message is in its own topic."""
    return Counter(
        row["props"]["UNIQ_KEY"]
        for row in rows
        if row["t"] == "msg" and row["topic"] == "Orders" and "UNIQ_KEY" in row["props"]
    )


def disagreements(plan: Plan, rows: list[dict[str, Any]], repeated: Collection[str] = ()) -> list[str]:
    """Return what the timer of a mended store did wrong: each message that is due comes once, no other does.

    ``repeated`` are those that the timer of the undamaged store delivers again: it goes on a little before its end.
    """
    if not any(row["t"] == "load" and row["ok"] for row in rows):
        return ["the real store does not load"]
    delivered = deliveries(rows)
    due = due_keys(plan)
    twice = [(key, count) for key, count in delivered.items() if count > 1 and key in due and key not in repeated]
    wrong = [f"{key} came {count} times" for key, count in twice]
    wrong += [f"{key} did not come" for key in sorted(due - delivered.keys())]
    return wrong + [f"{key} came too early" for key in sorted(delivered.keys() - due)]
