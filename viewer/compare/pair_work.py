"""Comparing two stores in the worker process. No Qt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from viewer.compare.pair_model import ComparedStores
    from viewer.runtime.worker import WorkerControl


def compare_paths(
    control: WorkerControl, path: Path, config: MessageStoreConfig | None, other_path: Path
) -> ComparedStores:
    """Compare the store at ``path``, with its broker configuration, with the one at ``other_path``."""
    from engine.inspection import open_store
    from viewer.compare.pair_model import compare_stores

    with open_store(path, config) as store, open_store(other_path) as other_store:
        return compare_stores(control, store, other_store)
