"""Tables in ``config/`` that no broker can load, taken from a replica (docs/formats/repair.md#from).

A slave takes the tables of its master over while it runs. A store counts as a replica if the first message of one log
file at least is the same in both, and of none another one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from engine.codec.config_tables import TABLES, load_table
from engine.codec.message import Unit
from engine.codec.queue_mappings import MAPPINGS_FILE
from engine.errors import StoreError
from engine.inspection.check.static_topics import is_consistent
from engine.inspection.snapshot import StoreSnapshot, open_store
from engine.inspection.tables import read_table
from engine.inspection.written_release import release_of
from engine.patching.patches import WriteFile
from engine.repair.repair import Repair
from engine.rules.findings import Finding, at_least
from engine.sentences import Sentence, join, plural, sentence
from engine.times import time_text

NAME = "replica-tables"
RULES = frozenset({"CF01", "CF03", "CF04", "CF14", "CF19"})
_FOREIGN = "CF14"
_COMPARED_FILES = 32
_OF_BROKER = ("topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json")
"""Tables that a slave takes over, and that belong together."""
_METRICS = ("timermetrics", "transactionMetrics")
"""Counts, which a broker makes again."""
_COSTS: dict[str, Sentence] = {
    "consumerOffset.json": sentence("groups get again what they have consumed since"),
    "delayOffset.json": sentence("delayed messages that were delivered since are delivered again"),
}


def repair_tables_from(
    store: StoreSnapshot, paths: Sequence[str | Path], findings: Collection[Finding]
) -> Repair | None:
    """Return the repair of tables that ``findings`` name, from replicas among the stores at ``paths``; None if they
    have none of them. Raises :class:`engine.errors.CannotRead`.
    """
    chosen = [finding for finding in findings if finding.id in RULES and at_least(finding.severity, "warn")]
    if store.paths is None or store.kind != "store" or not store.paths.config.is_relative_to(store.path):
        return None
    names = list(_wanted(store, chosen)) if chosen else []
    patches: list[WriteFile] = []
    times: list[int] = []
    for path in paths if names else ():
        with suppress(StoreError), open_store(path) as replica:
            if not _is_replica(store, replica):
                continue
            for name in list(names):
                patch, time_ms = _patch(store, replica, name)
                if patch is not None:
                    names.remove(name)
                    patches.append(patch)
                    times.append(time_ms)
    if not patches:
        return None
    tables = [Path(patch.file).name for patch in patches]
    gains = plural(
        "{n:,} table has the rows of the replica: {names}",
        "{n:,} tables have the rows of the replica: {names}",
        n=len(tables),
        names=", ".join(tables),
    )
    since = plural(
        "what was changed after {time} is not in it",
        "what was changed after {time} is not in them",
        n=len(tables),
        time=time_text(min(times)),
    )
    costs = join("; ", [since, *(_COSTS[name] for name in tables if name in _COSTS)])
    title = sentence("Take tables in config/ from a replica")
    return Repair(NAME, RULES, title, tuple(patches), gains, costs, "likely")


def _wanted(store: StoreSnapshot, findings: Collection[Finding]) -> Iterator[str]:
    """Yield the names of the tables that a broker does not load, or that belong to another broker."""
    assert store.paths is not None
    reported = {Path(finding.file or "").name for finding in findings}
    is_foreign = any(finding.id == _FOREIGN for finding in findings)
    for name in TABLES:
        if name in _METRICS:
            continue
        table = read_table(store, name)
        is_lost = table is None or table.used in ("defaults", "nothing")
        is_reported = name in reported or store.paths.config.name in reported
        if (is_lost and is_reported) or (is_foreign and name in _OF_BROKER):
            yield name
    if any(finding.id == "CF19" and finding.kind not in ("queues", "behind") for finding in findings):
        yield MAPPINGS_FILE


def _is_replica(store: StoreSnapshot, replica: StoreSnapshot) -> bool:
    """Return True if the logs have messages in common, and differ in no file's first message."""
    if replica.paths is None or replica.path == store.path:
        return False
    starts = {file.start_offset for file in store.log.files} & {file.start_offset for file in replica.log.files}
    pairs = [
        (store.log.seen_at(start, crc=False), replica.log.seen_at(start, crc=False))
        for start in sorted(starts)[-_COMPARED_FILES:]
    ]
    units = [(ours, theirs) for ours, theirs in pairs if isinstance(ours, Unit) and isinstance(theirs, Unit)]
    return bool(units) and all(_identity(ours) == _identity(theirs) for ours, theirs in units)


def _identity(unit: Unit) -> Unit:
    """Return what the message of every replica has: damage may have changed body and properties."""
    return replace(unit, body=b"", properties_raw=b"", properties={}, crc="unchecked", raw_crc=None)


def _patch(store: StoreSnapshot, replica: StoreSnapshot, name: str) -> tuple[WriteFile | None, int]:
    """Return the patch that gives the store the table of the replica, None if it has none, and when that was written
    (ms).
    """
    assert store.paths is not None
    assert replica.paths is not None
    path = replica.paths.config / name
    content, info = replica.small_file(path), replica.reading.status(path)
    old = store.small_file(store.paths.config / name)
    if content is None or info is None or content == old:
        return None, 0
    release = release_of(store)
    can_be_used = (
        is_consistent(content, release)
        if name == MAPPINGS_FILE
        else load_table(name, {name: content}.get, release).used == "main"
    )
    if not can_be_used:
        return None, 0
    time_ms = int(info.st_mtime * 1000)
    why = sentence(
        "the replica {replica} wrote this table at {time}", replica=str(replica.path), time=time_text(time_ms)
    )
    costs = sentence("{table}: what was changed afterwards is not in it", table=name)
    file = (store.paths.config / name).relative_to(store.path).as_posix()
    return WriteFile(file=file, old=old, new=content, why=why, costs=costs, name=NAME), time_ms
