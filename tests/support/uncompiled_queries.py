"""Queries by key without their compiled twins, as where numba is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engine.codec import index_query


@contextmanager
def plain() -> Iterator[None]:
    """No compiled twin is there, or gets loaded by counting keys."""
    state = index_query.TwinState
    twin, keys_without_twin = state.twin, state.keys_without_twin
    state.twin, state.keys_without_twin = None, -(1 << 40)
    try:
        yield
    finally:
        state.twin, state.keys_without_twin = twin, keys_without_twin


@contextmanager
def compiled() -> Iterator[None]:
    """The compiled twin is there."""
    assert index_query.load() is not None
    yield
