"""The compiled twins of queries by key, loaded when enough keys have been asked for (see
:mod:`engine.codec.dispatch_twin`).

Choosing machine code by the types of its arguments costs numba more than a query takes, so the functions here are the
machine code itself, as Python calls it: each has one signature, and other types are an error, never a wrong number.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from engine.codec import columns

SOON, LATE = 1000, 20_000
"""Keys after which loading is worth its time: where numba is there already (milliseconds), and where not (a second)."""


class QueryTwin(NamedTuple):
    """The functions of :mod:`engine.codec.compiled_query`."""

    find_one: Callable[..., int]
    find_all: Callable[..., int]
    hash_texts: Callable[..., int]
    find_keys: Callable[..., None]
    place_units: Callable[..., int]


class Loaded:
    """What is there in this process: ``twin`` are the compiled twins, once they are, for those to whom a call is dear;
    ``asked`` the keys that were asked for without them.
    """

    twin: QueryTwin | None = None
    asked: int = 0


def ready(keys: int) -> QueryTwin | None:
    """The compiled twins for a query of so many keys; None where plain Python is the quicker way, or the only one."""
    return Loaded.twin or _consider(keys)


def load() -> QueryTwin | None:
    """The compiled twins, loaded now; None where only plain Python is to be had."""
    if columns.twin() is None:
        return None
    if Loaded.twin is None:
        from engine.codec import compiled_query

        Loaded.twin = QueryTwin(*(_machine_code(getattr(compiled_query, name)) for name in QueryTwin._fields))
    return Loaded.twin


def _consider(keys: int) -> QueryTwin | None:
    Loaded.asked += keys
    if Loaded.asked < (SOON if "numba" in sys.modules else LATE):
        return None
    Loaded.asked = 0
    return load()


def _machine_code(function: Any) -> Callable[..., Any]:
    """What numba would call for the one signature that ``function`` has."""
    (compiled,) = function.overloads.values()
    return cast("Callable[..., Any]", compiled.entry_point)
