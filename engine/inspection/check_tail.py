"""A log that has lost its tail is one fault: queues, index and checkpoint that know more are its witnesses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.inspection.check_log import LogCheck
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue
from engine.rules.findings import Finding

WITNESSES = ("CQ13", "IX07", "CK02", "CK04")


def fold(findings: list[Finding], store: StoreSnapshot, log: LogCheck, *, explained: bool = False) -> Iterator[Finding]:
    """``findings`` with the witnesses of a lost tail told as one; where the log's end is broken or all of the log is
    gone (``explained``), it has been told.
    """
    witnesses = [f for f in findings if f.id in WITNESSES]
    broken = log.tail_is_broken and log.units > 0
    told = len({f.id for f in witnesses}) > 1
    if not witnesses or not (broken or told or explained):
        yield from findings
        return
    yield from (f for f in findings if f.id not in WITNESSES)
    if broken or explained:
        return
    at = max(log.end - 1, 0)
    file = store.log.sequence.find(at)
    evidence: dict[str, Any] = {"expected": [f.message for f in witnesses], "found": log.end}
    for witness in witnesses:
        evidence[witness.id] = witness.evidence
    text = f"The log ends at {log.end:,}, but others know more: " + "; ".join(f.message for f in witnesses)
    path = file.path if file else None
    yield catalogue.CL11.found(text, path, log.end, evidence, "warn" if store.abort else None)
