"""Blockers: reasons why a broker does not start on a store, with the line that it would log
(docs/formats/files.md#folders, docs/formats/recovery.md#order, docs/formats/config-tables.md#rules).

Only lengths, names and the readability of tables are looked at: the part of a start that comes before recovery.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from engine.codec import cq_ext
from engine.files.layout import StorePaths, parse_file_name, wheel_snapshot_position
from engine.mapped.read_only import ReadOnlyFile
from engine.releases import Release, rules_of
from engine.sentences import plural, sentence
from engine.store.recovery.plan import Blocker, FailedDispatch
from engine.store.recovery.source import TIMER_METRICS, RecoverySource
from engine.store.recovery.walk import NO_SUCH_ARRAY

MAX_BLOCKERS = 50
FOLDER = "a folder"
TIMER_WHEEL_SIZE = 604_800 * 2 * 32
_NOT_MATCHED = "length not matched message store config value, please check it manually"
_OUT_OF_MEMORY = "java.lang.OutOfMemoryError: Requested array size exceeds VM limit"
_CHECK = "at org.apache.rocketmq.store.CommitLog.checkMessageAndReturnSize"
_BEYOND = "load exception java.lang.IllegalArgumentException: newPosition > limit"
_FALLS_BEHIND = "Try to finish doing reput the messages fall behind during the starting"
_WAITS = {
    4: "at org.apache.rocketmq.store.DefaultMessageStore.start(DefaultMessageStore.java:288)",
    5: "at org.apache.rocketmq.store.DefaultMessageStore.recheckReputOffsetFromCq",
}
_KIND = "load exception java.lang.RuntimeException: The queue type of topic:"


class LoadResult(NamedTuple):
    """Result of loading: the blockers, and empty last files that it deletes without asking."""

    blockers: list[Blocker]
    deleted: list[str]


def load(source: RecoverySource, release: Release) -> LoadResult:
    """Go through a start's loading in a broker's order. There may be several blockers; a broker names only the
    first.
    """
    loaded = LoadResult([], [])
    paths = StorePaths(source.root)
    loaded.blockers.extend(_tables(source, release))
    _file_queue(source, source.log.folders, source.log_file_size, "CL07", release, loaded)
    for queue in source.queues:
        size = source.batch_queue_file_size if queue.kind == "batch" else source.queue_file_size
        _file_queue(source, queue.sequence.folders, size, "CQ01", release, loaded)
        if queue.ext is not None and (queue.ext.file_size or 0):
            _file_queue(source, queue.ext.folders, queue.ext.file_size, "CQ01", release, loaded)
            loaded.blockers.extend(_ext_overruns(queue.ext.files))
    if rules_of(release).checks_queue_kinds:
        loaded.blockers.extend(_wrong_kinds(source))
    if rules_of(release).loads_timers:
        loaded.blockers.extend(_timer(paths, source))
        loaded.blockers.extend(_compacted(paths, source))
    loaded.blockers.extend(_state_files(paths, source, release))
    if source.lock_held:
        loaded.blockers.append(
            Blocker(
                "AB01",
                sentence("A process holds the store's lock: a broker is running on it"),
                "java.lang.RuntimeException: Lock failed,MQ already started",
                str(paths.lock),
            )
        )
    return loaded


def _compacted(paths: StorePaths, source: RecoverySource) -> Iterator[Blocker]:
    """CompactionLog.sanityCheck: log and queue have files of the same names."""
    logs, queues = (paths.root / "compaction" / part for part in ("compactionLog", "compactionCq"))
    for topic in (entry for entry in source.listing(logs) if entry.folder):
        for queue in (entry for entry in source.listing(logs / topic.name) if entry.folder):
            folders = (logs / topic.name / queue.name, queues / topic.name / queue.name)
            if not any(entry.folder and entry.name == queue.name for entry in source.listing(folders[1].parent)):
                continue
            names = [{entry.name for entry in source.listing(folder) if not entry.folder} for folder in folders]
            for name in sorted(names[0] ^ names[1]):
                folder = folders[name in names[1]]
                yield Blocker(
                    "CM02",
                    sentence("{path}: the compacted log and its queue have not the same files", path=folder / name),
                    f"log file mismatch with consumeQueue file {folder / name}",
                    str(folder / name),
                )
                return


def _ext_overruns(files: Sequence[ReadOnlyFile]) -> Iterator[Blocker]:
    """ConsumeQueueExt.recover jumps from unit to unit by their lengths."""
    for file in files:
        position = cq_ext.overrun(file.read(0, file.size))
        if position is not None:
            text = sentence(
                "{path}: the length of the unit at byte {offset:,} goes beyond the end of the ext file",
                path=file.path,
                offset=position,
            )
            yield Blocker("CQ15", text, _BEYOND, file.path)
            return


def _file_queue(
    source: RecoverySource, folders: tuple[Path, ...], size: int, rule: str, release: Release, loaded: LoadResult
) -> None:
    """MappedFileQueue.load over one folder, or over all folders of a multi-path log: the first misfit ends it."""
    if len(loaded.blockers) >= MAX_BLOCKERS:
        return
    entries = sorted((e for folder in folders for e in source.listing(folder)), key=lambda e: e.name)
    rules = rules_of(release)
    for number, entry in enumerate(entries):
        if entry.folder and rules.skips_folders:
            continue
        if entry.size == 0 and number == len(entries) - 1 and rules.deletes_empty_last_file and not entry.folder:
            loaded.deleted.append(entry.path)
            continue
        if entry.folder or (size and entry.size != size):
            actual = sentence(FOLDER) if entry.folder else plural("{n:,} byte", "{n:,} bytes", n=entry.size)
            loaded.blockers.append(
                Blocker(
                    rule,
                    plural(
                        "{path}: expected a file of {n:,} byte, found {found}",
                        "{path}: expected a file of {n:,} bytes, found {found}",
                        path=entry.path,
                        n=size,
                        found=actual,
                    ),
                    f"{entry.path}\t{entry.size} {_NOT_MATCHED}",
                    entry.path,
                )
            )
            return
        if parse_file_name(entry.name) is None:
            loaded.blockers.append(
                Blocker(
                    rule,
                    sentence(
                        "{path}: the name is not a number; files here are named by their start offset", path=entry.path
                    ),
                    f'load exception java.lang.NumberFormatException: For input string: "{entry.name}"',
                    entry.path,
                )
            )
            return


def out_of_memory(files: list[ReadOnlyFile], end: int, requested_bytes: int) -> list[Blocker]:
    """Return the blocker of 4.9, which makes an array of the length field's size before it looks at what is left; no
    array is that long in Java.
    """
    if requested_bytes < NO_SUCH_ARRAY:
        return []
    path = next(file.path for file in files if file.start_offset <= end < file.end_offset)
    text = plural(
        "The unit at {at:,} says that it is {n:,} byte long: RocketMQ 4.9 asks for that much memory and dies",
        "The unit at {at:,} says that it is {n:,} bytes long: RocketMQ 4.9 asks for that much memory and dies",
        at=end,
        n=requested_bytes,
    )
    return [Blocker("CL01", text, f"{_OUT_OF_MEMORY}\n{_CHECK}", path)]


def no_accelerated_start(source: RecoverySource, release: Release) -> list[Blocker]:
    """After a crash 5.5 refuses enableAcceleratedRecovery where the checkpoint has no offset to begin at."""
    checkpoint = source.checkpoint
    is_requested = rules_of(release).accelerated_recovery and source.config.enable_accelerated_recovery and source.abort
    if not is_requested or checkpoint.physic_msg_timestamp <= 0 or (checkpoint.logics_physical_offset or 0) > 0:
        return []
    path = str(StorePaths(source.root).checkpoint)
    text = sentence("enableAcceleratedRecovery is on, and the checkpoint has no logicsPhysicalOffset to begin at")
    log_line = "Accelerated recovery is enabled but checkpoint's logicsPhysicalOffset is invalid"
    return [Blocker("CK05", text, f"load exception java.lang.RuntimeException: {log_line}", path)]


def fails_to_dispatch(
    files: list[ReadOnlyFile], failed: FailedDispatch | None, *, in_recovery: bool, release: Release
) -> list[Blocker]:
    """A start ends at a unit without an offset for a further queue, or waits for it where it dispatches after
    recovery.
    """
    if failed is None:
        return []
    path = next(file.path for file in files if file.start_offset <= failed.offset < file.end_offset)
    text = sentence(
        "The start fails at the message {place} at {at:,}, because it names {name}, which is no light queue, before a "
        "light queue; with enableMultiDispatch=false it does not"
        if in_recovery
        else "The start waits forever: dispatch stops at the message {place} at {at:,}, because it names {name}, which "
        "is no light queue, before a light queue; with enableMultiDispatch=false it does not",
        place=failed.place,
        at=failed.offset,
        name=failed.queue_name or '""',
    )
    log_line = f'java.lang.NumberFormatException: For input string: "{failed.offset_text}"'
    log_line = f"load exception {log_line}" if in_recovery else f"{log_line}\n{_WAITS[rules_of(release).major]}"
    return [Blocker("CQ17", text, log_line, path)]


def waits_for_ever(
    files: list[ReadOnlyFile], blocked_at: tuple[int, str] | None, end: int, release: Release
) -> list[Blocker]:
    """A start that waits until dispatch has reached the end of the log, and dispatch never does."""
    if blocked_at is None:
        return []
    offset, reason = blocked_at
    file_before = max(
        (file for file in files if file.start_offset <= offset), key=lambda f: f.start_offset, default=files[0]
    )
    text = plural(
        "The start waits forever: dispatch stops at {at:,}, {n:,} byte before the end of the log: {reason}",
        "The start waits forever: dispatch stops at {at:,}, {n:,} bytes before the end of the log: {reason}",
        at=offset,
        n=end - offset,
        reason=reason,
    )
    position = f"reputOffset={offset} maxOffset={end} behind={end - offset}"
    log_lines = f"{_FALLS_BEHIND}, {position}\n{_WAITS[rules_of(release).major]}"
    return [Blocker("RP02", text, log_lines, file_before.path)]


def _wrong_kinds(source: RecoverySource) -> Iterator[Blocker]:
    kinds: dict[str, set[str]] = {topic: {"simple", "batch"} for topic in source.both_kinds}
    for queue in source.queues:
        kinds.setdefault(queue.topic, set()).add(queue.kind)
    for topic, topic_kinds in sorted(kinds.items()):
        if source.batch_topics is None:
            wrong = "simple" if len(topic_kinds) == 2 else None
        else:
            right = "batch" if topic in source.batch_topics else "simple"
            wrong = next((kind for kind in sorted(topic_kinds) if kind != right), None)
        if wrong is None:
            continue
        folder = {"simple": "consumequeue", "batch": "batchconsumequeue"}[wrong]
        should, actual = ("SimpleCQ", "BatchCQ") if wrong == "simple" else ("BatchCQ", "SimpleCQ")
        yield Blocker(
            "CQ11",
            sentence(
                "Topic {topic} has a folder in {folder}, but its queues are of the kind {kind}",
                topic=topic,
                folder=folder,
                kind=actual,
            ),
            f"{_KIND} {topic} should be {should}, but is {actual}",
            str(source.root / folder / topic),
        )


def _tables(source: RecoverySource, release: Release) -> Iterator[Blocker]:
    for table in source.tables:
        if table.path.endswith(TIMER_METRICS) and not source.config.timer_wheel_enable:
            continue
        why = table.why_not(release)
        if why is not None:
            yield Blocker(
                "CF01",
                sentence(
                    "{path} cannot be read ({why}), and neither can its .bak",
                    path=table.path,
                    why=sentence("invalid") if why == "bad" else why,
                ),
                f"load {table.path}.bak Failed",
                table.path,
            )


def _timer(paths: StorePaths, source: RecoverySource) -> Iterator[Blocker]:
    if not source.config.timer_wheel_enable:
        return
    sizes = {entry.name: entry.size for entry in source.listing(paths.root)}
    path = paths.timerwheel
    if source.config.timer_wheel_snapshot_flush:
        positions = [position for name in sizes if (position := wheel_snapshot_position(name)) is not None]
        if positions:
            path = path.with_name(f"{path.name}.{max(positions)}")
    size = sizes.get(path.name, 0)
    if size not in (0, TIMER_WHEEL_SIZE):
        yield Blocker(
            "TM04",
            plural(
                "{path}: expected {n:,} byte, found {found:,}",
                "{path}: expected {n:,} bytes, found {found:,}",
                path=path,
                n=TIMER_WHEEL_SIZE,
                found=size,
            ),
            f"BrokerController#initialize: unexpected error occurs java.lang.RuntimeException: "
            f"Timer wheel length:{size} != expected:{TIMER_WHEEL_SIZE}",
            str(path),
        )


def _state_files(paths: StorePaths, source: RecoverySource, release: Release) -> Iterator[Blocker]:
    if any(entry.folder and entry.name == paths.checkpoint.name for entry in source.listing(paths.root)):
        yield Blocker(
            "CK05",
            sentence("{path}: expected a file, found a folder", path=paths.checkpoint),
            f"load exception java.io.FileNotFoundException: {paths.checkpoint} (Is a directory)",
            str(paths.checkpoint),
        )
    if rules_of(release).index_folders_fail:
        for entry in source.listing(paths.index):
            if entry.folder and parse_file_name(entry.name) is not None:
                yield Blocker(
                    "IX08",
                    sentence("{path}: expected an index file, found a folder", path=entry.path),
                    f"load file {entry.path} error java.io.FileNotFoundException: {entry.path} (Is a directory)",
                    entry.path,
                )
