"""What a start reads of the configuration tables: which can be read, batch topics, the groups' offsets (spec 14.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from engine.codec import json_dialect
from engine.errors import CorruptUnit
from engine.store.recovery.source import GroupOffset, Table, TableState

TIMER_METRICS = "timermetrics"
NAMES = (
    "topics.json",
    "topicQueueMapping.json",
    "consumerOffset.json",
    "subscriptionGroup.json",
    "consumerFilter.json",
    "consumerOrderInfo.json",
    "delayOffset.json",
    "lmqConsumerOffset.json",
    TIMER_METRICS,
)
"""Tables without which a broker does not start where neither the file nor its .bak can be parsed."""
_GROUP_SEPARATOR = "@"


class Tables:
    """The tables below ``folder``; ``read`` gives a file's bytes by its name, None without one, and raises
    :class:`CorruptUnit` for what is no file. What else it raises comes through: a table that could not be read is
    neither missing nor bad.
    """

    def __init__(self, read: Callable[[str], bytes | None], folder: str) -> None:
        self._read = read
        self._folder = folder
        self._parsed: dict[str, tuple[TableState, Any]] = {}

    def states(self) -> tuple[Table, ...]:
        """Whether each table and its ``.bak`` can be read."""
        return tuple(
            Table(f"{self._folder}/{name}", self._json(name)[0], self._json(f"{name}.bak")[0]) for name in NAMES
        )

    def batch_topics(self) -> frozenset[str] | None:
        """Topics with queue.type=BatchCQ, None where there is no topics table."""
        table = self._loaded("topics.json")
        topics = table.get("topicConfigTable") if isinstance(table, dict) else None
        if not isinstance(topics, dict) or self._json("topics.json")[0] == "missing":
            return None
        found = set()
        for name, topic in topics.items():
            attributes = topic.get("attributes") if isinstance(topic, dict) else None
            if isinstance(attributes, dict) and attributes.get("queue.type") == "BatchCQ":
                found.add(str(name))
        return frozenset(found)

    def group_offsets(self) -> Iterator[GroupOffset]:
        """The next offset of every group in every queue; a light queue has the number 0."""
        for name in ("consumerOffset.json", "lmqConsumerOffset.json"):
            table = self._loaded(name)
            offsets = table.get("offsetTable") if isinstance(table, dict) else None
            for key, queues in offsets.items() if isinstance(offsets, dict) else ():
                topic, separator, group = str(key).rpartition(_GROUP_SEPARATOR)
                if not separator or not isinstance(queues, dict):
                    continue
                for queue_id, offset in queues.items():
                    if str(queue_id).lstrip("-").isdigit() and isinstance(offset, int):
                        yield GroupOffset(group, topic, int(queue_id), offset)
        light = self._loaded("lmqConsumerOffset.json")
        offsets = light.get("lmqOffsetTable") if isinstance(light, dict) else None
        for key, offset in offsets.items() if isinstance(offsets, dict) else ():
            topic, separator, group = str(key).partition(_GROUP_SEPARATOR)
            if separator and isinstance(offset, int) and not isinstance(offset, bool):
                yield GroupOffset(group, topic, 0, offset)

    def _loaded(self, name: str) -> Any:
        """A table as a broker loads it: the file, else its ``.bak``, else None."""
        state, value = self._json(name)
        return value if state == "ok" else self._json(f"{name}.bak")[1]

    def _json(self, name: str) -> tuple[TableState, Any]:
        found = self._parsed.get(name)
        if found is None:
            found = self._parsed[name] = self._parse(name)
        return found

    def _parse(self, name: str) -> tuple[TableState, Any]:
        try:
            data = self._read(name)
        except CorruptUnit:
            return "bad", None
        if data is None:
            return "missing", None
        if not data:
            return "empty", None
        parsed = json_dialect.parse(data)
        return ("ok" if parsed.accepted else "bad"), parsed.value if parsed.accepted else None
