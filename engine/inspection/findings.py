"""The check of a store: all rules in one pass over the log (``check``; product: findings).

Memory does not grow with the store: the log goes by in blocks, queue entries and index entries are read along with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Protocol

from engine.codec.columns import UnitColumns
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import Damage, Stop
from engine.inspection import check_conf, check_keys, check_state, check_tail, foreign
from engine.inspection.block_scan import scan_log
from engine.inspection.check_fold import QueueFold
from engine.inspection.check_index import IndexCheck
from engine.inspection.check_log import LogCheck
from engine.inspection.check_queues import QueueCheck
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue
from engine.rules.findings import Finding, Summary, rank, summarise

Progress = Callable[[int, int], None]


class Cancel(Protocol):
    """What can be asked whether to stop; ``threading.Event`` is one."""

    def is_set(self) -> bool:
        """Whether to stop."""


def check(
    store: StoreSnapshot,
    only: Collection[str] | None = None,
    cancel: Cancel | None = None,
    progress: Progress | None = None,
) -> Iterator[Finding | Summary]:
    """Every finding, gravest first, last a :class:`Summary`.

    ``only`` names rules by id; ``progress`` gets bytes of the log done and in all; a check that ``cancel`` stops tells
    what the part it saw showed, and its summary is not complete.
    """
    found: list[Finding] = []
    complete = True
    for finding in _all(store, cancel, progress):
        if finding is None:
            complete = False
        elif only is None or finding.id in only:
            found.append(finding)
    found.sort(key=rank)
    yield from found
    yield summarise(found, complete)


def _all(store: StoreSnapshot, cancel: Cancel | None, progress: Progress | None) -> Iterator[Finding | None]:
    """All findings in no order; None where the walk was stopped before its end."""
    yield from check_state.abort(store)
    yield from check_state.config(store)
    yield from check_state.start(store)
    if store.config is not None:
        yield from check_conf.findings(store, store.config)
    for note in foreign.notes(store):
        yield catalogue.DK02.found(note, str(store.path), None, {"found": note})
    topics = TopicTable()
    log = LogCheck(store)
    queues = QueueCheck(store, topics)
    index = IndexCheck(store.index_files(), topics)
    stop = _walk(store, topics, log, queues, index, cancel, progress)
    log.finish(stop)
    if stop.kind == "cancelled":
        yield None
        yield from log.findings()
        return
    queues.drain()
    index.drain()
    fold = QueueFold(store, log, queues)
    known = store.paths is not None and not foreign.rocksdb_queues(store)
    around = list(fold.findings()) if known else []
    around.extend(check_keys.findings(store, log, index, fold.odd_units))
    around.extend(check_state.checkpoint(store, log.newest_time, log.end))
    yield from log.findings()
    yield from check_tail.fold(around, store, log)


def _walk(
    store: StoreSnapshot,
    topics: TopicTable,
    log: LogCheck,
    queues: QueueCheck,
    index: IndexCheck,
    cancel: Cancel | None,
    progress: Progress | None,
) -> Stop:
    start = max(store.log.min_offset, 0)
    whole = max(store.log.end_offset - start, 1)
    last = Stop(start, "end", "the log has no files")
    if not store.log.files:
        return last
    levels = store.config.delay_levels() if store.config is not None else None
    scan = scan_log(store.log, topics=topics, levels=levels) if levels else scan_log(store.log, topics=topics)
    for item in scan:
        if isinstance(item, UnitColumns):
            good = log.block(item)
            if len(good):
                queues.block(item, good)
                index.block(item, good)
            if progress is not None and item.count:
                progress(int(item.offset[item.count - 1]) - start, whole)
        elif isinstance(item, Damage):
            log.damage(item)
        else:
            last = item
        if cancel is not None and cancel.is_set():
            return Stop(log.end, "cancelled", "stopped by the caller")
    if progress is not None:
        progress(whole, whole)
    return last
