"""The index's findings, judged when the broken places of the log are known."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from engine.codec import index as codec
from engine.inspection.check_index import BadEntry, IndexAccount, IndexCheck
from engine.inspection.check_log import LogCheck
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue, index_rules
from engine.rules.findings import Finding, Severity

MOST = 20


def findings(store: StoreSnapshot, log: LogCheck, index: IndexCheck, odd_units: AbstractSet[int]) -> Iterator[Finding]:
    """Everything about index files; ``odd_units`` are units whose own fields are wrong, so their keys are too."""
    doomed = _doomed(store, index)
    wrong, beyond = _sort_out(store, log, index, odd_units)
    for number, account in enumerate(index.accounts):
        lighter: Severity | None = "note" if number in doomed else None
        yield from _of_file(account, wrong.get(number, []), lighter)
        if number in beyond:
            yield _beyond(log, account, beyond[number], "note" if store.abort else None)
    if doomed:
        names = [index.accounts[n].reader.name for n in sorted(doomed)]
        entries = sum(index.accounts[n].entries for n in doomed)
        text = f"{len(names):,} index files with {entries:,} entries end after the checkpoint's index time"
        path = index.accounts[min(doomed)].reader.path
        yield catalogue.IX04.found(text, path, None, {"files": names[:MOST], "entries": entries})
    if index.missing > len(index.bad):
        span = f"{index.first_missing:,} to {index.last_missing:,}"
        text = f"{index.missing:,} keys of units from {span} are in no index file"
        evidence = {"keys": index.missing, "firstUnit": index.first_missing, "lastUnit": index.last_missing}
        file = store.log.sequence.find(index.first_missing)
        yield catalogue.IX05.found(
            text, file.path if file else None, index.first_missing, evidence, "chat" if store.abort else None
        )


def _doomed(store: StoreSnapshot, index: IndexCheck) -> set[int]:
    """Files that the next start deletes: after a crash only."""
    if not store.abort:
        return set()
    checkpoint = store.checkpoint()
    limit = checkpoint.index_msg_timestamp if checkpoint else 0
    return {n for n, a in enumerate(index.accounts) if a.header is not None and a.header.end_timestamp > limit}


def _sort_out(
    store: StoreSnapshot, log: LogCheck, index: IndexCheck, odd_units: AbstractSet[int]
) -> tuple[dict[int, list[BadEntry]], dict[int, list[BadEntry]]]:
    """By file: entries that are wrong themselves, and those behind the log's end; the rest are consequences."""
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


def _in_order(index: IndexCheck, bad: BadEntry) -> bool:
    """The file itself says that it goes that far: not one entry that was changed."""
    header = index.accounts[bad.file].header
    return header is not None and bad.physical <= header.end_phy_offset


def _of_file(account: IndexAccount, wrong: list[BadEntry], lighter: Severity | None) -> Iterator[Finding]:
    path = account.reader.path
    if account.trouble is not None:
        text = f"{account.reader.name}: {account.trouble}"
        yield catalogue.IX08.found(text, path, 0, {"found": account.trouble, "size": account.reader.size}, lighter)
        return
    geometry = account.geometry
    if geometry is None:
        return
    if account.header_faults:
        text = f"{account.reader.name}: " + "; ".join(account.header_faults)
        yield catalogue.IX01.found(text, path, _header_field(account), {"found": account.header_faults}, lighter)
    evidence: dict[str, Any]
    first = min(wrong, key=lambda bad: bad.number) if wrong else None
    link = min(account.links, key=lambda bad: bad.entry) if account.links else None
    if first is not None and (link is None or first.number <= link.entry):
        yield _bad_entry(account, geometry, first, len(wrong) - 1, lighter)
        return
    misplaced = index_rules.with_changed_hash([*account.links, *account.slots])
    if misplaced is not None:
        text = f"{account.reader.name}: entry {misplaced:,} has the hash of another chain than its own"
        evidence = {"entry": misplaced, "links": [index_rules.link_words(b) for b in account.links[:4]]}
        yield catalogue.IX06.found(text, path, geometry.entry_position(misplaced), evidence, lighter)
    elif link is not None or account.slots:
        bad = link if link is not None else account.slots[0]
        at = geometry.entry_position(bad.entry) + 16 if bad.entry else geometry.slot_position(bad.slot)
        evidence = {"expected": bad.expected, "found": bad.found, "slot": bad.slot, "entry": bad.entry}
        further = account.bad_links - 1
        text = f"{account.reader.name}: {index_rules.link_words(bad)}"
        if further:
            evidence["furtherLinks"] = further
            text += f"; {further:,} more links do not fit"
        yield catalogue.RULES[index_rules.RULE_OF[bad.kind]].found(text, path, at, evidence, lighter)


def _header_field(account: IndexAccount) -> int:
    """Position of the first header field that is wrong."""
    words = account.header_faults[0]
    fields = (("entries", 36), ("used slots", 32), ("beginPhyOffset", 16), ("endPhyOffset", 24))
    return next((position for name, position in fields if name in words), 0)


def _bad_entry(
    account: IndexAccount, geometry: codec.Geometry, bad: BadEntry, further: int, lighter: Severity | None
) -> Finding:
    there = "the unit there has no key of this hash" if bad.unit_there else "no unit begins there"
    text = f"{account.reader.name}: entry {bad.number:,} (hash {bad.key_hash}) leads to {bad.physical:,}; {there}"
    evidence: dict[str, Any] = {
        "entry": bad.number,
        "found": {"keyHash": bad.key_hash, "phyOffset": bad.physical},
        "expected": "a unit with a key of this hash",
    }
    if further:
        evidence["furtherEntries"] = further
        text += f"; {further:,} more entries lead nowhere"
    return catalogue.IX06.found(text, account.reader.path, geometry.entry_position(bad.number), evidence, lighter)


def _beyond(log: LogCheck, account: IndexAccount, bad: list[BadEntry], lighter: Severity | None) -> Finding:
    first = bad[0]
    text = f"{account.reader.name}: {len(bad):,} entries point behind the end of the log ({log.end:,})"
    evidence = {"expected": f"below {log.end}", "found": first.physical, "entry": first.number}
    assert account.geometry is not None
    return catalogue.IX07.found(
        text, account.reader.path, account.geometry.entry_position(first.number), evidence, lighter
    )
