"""Queries by key without their compiled twins, as where numba is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engine.codec import index_query


@contextmanager
def plain() -> Iterator[None]:
    """No compiled twin is there, or gets loaded by counting keys."""
    loaded = index_query.TwinState
    ready, asked = loaded.twin, loaded.asked
    loaded.twin, loaded.asked = None, -(1 << 40)
    try:
        yield
    finally:
        loaded.twin, loaded.asked = ready, asked


@contextmanager
def compiled() -> Iterator[None]:
    """The compiled twin is there."""
    assert index_query.load() is not None
    yield
