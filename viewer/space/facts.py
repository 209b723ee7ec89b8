"""Texts of the Space view: facts of the selected area, the forecast of retention, flags over the files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from viewer.look.assets import tr, tr_in, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import moment, number, size
from viewer.runtime import places
from viewer.space.areas import OTHERS, UNITS, files_words, topic_words
from viewer.space.space_line import Block, LineFlag
from viewer.widgets.areas import Area
from viewer.widgets.facts import Fact
from viewer.widgets.skew_bars import skew_words

if TYPE_CHECKING:
    from engine.inspection.retention import FileExpiry, Retention
    from engine.inspection.space.account import NamedSpace, Space
    from engine.inspection.space.page_cache import PageCache

RULE_WORDS = {
    "none": words("No disk is over {full:.0%}: expired files are deleted in the hours of deleteWhen."),
    "max": words("A disk is over {full:.0%}: expired files are deleted at any hour."),
    "force": words("A disk is over {force:.0%}: the oldest files are deleted at once, whatever their age."),
    "warn": words("A disk is over {warn:.0%}: the oldest files are deleted at once, and puts are refused."),
    "share": words("The store takes over {full:.0%} of its share of the disk: expired files are deleted at any hour."),
    "shareForce": words("The store is over its share of the disk: the oldest files are deleted at once."),
    "unknown": words("It is unknown how full a disk is: expired files are deleted at any hour."),
}
HELD_WORDS = {
    "goes": words("deleted by the next run"),
    "age": words("held by its age until {due}"),
    "hour": words("old enough since {due}, waits for the hour"),
    "order": words("old enough since {due}, waits for an older file"),
    "newest": words("the newest file is never deleted"),
    "off": words("deleteWhen names no hour: nothing is deleted"),
}
MAX_READER_FLAGS = 3
DAY_MS = 86_400_000


def short_moment(ms: int) -> str:
    """Format as ``11-25 04:00``."""
    return moment(ms)[5:16]


def held_words(file: FileExpiry) -> str:
    """Describe why retention does not delete a file yet."""
    return tr(HELD_WORDS[file.expiry.held_by]).format(due=short_moment(file.expiry.due_at))


def retention_note(retention: Retention) -> str:
    """Describe the retention settings in one line."""
    known_usage = [used for used in (retention.log_used, retention.queue_used) if used >= 0]
    disk = f"{max(known_usage):.0%}" if known_usage else tr("not known")
    if len(known_usage) == 1:  # only one of two disks is known: the rule follows the unknown one
        which_disk = tr("of the log") if retention.log_used >= 0 else tr("of the queues")
        disk = tr("{used} {of}, the other not known", used=disk, of=which_disk)
    return tr(
        "fileReservedTime {hours} h, deleteWhen {when}, disk {disk}",
        hours=retention.reserved_hours,
        when=retention.delete_when,
        disk=disk,
    )


def retention_sentences(retention: Retention) -> list[str]:
    """Describe the rule in force, the next files to go, who still reads them, and what the forecast rests on."""
    levels = retention.levels
    sentences = [tr(RULE_WORDS[retention.rule.rule]).format(full=levels.full, force=levels.force, warn=levels.warn)]
    files = retention.next_files
    if not retention.files:
        sentences.append(tr("The log has no files."))
    elif not files:
        sentences.append(tr("No file will be deleted as things are: {why}.", why=held_words(retention.files[0])))
    else:
        total = size(sum(file.size for file in files))
        when = (
            short_moment(retention.next_time or 0)
            if (retention.next_time or 0) > retention.at
            else tr("with the next run")
        )
        sentences.append(
            tr_plural(
                "{part:,} of {n:,} file, {size}, will be deleted: {when}.",
                "{part:,} of {n:,} files, {size}, will be deleted: {when}.",
                part=len(files),
                n=len(retention.files),
                size=total,
                when=when,
            )
        )
        reader_names = sorted({name for file in files for name in file.readers})
        if retention.readers_unknown is not None:
            sentences.append(tr("Who still reads them: {why}", why=engine_words(retention.readers_unknown)))
        elif reader_names:
            names = ", ".join(reader_names[:4]) + (" …" if len(reader_names) > 4 else "")
            sentences.append(
                tr("Still read there by {names}: what they have not read by then is lost to them.", names=names)
            )
        else:
            sentences.append(tr("No group and no delayed message still needs them."))
    below_minimum = [reader.name for reader in retention.readers if reader.below]
    if below_minimum:
        sentences.append(tr("Below the minimum already: {names}.", names=", ".join(below_minimum[:4])))
    if not retention.running:
        sentences.append(tr("No broker holds this store: nothing is deleted until one is started."))
    if not retention.configured:
        sentences.append(tr("These are RocketMQ's defaults; the broker's own settings are not known here."))
    return sentences


def blocks_of(
    retention: Retention, cache: PageCache | None, account: Space | None, *, forecast: bool = True
) -> list[Block]:
    """Build the blocks of the Line, one for each file; without ``forecast`` they say nothing about deletion."""
    cached_files = {file.name: file for file in cache.files} if cache is not None else {}
    account_files = {file.name: file for file in account.files} if account is not None else {}
    next_time = retention.next_time
    times = [
        account_files[f.name].first_time if f.name in account_files and account_files[f.name].first_time else f.modified
        for f in retention.files
    ]
    label_slice = slice(11, 19) if times and max(times) - min(times) < DAY_MS else slice(5, 16)
    blocks = []
    for file, start_time in zip(retention.files, times, strict=True):
        deletion_time = file.expiry.goes_at if forecast else None
        kind = "keep" if deletion_time is None else "goes" if deletion_time == next_time else "later"
        parts = [
            tr("file {name}, {size}", name=file.name, size=size(file.size)),
            tr("last changed {time}", time=moment(file.modified)[:19]),
        ]
        if deletion_time is not None and deletion_time > retention.at:
            parts.append(tr("deleted at {time}", time=moment(deletion_time)[:16]))
        parts.append(held_words(file))
        if retention.readers_unknown is not None:
            parts.append(tr("who still reads it: {why}", why=engine_words(retention.readers_unknown)))
        elif file.readers:
            parts.append(tr("still read by {names}", names=", ".join(file.readers[:6])))
        account_file = account_files.get(file.name)
        if account_file is not None:
            parts.append(tr_plural("{n:,} unit", "{n:,} units", n=account_file.messages))
        cached_file = cached_files.get(file.name)
        if cached_file is not None:
            parts.append(tr("{size} of it in memory", size=size(cached_file.resident)))
        blocks.append(
            Block(
                file.name,
                file.start_offset,
                file.start_offset + file.size,
                kind,
                moment(start_time)[label_slice],
                "\n".join(parts),
                cached_file.shares if cached_file is not None else (),
            )
        )
    return blocks


def flags_of(retention: Retention, account: Space | None) -> list[LineFlag]:
    """Build the flags of the Line: which files go first, which follow, and the groups furthest behind."""
    units = {file.name: file.messages for file in account.files} if account is not None else {}
    next_files = retention.next_files
    flags: list[LineFlag] = []
    if next_files:
        when = short_moment(retention.next_time or 0) if (retention.next_time or 0) > retention.at else tr("now")
        note = size(sum(file.size for file in next_files))
        messages = sum(units.get(file.name, 0) for file in next_files)
        if messages:
            note += ", " + tr_plural("{n:,} unit", "{n:,} units", n=messages)
        count = len(next_files)
        label = tr_plural("{n:,} file to delete {when}", "{n:,} files to delete {when}", n=count, when=when)
        flags.append(LineFlag(label, next_files[0].start_offset, "error", note))
        later = [file for file in retention.files if file.expiry.goes_at and file.expiry.goes_at != retention.next_time]
        if later:
            last_time = max(file.expiry.goes_at or 0 for file in later)
            flags.append(
                LineFlag(
                    tr("{n:,} more by {when}", n=len(later), when=short_moment(last_time)),
                    later[0].start_offset,
                    "warn",
                )
            )
    next_files_end = next_files[-1].start_offset + next_files[-1].size if next_files else 0
    for reader in retention.readers[:MAX_READER_FLAGS]:
        at_risk = reader.offset < next_files_end
        flags.append(
            LineFlag(
                tr("{name} reads here", name=reader.name),
                reader.offset,
                "error" if at_risk else "posTime",
                tr("would lose") if at_risk else tr("safe"),
                -1,
            )
        )
    return flags


def cache_words(cache: PageCache | None) -> str:
    """Describe how much of the log is in memory, or why that is unknown."""
    if cache is None:
        return ""
    if cache.why:
        return tr("Not known: {why}", why=cache.why)
    names = {"commitlog": tr("Commit log"), "consumequeue": tr("Queue files"), "index": tr("Index files")}
    parts = [
        tr(
            "{kind} {held} of {all}",
            kind=names.get(kind.kind, kind.kind),
            held=size(kind.resident),
            all=size(kind.size),
        )
        for kind in cache.kinds
    ]
    return " · ".join(parts)


def area_facts(space: Space, path: tuple[str, ...], area: Area | None) -> list[Fact]:
    """Return the facts of the selected area; of the whole directory if none is selected."""
    if area is None or not path:
        return _directory_facts(space)
    topic = area.topic or None
    total = Fact(area.name, size(area.bytes), _total_note(area), place=area.target if _is_place(area.target) else None)
    if topic is None:
        return [total, *([Fact(tr_in("remark", "Note"), area.note, code=False)] if area.note else [])]
    facts = [total]
    queues = _queue_counts(space, topic)
    if len(path) == 1 and len(queues) > 1:
        facts.append(Fact(tr("Queues"), f"{len(queues)}", skew_words([count for _, count in queues])))
    named_facts = [
        (
            tr("By tag"),
            _largest_words((named_space for named_space in space.tags if named_space.topic == topic), tr("(no tag)")),
        ),
        (
            tr("Producers"),
            _largest_words((named_space for named_space in space.producers if named_space.topic == topic), ""),
        ),
    ]
    facts += [Fact(name, value, code=False) for name, value in named_facts if value]
    compressed = next((named_space for named_space in space.compressed if named_space.topic == topic), None)
    if compressed is not None and area.bytes:
        topic_bytes = sum(row.bytes for row in space.rows if row.topic == topic and row.kind == "commitlog")
        facts.append(
            Fact(
                tr("Compressed"),
                f"{compressed.bytes / max(topic_bytes, 1):.0%}",
                tr_plural("{n:,} unit", "{n:,} units", n=compressed.messages),
            )
        )
    dead_bytes = sum(row.bytes for row in space.rows if row.topic == topic and space.is_dead(row))
    if dead_bytes:
        facts.append(Fact(tr("Dead"), size(dead_bytes), tr("nobody reads these bytes any more"), "warn"))
    return facts


def _is_place(target: object) -> bool:
    return isinstance(target, places.Place)


def _total_note(area: Area) -> str:
    parts = [f"{area.bytes:,} B"]
    if area.messages:
        parts.append(tr_plural("{n:,} unit", "{n:,} units", n=area.messages))
    return " · ".join(parts)


def _directory_facts(space: Space) -> list[Fact]:
    kinds = sorted(space.kinds, key=lambda kind: -kind.bytes)
    facts = [
        Fact(
            tr("All files"),
            size(space.bytes),
            tr_plural(
                "{n:,} file, {size} allocated",
                "{n:,} files, {size} allocated",
                n=space.file_count,
                size=size(space.allocated),
            ),
        )
    ]
    facts += [Fact(kind.kind, size(kind.bytes), files_words(kind.files)) for kind in kinds[:4]]
    facts.append(
        Fact(
            tr("Dead"),
            size(space.dead),
            tr("below the minimum, after the end, stale, of deleted topics"),
            "warn" if space.dead else "text",
        )
    )
    return facts


def queue_counts(space: Space, topic: str) -> list[tuple[str, int]]:
    """Return (queue, messages) of a topic, in the order of the queues."""
    return _queue_counts(space, topic)


def _queue_counts(space: Space, topic: str) -> list[tuple[str, int]]:
    counts: dict[int, int] = defaultdict(int)
    for row in space.rows:
        if row.topic == topic and row.queue_id is not None and row.kind == "commitlog" and row.part in UNITS:
            counts[row.queue_id] += row.messages or 0
    for row in space.rows:  # a queue without messages in the log counts as zero
        if row.topic == topic and row.queue_id is not None and row.kind == "consumequeue":
            counts.setdefault(row.queue_id, 0)
    return [(str(queue), count) for queue, count in sorted(counts.items())]


def _largest_words(rows: Iterable[NamedSpace], unnamed_label: str) -> str:
    listed = sorted(rows, key=lambda named_space: -named_space.bytes)
    words_of = {OTHERS: topic_words(OTHERS), None: unnamed_label}
    parts = [
        f"{words_of.get(named_space.name, named_space.name)} {size(named_space.bytes)}" for named_space in listed[:4]
    ]
    further_count = len(listed) - 4
    return " · ".join([*parts, *([tr("{n:,} more", n=further_count)] if further_count > 0 else [])])


def status_words(space: Space, *, is_complete: bool = True) -> str:
    """Return the sentence of the status bar.

    ``is_complete`` is False if something could not be read, listed or looked at.
    """
    method = {
        "walked": tr("the log was walked"),
        "unread": tr("the log was walked as far as it can be read"),
        "cut": tr("stopped: the rest was not looked at"),
        "queues": tr("from file lists and queues, the log is being walked"),
        "sampled": tr("from file lists and samples of the queues, the log is being walked"),
    }[space.method]
    if space.equal and not is_complete:
        return tr("{n} B in the files that can be looked at · {how}", n=number(space.bytes), how=method)
    if space.equal:
        return tr(
            "{n} B accounted for to the byte · {how}, {seconds:.1f} s",
            n=number(space.bytes),
            how=method,
            seconds=space.took_ms / 1000,
        )
    return tr(
        "{n} B counted, the files have {all} · {how}", n=number(space.counted), all=number(space.bytes), how=method
    )
