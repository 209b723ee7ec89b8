"""Places visited: back, forward, and never twice the same in a row. Pure."""

from __future__ import annotations

from collections.abc import Callable

from viewer.runtime.places import Place

LONGEST = 200


class History:
    """A list of places and where in it one is."""

    def __init__(self) -> None:
        self._places: list[Place] = []
        self._at = -1
        self.watch: Callable[[Place], object] = lambda _place: None
        """Told of every place that was gone to."""

    @property
    def current(self) -> Place | None:
        """Where one is."""
        return self._places[self._at] if self._at >= 0 else None

    @property
    def places(self) -> tuple[Place, ...]:
        """Every place up to where one is, oldest first."""
        return tuple(self._places[: self._at + 1])

    def visit(self, place: Place) -> None:
        """A new step; what lay ahead is forgotten."""
        if place == self.current:
            return
        del self._places[self._at + 1 :]
        self._places.append(place)
        del self._places[:-LONGEST]
        self._at = len(self._places) - 1
        self.watch(place)

    def move(self, place: Place) -> None:
        """The selection moved: this step is now there."""
        if self._at >= 0:
            self._places[self._at] = place
            self.watch(place)
        else:
            self.visit(place)

    @property
    def can_go_back(self) -> bool:
        return self._at > 0

    @property
    def can_go_forward(self) -> bool:
        return self._at + 1 < len(self._places)

    def back(self) -> Place | None:
        """One step back; None at the first."""
        return self._step(-1) if self.can_go_back else None

    def forward(self) -> Place | None:
        """One step forward; None at the last."""
        return self._step(1) if self.can_go_forward else None

    def clear(self) -> None:
        """Another store: nothing was visited yet."""
        self._places.clear()
        self._at = -1

    def _step(self, by: int) -> Place:
        self._at += by
        return self._places[self._at]
