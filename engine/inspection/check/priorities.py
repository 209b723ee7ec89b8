"""Messages in a higher queue than that of their priority (CQ18; docs/protocol/broker.md#priority).

A broker of 5.4 or later puts a message into queue min(priority, write queues − 1). The number of queues may have
changed since, so only a queue above the priority is certainly wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from engine.codec import block_texts
from engine.codec import properties as props
from engine.codec.columns import UnitColumns
from engine.codec.message import INNER_BATCH, Unit
from engine.codec.priority import is_priority_message, priority_of
from engine.errors import CannotRead
from engine.inspection import static_topics
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import priority_topics
from engine.inspection.written_release import release_of
from engine.releases import rules_of
from engine.rules import catalogue_tables as rules
from engine.rules.findings import Finding
from engine.sentences import plural
from engine.system_names import CLUSTER_PROPERTY, is_system_topic

_MAX_LISTED = 20


class PriorityPlaces:
    """Collects messages whose queue is above their priority, block by block; only in a store that 5.4 or later wrote
    and that has a topic of type PRIORITY.
    """

    def __init__(self, store: StoreSnapshot) -> None:
        self._store = store
        self._places: list[tuple[int, str, int, int]] = []
        self._count = 0
        self._static: frozenset[str] = frozenset()
        self.is_active = False
        try:
            self.is_active = rules_of(release_of(store)).priorities and bool(priority_topics(store))
            self._static = frozenset(static_topics.mappings(store)) if self.is_active else frozenset()
        except CannotRead:
            self.is_active = False

    def block(self, columns: UnitColumns, good: npt.NDArray[np.bool_]) -> None:
        """Look at a block of units; ``good`` marks the units that are at their own offset."""
        rows = np.flatnonzero(good) if self.is_active else np.zeros(0, np.intp)
        if not len(rows):
            return
        values = block_texts.property_values(columns, rows, props.PRIORITY.encode())
        for row, text in zip(rows.tolist(), values.to_list(), strict=True):
            if text is not None and 0 <= priority_of({props.PRIORITY: text.decode("latin-1")}) < columns.queue_id[row]:
                self._check_unit(int(columns.offset[row]))

    def _check_unit(self, offset: int) -> None:
        unit = self._store.log.unit_at(offset, crc=False)
        if isinstance(unit, Unit) and self._has_its_own_queue(unit):
            self._count += 1
            if len(self._places) < _MAX_LISTED:
                priority = priority_of(unit.properties)
                self._places.append((unit.offset, unit.topic, unit.queue_id, priority))

    def _has_its_own_queue(self, unit: Unit) -> bool:
        """Return True if the broker chose the queue by the priority. Members of a batch, which have no CLUSTER, retries
        and static topics have other queues.
        """
        if unit.sys_flag & INNER_BATCH or CLUSTER_PROPERTY not in unit.properties or unit.topic in self._static:
            return False
        return not (unit.topic.startswith("%") or is_system_topic(unit.topic)) and is_priority_message(unit.properties)

    def findings(self) -> Iterator[Finding]:
        """CQ18."""
        if not self._count:
            return
        offset, topic, queue_id, priority = self._places[0]
        text = plural(
            "{n:,} message is in a higher queue than that of its priority: the one at {offset:,} has priority "
            "{priority:,} and is in {queue}",
            "{n:,} messages are in a higher queue than that of their priority: the one at {offset:,} has priority "
            "{priority:,} and is in {queue}",
            n=self._count,
            offset=offset,
            priority=priority,
            queue=f"{topic}/{queue_id}",
        )
        evidence = {"expected": priority, "found": queue_id, "offsets": [place[0] for place in self._places]}
        file = self._store.log.sequence.find(offset)
        yield rules.CQ18.finding(text, str(file.path if file is not None else self._store.path), offset, evidence)
