"""One thing that speaks for or against a message being where it belongs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that was found: ``file`` and ``offset`` (bytes) where it can be seen, ``holds`` what it says.

    ``timestamp``: when the unit was stored that it speaks of, in ms.
    """

    what: str
    file: str | None
    offset: int | None
    holds: str
    timestamp: int | None = None
