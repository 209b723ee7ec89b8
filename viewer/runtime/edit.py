"""An edit that can be taken back: what stood before, what stands now, and who puts either; no Qt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Edit:
    """``what`` in the user's language, as a noun: it stands behind Undo. ``put(value)`` makes ``before`` or ``after``
    true. An edit goes into the one before it where both name the same ``run``: typing is one edit, not one a letter.
    """

    what: str
    before: Any
    after: Any
    put: Callable[[Any], object]
    run: str = ""
