"""A repair: the patches that mend one kind of harm, why, and what they gain and cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from engine.patching.patches import Patch

Certainty = Literal["certain", "likely"]
"""``certain``: the store's other bytes prove the new ones. ``likely``: they agree with them without proving them."""


@dataclass(frozen=True, slots=True)
class Repair:
    """Patches that belong together: they are applied all or not at all.

    ``name`` is what a person types, ``rules`` are the findings that it mends. ``gains`` and ``costs`` are sentences,
    ``costs`` is "" if nothing is lost by it.
    """

    name: str
    rules: frozenset[str]
    title: str
    patches: tuple[Patch, ...]
    gains: str
    costs: str = ""
    certainty: Certainty = "certain"

    def record(self) -> dict[str, Any]:
        """Return the repair as JSON has it; its patches have records of their own."""
        return {
            "type": "repair",
            "name": self.name,
            "rules": sorted(self.rules),
            "title": self.title,
            "patches": len(self.patches),
            "gains": self.gains,
            "costs": self.costs,
            "certainty": self.certainty,
        }
