"""Links that are to open in a window of their own; no Qt."""

from __future__ import annotations

import dataclasses


def elsewhere(place: object) -> object:
    """The same place, marked to be shown in a window of its own; unchanged where it cannot be marked."""
    if dataclasses.is_dataclass(place) and not isinstance(place, type) and hasattr(place, "own"):
        return dataclasses.replace(place, own=True)
    return place
