"""Settings of a load and their ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from engine.errors import UsageError
from engine.sentences import sentence

MAX_PRODUCERS: Final = 64


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """Settings of a load. Raises :class:`UsageError` for a value that is out of its range.

    ``rate`` is messages a second of all producers together (0: as fast as possible). Bodies have ``body_size`` ±
    ``body_spread`` bytes, uniformly distributed. All ``topics`` get the same number of messages, or with ``zipf``
    numbers by Zipf's law. ``keys`` is the number of different keys (0: messages have no key). ``batch`` messages are
    put in one call. ``queues`` is the number of queues of each topic.
    """

    producers: int = 1
    rate: int = 0
    body_size: int = 200
    body_spread: int = 0
    topics: int = 1
    zipf: bool = False
    keys: int = 0
    batch: int = 1
    seed: int = 0
    queues: int = 4
    topic: str = "Lab"

    def __post_init__(self) -> None:
        for name, minimum, maximum in _RANGES:
            value = getattr(self, name)
            if not minimum <= value <= maximum:
                raise UsageError(
                    sentence(
                        "{name}: expected {low:,} to {high:,}, found {value:,}",
                        name=name,
                        low=minimum,
                        high=maximum,
                        value=value,
                    )
                )


_RANGES: Final = (
    ("producers", 1, MAX_PRODUCERS),
    ("rate", 0, 100_000_000),
    ("body_size", 0, 4 << 20),
    ("body_spread", 0, 4 << 20),
    ("topics", 1, 10_000),
    ("keys", 0, 1_000_000_000),
    ("batch", 1, 1024),
    ("queues", 1, 1024),
)
"""Range of each setting: (name, minimum, maximum)."""
LOAD_RANGES: Final = {name: (minimum, maximum) for name, minimum, maximum in _RANGES}
