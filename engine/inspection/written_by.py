"""Which release wrote a store last, by what only one of them leaves behind: a guess, and always said as one."""

from __future__ import annotations

from engine.errors import CorruptUnit
from engine.inspection.snapshot import StoreSnapshot
from engine.rules.unit_check import Release

_OF_5 = ("timerwheel", "timerlog", "compaction", "batchconsumequeue", "abort.bak")
_TABLES_OF_5 = ("topicQueueMapping.json", "consumerOrderInfo.json", "timercheck", "timermetrics")


def guess(store: StoreSnapshot) -> tuple[Release, str] | None:
    """The release, and what speaks for it; None where nothing does. Raises :class:`CannotRead`."""
    if store.paths is None:
        return None
    root, exists = store.paths.root, store.reading.exists
    seen = next((name for name in _OF_5 if exists(root / name)), None)
    seen = seen or next((f"config/{name}" for name in _TABLES_OF_5 if exists(store.paths.config / name)), None)
    if seen is not None:
        return "5.3", f"it has {seen}"
    try:
        checkpoint = store.checkpoint()
    except CorruptUnit:
        return None
    if checkpoint is None:
        return None
    if checkpoint.confirm_phy_offset or checkpoint.master_flushed_offset:
        return "5.3", "its checkpoint has a confirm offset"
    return "4.9", "it has no timerwheel and no confirm offset"
