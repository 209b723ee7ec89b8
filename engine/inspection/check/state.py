"""The state files around log, queues and index: checkpoint, abort, tables (docs/formats/checkpoint.md,
docs/formats/config-tables.md).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from engine.codec import config_tables
from engine.codec.checkpoint import CHECKPOINT_SIZE, PARTS, Checkpoint
from engine.english import capital
from engine.errors import CannotRead, CorruptUnit
from engine.files.layout import FILE_NAME_DIGITS
from engine.inspection import recovery
from engine.inspection.check import tables as check_tables
from engine.inspection.check.next_start import StartEffects
from engine.inspection.interrupted_change import find_interruption
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.written_release import release_of
from engine.mapped.backup import NOTE
from engine.mapped.folder_listing import ReadingListing
from engine.releases import NAMES, rules_of
from engine.rules import catalogue
from engine.rules.findings import HAPPENED, STORE, Finding, Severity
from engine.sentences import plural, sentence, with_and
from engine.times import duration_text, time_text

FAR_BEHIND_MS = 10 * 60_000
FAR_BEHIND_FILES = 2
_FIELDS = ("physicMsgTimestamp", "logicsMsgTimestamp", "indexMsgTimestamp")


def abort(store: StoreSnapshot) -> Iterator[Finding]:
    """AB01: the store is open, or was not closed."""
    if not store.abort or store.paths is None:
        return
    path = str(store.paths.abort)
    if store.lock_state == "held":
        text = sentence("The abort file exists and a process holds the lock: a broker is running on the store")
        yield catalogue.AB01.finding(text, path, None, {"lock": "held"}, "chat")
    else:
        text = sentence(
            "The abort file exists and nobody holds the lock: the store was not closed, the next start recovers it"
        )
        yield catalogue.AB01.finding(text, path, None, {"lock": store.lock_state})


def interrupted_change(store: StoreSnapshot) -> Iterator[Finding]:
    """AB02: a command that changes the store, or its undo, was stopped before its end."""
    change = find_interruption(store)
    if change is None:
        return
    name, folder = change.command, change.folder
    if not folder:
        text = sentence(
            "The command {command} --no-backup was interrupted: some of its changes are made, others are not, and the "
            "bytes that it changed are saved nowhere",
            command=name,
        )
        yield catalogue.AB02.finding(text, str(store.path / NOTE), None, {"command": name}, kind="unsaved")
        return
    text = sentence(
        "The undo of {command} was interrupted: the store is partly changed, and its backup is in {folder}"
        if change.is_undo
        else "The command {command} was interrupted: the store is partly changed, and its backup is in {folder}",
        command=name,
        folder=folder,
    )
    command = f"storescope repair {STORE} --undo {shlex.quote(folder)}"
    yield catalogue.AB02.finding(text, folder, None, {"command": name, "folder": folder}, command=command)


def empty_log(store: StoreSnapshot) -> Iterator[Finding]:
    """CL12: the log, or a folder of it, is missing."""
    missing_log = recovery.without_log(store)
    if missing_log is not None and not missing_log.dledger:
        text, kind = capital(missing_log.message), ""
        evidence = missing_log.record()
        deeper = _files_one_folder_deeper(store, missing_log.folder)
        if deeper is not None:
            kind = "deeper"
            text = sentence("The log is empty, and files of a log stand one folder deeper, in {folder}", folder=deeper)
            evidence |= {
                "deeper": deeper,
                HAPPENED: sentence("the files of the commit log stand one folder too deep, in {folder}", folder=deeper),
            }
        yield catalogue.CL12.finding(text, missing_log.folder, None, evidence, kind=kind)


def _files_one_folder_deeper(store: StoreSnapshot, folder: str) -> str | None:
    """The folder below the log's that holds files with the names of a log; None if there is none."""
    listing = ReadingListing(store.reading, Path(folder))
    for name, _, is_folder in listing.entries(""):
        files = listing.entries(name) if is_folder else []
        if any(size and len(file) == FILE_NAME_DIGITS and file.isdigit() for file, size, _ in files):
            return f"{Path(folder).name}/{name}"
    return None


def checkpoint(
    store: StoreSnapshot, newest_time: int, log_end: int, credible: int, starts: StartEffects | None = None
) -> Iterator[Finding]:
    """CK01–CK05: the checkpoint against the newest unit's store time (ms) and the end of the log (bytes). ``credible``
    is the newest time (ms) that no wrong clock produced; ``starts`` tell what is done with a checkpoint of nonsense.
    """
    if store.paths is None:
        return
    path = store.paths.checkpoint
    try:
        data = store.small_file(path)
        stored = store.checkpoint()
    except CorruptUnit as error:
        yield catalogue.CK05.finding(
            sentence("The checkpoint cannot be read: {what}", what=error.what), str(path), 0, {"found": error.what}
        )
        return
    if data is None or stored is None:
        if newest_time:
            text = sentence(
                "There is no checkpoint: a start after a crash would begin {place}", place=_where_it_begins(store)
            )
            evidence = {"expected": CHECKPOINT_SIZE, "found": None, HAPPENED: sentence("the checkpoint is missing")}
            severity: Severity = "warn" if store.abort and store.lock_state != "held" else "note"
            yield catalogue.CK05.finding(text, str(path), None, evidence, severity)
        return
    if len(data) != CHECKPOINT_SIZE:
        text = plural(
            "The checkpoint has {n:,} byte, expected {expected:,}",
            "The checkpoint has {n:,} bytes, expected {expected:,}",
            n=len(data),
            expected=CHECKPOINT_SIZE,
        )
        evidence = {"expected": CHECKPOINT_SIZE, "found": len(data)}
        evidence[HAPPENED] = plural(
            "the checkpoint was cut or torn: it has {n:,} byte",
            "the checkpoint was cut or torn: it has {n:,} bytes",
            n=len(data),
        )
        yield catalogue.CK05.finding(text, str(path), 0, evidence)
    if stored.impossible:
        yield _impossible_numbers(store, stored.impossible, str(path), starts)
        return
    if newest_time:
        yield from _times(store, stored, str(path), newest_time, credible)
    if (stored.logics_physical_offset or 0) > log_end:
        text = sentence(
            "logicsPhysicalOffset is {n:,}, the log ends at {end:,}", n=stored.logics_physical_offset, end=log_end
        )
        evidence = {"expected": log_end, "found": stored.logics_physical_offset}
        written = store.lock_state == "held"  # after the log was read
        yield catalogue.CK02.finding(text, str(path), 40, evidence, "note" if written else None)
    if stored.confirm_phy_offset is not None and stored.confirm_phy_offset > log_end:
        text = sentence("confirmPhyOffset is {n:,}, the log ends at {end:,}", n=stored.confirm_phy_offset, end=log_end)
        evidence = {"expected": log_end, "found": stored.confirm_phy_offset}
        yield catalogue.CK04.finding(text, str(path), 32, evidence)


def _impossible_numbers(
    store: StoreSnapshot, numbers: dict[str, int], path: str, starts: StartEffects | None
) -> Finding:
    """CK05: the file has the length of a checkpoint, and was overwritten with something else."""
    first_part = next(part for part in PARTS if part.name in numbers)
    named = ", ".join(f"{name} {number:,}" for name, number in numbers.items())
    crashed = store.abort and store.lock_state != "held"
    text = sentence("The checkpoint holds numbers that no broker writes: {numbers}", numbers=named)
    begins = _beginnings(starts) if crashed and starts is not None else {}
    files = dict.fromkeys(begins.values())
    for file in files:
        releases = ", ".join(release for release in begins if begins[release] == file)
        text += " · " + sentence(
            "a start of {releases} begins at the file {file} by them", releases=releases, file=file
        )
    if not crashed:
        text += " · " + sentence("a start of a store that was closed does not choose its first file by them")
    evidence = {
        "expected": sentence("store times and offsets of the log"),
        "found": numbers,
        "startFiles": begins,
        HAPPENED: sentence("the file checkpoint was overwritten: its numbers are not those of a checkpoint"),
    }
    kind = "numbersCrashed" if crashed else "numbers"
    return catalogue.CK05.finding(text, path, first_part.position, evidence, kind=kind)


def _beginnings(starts: StartEffects) -> dict[str, str]:
    """The file at which a start of each release begins."""
    plans = {release: starts.plan(release) for release in NAMES}
    return {release: plan.start_file for release, plan in plans.items() if plan is not None and plan.start_file}


def _times(store: StoreSnapshot, stored: Checkpoint, path: str, newest: int, credible: int) -> Iterator[Finding]:
    times = (stored.physic_msg_timestamp, stored.logics_msg_timestamp, stored.index_msg_timestamp)
    ahead = [number for number, time in enumerate(times) if time > newest]
    if ahead:
        first_ahead = ahead[0]
        names = ", ".join(_FIELDS[number] for number in ahead)
        text = sentence(
            "ahead of the newest unit ({newest}) by {span}: {names}",
            names=names,
            newest=time_text(newest),
            span=duration_text(max(times) - newest),
        )
        evidence = {"expected": time_text(newest), "found": _times_words(times), "aheadMs": max(times) - newest}
        written = store.lock_state == "held"  # after the log was read
        yield catalogue.CK02.finding(text, path, 8 * first_ahead, evidence, "note" if written else None)
    # Queues in a RocksDB store their position there and leave the time of the queues at zero.
    telling = times[: 2 if store.undecoded_part("queues") is None else 1]
    zero = [number for number, time in enumerate(telling) if time == 0]
    if zero:
        if rules_of(release_of(store)).logics_time_at_thorough_flush and (
            stored.logics_physical_offset or not store.abort
        ):
            return  # 5.5 uses the offset; without it the broker ran for less than a minute
        names = with_and(_FIELDS[number] for number in zero)
        text = sentence(
            "{names} zero: a start after a crash would begin {place} of the log",
            names=names,
            place=_where_it_begins(store),
        )
        evidence = {"found": _times_words(times)}
        slow = not rules_of(release_of(store)).logics_time_at_thorough_flush and len(store.log.files) > FAR_BEHIND_FILES
        crashed = store.abort and store.lock_state != "held" and slow
        yield catalogue.CK01.finding(text, path, 8 * zero[0], evidence, "warn" if crashed else None)
    elif credible - min(telling) > FAR_BEHIND_MS and len(store.log.files) > FAR_BEHIND_FILES and not ahead:
        lag_ms = credible - min(telling)
        text = sentence("The checkpoint is {span} behind the newest unit", span=duration_text(lag_ms))
        evidence = {"expected": time_text(credible), "found": _times_words(times), "behindMs": lag_ms}
        yield catalogue.CK03.finding(text, path, 0, evidence)


def _where_it_begins(store: StoreSnapshot) -> str:
    """Words for the file at which a start after a crash begins if the checkpoint has no time or offset."""
    release = rules_of(release_of(store))
    if release.recovery_file_limit is None:
        return sentence("at the first file")
    configured = store.config.commit_log_recover_max_num if store.config is not None else 0
    file_count = configured if configured > 0 else release.recovery_file_limit
    if len(store.log.files) <= file_count:
        return sentence("at the first file")
    return plural("{n} file before the end", "{n} files before the end", n=file_count)


def _times_words(times: tuple[int, ...]) -> dict[str, str]:
    """The checkpoint's times by their names."""
    return {name: time_text(time) if time else "0" for name, time in zip(_FIELDS, times, strict=True)}


# -- tables


def config(store: StoreSnapshot) -> Iterator[Finding]:
    """CF01, CF04: tables that a broker could not load."""
    if store.paths is None:
        return
    folder, release = store.paths.config, release_of(store)
    for name in config_tables.TABLES:
        table = config_tables.load_table(name, lambda file: _read(store, folder / file), release)
        if table.main.state in ("bad", "unreadable"):
            yield check_tables.bad_table(table, str(folder / name))


def _read(store: StoreSnapshot, path: Path) -> bytes | None:
    try:
        return store.small_file(path)
    except (CannotRead, CorruptUnit) as error:
        raise OSError(5, error.what) from error
