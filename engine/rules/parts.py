"""Parts of a store, and from which of them a rule concludes: where one could not be read, the rule does not speak.

A rule about bytes that were seen needs none. What is missing, ends too early or points to nothing is a conclusion from
all of a part: a file of it that could not be read may hold just that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

Part = Literal["log", "queue", "index", "checkpoint", "config", "state", "timer", "other"]
Parts = frozenset[Part]

SEEN: Parts = frozenset()
LOG: Parts = frozenset({"log"})
QUEUE: Parts = frozenset({"queue"})
BOTH: Parts = LOG | QUEUE
INDEX: Parts = frozenset({"index"})
CHECKPOINT: Parts = frozenset({"checkpoint"})
CONFIG: Parts = frozenset({"config"})
STATE: Parts = frozenset({"state"})
TIMER: Parts = frozenset({"timer"})

_PARTS: dict[str, Part] = {
    "commitlog": "log",
    "consumequeue": "queue",
    "batchconsumequeue": "queue",
    "consumequeue_ext": "queue",
    "index": "index",
    "config": "config",
    "checkpoint": "checkpoint",
    "abort": "state",
    "abort.bak": "state",
    "lock": "state",
    "timerwheel": "timer",
    "timerlog": "timer",
}
ALL: Parts = frozenset({*_PARTS.values(), "other"})


def part_of(file: str, root: str, log_folders: Iterable[str]) -> Parts:
    """The part that ``file`` belongs to by its place; every part for the store's own folder and what is above it."""
    if any(file == folder or file.startswith(f"{folder}/") for folder in log_folders):
        return LOG
    if not file.startswith(f"{root}/"):
        return ALL
    name = file[len(root) + 1 :].split("/", 1)[0]
    return frozenset({_PARTS.get(name, "other")})
