"""Texts of a table beside its rows, as a model without Qt describes them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableState:
    """The text of a table in place of rows or below them. ``kind`` is one of the kinds of a record table's state.

    ``step`` is the next step that it offers, ``part`` the share of the work that is done (0 to 1).
    """

    kind: str
    text: str
    step: str = ""
    part: float | None = None
