"""Load the compiled twins of dispatch late. Without numba plain numpy is used, as in
:func:`engine.codec.columns.twin`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

from engine.codec import columns
from engine.codec.machine_code_build import twins


class Compiled(Protocol):
    """The functions of :mod:`engine.codec.compiled_dispatch`."""

    group_rows: Callable[..., tuple[int, int]]
    scatter_rows: Callable[..., None]
    chain_entries: Callable[..., int]


def twin() -> Compiled | None:
    """Return the compiled twins; None if only plain Python is available or ``STORESCOPE_PLAIN=1`` asks for it."""
    if columns.twin() is None:
        return None
    return cast("Compiled", twins("compiled_dispatch"))
