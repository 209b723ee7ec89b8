"""Looking without touching: a store directory opened with read rights only.

from engine.inspection import open_store
with open_store(path) as store:
    store.units(start=0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.inspection.snapshot import StoreSnapshot as StoreSnapshot
    from engine.inspection.snapshot import open_store as open_store

__all__ = ["StoreSnapshot", "open_store"]


def __getattr__(name: str) -> object:
    """Load the snapshot late: importing a neighbour module must not pay for it."""
    if name in __all__:
        from engine.inspection import snapshot

        return getattr(snapshot, name)
    raise AttributeError(name)
