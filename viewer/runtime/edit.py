"""An edit that can be undone: the old value, the new one, and the function that sets either; no Qt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Edit:
    """A change that Undo takes back. ``title`` is a noun in the user's language, shown behind Undo. ``put`` sets
    ``old_value`` or ``new_value``. Successive edits with the same ``run`` are one edit: typing is not one a letter.
    """

    title: str
    old_value: Any
    new_value: Any
    put: Callable[[Any], object]
    run: str = ""
