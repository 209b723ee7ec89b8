"""The steps of the load's sliders: what each means and how it is said; no Qt.

A slider holds the number of a step. Rates and sizes rise by 1–2–5, because a load is felt in powers, not in units.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from viewer.look.assets import tr, words
from viewer.look.formats import number, size

AS_FAST = 0
"""A rate without a limit."""


@dataclass(frozen=True, slots=True)
class Knob:
    """One slider: ``key`` of the settings, its name, its steps and what a step is called."""

    key: str
    name: str
    steps: tuple[int, ...]
    say: Callable[[int], str]
    first: int
    tip: str = ""

    def step_of(self, value: int) -> int:
        """The number of the step that is nearest to ``value``."""
        return min(range(len(self.steps)), key=lambda n: abs(self.steps[n] - value))


def _rate(value: int) -> str:
    return tr("no limit") if value == AS_FAST else f"{value:,} /s"


def _bytes(value: int) -> str:
    return size(value) if value >= 10_000 else f"{value:,} B"


def _percent(value: int) -> str:
    return tr("all alike") if value == 0 else f"± {value} %"


def _keys(value: int) -> str:
    return tr("none") if value == 0 else number(value)


def _batch(value: int) -> str:
    return tr("off") if value == 1 else number(value)


KNOBS = (
    Knob("producers", words("Producers"), tuple(range(1, 17)), number, 4, words("Threads that put at the same time")),
    Knob("rate", words("Rate"),
         (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, AS_FAST), _rate, 2000,
         words("Messages a second, of all producers together")),
    Knob("body_size", words("Body"),
         (0, 10, 50, 100, 200, 500, 1000, 2000, 4096, 10_240, 65_536, 262_144, 1_048_576), _bytes, 200,
         words("Bytes of a body, on average")),
    Knob("body_spread", words("Spread"), (0, 10, 25, 33, 50, 75, 100), _percent, 33,
         words("How far bodies are shorter or longer than that")),
    Knob("topics", words("Topics"), (1, 2, 3, 4, 5, 8, 16, 32, 64), number, 3, words("How many topics are fed")),
    Knob("keys", words("Keys"), (0, 10, 100, 1000, 10_000, 50_000, 100_000, 1_000_000), _keys, 1000,
         words("How many different keys there are; a few keys make long index chains")),
    Knob("batch", words("Batch"), (1, 2, 4, 8, 16, 32, 64, 128, 256), _batch, 1,
         words("Messages of one put")),
)  # fmt: skip
BY_KEY = {knob.key: knob for knob in KNOBS}


def spread_bytes(body: int, percent: int) -> int:
    """Bytes by which a body is shorter or longer at most."""
    return body * percent // 100
