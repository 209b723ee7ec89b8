"""The index as a whole: none at all, files without a byte in them, and one of another store (IX06, IX10)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import PurePath
from typing import Any

from engine.codec.message import Unit
from engine.inspection.check.index import BadEntry, IndexCheck
from engine.inspection.snapshot import StoreSnapshot
from engine.mapped.sparse import last_byte
from engine.rules import catalogue
from engine.rules import catalogue_tables as rules
from engine.rules.findings import HAPPENED, Finding

MOST_UNITS = 64
MOST_NAMED = 20
FOREIGN_FILES = 2
FOREIGN_SHARE = 0.5
"""Share of an index's entries that lead nowhere where it is another store's."""
LEAST_WRONG = 0.25
"""Share of these that lead into the log: of a log that lost its tail all lead behind its end."""


def missing(store: StoreSnapshot, index: IndexCheck) -> list[Finding]:
    """IX10: a log of messages with keys, and no index file. Raises :class:`CannotRead`."""
    if store.paths is None or index.accounts or store.lock_state == "held":
        return []
    store.whole_index()
    if store.index_files() or (store.config is not None and not store.config.message_index_enable):
        return []
    keys = sum(bool(item.keys) for item in islice(store.units(crc=False), MOST_UNITS) if isinstance(item, Unit))
    if not keys:
        return []
    text = "There are no index files, and the log has units with keys: a query by key or id finds nothing"
    evidence = {"expected": "index files", "found": "none", "unitsWithKeys": keys, "looked": MOST_UNITS}
    evidence[HAPPENED] = "the index files are gone, or were never made"
    cause = None if store.topics() else "CQ10"
    return [rules.IX10.found(text, str(store.paths.index), None, evidence, caused_by=cause)]


def blank_files(store: StoreSnapshot, index: IndexCheck) -> dict[int, Finding]:
    """IX10 by the number of the file: files of 0 bytes, or of zeros."""
    found: dict[int, Finding] = {}
    last = len(index.accounts) - 1
    for number, account in enumerate(index.accounts):
        reader = account.reader
        if reader.size and last_byte(reader.file):
            continue
        begun = number == last and bool(reader.size) and (store.abort or store.lock_state == "held")
        if begun:  # a broker makes a file before it puts the first entry in
            continue
        how = "is all zero" if reader.size else "is empty (0 bytes)"
        text = f"{reader.name} {how}: the keys that were in it are not found"
        evidence: dict[str, Any] = {"expected": "a header and entries", "found": how.removeprefix("is ")}
        evidence |= {"size": reader.size, HAPPENED: f"the index file {reader.name} {how.partition(' (')[0]}"}
        found[number] = rules.IX10.found(text, reader.path, 0, evidence, kind="blank")
    return found


def misnamed(store: StoreSnapshot, index: IndexCheck) -> list[Finding]:
    """IX10: index files whose name is no number, as somebody renamed them: a broker passes them over."""
    paths = store.misnamed_index_files(usual_size(index))
    if not paths:
        return []
    name = PurePath(paths[0]).name
    more = f", as are {len(paths) - 1:,} more" if len(paths) > 1 else ""
    text = f"The file {name} has the length of an index file, and its name is no time{more}: a broker passes it over"
    evidence: dict[str, Any] = {"expected": "a name of 17 digits, as 20260131080000000", "found": name}
    evidence |= {"files": [PurePath(path).name for path in paths[:MOST_NAMED]]}
    evidence[HAPPENED] = f"the index file {name} was renamed"
    return [rules.IX10.found(text, paths[0], None, evidence, kind="name")]


def folded(blank: Mapping[int, Finding]) -> list[Finding]:
    """One finding for all files with nothing in them."""
    found = [blank[number] for number in sorted(blank)]
    if len(found) < 2:
        return found
    names = [PurePath(one.file or "").name for one in found]
    text = f"{len(found):,} index files are empty or all zero, {names[0]} to {names[-1]}: their keys are not found"
    evidence = {**found[0].evidence, "files": names[:MOST_NAMED]}
    evidence[HAPPENED] = f"{len(found):,} index files are empty or all zero, the first is {names[0]}"
    return [replace(found[0], message=text, evidence=evidence)]


def of_another_store(index: IndexCheck, wrong: Mapping[int, Sequence[BadEntry]]) -> Finding | None:
    """IX06, once: most entries of several files lead to no unit with their key."""
    entries = sum(account.entries for account in index.accounts)
    kept = sum(map(len, wrong.values()))
    if len(wrong) < FOREIGN_FILES or index.bad_count < entries * FOREIGN_SHARE or kept < len(index.bad) * LEAST_WRONG:
        return None
    names = [index.accounts[number].reader.name for number in sorted(wrong)]
    text = (
        f"{index.bad_count:,} of {entries:,} entries in {len(index.accounts):,} index files lead to no unit with their "
        f"key: it is the index of another store"
    )
    first = wrong[min(wrong)][0]
    evidence = {
        "expected": "units with these keys",
        "found": {"keyHash": first.key_hash, "phyOffset": first.physical},
        "entries": entries,
        "wrong": index.bad_count,
        "files": names[:MOST_NAMED],
    }
    folder = str(index.accounts[0].reader.path).rsplit("/", 1)[0]
    return catalogue.IX06.found(text, folder, None, evidence, kind="foreign")


def overwritten(index: IndexCheck, number: int) -> Finding | None:
    """IX09, a note: a file that has the slots of a former life, and the keys between it and the one in front are gone.
    An index file's name is the millisecond in which it was made, and RocketMQ takes a file of that name as it is: the
    first link of a chain then leads to what the slot held before, whose hash is another, and no entry is missed.
    """
    account, before = index.accounts[number], index.accounts[number - 1] if number else None
    links = [*account.links, *account.slots]
    if not links or before is None or before.header is None or account.header is None or not index.missing:
        return None
    stale = len(links) == account.bad_links and not any(link.expected for link in links)
    slots_only = all("used slots" in fault for fault in account.header_faults)
    gone = before.header.end_phy_offset <= index.first_missing <= index.last_missing <= account.header.begin_phy_offset
    if not (stale and slots_only and gone):
        return None
    text = (
        f"{account.reader.name}: two index files were made within one millisecond, and the second overwrote the first: "
        f"{index.missing:,} keys are gone, and {len(links):,} links of the former life stay, which miss nothing"
    )
    happened = f"two index files were made within one millisecond, and {account.reader.name} overwrote the first"
    evidence: dict[str, Any] = {"keys": index.missing, "links": len(links), HAPPENED: happened}
    return catalogue.IX09.found(text, account.reader.path, 0, evidence, kind="overwritten")


def usual_size(index: IndexCheck) -> int:
    """The length (bytes) that most files have whose table is known; 0 where none is."""
    sizes = Counter(account.reader.size for account in index.accounts if account.geometry is not None)
    return max(sizes, key=lambda size: (sizes[size], size), default=0)
