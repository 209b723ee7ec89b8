"""The account of space in the worker process: a fast first answer, the exact one; retention, page cache. No Qt."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.inspection.file_map import FileMap
    from engine.inspection.retention import Retention
    from engine.inspection.space.account import Space
    from engine.inspection.space.page_cache import PageCache
    from viewer.runtime.control import Emitting


@dataclass(frozen=True, slots=True)
class Around:
    """What stands beside the account and changes faster than it; ``cache`` None while it is asked for."""

    retention: Retention
    cache: PageCache | None


def account(
    control: Emitting, path: Path, config: MessageStoreConfig | None, quick: bool, cache: Path | None = None
) -> Space:
    """The account of the store at ``path``; with ``quick``, the quick one is emitted first. What is known of finished
    files is kept in ``cache``.
    """
    from engine.inspection import open_store
    from engine.inspection.space.account import quick_space, space_of

    control.report(0, None)
    with open_store(path, config) as store:
        if quick:
            control.emit(quick_space(store))
        return space_of(store, lambda: control.cancelled, control.report, cache)


def around(control: Emitting, path: Path, config: MessageStoreConfig | None) -> Around:
    """Retention and page cache of the store at ``path``, now; the forecast alone is emitted first: it takes less."""
    from engine.inspection import open_store
    from engine.inspection.retention import retention
    from engine.inspection.space.page_cache import page_cache

    control.report(0, None)
    with open_store(path, config) as store:
        found = retention(store)
        control.emit(Around(found, None))
        return Around(found, page_cache(store))


def map_of(control: Emitting, path: Path, config: MessageStoreConfig | None, name: str, cells: int) -> FileMap:
    """The map of one file of the log, CRCs checked."""
    from engine.inspection import open_store
    from engine.inspection.file_map import file_map

    control.report(0, None)
    with open_store(path, config) as store:
        return file_map(store, name, cells, lambda: control.cancelled, control.report)
