"""The index's findings, judged when the broken places of the log are known: file by file, and of the index as a whole
(none at all, files without a byte in them, one of another store: IX06, IX10).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import PurePath
from typing import Any

from engine.codec import index as codec
from engine.codec.index_keys import index_keys
from engine.codec.message import Unit
from engine.config import MessageStoreConfig
from engine.inspection import recovery
from engine.inspection.check.changed_properties import changed_properties
from engine.inspection.check.index import BadEntry, IndexAccount, IndexCheck
from engine.inspection.check.log import LogCheck
from engine.inspection.snapshot import StoreSnapshot
from engine.inspection.undecoded import undecoded_modes
from engine.mapped.sparse import last_byte
from engine.rules import catalogue, index_rules
from engine.rules import catalogue_tables as rules
from engine.rules.findings import HAPPENED, STORE, Finding, Severity
from engine.sentences import join, plural, sentence
from engine.times import time_text

MAX_LISTED = 20
NAME_FORMAT = "%Y%m%d%H%M%S%f"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MANY_KEYS = 0.25
"""Share of missing keys from which on queries by key are unreliable."""


def findings(
    store: StoreSnapshot,
    log: LogCheck,
    index: IndexCheck,
    odd_units: AbstractSet[int],
    reindexed_from: int | None = None,
) -> Iterator[Finding]:
    """All findings about index files; messages whose properties the index proves to be changed are added to those of
    the ``log``. ``odd_units``: units whose own fields are wrong, so their keys are too.
    ``reindexed_from``: offset from which the next start indexes units again; None if it does not, or if that is not
    known.
    """
    doomed = _doomed(store, index)
    wrong, beyond = _sort_out(store, log, index, odd_units)
    yield from missing(store, index)
    blank = blank_files(store, index)
    yield from folded(blank)
    renamed = misnamed(store, index)
    yield from renamed
    yield from out_of_order(store, index)
    foreign = of_another_store(index, wrong)
    if foreign is not None:
        yield foreign
        wrong, beyond = {}, {}
    for change in list(changed_properties(store, index, wrong, log.torn)):
        log.add_changed_properties(change.unit.offset, change.text, change.evidence)
        number = change.entries[0].file
        wrong[number] = [bad for bad in wrong[number] if bad.physical != change.unit.offset]
    wrong = {number: _without_torn(entries, log.torn) for number, entries in wrong.items() if entries}
    unknown = of_unknown_kind(index, wrong)
    if unknown is not None:
        yield unknown
        wrong = {}
    size = usual_size(index)
    rewritten = False
    for number, account in enumerate(index.accounts):
        if number in blank:
            continue
        lighter: Severity | None = "note" if number in doomed else None
        overwrite_finding = None if wrong.get(number) else overwritten(index, number)
        if overwrite_finding is not None:
            rewritten = True
            yield overwrite_finding
            continue
        yield from _of_file(account, wrong.get(number, []), lighter, size)
        if number in beyond:
            yield _beyond(log, account, beyond[number], "note" if store.abort else None)
    if index.missing > len(index.bad) and not _builds_no_files(store.config):
        text = plural(
            "{n:,} key is in no index file, of messages from {first:,} to {last:,}",
            "{n:,} keys are in no index file, of messages from {first:,} to {last:,}",
            n=index.missing,
            first=index.first_missing,
            last=index.last_missing,
        )
        evidence: dict[str, Any] = {
            "keys": index.missing,
            "firstUnit": index.first_missing,
            "lastUnit": index.last_missing,
        }
        evidence[HAPPENED] = plural(
            "{count:,} of {n:,} key is in no index file",
            "{count:,} of {n:,} keys are in no index file",
            count=index.missing,
            n=index.keys,
        )
        file = store.log.sequence.find(index.first_missing)
        cut = any(account.trouble is not None for account in index.accounts)
        causes = {"IX06": foreign is not None, "IX10": bool(blank or renamed), "IX08": cut, "IX09": rewritten}
        healed = reindexed_from is not None and index.first_missing >= reindexed_from
        many = index.missing >= index.keys * MANY_KEYS
        text += " · " + sentence("the next start indexes them again") if healed else ""
        yield catalogue.IX05.finding(
            text,
            file.path if file else None,
            index.first_missing,
            evidence,
            "chat" if healed or store.lock_state == "held" else "warn" if many else None,
            caused_by=next((rule for rule, applies in causes.items() if applies), None),
        )


def _doomed(store: StoreSnapshot, index: IndexCheck) -> set[int]:
    """Files that the next start deletes: after a crash only."""
    if not store.abort:
        return set()
    limit = recovery.mapped_checkpoint(store)[0].index_msg_timestamp
    return {n for n, a in enumerate(index.accounts) if a.header is not None and a.header.end_timestamp > limit}


def _sort_out(
    store: StoreSnapshot, log: LogCheck, index: IndexCheck, odd_units: AbstractSet[int]
) -> tuple[dict[int, list[BadEntry]], dict[int, list[BadEntry]]]:
    """Per file: entries that are wrong themselves, and those behind the log's end; the rest are consequences."""
    wrong: dict[int, list[BadEntry]] = {}
    beyond: dict[int, list[BadEntry]] = {}
    least = max(store.log.min_offset, 0)
    for bad in index.bad:
        span = log.spans.find(bad.physical)
        if span is not None:
            span.keys += 1
        elif (0 <= bad.physical < least and bad.physical < index.first_physical + least) or bad.physical in odd_units:
            continue
        elif bad.physical >= log.end and _in_order(index, bad):
            beyond.setdefault(bad.file, []).append(bad)
        else:
            wrong.setdefault(bad.file, []).append(bad)
    return wrong, beyond


def _without_torn(entries: list[BadEntry], torn: AbstractSet[int]) -> list[BadEntry]:
    """Return the entries that do not follow from messages with changed properties; all of them if each does."""
    return [bad for bad in entries if bad.physical not in torn] or entries


def _in_order(index: IndexCheck, bad: BadEntry) -> bool:
    """Return True if the file's own header reaches that far: then it is not a single changed entry."""
    header = index.accounts[bad.file].header
    return header is not None and bad.physical <= header.end_phy_offset


def _of_file(account: IndexAccount, wrong: list[BadEntry], lighter: Severity | None, size: int) -> Iterator[Finding]:
    path = account.reader.path
    if account.trouble is not None and account.reader.size < size:
        text = plural(
            "{file} has {n:,} byte, the other files have {size:,}: it was cut",
            "{file} has {n:,} bytes, the other files have {size:,}: it was cut",
            file=account.reader.name,
            n=account.reader.size,
            size=size,
        )
        evidence: dict[str, Any] = {"expected": size, "found": account.reader.size}
        evidence[HAPPENED] = plural(
            "the index file {name} was cut to {n:,} byte",
            "the index file {name} was cut to {n:,} bytes",
            name=account.reader.name,
            n=account.reader.size,
        )
        yield catalogue.IX08.finding(text, path, account.reader.size, evidence, lighter, kind="cut")
        return
    if account.trouble is not None:
        text = sentence("{file}: {what}", file=account.reader.name, what=account.trouble)
        yield catalogue.IX08.finding(text, path, 0, {"found": account.trouble, "size": account.reader.size}, lighter)
        return
    geometry = account.geometry
    if geometry is None:
        return
    if account.header_faults:
        text = sentence("{file}: {what}", file=account.reader.name, what=join("; ", account.header_faults))
        yield catalogue.IX01.finding(text, path, _header_field(account), {"found": account.header_faults}, lighter)
    first_bad = min(wrong, key=lambda bad: bad.number) if wrong else None
    link = min(account.links, key=lambda bad: bad.entry) if account.links else None
    if first_bad is not None and (link is None or first_bad.number <= link.entry):
        yield _bad_entry(account, geometry, first_bad, len(wrong) - 1, lighter)
        return
    misplaced = index_rules.with_changed_hash([*account.links, *account.slots])
    if misplaced is not None:
        text = sentence("{file}: entry {n:,} has the hash of another chain", file=account.reader.name, n=misplaced)
        evidence = {"entry": misplaced, "links": [index_rules.link_words(b) for b in account.links[:4]]}
        yield catalogue.IX06.finding(text, path, geometry.entry_position(misplaced), evidence, lighter)
    elif link is not None or account.slots:
        bad = link if link is not None else account.slots[0]
        position = geometry.entry_position(bad.entry) + 16 if bad.entry else geometry.slot_position(bad.slot)
        evidence = {"expected": bad.expected, "found": bad.actual, "slot": bad.slot, "entry": bad.entry}
        further = account.bad_links - 1
        text = sentence("{file}: {what}", file=account.reader.name, what=index_rules.link_words(bad))
        if further:
            evidence["furtherLinks"] = further
            text += "; " + plural("{n:,} more link does not fit", "{n:,} more links do not fit", n=further)
        yield catalogue.RULES[index_rules.RULE_OF[bad.kind]].finding(text, path, position, evidence, lighter)


def _header_field(account: IndexAccount) -> int:
    """Position of the first header field that is wrong."""
    words = account.header_faults[0]
    fields = (("entries", 36), ("used slots", 32), ("beginPhyOffset", 16), ("endPhyOffset", 24))
    return next((position for name, position in fields if name in words), 0)


def _bad_entry(
    account: IndexAccount, geometry: codec.Geometry, bad: BadEntry, further: int, lighter: Severity | None
) -> Finding:
    unit_words = sentence("no unit begins there")
    if bad.unit_there:
        unit_words = sentence("the unit there has no key or tags of this hash")
    text = sentence(
        "{file}: entry {n:,} (hash {hash}) leads to {offset:,}; {rest}",
        file=account.reader.name,
        n=bad.number,
        hash=bad.key_hash,
        offset=bad.physical,
        rest=unit_words,
    )
    evidence: dict[str, Any] = {
        "entry": bad.number,
        "found": {"keyHash": bad.key_hash, "phyOffset": bad.physical},
        "expected": sentence("a unit with a key or tags of this hash"),
    }
    if further:
        evidence["furtherEntries"] = further
        text += "; " + plural("{n:,} more entry leads nowhere", "{n:,} more entries lead nowhere", n=further)
    return catalogue.IX06.finding(text, account.reader.path, geometry.entry_position(bad.number), evidence, lighter)


def _beyond(log: LogCheck, account: IndexAccount, bad: list[BadEntry], lighter: Severity | None) -> Finding:
    first_bad = bad[0]
    text = plural(
        "{file}: {n:,} entry points after the end of the log ({end:,})",
        "{file}: {n:,} entries point after the end of the log ({end:,})",
        file=account.reader.name,
        n=len(bad),
        end=log.end,
    )
    max_physical = max(entry.physical for entry in bad)
    evidence = {
        "expected": sentence("below {n:,}", n=log.end),
        "found": first_bad.physical,
        "entry": first_bad.number,
        "last": max_physical,
    }
    assert account.geometry is not None
    return catalogue.IX07.finding(
        text, account.reader.path, account.geometry.entry_position(first_bad.number), evidence, lighter
    )


MAX_UNITS = 64
MAX_NAMED = 20
FOREIGN_FILES = 2
FOREIGN_SHARE = 0.5
"""Share of an index's entries that point nowhere if it belongs to another store."""
MIN_WRONG_SHARE = 0.25
"""Share of these that point into the log: if a log lost its tail, all point behind its end."""


def missing(store: StoreSnapshot, index: IndexCheck) -> list[Finding]:
    """IX10: a log of messages with keys, and no index file. Raises :class:`CannotRead`."""
    if store.paths is None or index.accounts or store.lock_state == "held":
        return []
    if store.undecoded_part("index") is not None and store.why_unknown("index") is None:
        return []  # the broker keeps its index in a RocksDB
    store.index.require_files()
    if store.index_files() or _builds_no_files(store.config):
        return []
    units = (item for item in islice(store.units(crc=False), MAX_UNITS) if isinstance(item, Unit))
    keys = sum(bool(index_keys(unit.properties, tags=False)) for unit in units)
    if not keys:
        return []
    text = sentence("There are no index files, and the log has units with keys: a query by key or id finds nothing")
    evidence = {
        "expected": sentence("index files"),
        "found": sentence("none"),
        "unitsWithKeys": keys,
        "looked": MAX_UNITS,
    }
    evidence[HAPPENED] = sentence("the index files are missing, or were never created")
    cause = None if store.queues.by_topic() else "CQ10"
    return [rules.IX10.finding(text, str(store.paths.index), None, evidence, caused_by=cause)]


def _builds_no_files(config: MessageStoreConfig | None) -> bool:
    """The broker builds no index, or since 5.4 one in a RocksDB only."""
    if config is None:
        return False
    modes = {mode.key for mode in undecoded_modes(config.file)}
    return not config.message_index_enable or "indexFileWriteEnable" in modes


def blank_files(store: StoreSnapshot, index: IndexCheck) -> dict[int, Finding]:
    """IX10 by the number of the file: files of 0 bytes, or of zeros."""
    findings: dict[int, Finding] = {}
    evidence: dict[str, Any]
    last_number = len(index.accounts) - 1
    for number, account in enumerate(index.accounts):
        reader = account.reader
        if reader.size and last_byte(reader.file):
            continue
        begun = number == last_number and bool(reader.size) and (store.abort or store.lock_state == "held")
        if begun:  # a broker creates a file before it adds the first entry
            continue
        evidence = {
            "expected": sentence("a header and entries"),
            "found": sentence("all zero") if reader.size else sentence("empty (0 bytes)"),
            "size": reader.size,
        }
        if number == last_number and not index.missing:
            text = sentence(
                "{name} is all zero, and no key is missing: the disk was full, or the broker died after it created the "
                "file"
                if reader.size
                else "{name} is empty (0 bytes), and no key is missing: the disk was full, or the broker died after it "
                "created the file",
                name=reader.name,
            )
            findings[number] = rules.IX10.finding(text, reader.path, 0, evidence, kind="unmade")
            continue
        text = sentence(
            "{file} is all zero: the keys that were in it are not found"
            if reader.size
            else "{file} is empty (0 bytes): the keys that were in it are not found",
            file=reader.name,
        )
        evidence[HAPPENED] = sentence(
            "the index file {name} is all zero" if reader.size else "the index file {name} is empty", name=reader.name
        )
        findings[number] = rules.IX10.finding(text, reader.path, 0, evidence, kind="blank")
    return findings


def misnamed(store: StoreSnapshot, index: IndexCheck) -> list[Finding]:
    """IX10: index files that were renamed to something that is not a number: a broker skips them."""
    paths = store.index.misnamed_files(usual_size(index))
    if not paths:
        return []
    name = PurePath(paths[0]).name
    text = sentence(
        "The file {name} has the length of an index file, but its name is not a time, as are {n:,} more: a broker "
        "ignores it"
        if len(paths) > 1
        else "The file {name} has the length of an index file, but its name is not a time: a broker ignores it",
        name=name,
        n=len(paths) - 1,
    )
    evidence: dict[str, Any] = {"expected": sentence("a name of 17 digits, as 20260131080000000"), "found": name}
    evidence |= {"files": [PurePath(path).name for path in paths[:MAX_NAMED]]}
    evidence[HAPPENED] = sentence("the index file {name} was renamed", name=name)
    return [rules.IX10.finding(text, paths[0], None, evidence, kind="name")]


def out_of_order(store: StoreSnapshot, index: IndexCheck) -> Iterator[Finding]:
    """IX11: index files whose names are not in the order of their content."""
    filled = [account for account in index.accounts if account.header and account.geometry and account.entries]
    if not all(account.rising for account in filled):
        return
    files = [
        index_rules.IndexRange(
            name_time(account.reader.name), account.header.begin_timestamp if account.header else 0, *account.ends
        )
        for account in filled
    ]
    misplaced = index_rules.out_of_name_order(files)
    if not misplaced:
        return
    ordered = [file for number, file in enumerate(files) if number not in misplaced]
    number = misplaced[0]
    file, reader = files[number], filled[number].reader
    own_name = time_name(file.begin_ms + index_rules.usual_distance(ordered))
    where: dict[str, Any] = {
        "name": reader.name,
        "start": file.start,
        "end": file.end,
        "time": time_text(file.begin_ms),
    }
    text = sentence(
        "The name of {name} does not follow its content: it indexes the log from {start:,} to {end:,}, from {time} on",
        **where,
    )
    if len(misplaced) > 1:
        text = plural(
            "The name of {name} does not follow its content, nor those of {n:,} more file: it indexes the log from "
            "{start:,} to {end:,}, from {time} on",
            "The name of {name} does not follow its content, nor those of {n:,} more files: it indexes the log from "
            "{start:,} to {end:,}, from {time} on",
            n=len(misplaced) - 1,
            **where,
        )
    names = [filled[number].reader.name for number in misplaced]
    evidence: dict[str, Any] = {"expected": own_name, "found": reader.name, "files": names[:MAX_NAMED]}
    evidence |= {"firstUnit": file.start, "lastUnit": file.end, "beginTimestamp": file.begin_ms}
    evidence[HAPPENED] = sentence("the index file {file} has the name {name}", file=own_name, name=reader.name)
    if all(index_rules.is_of_the_clock(files[number], ordered) for number in misplaced):
        evidence[HAPPENED] = sentence(
            "the broker's clock was set back, or summer time ended, while it created index files"
        )
        yield rules.IX11.finding(text, reader.path, None, evidence, kind="clock")
        return
    single = len(misplaced) == 1 and store.paths is not None and PurePath(reader.path).parent == store.paths.index
    if not single or any(account.reader.name == own_name for account in index.accounts):
        yield rules.IX11.finding(text, reader.path, None, evidence)
        return
    place = f"{STORE}/{PurePath(reader.path).parent.name}"
    command = f"mv {place}/{reader.name} {place}/{own_name}"
    yield rules.IX11.finding(text, reader.path, None, evidence, kind="single", command=command)


def name_time(name: str) -> int | None:
    """The time in the name of an index file, as ms since 1970 as if it were UTC; None if it is no time."""
    try:
        time = datetime.strptime(f"{name}000", NAME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None
    return (time - EPOCH) // timedelta(milliseconds=1)


def time_name(time_ms: int) -> str:
    """The name of an index file that was created then."""
    return (EPOCH + timedelta(milliseconds=time_ms)).strftime(NAME_FORMAT)[:-3]


def folded(blank: Mapping[int, Finding]) -> list[Finding]:
    """Merge the findings on empty files into one."""
    findings = [blank[number] for number in sorted(blank)]
    if len(findings) < 2:
        return findings
    names = [PurePath(finding.file or "").name for finding in findings]
    text = plural(
        "{n:,} index file is empty or all zero, {first} to {last}: their keys are not found",
        "{n:,} index files are empty or all zero, {first} to {last}: their keys are not found",
        n=len(findings),
        first=names[0],
        last=names[-1],
    )
    evidence = {**findings[0].evidence, "files": names[:MAX_NAMED]}
    evidence[HAPPENED] = plural(
        "{n:,} index file is empty or all zero, the first is {first}",
        "{n:,} index files are empty or all zero, the first is {first}",
        n=len(findings),
        first=names[0],
    )
    return [replace(findings[0], message=text, evidence=evidence)]


def of_another_store(index: IndexCheck, wrong: Mapping[int, Sequence[BadEntry]]) -> Finding | None:
    """IX06, once: most entries of several files point to no unit with their key."""
    entries = sum(account.entries for account in index.accounts)
    sample_count = sum(map(len, wrong.values()))
    if (
        len(wrong) < FOREIGN_FILES
        or index.bad_count < entries * FOREIGN_SHARE
        or sample_count < len(index.bad) * MIN_WRONG_SHARE
    ):
        return None
    names = [index.accounts[number].reader.name for number in sorted(wrong)]
    text = plural(
        "{count:,} of {all:,} entries in {n:,} index file lead to no unit with their key: it is the "
        "index of another store",
        "{count:,} of {all:,} entries in {n:,} index files lead to no unit with their key: it is the "
        "index of another store",
        count=index.bad_count,
        all=entries,
        n=len(index.accounts),
    )
    first_bad = wrong[min(wrong)][0]
    evidence = {
        "expected": sentence("units with these keys or tags"),
        "found": {"keyHash": first_bad.key_hash, "phyOffset": first_bad.physical},
        "entries": entries,
        "wrong": index.bad_count,
        "files": names[:MAX_NAMED],
    }
    folder = str(index.accounts[0].reader.path).rsplit("/", 1)[0]
    return catalogue.IX06.finding(text, folder, None, evidence, kind="foreign")


def of_unknown_kind(index: IndexCheck, wrong: Mapping[int, Sequence[BadEntry]]) -> Finding | None:
    """IX06, a note: additional entries of units that have all their expected entries, in files without a fault.

    A changed entry would be missing as a key or break a chain, so these were written like this; their kind is unknown
    here.
    """
    entries = [bad for number in sorted(wrong) for bad in wrong[number]]
    faulty = any(account.links or account.slots or account.header_faults for account in index.accounts)
    if not entries or index.missing or faulty or not all(bad.unit_there for bad in entries):
        return None
    first_bad = entries[0]
    account = index.accounts[first_bad.file]
    text = plural(
        "{n:,} index entry leads to a unit that has no key or tags of its hash, and no key is "
        "missing: Storescope does not know its kind",
        "{n:,} index entries lead to units that have no key or tags of their hash, and no key is "
        "missing: Storescope does not know their kind",
        n=len(entries),
    )
    evidence = {
        "expected": sentence("UNIQ_KEY, KEYS or TAGS of the unit"),
        "found": {"keyHash": first_bad.key_hash, "phyOffset": first_bad.physical},
        "entries": len(entries),
        "entry": first_bad.number,
    }
    assert account.geometry is not None
    position = account.geometry.entry_position(first_bad.number)
    return catalogue.IX06.finding(text, account.reader.path, position, evidence, kind="unknown")


def overwritten(index: IndexCheck, number: int) -> Finding | None:
    """IX09, a note: a file with slots of a former life, while the keys between it and the previous file are missing.

    An index file is named after the millisecond of its creation, and RocketMQ reuses an existing file of that name. The
    first link of a chain then leads to the old slot value, whose hash differs; no entry is missing.
    """
    account, previous = index.accounts[number], index.accounts[number - 1] if number else None
    links = [*account.links, *account.slots]
    if not links or previous is None or previous.header is None or account.header is None or not index.missing:
        return None
    stale = len(links) == account.bad_links and not any(link.expected for link in links)
    slots_only = all("used slots" in fault for fault in account.header_faults)
    keys_between = (
        previous.header.end_phy_offset <= index.first_missing <= index.last_missing <= account.header.begin_phy_offset
    )
    if not (stale and slots_only and keys_between):
        return None
    text = plural(
        "{name}: two index files were created within one millisecond, and the second overwrote the "
        "first: {n:,} key is lost; {links:,} old links remain and do no harm",
        "{name}: two index files were created within one millisecond, and the second overwrote the "
        "first: {n:,} keys are lost; {links:,} old links remain and do no harm",
        name=account.reader.name,
        n=index.missing,
        links=len(links),
    )
    happened = sentence(
        "two index files were created within one millisecond, and {name} overwrote the first", name=account.reader.name
    )
    evidence: dict[str, Any] = {"keys": index.missing, "links": len(links), HAPPENED: happened}
    return catalogue.IX09.finding(text, account.reader.path, 0, evidence, kind="overwritten")


def usual_size(index: IndexCheck) -> int:
    """The most common length (bytes) of files with a known table; 0 if there are none."""
    sizes = Counter(account.reader.size for account in index.accounts if account.geometry is not None)
    return max(sizes, key=lambda size: (sizes[size], size), default=0)
