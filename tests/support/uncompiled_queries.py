"""Queries by key without their compiled twins, as if numba were missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engine.codec import index_query


@contextmanager
def plain() -> Iterator[None]:
    """Remove the compiled twin, and keep counted keys from loading it."""
    state = index_query.TwinState
    twin, keys_without_twin = state.twin, state.keys_without_twin
    state.twin, state.keys_without_twin = None, -(1 << 40)
    try:
        yield
    finally:
        state.twin, state.keys_without_twin = twin, keys_without_twin


@contextmanager
def compiled() -> Iterator[None]:
    """Assert that the compiled twin can be loaded."""
    assert index_query.load() is not None
    yield
