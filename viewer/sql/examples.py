"""Questions to begin with. No Qt."""

from __future__ import annotations

from dataclasses import dataclass

from viewer.look.assets import words


@dataclass(frozen=True, slots=True)
class Example:
    """A question, and what it asks in words."""

    title: str
    text: str


EXAMPLES = (
    Example(
        words("The biggest topics, in messages and bytes"),
        "SELECT topic, count(*) AS messages, sum(size) AS bytes\nFROM units\nGROUP BY topic\nORDER BY bytes DESC",
    ),
    Example(
        words("How far each group is behind"),
        "SELECT consumerGroup, topic, sum(behind) AS behind\nFROM groups\nGROUP BY consumerGroup, topic\n"
        "ORDER BY behind DESC",
    ),
    Example(
        words("Messages that were sent twice: the same unique key"),
        "SELECT uniqueKey, count(*) AS times, min(storeTime), max(storeTime), min(physicalOffset)\n"
        "FROM units\nWHERE NOT starts_with(topic, '%') AND NOT starts_with(topic, 'RMQ_SYS_')\nGROUP BY uniqueKey\n"
        "HAVING count(*) > 1 AND uniqueKey IS NOT NULL\nORDER BY times DESC",
    ),
    Example(
        words("Messages to which no queue entry leads"),
        "SELECT u.topic, u.queueId, u.queueOffset, u.physicalOffset, u.storeTime\nFROM units u\n"
        "LEFT JOIN queue_entries e ON e.physicalOffset = u.physicalOffset\nWHERE e.physicalOffset IS NULL\n"
        "ORDER BY u.physicalOffset",
    ),
    Example(
        words("Queue entries that lead to no message"),
        "SELECT e.topic, e.queueId, e.queueOffset, e.physicalOffset\nFROM queue_entries e\n"
        "LEFT JOIN units u ON u.physicalOffset = e.physicalOffset\n"
        "WHERE u.physicalOffset IS NULL AND e.state = 'entry'\n"
        "ORDER BY e.topic, e.queueId, e.queueOffset",
    ),
    Example(
        words("The slowest messages, from born to stored"),
        "SELECT storeTimestamp - bornTimestamp AS ms, topic, queueId, queueOffset, physicalOffset, bornHost\n"
        "FROM units\nORDER BY ms DESC\nLIMIT 100",
    ),
    Example(
        words("Messages a minute, for a chart"),
        "SELECT date_trunc('minute', storeTime) AS minute, count(*) AS messages\nFROM units\nGROUP BY minute\n"
        "ORDER BY minute",
    ),
    Example(
        words("Which producers sent how much"),
        "SELECT regexp_replace(bornHost, ':[0-9]+$', '') AS host, count(*) AS messages, sum(size) AS bytes\n"
        "FROM units\nGROUP BY host\nORDER BY messages DESC",
    ),
    Example(
        words("How large bodies are, by topic"),
        "SELECT topic, min(bodyLength), median(bodyLength), max(bodyLength)\nFROM units\nGROUP BY topic\n"
        "ORDER BY max(bodyLength) DESC",
    ),
    Example(
        words("Findings by rule"),
        "SELECT id, severity, count(*) AS times, any_value(message) AS message\nFROM findings\n"
        "GROUP BY id, severity\nORDER BY times DESC",
    ),
)
