"""Comparing two stores in the worker process. No Qt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.inspection.snapshot import StoreSnapshot
    from viewer.compare.pair_model import ComparedStores
    from viewer.runtime.worker import WorkerControl


def compare_paths(
    control: WorkerControl, path: Path, config: MessageStoreConfig | None, other_path: Path
) -> ComparedStores:
    """Compare the store at ``path``, with its broker configuration, with the one at ``other_path``.

    The other one is read as it is, even if it is the same store, which is shown as patched.
    """
    from engine.inspection import open_store
    from viewer.compare.pair_model import compare_stores

    with open_store(path, config) as store, open_as_it_is(other_path, config_of(path, other_path, config)) as other:
        return compare_stores(control, store, other)


def open_as_it_is(path: Path, config: MessageStoreConfig | None) -> StoreSnapshot:
    """Open a store without the patches with which the window shows it."""
    from engine.inspection import open_store
    from engine.inspection.snapshot import read_as_patched

    with read_as_patched(path, ()):
        return open_store(path, config)


def config_of(path: Path, other_path: Path, config: MessageStoreConfig | None) -> MessageStoreConfig | None:
    """Return the configuration of the other store: only the same store has the same one for certain."""
    return config if path == other_path else None
