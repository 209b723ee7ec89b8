"""Traces that a broker left in a store: tables, marks of units, files and topics.

A store that was driven without a broker has none of them, so nothing there was lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from engine.codec.config_tables import Table
from engine.codec.message import Unit
from engine.inspection import tables as table_rows
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.tables import iter_tables
from engine.rules.undecoded import TABLE_SUBJECTS
from engine.sentences import plural, sentence
from engine.system_names import CLUSTER_PROPERTY, DLQ_PREFIX, RETRY_PREFIX, SCHEDULE_TOPIC, is_system_group

MAX_UNITS = 64
MAX_NAMED = 20


@dataclass
class BrokerTraces:
    """Traces that a broker left in a store: its tables, and marks of units, files and topics."""

    store: StoreSnapshot

    @cached_property
    def tables(self) -> dict[str, Table]:
        return {table.name: table for table in iter_tables(self.store)}

    @cached_property
    def in_rocksdb(self) -> frozenset[str]:
        """Tables that the broker keeps in a RocksDB."""
        return frozenset(
            name for name, subject in TABLE_SUBJECTS.items() if self.store.undecoded_part(subject) is not None
        )

    @cached_property
    def there(self) -> frozenset[str]:
        """Tables whose file or ``.bak`` exists, whatever its content."""
        return frozenset(
            name
            for name, table in self.tables.items()
            if table.main.state != "missing" or (table.bak is not None and table.bak.state != "missing")
        )

    @property
    def without_tables(self) -> bool:
        """True without any table. A store of 4.9 without a broker writes the table of delays, too."""
        return not (self.there - {"delayOffset.json"} or self.in_rocksdb)

    @cached_property
    def witnesses(self) -> list[str]:
        """Traces that only a whole broker leaves, in words."""
        assert self.store.paths is not None
        marked = self._marked()
        if not marked:
            return []  # a store without a broker may have any topic
        mark = plural(
            "{n:,} of the first units bears a broker's mark ({property})",
            "{n:,} of the first units bear a broker's mark ({property})",
            n=marked,
            property=CLUSTER_PROPERTY,
        )
        witnesses: list[str] = [mark]
        if self.store.reading.exists(self.store.paths.timerwheel):
            witnesses.append("timerwheel")
        group_topics = [name for name in self.store.queues.by_topic() if name.startswith((RETRY_PREFIX, DLQ_PREFIX))]
        return witnesses + [sentence("topic {name}", name=name) for name in group_topics[:MAX_NAMED]]

    def _marked(self) -> int:
        """Count the units among the first ones that only a complete broker writes."""
        marked = units = 0
        for item in self.store.units(crc=False):
            if isinstance(item, Unit):
                units += 1
                marked += CLUSTER_PROPERTY in item.properties
                if units >= MAX_UNITS:
                    break
        return marked

    @cached_property
    def delayed(self) -> list[str]:
        """Queues of delayed messages that have entries."""
        queues = self.store.queues.by_topic().get(SCHEDULE_TOPIC, {})
        return [f"{SCHEDULE_TOPIC}/{number}" for number, queue in queues.items() if queue.raw_end > 0]

    @cached_property
    def groups(self) -> list[str]:
        """Groups of clients that other tables know."""
        groups = {row.group for row in table_rows.offsets(self.store) if not is_system_group(row.group)}
        names = table_rows.topics(self.store)
        groups |= {name.removeprefix(RETRY_PREFIX) for name in names or () if name.startswith(RETRY_PREFIX)}
        return sorted(groups)


def is_of_a_broker(store: StoreSnapshot) -> bool:
    """Return True if a whole broker wrote the store: it has tables, or traces of them. Raises :class:`CannotRead`."""
    traces = BrokerTraces(store)
    return not traces.without_tables or bool(traces.witnesses)
