"""What the view Space says in words: facts of the chosen area, the forecast of retention, flags over the files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from viewer.look.assets import tr, words
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

RULES = {
    "none": words("No disk is over {full:.0%}: expired files go in the hours of deleteWhen."),
    "max": words("A disk is over {full:.0%}: expired files go at any hour."),
    "force": words("A disk is over {force:.0%}: the oldest files go at once, whatever their age."),
    "warn": words("A disk is over {warn:.0%}: the oldest files go at once, and puts are refused."),
    "share": words("The store takes over {full:.0%} of its share of the disk: expired files go at any hour."),
    "shareForce": words("The store is over its share of the disk: the oldest files go at once."),
    "unknown": words("How full a disk is cannot be told: expired files go at any hour."),
}
HELD = {
    "goes": words("goes with the next run"),
    "age": words("held by its age until {due}"),
    "hour": words("old enough since {due}, waits for the hour"),
    "order": words("old enough since {due}, waits for an older file in front of it"),
    "newest": words("the newest file is never deleted"),
    "off": words("deleteWhen names no hour: nothing goes"),
}
FLAGS = 3
DAY_MS = 86_400_000


def short_moment(ms: int) -> str:
    """``11-25 04:00``."""
    return moment(ms)[5:16]


def held_words(file: FileExpiry) -> str:
    """What holds a file, in words."""
    return tr(HELD[file.expiry.held_by]).format(due=short_moment(file.expiry.due_at))


def retention_note(found: Retention) -> str:
    """The settings in a line."""
    known = [used for used in (found.log_used, found.queue_used) if used >= 0]
    disk = f"{max(known):.0%}" if known else tr("not known")
    if len(known) == 1:  # of two disks one is known: the rule goes by what is not
        of = tr("of the log") if found.log_used >= 0 else tr("of the queues")
        disk = tr("{used} {of}, the other not known", used=disk, of=of)
    return tr(
        "fileReservedTime {hours} h, deleteWhen {when}, disk {disk}",
        hours=found.reserved_hours,
        when=found.delete_when,
        disk=disk,
    )


def retention_sentences(found: Retention) -> list[str]:
    """The rule in force, what goes next, who still reads there, and what to know about it."""
    levels = found.levels
    said = [tr(RULES[found.rule.rule]).format(full=levels.full, force=levels.force, warn=levels.warn)]
    files = found.next_files
    if not found.files:
        said.append(tr("The log has no files."))
    elif not files:
        said.append(tr("No file goes as things stand: {why}.", why=held_words(found.files[0])))
    else:
        total = size(sum(file.size for file in files))
        when = short_moment(found.next_time or 0) if (found.next_time or 0) > found.at else tr("with the next run")
        said.append(
            tr("{n:,} of {all:,} files, {size}, go: {when}.", n=len(files), all=len(found.files), size=total, when=when)
        )
        reading = sorted({name for file in files for name in file.readers})
        if found.readers_unknown is not None:
            said.append(tr("Who still reads them: {why}", why=engine_words(found.readers_unknown)))
        elif reading:
            names = ", ".join(reading[:4]) + (" …" if len(reading) > 4 else "")
            said.append(
                tr("Still read there by {names}: what they have not read by then is lost to them.", names=names)
            )
        else:
            said.append(tr("No group and no delayed message still needs them."))
    below = [one.name for one in found.readers if one.below]
    if below:
        said.append(tr("Below the minimum already: {names}.", names=", ".join(below[:4])))
    if not found.running:
        said.append(tr("No broker holds this store: nothing is deleted until one is started."))
    if not found.configured:
        said.append(tr("These are RocketMQ's defaults; the broker's own settings are not known here."))
    return said


def blocks_of(
    found: Retention, cache: PageCache | None, account: Space | None, *, forecast: bool = True
) -> list[Block]:
    """The files of the Line, with what is said of each; without ``forecast`` nothing of when they go."""
    held = {file.name: file for file in cache.files} if cache is not None else {}
    units = {file.name: file for file in account.files} if account is not None else {}
    first = found.next_time
    times = [
        units[f.name].first_time if f.name in units and units[f.name].first_time else f.modified for f in found.files
    ]
    cut = slice(11, 19) if times and max(times) - min(times) < DAY_MS else slice(5, 16)
    blocks = []
    for file, began in zip(found.files, times, strict=True):
        goes = file.expiry.goes_at if forecast else None
        kind = "keep" if goes is None else "goes" if goes == first else "later"
        parts = [
            tr("file {name}, {size}", name=file.name, size=size(file.size)),
            tr("last changed {time}", time=moment(file.modified)[:19]),
        ]
        if goes is not None and goes > found.at:
            parts.append(tr("goes at {time}", time=moment(goes)[:16]))
        parts.append(held_words(file))
        if found.readers_unknown is not None:
            parts.append(tr("who still reads it: {why}", why=engine_words(found.readers_unknown)))
        elif file.readers:
            parts.append(tr("still read by {names}", names=", ".join(file.readers[:6])))
        counted = units.get(file.name)
        if counted is not None:
            parts.append(tr("{n:,} units", n=counted.messages))
        known = held.get(file.name)
        if known is not None:
            parts.append(tr("{size} of it in memory", size=size(known.resident)))
        blocks.append(
            Block(
                file.name,
                file.start_offset,
                file.start_offset + file.size,
                kind,
                moment(began)[cut],
                "\n".join(parts),
                known.shares if known is not None else (),
            )
        )
    return blocks


def flags_of(found: Retention, account: Space | None) -> list[LineFlag]:
    """What goes first, what follows, and the groups furthest behind."""
    units = {file.name: file.messages for file in account.files} if account is not None else {}
    first = found.next_files
    flags: list[LineFlag] = []
    if first:
        when = short_moment(found.next_time or 0) if (found.next_time or 0) > found.at else tr("now")
        note = size(sum(file.size for file in first))
        messages = sum(units.get(file.name, 0) for file in first)
        if messages:
            note += ", " + tr("{n:,} units", n=messages)
        count = len(first)
        said = tr("1 file goes {when}", when=when) if count == 1 else tr("{n:,} files go {when}", n=count, when=when)
        flags.append(LineFlag(said, first[0].start_offset, "error", note))
        later = [file for file in found.files if file.expiry.goes_at and file.expiry.goes_at != found.next_time]
        if later:
            last = max(file.expiry.goes_at or 0 for file in later)
            flags.append(
                LineFlag(
                    tr("{n:,} more by {when}", n=len(later), when=short_moment(last)), later[0].start_offset, "warn"
                )
            )
    end = first[-1].start_offset + first[-1].size if first else 0
    for one in found.readers[:FLAGS]:
        at_risk = one.offset < end
        flags.append(
            LineFlag(
                tr("{name} reads here", name=one.name),
                one.offset,
                "error" if at_risk else "posTime",
                tr("would lose") if at_risk else tr("safe"),
                -1,
            )
        )
    return flags


def cache_words(cache: PageCache | None) -> str:
    """What of the log is in memory, or why that is not known."""
    if cache is None:
        return ""
    if cache.why:
        return tr("Not known: {why}", why=cache.why)
    names = {"commitlog": tr("Commit log"), "consumequeue": tr("Queue files"), "index": tr("Index files")}
    parts = [
        tr("{kind} {held} of {all}", kind=names.get(one.kind, one.kind), held=size(one.resident), all=size(one.size))
        for one in cache.kinds
    ]
    return " · ".join(parts)


def area_facts(space: Space, path: tuple[str, ...], area: Area | None) -> list[Fact]:
    """Facts of the chosen area; of the whole directory where nothing is chosen."""
    if area is None or not path:
        return _whole(space)
    topic = area.topic or None
    total = Fact(area.name, size(area.bytes), _total_note(area), place=area.target if _is_place(area.target) else None)
    if topic is None:
        return [total, *([Fact(tr("Note"), area.note, code=False)] if area.note else [])]
    found = [total]
    queues = _queue_counts(space, topic)
    if len(path) == 1 and len(queues) > 1:
        found.append(Fact(tr("Queues"), f"{len(queues)}", skew_words([count for _, count in queues])))
    named = [
        (tr("By tag"), _few((one for one in space.tags if one.topic == topic), tr("(no tag)"))),
        (tr("Producers"), _few((one for one in space.producers if one.topic == topic), "")),
    ]
    found += [Fact(name, value, code=False) for name, value in named if value]
    packed = next((one for one in space.compressed if one.topic == topic), None)
    if packed is not None and area.bytes:
        whole = sum(row.bytes for row in space.rows if row.topic == topic and row.kind == "commitlog")
        found.append(
            Fact(tr("Compressed"), f"{packed.bytes / max(whole, 1):.0%}", tr("{n:,} units", n=packed.messages))
        )
    dead = sum(row.bytes for row in space.rows if row.topic == topic and space.is_dead(row))
    if dead:
        found.append(Fact(tr("Dead"), size(dead), tr("nobody reads these bytes any more"), "warn"))
    return found


def _is_place(target: object) -> bool:
    return isinstance(target, places.Place)


def _total_note(area: Area) -> str:
    parts = [f"{area.bytes:,} B"]
    if area.messages:
        parts.append(tr("{n:,} units", n=area.messages))
    return " · ".join(parts)


def _whole(space: Space) -> list[Fact]:
    kinds = sorted(space.kinds, key=lambda one: -one.bytes)
    found = [
        Fact(
            tr("All files"),
            size(space.bytes),
            tr("{n:,} files, {size} allocated", n=space.file_count, size=size(space.allocated)),
        )
    ]
    found += [Fact(one.kind, size(one.bytes), files_words(one.files)) for one in kinds[:4]]
    found.append(
        Fact(
            tr("Dead"),
            size(space.dead),
            tr("below the minimum, behind the end, stale, of deleted topics"),
            "warn" if space.dead else "text",
        )
    )
    return found


def queue_counts(space: Space, topic: str) -> list[tuple[str, int]]:
    """(queue, messages) of a topic, in the order of the queues."""
    return _queue_counts(space, topic)


def _queue_counts(space: Space, topic: str) -> list[tuple[str, int]]:
    counts: dict[int, int] = defaultdict(int)
    for row in space.rows:
        if row.topic == topic and row.queue_id is not None and row.kind == "commitlog" and row.part in UNITS:
            counts[row.queue_id] += row.messages or 0
    for row in space.rows:  # a queue without messages in the log is the most unevenly fed of all
        if row.topic == topic and row.queue_id is not None and row.kind == "consumequeue":
            counts.setdefault(row.queue_id, 0)
    return [(str(queue), count) for queue, count in sorted(counts.items())]


def _few(rows: Iterable[NamedSpace], without: str) -> str:
    listed = sorted(rows, key=lambda one: -one.bytes)
    words_of = {OTHERS: topic_words(OTHERS), None: without}
    parts = [f"{words_of.get(one.name, one.name)} {size(one.bytes)}" for one in listed[:4]]
    rest = len(listed) - 4
    return " · ".join([*parts, *([tr("{n:,} more", n=rest)] if rest > 0 else [])])


def status_words(space: Space, *, whole: bool = True) -> str:
    """The sentence in the status bar; not ``whole`` where something could not be read, listed or looked at."""
    how = {
        "walked": tr("the log was walked"),
        "cut": tr("stopped: the rest was not looked at"),
        "queues": tr("from file lists and queues, the log is being walked"),
        "sampled": tr("from file lists and samples of the queues, the log is being walked"),
    }[space.how]
    if space.equal and not whole:
        return tr("{n} B in the files that can be looked at · {how}", n=number(space.bytes), how=how)
    if space.equal:
        return tr(
            "{n} B accounted for to the byte · {how}, {seconds:.1f} s",
            n=number(space.bytes),
            how=how,
            seconds=space.took_ms / 1000,
        )
    return tr("{n} B counted, the files have {all} · {how}", n=number(space.counted), all=number(space.bytes), how=how)
