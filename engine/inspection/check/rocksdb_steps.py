"""Steps for a store with its queues in a RocksDB: no command of ours writes rows, a start of a broker does
(docs/formats/recovery.md#rocksdb).
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

_OF_FILES = frozenset({BUILD, CLOSE_THEN_BUILD, BUILD_ROCKSDB})
_INDEX_STEP = (
    "stop the broker, set commitLogRecoverMaxNum to the number of log files or more, move the folder index and the "
    "folder of the RocksDB out of the store and create an empty file abort: a start of 5.4 or later takes it for a "
    "crash and builds both from the log. A queue whose messages have all expired begins at 0 again."
)


def for_rocksdb(store: StoreSnapshot, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield ``findings``; a step that builds queue files is replaced where the broker reads a RocksDB."""
    queues = store.rocksdb_queues
    for finding in findings:
        if queues is None or finding.command not in _OF_FILES:
            yield finding
            continue
        folder = queues.folder.name
        command = f"mv {STORE}/{folder} {STORE}.{folder}.old && touch {STORE}/abort"
        step = sentence(ROCKSDB_STEP)
        if finding.group == "index":
            command = f"mv {STORE}/index {STORE}.index.old && {command}"
            step = sentence(_INDEX_STEP)
        advice = SNAPSHOT_FIRST + step if at_least(finding.severity, "warn") else capital(step)
        yield replace(finding, next_step=advice, command=command)
