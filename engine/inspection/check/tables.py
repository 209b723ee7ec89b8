"""Checks the tables below ``config/``: missing, empty, or older than their own ``.bak`` (CF03), and tables that do not
fit the store (CF14; docs/formats/config-tables.md, #tables).

A store written by an engine without a broker has no tables, and lacks none. Tables are known to be missing if the store
has traces that only a full broker leaves: other tables, its mark in the units, queues that only a broker creates.

One restores the wrong backup, or copies ``config/`` of one broker to another. Then topics.json lacks topics whose
messages the store holds, and groups have offsets in topics of which the store has nothing. Each of these alone may be
a deleted topic or a lost row; together, or of most topics, they have one cause.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from engine.codec.config_tables import BACKUP, Table
from engine.codec.message import Unit
from engine.errors import CannotRead
from engine.inspection import tables
from engine.inspection.broker_traces import MAX_NAMED, BrokerTraces
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.store_queues import AnyQueue
from engine.inspection.tables import read_backup
from engine.inspection.written_release import release_of
from engine.releases import rules_of
from engine.rules import catalogue, catalogue_tables
from engine.rules.findings import HAPPENED, STORE, Finding, Severity
from engine.sentences import join, msgid, plural, sentence
from engine.system_names import CLUSTER_PROPERTY, DLQ_PREFIX, LMQ_PREFIX, RETRY_PREFIX, is_system_group, is_system_topic

MAX_RETRIED_MESSAGES = 256
"""Number of newest messages of a retry queue whose retry count is read."""
PERIODIC = ("consumerFilter.json", "consumerOrderInfo.json")
"""Tables written every 10 s, right after the offsets, and when a broker is closed."""
OFFSETS = ("consumerOffset.json", "lmqConsumerOffset.json")
HARM = {
    "topics.json": sentence("clients get no topic until each topic is created again"),
    "subscriptionGroup.json": sentence(
        "the settings of the groups are lost, and nobody can consume unless brokers create groups by themselves"
    ),
    "consumerOffset.json": sentence(
        "each group starts where its clients say: old messages come again, or unread ones are skipped"
    ),
    "lmqConsumerOffset.json": sentence("each light group begins again"),
    "delayOffset.json": sentence("all delayed messages that the log still has are delivered again"),
    "consumerFilter.json": sentence("expression filters come back when their clients register again"),
    "consumerOrderInfo.json": sentence("messages that are being consumed in order may come again"),
    "topicQueueMapping.json": sentence("static topics lose their logical queues"),
    "messageRequestMode.json": sentence("groups that use pop go back to pull"),
    "timermetrics": sentence("the counts of waiting messages start at zero"),
    "transactionMetrics": sentence("the counts of open transactions start at zero"),
}
"""Effect on a broker that starts without the table."""
GRAVE = {
    "topics.json",
    "subscriptionGroup.json",
    "consumerOffset.json",
    "lmqConsumerOffset.json",
    "delayOffset.json",
    "topicQueueMapping.json",
}


def findings(store: StoreSnapshot) -> Iterator[Finding]:
    """CF03 of a store. Raises :class:`CannotRead` if the evidence could not be read."""
    if store.paths is None:
        return
    yield from _whole_tables(store)
    yield from lost_retries(store)
    yield from unknown_groups(store)
    yield from thrown_filters(store)


def _whole_tables(store: StoreSnapshot) -> Iterator[Finding]:
    assert store.paths is not None
    traces = BrokerTraces(store)
    if traces.without_tables:
        yield from _no_tables(store, traces)
        return
    for name, table in traces.tables.items():
        if name in traces.in_rocksdb:
            continue
        if table.main.state in ("missing", "empty"):
            yield from _missing_table(store, traces, table)
        elif name in OFFSETS and table.used == "main":
            yield from _behind_backup(store, table)


def _no_tables(store: StoreSnapshot, traces: BrokerTraces) -> Iterator[Finding]:
    assert store.paths is not None
    if not traces.witnesses:
        return
    folder = store.paths.config
    text = sentence(
        "config/ has no tables, although a broker wrote this store: topics, groups and all offsets are gone"
    )
    evidence = {
        "expected": sentence("the tables of a broker"),
        "found": sentence("none"),
        "witnesses": traces.witnesses,
    }
    evidence[HAPPENED] = sentence("all tables below config are missing: they were deleted or not copied with the store")
    command = f"cp -r REPLICA/config/. {STORE}/config/"
    yield catalogue_tables.CF03.finding(text, str(folder), None, evidence, command=command)


_EMPTY_OBJECT = msgid("{file} has 0 bytes, a broker writes at least {{}}")
_GONE = {
    (True, True): msgid("{file} is gone, so is its .bak: {harm}"),
    (True, False): msgid("{file} is gone, there is no .bak: {harm}"),
    (False, True): msgid("{file} is empty (0 bytes), so is its .bak: {harm}"),
    (False, False): msgid("{file} is empty (0 bytes), there is no .bak: {harm}"),
}
"""By whether the table is gone, and whether it has a backup."""
_BACKUP_COUNTS = {
    (True, True): msgid(
        "{file} is gone; a broker uses its .bak, which is the newest version if the broker was killed while it "
        "wrote, else one version older"
    ),
    (True, False): msgid("{file} is gone; a broker uses its .bak, which is one version older"),
    (False, True): msgid(
        "{file} is empty (0 bytes); a broker uses its .bak, which is the newest version if the broker was "
        "killed while it wrote, else one version older"
    ),
    (False, False): msgid("{file} is empty (0 bytes); a broker uses its .bak, which is one version older"),
}
"""By whether the table is gone, and whether brokers rename the table to its backup."""


def _missing_table(store: StoreSnapshot, traces: BrokerTraces, table: Table) -> Iterator[Finding]:
    assert store.paths is not None
    path = str(store.paths.config / table.name)
    is_gone = table.main.state == "missing"
    happened = sentence("the table {name} is missing: it was deleted or not copied with the store", name=table.name)
    if table.main.state != "missing":
        happened = sentence(
            "the table {name} is empty: a power cut or a full disk while it was written or copied", name=table.name
        )
    if table.used == "bak":
        if store.lock_state != "held":
            renamed = rules_of(release_of(store)).table_backup == "renamed"
            yield _backup_counts(table, path, is_gone=is_gone, renamed=renamed)
        return
    if table.used == "nothing":  # the .bak cannot be parsed: CF01 says so
        return
    witnesses = _witnesses(store, traces, table)
    if not witnesses:
        return
    has_backup = table.bak is not None and table.bak.state != "missing"
    text = sentence(_GONE[is_gone, has_backup], file=table.name, harm=HARM[table.name])
    evidence: dict[str, Any] = {"expected": sentence("a table"), "found": table.main.complaint, "witnesses": witnesses}
    other_case = file_in_other_case(store, table.name)
    if other_case is not None:
        evidence[HAPPENED] = sentence(
            "the table {name} has a name in another case ({other}), which no broker reads",
            name=table.name,
            other=other_case,
        )
        text = sentence(
            "{name} is not there under this name, but as {other}: {harm}",
            name=table.name,
            other=other_case,
            harm=HARM[table.name],
        )
        command = f"mv {STORE}/config/{other_case} {STORE}/config/{table.name}"
        yield catalogue_tables.CF03.finding(text, path, None, evidence, kind="case", command=command)
        return
    evidence[HAPPENED] = happened
    if table.name == "subscriptionGroup.json":
        evidence["groups"] = traces.groups[:MAX_NAMED]
    lighter: Severity | None = None if table.name in GRAVE and store.lock_state != "held" else "note"
    command = f"cp REPLICA/config/{table.name} {STORE}/config/"
    yield catalogue_tables.CF03.finding(text, path, None, evidence, lighter, command=command)


def file_in_other_case(store: StoreSnapshot, name: str) -> str | None:
    """The name of a file below ``config/`` that differs from a table's in upper and lower case only."""
    assert store.paths is not None
    if not store.reading.exists(store.paths.config):
        return None
    names = (entry.name for entry in store.reading.entries(store.paths.config))
    return next(
        (candidate for candidate in sorted(names) if candidate != name and candidate.lower() == name.lower()), None
    )


def _backup_counts(table: Table, path: str, *, is_gone: bool, renamed: bool) -> Finding:
    """``renamed``: the broker renames the table to .bak before it writes the next one, so a kill leaves only the
    .bak.
    """
    text = sentence(_BACKUP_COUNTS[is_gone, renamed], file=table.name)
    assert table.bak is not None
    evidence = {"expected": sentence("a table"), "found": table.main.complaint, "used": table.bak.name}
    command = f"cp {STORE}/config/{table.bak.name} {STORE}/config/{table.name}"
    return catalogue_tables.CF03.finding(text, path, None, evidence, kind="backup", command=command)


def _witnesses(store: StoreSnapshot, traces: BrokerTraces, table: Table) -> list[str]:
    """Signs that the table existed; [] if there are none."""
    if table.main.state == "empty":
        return [sentence(_EMPTY_OBJECT, file=table.main.name)]
    if table.bak is not None and table.bak.state == "empty":
        return [sentence(_EMPTY_OBJECT, file=table.bak.name)]
    existing = sorted(traces.there - {"delayOffset.json"})
    periodic = [name for name in PERIODIC if name in traces.there]
    if not periodic and not traces.witnesses:
        return []
    if not store.abort:
        periodic = periodic or existing
    match table.name:
        case "topics.json":
            return existing
        case "consumerOffset.json":
            return [] if "lmqConsumerOffset.json" in traces.there else periodic
        case "subscriptionGroup.json":
            return [sentence("group {name}", name=name) for name in traces.groups[:MAX_NAMED]]
        case "delayOffset.json":
            return traces.delayed[:MAX_NAMED] if periodic else []
    return []


def _behind_backup(store: StoreSnapshot, table: Table) -> Iterator[Finding]:
    """Offsets lower than in the previous version: they were reset, or a broker started the table again."""
    assert store.paths is not None
    older = read_backup(store, table.name)
    if older is None or older.state != "ok" or older.parsed is None or store.lock_state == "held":
        return
    backup_value = older.parsed.value
    back = tables.stepped_back(table.value, backup_value if isinstance(backup_value, dict) else {})
    if not back:
        return
    zero = [step for step in back if step.now == 0]
    groups = sorted({step.group for step in back})
    text = sentence(
        "{file} has lower offsets than its .bak (queues: {n:,}, at 0: {zero:,}): {rest}",
        file=table.name,
        n=len(back),
        zero=len(zero),
        rest=join(", ", (step.words for step in back[:3])),
    )
    evidence: dict[str, Any] = {
        "expected": {step.place: step.before for step in back[:MAX_NAMED]},
        "found": {step.place: step.now for step in back[:MAX_NAMED]},
        "groups": groups[:MAX_NAMED],
    }
    command = f"diff {STORE}/config/{table.name}{BACKUP} {STORE}/config/{table.name}"
    path = str(store.paths.config / table.name)
    yield catalogue_tables.CF03.finding(
        text, path, None, evidence, "warn" if len(zero) == len(back) else None, kind="behind", command=command
    )


def lost_retries(store: StoreSnapshot) -> Iterator[Finding]:
    """CF03: a group that has offsets, but none in its own retry queue, although that has messages."""
    if store.paths is None:
        return
    read: dict[str, set[str]] = {}
    for row in tables.offsets(store):
        read.setdefault(row.group, set()).add(row.topic)
    for group, topics in sorted(read.items()):
        retry = RETRY_PREFIX + group
        queues = store.queues.by_topic().get(retry, {})
        waiting = 0
        with contextlib.suppress(CannotRead):
            waiting = sum(queue.max_offset - max(queue.min_offset, 0) for queue in queues.values())
        if not waiting or retry in topics or is_system_group(group):
            continue
        had_offset = had_retry_offset(store, group, queues)
        text = sentence(
            "Group {group} has no offset in {topic}: the messages there are consumed again ({n:,})"
            if had_offset
            else "Group {group} has no offset in {topic}: the messages there are not consumed yet ({n:,})",
            group=group,
            topic=retry,
            n=waiting,
        )
        evidence = {
            "group": group,
            "expected": f"{retry}@{group}",
            "found": sorted(topics)[:MAX_NAMED],
            "messages": waiting,
        }
        path = tables.table_place(store, "consumerOffset.json")
        lighter: Severity | None = "chat" if not had_offset else "note" if store.abort else None
        yield catalogue_tables.CF03.finding(text, path, None, evidence, lighter, kind="rows")


def had_retry_offset(store: StoreSnapshot, group: str, queues: Mapping[int, AnyQueue]) -> bool:
    """Return True if the group has consumed from its retry queue: the table or its .bak names the queue, or the queue
    holds a message that came back a second time.

    A group may send messages back and stop before it consumes the first one.
    """
    retry = RETRY_PREFIX + group
    backup = read_backup(store, OFFSETS[0])
    backup_value = backup.parsed.value if backup is not None and backup.parsed is not None else None
    for value in (tables.loaded(store, OFFSETS[0]), backup_value):
        if not isinstance(value, dict):
            continue
        topics = value.get("groupTopicMap")
        named = topics.get(group) if isinstance(topics, dict) else None
        rows = value.get("offsetTable")
        if (isinstance(named, list) and retry in named) or (isinstance(rows, dict) and f"{retry}@{group}" in rows):
            return True
    for queue in queues.values():
        for entry in queue.entries(max(queue.max_offset - MAX_RETRIED_MESSAGES, queue.min_offset, 0)):
            unit = store.log.seen_at(entry.physical_offset) if entry.state == "entry" else None
            if isinstance(unit, Unit) and unit.reconsume_times > 1:
                return True
    return False


def unknown_groups(store: StoreSnapshot) -> Iterator[Finding]:
    """CF03: groups that have offsets but are missing from the table of groups."""
    declared = tables.groups(store)
    if store.paths is None or declared is None:
        return
    rows = [row for row in tables.offsets(store) if not row.group.startswith(LMQ_PREFIX)]
    reading = {row.group for row in rows if not is_system_group(row.group)}
    missing = sorted(reading - declared)
    if missing:
        text = sentence(
            "Groups with offsets that are not in subscriptionGroup.json ({n:,}): {rest}",
            n=len(missing),
            rest=", ".join(missing[:5]),
        )
        evidence = {"groups": missing[:MAX_NAMED], "expected": len(missing), "found": 0, "declared": len(declared)}
        path = tables.table_place(store, "subscriptionGroup.json")
        yield catalogue_tables.CF03.finding(text, path, None, evidence, kind="group")


def thrown_filters(store: StoreSnapshot) -> Iterator[Finding]:
    """CF10: expression filters that a start drops, because one of them does not fit the bloom filter."""
    dropped_filters = tables.thrown_filters(store)
    if store.paths is None or dropped_filters is None:
        return
    path = str(store.paths.config / "consumerFilter.json")
    evidence = {
        "group": dropped_filters.group,
        "topic": dropped_filters.topic,
        "filters": dropped_filters.filters,
        "groups": list(dropped_filters.groups),
    }
    yield catalogue_tables.CF10.finding(dropped_filters.words, path, None, evidence, "note" if store.abort else None)


def bad_table(table: Table, path: str) -> Finding:
    """CF01, CF04: a table that a broker cannot load, and how its ``.bak`` differs."""
    parsed, used = table.main.parsed, table.used
    differences = _differences(table)
    tail = parsed.tail if parsed is not None and parsed.fault is None else None
    if tail is not None:
        text = plural(
            "{file}: {n:,} character after the closing brace, {where}",
            "{file}: {n:,} characters after the closing brace, {where}",
            file=table.name,
            n=tail.length,
            where=tail.place.words,
        )
        evidence: dict[str, Any] = {
            "expected": sentence("end of the file"),
            "found": tail.text,
            "used": used,
            **differences,
        }
        command = f"truncate -s {tail.place.offset} {STORE}/config/{table.name}"
        return catalogue.CF04.finding(text, path, tail.place.offset, evidence, command=command)
    offset = parsed.fault.place.offset if parsed is not None and parsed.fault is not None else 0
    backup = table.bak.state if table.bak else None
    evidence = {"found": table.main.complaint, "used": used, "bak": backup, **differences}
    source = f"{STORE}/config/{table.name}{BACKUP}" if used == "bak" else f"REPLICA/config/{table.name}"
    command = f"cp {source} {STORE}/config/{table.name}"
    if parsed is not None and parsed.accepted:
        evidence[HAPPENED] = sentence(
            "{table} holds a value that no broker can read: it was edited, or a client wrote it", table=table.name
        )
    light: Severity | None = (
        None if table.name in GRAVE else "warn"
    )  # blockers of a start are raised to errors elsewhere
    kind = {"nothing": "both", "defaults": "alone"}.get(used, "")
    return catalogue.CF01.finding(
        sentence("{file}: {what}", file=table.name, what=table.why),
        path,
        offset,
        evidence,
        light,
        kind=kind,
        command=command,
    )


def _differences(table: Table) -> dict[str, list[str]]:
    """Differences between the ``.bak`` that a broker uses and the readable part of the table."""
    main = table.main.parsed.value if table.main.parsed is not None else None
    if table.used != "bak" or not isinstance(main, dict):
        return {}
    return {"differences": tables.differences(main, table.value, MAX_NAMED)}


MIN_MISSING_TOPICS = 2
"""Fewer topics that are missing in a table may be deleted ones."""
MAX_UNFITTING_NAMED = 20
MAX_UNITS = 64
"""Number of the log's first units whose cluster is read."""
FOLLOWERS = frozenset({"CQ14", "CF02", "CF06", "CF07", "CF08", "CF09", "CF12", "CF13"})
"""Rules whose findings follow from tables of another store."""
_ROWS = frozenset({"CF03"})
"""Rules of which only findings on rows follow, not those on whole tables."""


def explained(store: StoreSnapshot, findings: list[Finding], undispatched: Collection[str]) -> list[Finding]:
    """Return ``findings``; if the tables do not fit the store, CF14 comes first and what it explains follows from it.

    ``undispatched``: topics without a queue of which the log has units. Raises :class:`CannotRead`.
    """
    witnesses = [finding for finding in findings if finding.id in ("CQ14", "CF08") and finding.caused_by is None]
    if store.paths is None or store.lock_state == "held" or len(witnesses) < MIN_MISSING_TOPICS:
        return findings
    declared = tables.topics(store) or {}
    with_messages = _topics_with_messages(store)
    lacking = sorted(with_messages - declared.keys()) if declared else []
    existing_topics = {*store.queues.by_topic(), *undispatched}
    read = {
        row.topic
        for row in tables.offsets(store)
        if row.mode != "broadcast" and max(row.offsets.values(), default=0) > 0 and not is_system_group(row.group)
    }
    unknown = sorted(read - existing_topics)
    dead = sorted(name for name in declared if name.startswith(DLQ_PREFIX) and name not in existing_topics)
    lacks_most = len(lacking) >= MIN_MISSING_TOPICS and 2 * len(lacking) >= len(with_messages)
    reads_others = len(unknown) >= MIN_MISSING_TOPICS and 2 * len(unknown) > len(read)
    if not lacks_most and not (reads_others and (lacking or dead)):
        return findings
    if declared.keys() <= existing_topics and not unknown:
        return findings  # incomplete, but nothing in it is of another broker: as an import writes it
    cause = _finding(store, lacking, len(with_messages), unknown, dead)
    return [cause, *(finding.follows("CF14") if _follows(finding) else finding for finding in findings)]


def _topics_with_messages(store: StoreSnapshot) -> set[str]:
    """Topics of clients whose queues hold messages."""
    return {
        topic
        for topic, queues in store.queues.by_topic().items()
        if not (is_system_topic(topic) or topic.startswith(LMQ_PREFIX))
        and any(queue.max_offset > max(queue.min_offset, 0) for queue in queues.values())
    }


def _follows(finding: Finding) -> bool:
    if finding.caused_by is not None:
        return False
    return finding.id in FOLLOWERS or (
        finding.id in _ROWS and "groups" in finding.evidence and finding.severity != "error"
    )


def _finding(
    store: StoreSnapshot, lacking: list[str], topic_count: int, unknown: list[str], dead: list[str]
) -> Finding:
    assert store.paths is not None
    parts = []
    if lacking:
        parts.append(
            plural(
                "topics.json lacks {count:,} of {n:,} topic with messages ({names})",
                "topics.json lacks {count:,} of {n:,} topics with messages ({names})",
                count=len(lacking),
                n=topic_count,
                names=_named(lacking),
            )
        )
    if unknown:
        parts.append(
            plural(
                "groups have offsets in {n:,} topic of which the store has nothing ({names})",
                "groups have offsets in {n:,} topics of which the store has nothing ({names})",
                n=len(unknown),
                names=_named(unknown),
            )
        )
    if dead:
        parts.append(
            plural(
                "topics.json has {n:,} dead letter topic of which it has nothing ({names})",
                "topics.json has {n:,} dead letter topics of which it has nothing ({names})",
                n=len(dead),
                names=_named(dead),
            )
        )
    clusters = _foreign_clusters(store)
    if clusters:
        parts.append(
            sentence("messages are of the cluster {names}, which topics.json does not name", names=_named(clusters))
        )
    evidence: dict[str, Any] = {
        "expected": sentence("the topics of the store"),
        "found": sentence("{n} of {all}", n=topic_count - len(lacking), all=topic_count),
        "lacking": lacking[:MAX_UNFITTING_NAMED],
        "withoutQueues": unknown[:MAX_UNFITTING_NAMED],
        "clusters": clusters,
        HAPPENED: sentence(
            "the tables in config/ do not fit this store: they are of another broker, or of another time"
        ),
    }
    text = sentence("The tables in config/ do not fit this store: {why}", why=join("; ", parts))
    return catalogue_tables.CF14.finding(text, str(store.paths.config), None, evidence)


def _foreign_clusters(store: StoreSnapshot) -> list[str]:
    """Clusters that the first units bear and topics.json does not declare; a broker declares its own cluster."""
    declared = tables.topics(store) or {}
    units = (item for item in islice(store.units(crc=False), MAX_UNITS) if isinstance(item, Unit))
    clusters = {cluster for unit in units if (cluster := unit.properties.get(CLUSTER_PROPERTY))}
    return sorted(clusters - declared.keys())


def _named(names: Iterable[str]) -> str:
    shown = list(names)
    return ", ".join(shown[:3]) + (" …" if len(shown) > 3 else "")
