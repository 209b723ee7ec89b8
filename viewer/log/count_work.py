"""Counting the rows of a commit log in the worker; the window takes the counts from the side index in the cache.

Runs as ``jobs.in_worker(title, "viewer.log.count_work:count", …)``. No Qt.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from viewer.runtime.control import Control

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig


def count(control: Control, path: Path, config: MessageStoreConfig | None, cache: Path) -> bool:
    """Build the side index of the store at ``path`` in ``cache``; False where it was stopped before the end."""
    from engine.inspection import open_store
    from engine.inspection.side_index import SideIndex

    with open_store(path, config) as store:
        return SideIndex(store.log, cache).build(lambda: control.cancelled, control.report)
