"""Worker function of the Timeline view. No Qt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.config import MessageStoreConfig
    from engine.inspection.timeline.timeline import Timeline
    from viewer.runtime.worker import WorkerControl

MAX_EVENTS = 20_000
"""Events that are listed, the first ones in time; ``storescope timeline --limit`` lists more."""


def find_events(control: WorkerControl, path: Path, config: MessageStoreConfig | None) -> Timeline | None:
    """Read the log of the store at ``path`` and return its timeline; None if the user stopped it."""
    from engine.inspection import open_store
    from engine.inspection.timeline.timeline import find_timeline

    control.report(0, None)
    with open_store(path, config) as store:
        store.commit_log.settle_end()
        total = store.log.sequence.total_size
        timeline = find_timeline(store, lambda done: control.report(done, total), lambda: control.cancelled)
    if control.cancelled:
        return None
    del timeline.events[MAX_EVENTS:]
    return timeline
