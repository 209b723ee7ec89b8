"""The index's findings, judged when the broken places of the log are known."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from engine.codec import index as codec
from engine.inspection import recovery
from engine.inspection.check import whole_index as check_whole_index
from engine.inspection.check.index import BadEntry, IndexAccount, IndexCheck
from engine.inspection.check.log import LogCheck
from engine.inspection.snapshot import StoreSnapshot
from engine.rules import catalogue, index_rules
from engine.rules.findings import HAPPENED, Finding, Severity

MOST = 20
MANY_KEYS = 0.25
"""Share of all keys that are in no index file from which on queries by key cannot be relied on."""


def findings(
    store: StoreSnapshot, log: LogCheck, index: IndexCheck, odd_units: AbstractSet[int], again_from: int | None = None
) -> Iterator[Finding]:
    """Everything about index files; ``odd_units`` are units whose own fields are wrong, so their keys are too. The next
    start indexes the units from ``again_from`` on again, None where it does not or that is not known.
    """
    doomed = _doomed(store, index)
    wrong, beyond = _sort_out(store, log, index, odd_units)
    yield from check_whole_index.missing(store, index)
    blank = check_whole_index.blank_files(store, index)
    yield from check_whole_index.folded(blank)
    renamed = check_whole_index.misnamed(store, index)
    yield from renamed
    foreign = check_whole_index.of_another_store(index, wrong)
    if foreign is not None:
        yield foreign
        wrong, beyond = {}, {}
    size = check_whole_index.usual_size(index)
    overwritten = False
    for number, account in enumerate(index.accounts):
        if number in blank:
            continue
        lighter: Severity | None = "note" if number in doomed else None
        twice = None if wrong.get(number) else check_whole_index.overwritten(index, number)
        if twice is not None:
            overwritten = True
            yield twice
            continue
        yield from _of_file(account, wrong.get(number, []), lighter, size)
        if number in beyond:
            yield _beyond(log, account, beyond[number], "note" if store.abort else None)
    if index.missing > len(index.bad):
        span = f"{index.first_missing:,} to {index.last_missing:,}"
        text = f"{index.missing:,} keys are in no index file, of units from {span}"
        evidence: dict[str, Any] = {
            "keys": index.missing,
            "firstUnit": index.first_missing,
            "lastUnit": index.last_missing,
        }
        evidence[HAPPENED] = f"{index.missing:,} of {index.keys:,} keys are in no index file"
        file = store.log.sequence.find(index.first_missing)
        cut = any(account.trouble is not None for account in index.accounts)
        causes = {"IX06": foreign is not None, "IX10": bool(blank or renamed), "IX08": cut, "IX09": overwritten}
        healed = again_from is not None and index.first_missing >= again_from
        many = index.missing >= index.keys * MANY_KEYS
        text += " · the next start indexes them again" if healed else ""
        yield catalogue.IX05.found(
            text,
            file.path if file else None,
            index.first_missing,
            evidence,
            "chat" if healed or store.lock_state == "held" else "warn" if many else None,
            caused_by=next((rule for rule, holds in causes.items() if holds), None),
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


def _of_file(account: IndexAccount, wrong: list[BadEntry], lighter: Severity | None, size: int) -> Iterator[Finding]:
    path = account.reader.path
    if account.trouble is not None and account.reader.size < size:
        text = f"{account.reader.name} has {account.reader.size:,} of the others' {size:,} bytes: a copy that was cut"
        evidence: dict[str, Any] = {"expected": size, "found": account.reader.size}
        evidence[HAPPENED] = f"the index file {account.reader.name} was cut to {account.reader.size:,} bytes"
        yield catalogue.IX08.found(text, path, account.reader.size, evidence, lighter, kind="cut")
        return
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
    last = max(entry.physical for entry in bad)
    evidence = {"expected": f"below {log.end:,}", "found": first.physical, "entry": first.number, "last": last}
    assert account.geometry is not None
    return catalogue.IX07.found(
        text, account.reader.path, account.geometry.entry_position(first.number), evidence, lighter
    )
