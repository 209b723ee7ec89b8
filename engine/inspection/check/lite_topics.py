"""Lite topics that the next start of a broker deletes (LT01; docs/formats/consume-queue.md#light-queues)."""

from __future__ import annotations

import time
from collections.abc import Iterator

from engine.inspection.lite_topics import LiteTopic, lite_topics
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.written_release import release_of
from engine.releases import rules_of
from engine.rules import catalogue_tables as rules
from engine.rules.findings import Finding
from engine.sentences import plural

_MAX_LISTED = 20


def findings(store: StoreSnapshot, now: int | None = None) -> Iterator[Finding]:
    """LT01. A running broker has deleted what is due, or does it soon. ``now`` in ms. Raises :class:`CannotRead`."""
    if store.lock_state == "held" or store.paths is None or not rules_of(release_of(store)).lite_topics:
        return
    now = round(time.time() * 1000) if now is None else now
    expired: dict[str, list[LiteTopic]] = {}
    for lite in lite_topics(store):
        if lite.is_expired(now):
            expired.setdefault(lite.topic, []).append(lite)
    for topic, topics in expired.items():
        text = plural(
            "{n:,} lite topic of {topic} is due: a broker deletes it 15 minutes after its start",
            "{n:,} lite topics of {topic} are due: a broker deletes them 15 minutes after its start",
            n=len(topics),
            topic=topic,
        )
        unread = [f"{group}: {lite.name} ({count:,})" for lite in topics for group, count in lite.unread]
        evidence = {
            "topic": topic,
            "liteTopics": [lite.name for lite in topics[:_MAX_LISTED]],
            "unread": unread[:_MAX_LISTED],
        }
        kind = "unread" if unread else ""
        yield rules.LT01.finding(text, str(store.paths.consumequeue), None, evidence, kind=kind)
