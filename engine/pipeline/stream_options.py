"""What the options of a followed log ask for: where to begin, how much at once, and what a loss does."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from engine.errors import UsageError


@dataclass(frozen=True, slots=True)
class Following:
    """``since`` is a time in ms, ``most`` bytes of logs in one batch; None where they are not asked for."""

    latest: bool = False
    since: int | None = None
    fail: bool = True
    most: int | None = None

    @classmethod
    def of(cls, given: Any, asked: Any) -> Following:
        """What ``given`` says, in which ``asked`` reads numbers and truths; raises :class:`UsageError`."""
        begins = given.get("startingOffsets", "earliest")
        if begins not in ("earliest", "latest"):
            raise UsageError(f"startingOffsets: expected earliest or latest, found {begins}")
        time = given.get("startingTimestamp")
        if time is not None and given.get("startingOffsets") is not None:
            raise UsageError("expected startingOffsets or startingTimestamp, found both")
        most = asked.number("maxBytesPerTrigger", 1) if given.get("maxBytesPerTrigger") is not None else None
        return cls(begins == "latest", _ms(time), asked.yes("failOnDataLoss", True), most)


def _ms(text: str | None) -> int | None:
    if text is None or text.isdigit():
        return None if text is None else int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"startingTimestamp: expected ms since the epoch, or a time like 2026-01-31T08:00:00Z, found {text}"
        ) from None
    return int((time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp() * 1000)
