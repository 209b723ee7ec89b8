"""Queries by key without their compiled twins, as where numba is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engine.codec import query_twin


@contextmanager
def plain() -> Iterator[None]:
    """No compiled twin is there, or gets loaded by counting keys."""
    ready, query_twin.loaded[:] = list(query_twin.loaded), []
    asked, query_twin._asked[0] = query_twin._asked[0], -(1 << 40)
    try:
        yield
    finally:
        query_twin.loaded[:] = ready
        query_twin._asked[0] = asked


@contextmanager
def compiled() -> Iterator[None]:
    """The compiled twin is there."""
    assert query_twin.load() is not None
    yield
