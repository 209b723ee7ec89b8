"""Named areas within areas, as a treemap shows them; no Qt."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Area:
    """One area: ``key`` tells it from its sisters, ``topic`` gives its colour, ``age`` its depth (0 old, 1 new).

    ``target`` is the place that Enter leads to, or a search that only the store can turn into one; ``hatch`` a colour
    role.
    """

    key: str
    name: str
    bytes: int
    messages: int | None = None
    topic: str = ""
    note: str = ""
    age: float | None = None
    hatch: str = ""
    target: object = None
    children: tuple[Area, ...] = ()
    code: bool = False

    def child(self, key: str) -> Area | None:
        """The area below with this key."""
        return next((one for one in self.children if one.key == key), None)


def find(root: Area, path: tuple[str, ...]) -> Area | None:
    """The area that a path of keys leads to."""
    at: Area | None = root
    for key in path:
        at = at.child(key) if at is not None else None
    return at
