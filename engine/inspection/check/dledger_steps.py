"""Steps for a store with a DLedger log: ``dispatch`` writes nothing beside such a log, a job builds the same files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from engine.english import capital
from engine.inspection.snapshot import StoreSnapshot
from engine.rules.catalogue_tables import CLOSE_THEN_BUILD
from engine.rules.findings import BUILD, SNAPSHOT_FIRST, STORE, Finding, at_least
from engine.sentences import sentence

COMMAND = f"storescope pipeline rebuild {STORE} --out NEW"
STEP = (
    "build queues and index from the log in a new folder. While the broker is stopped, put them in the place of the "
    "store's own."
)


def for_dledger(store: StoreSnapshot, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield ``findings``; in a store with a DLedger log a step that builds queue files names the job for it."""
    for finding in findings:
        if store.dledger is None or finding.command not in (BUILD, CLOSE_THEN_BUILD):
            yield finding
            continue
        step = sentence(STEP)
        advice = SNAPSHOT_FIRST + step if at_least(finding.severity, "warn") else capital(step)
        yield replace(finding, next_step=advice, command=COMMAND)
