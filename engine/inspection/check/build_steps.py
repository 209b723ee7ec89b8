"""Next steps for stores whose queues ``storescope dispatch`` cannot build.

The rules advise to build queue files from the log. In a store with a DLedger log a pipeline job does that. Rows of a
RocksDB are only written by a broker's start (docs/formats/recovery.md#rocksdb).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from engine.english import capital
from engine.inspection.snapshot import StoreSnapshot
from engine.rules.catalogue_tables import CLOSE_THEN_BUILD
from engine.rules.findings import (
    BUILD,
    BUILD_ROCKSDB,
    ROCKSDB_STEP,
    SNAPSHOT_FIRST,
    STORE,
    Finding,
    at_least,
)
from engine.sentences import sentence

_BUILDS_FILES = frozenset({BUILD, CLOSE_THEN_BUILD, BUILD_ROCKSDB})
_DLEDGER_COMMAND = f"storescope pipeline rebuild {STORE} --out NEW"
_DLEDGER_STEP = (
    "build queues and index from the log in a new folder. While the broker is stopped, put them in the place of the "
    "store's own."
)
_ROCKSDB_INDEX_STEP = (
    "stop the broker, set commitLogRecoverMaxNum to the number of log files or more, move the folder index and the "
    "folder of the RocksDB out of the store and create an empty file abort: a start of 5.4 or later takes it for a "
    "crash and builds both from the log. A queue whose messages have all expired begins at 0 again."
)


def for_rocksdb(store: StoreSnapshot, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield ``findings``; if the queues are in a RocksDB, a step that builds queue files is replaced."""
    queues = store.queues.rocksdb
    for finding in findings:
        if queues is None or finding.command not in _BUILDS_FILES:
            yield finding
            continue
        folder = queues.folder.name
        command = f"mv {STORE}/{folder} {STORE}.{folder}.old && touch {STORE}/abort"
        step = sentence(ROCKSDB_STEP)
        if finding.group == "index":
            command = f"mv {STORE}/index {STORE}.index.old && {command}"
            step = sentence(_ROCKSDB_INDEX_STEP)
        yield _with_step(finding, step, command)


def for_dledger(store: StoreSnapshot, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield ``findings``; in a store with a DLedger log, a step that builds queue files is replaced."""
    for finding in findings:
        if store.commit_log.dledger is None or finding.command not in (BUILD, CLOSE_THEN_BUILD):
            yield finding
        else:
            yield _with_step(finding, sentence(_DLEDGER_STEP), _DLEDGER_COMMAND)


def _with_step(finding: Finding, step: str, command: str) -> Finding:
    advice = SNAPSHOT_FIRST + step if at_least(finding.severity, "warn") else capital(step)
    return replace(finding, next_step=advice, command=command)
