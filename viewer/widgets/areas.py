"""Named areas within areas, as a treemap shows them; no Qt."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Area:
    """An area of a treemap. ``key`` is unique among its siblings, ``topic`` gives the colour, ``age`` the depth of
    the colour (0 old, 1 new).

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
        """The direct child with this key, or None."""
        return next((child for child in self.children if child.key == key), None)


def find(root: Area, path: tuple[str, ...]) -> Area | None:
    """Return the area at the end of a path of keys, or None."""
    area: Area | None = root
    for key in path:
        area = area.child(key) if area is not None else None
    return area
