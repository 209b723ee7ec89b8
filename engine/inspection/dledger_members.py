"""Two members of a DLedger group: what one of them gets from the other, if that leads
(docs/formats/dledger.md#group).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from engine.codec.dledger import HEADER_SIZE, MAGIC, EntryHeader, IndexRow
from engine.codec.message import Unit
from engine.errors import CannotRead, UsageError
from engine.inspection.dledger import DLedgerLog, end_headers
from engine.inspection.snapshot import StoreSnapshot
from engine.sentences import sentence


@dataclass(frozen=True, slots=True)
class FollowPlan:
    """The fate of a member's log under a leader.

    Both logs have the entries up to ``common_index`` (−1: they share none), which ends at ``common_end``. The member's
    entries behind it are ``replaced``: so many messages by (topic, queue). ``copied`` entries come from the leader, and
    the log ends at ``end_offset`` then. ``committed_lost``: entries that the member's checkpoint calls committed and
    that the leader does not have. ``can_lead``: the member would vote for the leader.
    """

    leader: str
    common_index: int
    common_end: int
    replaced: dict[tuple[str, int], int]
    replaced_entries: int
    copied: int
    end_offset: int
    committed_lost: int
    can_lead: bool

    def record(self) -> dict[str, Any]:
        """The ``followPlan`` record."""
        return {
            "type": "followPlan",
            "leader": self.leader,
            "commonIndex": self.common_index,
            "commonEnd": self.common_end,
            "replacedEntries": self.replaced_entries,
            "replaced": [
                {"topic": topic, "queueId": queue_id, "messages": count}
                for (topic, queue_id), count in sorted(self.replaced.items())
            ],
            "copiedEntries": self.copied,
            "endOffset": self.end_offset,
            "committedLost": self.committed_lost,
            "canLead": self.can_lead,
        }


def plan_following(store: StoreSnapshot, leader: StoreSnapshot) -> FollowPlan:
    """Return what becomes of ``store`` under ``leader``: a member is cut behind the newest entry that both have, and
    gets the others. Only the index files and the entries behind that are read.

    Raises :class:`CannotRead`, and :class:`UsageError` if one of them has no DLedger log.
    """
    log, first_header, last_header = _log_of(store)
    leader_log, leader_first, leader_last = _log_of(leader)
    lower, upper = max(first_header.index, leader_first.index) - 1, min(last_header.index, leader_last.index)
    while lower < upper:  # equal index and term: all entries before are equal, too
        middle = (lower + upper + 1) // 2
        if _row(store, log, middle) == _row(leader, leader_log, middle):
            lower = middle
        else:
            upper = middle - 1
    is_shared = lower >= max(first_header.index, leader_first.index)
    row = _row(store, log, lower) if is_shared else None
    common_end = row.position + row.size if row is not None else store.log.min_offset
    units = [item for item in store.log.walk(common_end, crc=False) if isinstance(item, Unit)]
    checkpoint = log.checkpoint()
    committed = checkpoint.committed_index if checkpoint is not None and checkpoint.committed_index is not None else -1
    return FollowPlan(
        leader=str(leader.path),
        common_index=lower if is_shared else -1,
        common_end=common_end,
        replaced=dict(Counter((unit.topic, unit.queue_id) for unit in units)),
        replaced_entries=last_header.index - lower,
        copied=leader_last.index - max(lower, leader_first.index - 1),
        end_offset=leader_last.position + leader_last.size,
        committed_lost=max(committed - lower, 0),
        can_lead=(leader_last.term, leader_last.index) >= (last_header.term, last_header.index),
    )


def _log_of(store: StoreSnapshot) -> tuple[DLedgerLog, EntryHeader, EntryHeader]:
    if store.commit_log.dledger is None:
        raise UsageError(sentence("expected a store with a DLedger log, found none"), file=str(store.path))
    store.commit_log.settle_end()
    first_header, last_header = end_headers(store)
    if first_header is None or last_header is None:
        raise UsageError(sentence("its DLedger log has no entries"), file=str(store.path))
    return store.commit_log.dledger, first_header, last_header


def _row(store: StoreSnapshot, log: DLedgerLog, number: int) -> IndexRow:
    row = log.index_row(number)
    if (
        row is None
        or row.magic != MAGIC
        or row.index != number
        or store.log.entry_header(row.position + HEADER_SIZE) is None
    ):
        raise CannotRead(
            sentence("the index of the DLedger log has no fitting row of entry {n:,}", n=number),
            file=str(log.folders.index),
        )
    return row
