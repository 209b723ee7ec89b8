"""CF13: services of the broker that stand still (docs/formats/delays.md, docs/formats/transactions.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.codec.words import time_text
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.standing import standing_services
from engine.rules import catalogue_tables
from engine.rules.findings import HAPPENED, Finding


def findings(store: StoreSnapshot, newest: int) -> Iterator[Finding]:
    """CF13 of a store; ``newest`` is its newest store time (ms). Raises :class:`CannotRead`."""
    if store.paths is None or newest <= 0:
        return
    files = {"level": "delayOffset.json", "timer": "timercheck"}
    for service in standing_services(store, newest):
        path = str(store.paths.config / files.get(service.kind, "consumerOffset.json"))
        evidence: dict[str, Any] = {
            "queue": f"{service.topic}/{service.queue_id}",
            "found": service.next_offset,
            "messages": service.overdue,
            "overdueMs": service.overdue_ms,
            "since": time_text(service.since),
            HAPPENED: service.words[0].lower() + service.words[1:],
        }
        yield catalogue_tables.CF13.found(service.words, path, None, evidence, kind=service.kind)
