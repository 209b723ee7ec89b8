"""The disk that a power loss left, recovered once more beside the store: the same disk gives the same store.

What the disk kept is copied to ``kept/`` before the first recovery changes it. A further one works in ``again/``,
which is deleted when it is through; the lab's store goes on meanwhile.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from engine.errors import UsageError
from engine.lab import store_state
from engine.lab.lab_store import check_is_lab, read_marker, remove_part
from engine.lab.plug import Again, Figure, PlugReport, StoreState
from engine.lab.shadow_file import copy_data
from engine.message_store import MessageStore


def keep_disk(folder: Path) -> None:
    """Copy what the disk kept, so that it can be recovered again. Raises ``NotALab``, ``OSError``."""
    check_is_lab(folder)
    remove_part(folder, "kept")
    _copy_tree(folder / "store", folder / "kept")


def recover_again(folder: Path, report: PlugReport) -> Again:
    """Recover what the disk kept once more and compare it with the first recovery.

    Raises :class:`UsageError` where nothing was recovered yet, ``NotALab``, ``StoreError``, ``OSError``.
    """
    check_is_lab(folder)
    first_state = report.after
    if first_state is None or not (folder / "kept").is_dir():
        raise UsageError("there is no recovery yet that could be repeated")
    marker, place = read_marker(folder), folder / "again"
    remove_part(folder, "again")
    try:
        _copy_tree(folder / "kept", place)
        began = time.perf_counter()
        with MessageStore(place, marker.config, release=marker.like, services=False, empty_log=True) as store:
            took_ms = (time.perf_counter() - began) * 1000.0
            dropped = store.recovery_plan.units_dropped
        state, _next = store_state.of_files(place, marker.config, marker.like)
    finally:
        remove_part(folder, "again")
    number = report.again.round + 1 if report.again is not None else 2
    return Again(number, took_ms, tuple(_figures_of(report, first_state, state, dropped)))


def _figures_of(report: PlugReport, first_state: StoreState, state: StoreState, dropped: int) -> Iterator[Figure]:
    """Compare the first recovery with this one."""
    yield Figure("endOffset", first_state.end_offset, state.end_offset)
    yield Figure("units", first_state.units, state.units)
    yield Figure("unitsDropped", report.plan.units_dropped, dropped)
    yield Figure("logFiles", first_state.log_files, state.log_files)
    yield Figure("indexEntries", first_state.index_entries, state.index_entries)
    for queue in sorted({*first_state.queues, *state.queues}):
        yield Figure(f"{queue[0]}/{queue[1]}", first_state.queues.get(queue, 0), state.queues.get(queue, 0))


def _copy_tree(source: Path, target: Path) -> None:
    """Every file of a store, holes left holes."""
    for folder, _folders, names in os.walk(source):
        place = target / Path(folder).relative_to(source)
        place.mkdir(parents=True, exist_ok=True)
        for name in names:
            copy_data(Path(folder) / name, place / name)
