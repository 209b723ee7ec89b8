"""The compiled twins of key queries, and when they are loaded.

For numba, choosing machine code by the types of its arguments costs more than a query takes. So the functions here
are the machine code itself, as Python calls it: each has one signature, and other types are an error, never a wrong
number. See also :mod:`engine.codec.dispatch_twin`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from engine.codec import columns
from engine.codec.machine_code_build import import_compiled

KEYS_WITH_NUMBA_IMPORTED, KEYS_WITHOUT_NUMBA = 1000, 20_000
"""Number of keys after which loading pays off: if numba is already imported (milliseconds), and if not (a second)."""


class QueryTwin(NamedTuple):
    """The functions of :mod:`engine.codec.compiled_query`."""

    find_one: Callable[..., int]
    find_all: Callable[..., int]
    hash_texts: Callable[..., int]
    find_keys: Callable[..., None]
    place_units: Callable[..., int]


class TwinState:
    """The state of this process: ``twin`` are the compiled twins once they are loaded, ``keys_without_twin`` counts
    keys that were looked up without them.
    """

    twin: QueryTwin | None = None
    keys_without_twin: int = 0


def twin_for(keys: int) -> QueryTwin | None:
    """Return the compiled twins for a query of so many keys; None if plain Python is quicker, or the only way."""
    return TwinState.twin or _load_if_worth_it(keys)


def load() -> QueryTwin | None:
    """Load and return the compiled twins; None if only plain Python is available."""
    if columns.twin() is None:
        return None
    if TwinState.twin is None:
        compiled_query = import_compiled("compiled_query")
        TwinState.twin = QueryTwin(*(_machine_code(getattr(compiled_query, name)) for name in QueryTwin._fields))
    return TwinState.twin


def _load_if_worth_it(keys: int) -> QueryTwin | None:
    TwinState.keys_without_twin += keys
    if TwinState.keys_without_twin < (KEYS_WITH_NUMBA_IMPORTED if "numba" in sys.modules else KEYS_WITHOUT_NUMBA):
        return None
    TwinState.keys_without_twin = 0
    return load()


def _machine_code(function: Any) -> Callable[..., Any]:
    """Return the function that numba would call for the only signature of ``function``."""
    (compiled,) = function.overloads.values()
    return cast("Callable[..., Any]", compiled.entry_point)
