"""Worker functions of the Space view: account of the bytes, retention, page cache, map of a file. No Qt."""

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
    from viewer.runtime.worker import WorkerControl


@dataclass(frozen=True, slots=True)
class Forecast:
    """Retention forecast and page cache; ``cache`` is None while it is being read."""

    retention: Retention
    cache: PageCache | None


def account(
    control: WorkerControl, path: Path, config: MessageStoreConfig | None, quick: bool, cache: Path | None = None
) -> Space:
    """Count the bytes of the store at ``path``; with ``quick``, emit a fast estimate first.

    Counts of finished files are kept in the folder ``cache``.
    """
    from engine.inspection import open_store
    from engine.inspection.space.account import quick_space, space_of

    control.report(0, None)
    with open_store(path, config) as store:
        if quick:
            control.emit(quick_space(store))
        return space_of(store, lambda: control.cancelled, control.report, cache)


def read_forecast(control: WorkerControl, path: Path, config: MessageStoreConfig | None) -> Forecast:
    """Read retention and page cache of the store at ``path``; the forecast is emitted first: it takes less."""
    from engine.inspection import open_store
    from engine.inspection.retention import retention
    from engine.inspection.space.page_cache import page_cache

    control.report(0, None)
    with open_store(path, config) as store:
        forecast = retention(store)
        control.emit(Forecast(forecast, None))
        return Forecast(forecast, page_cache(store))


def map_of(control: WorkerControl, path: Path, config: MessageStoreConfig | None, name: str, cells: int) -> FileMap:
    """Map one file of the log and check every CRC."""
    from engine.inspection import open_store
    from engine.inspection.file_map import file_map

    control.report(0, None)
    with open_store(path, config) as store:
        return file_map(store, name, cells, lambda: control.cancelled, control.report)
