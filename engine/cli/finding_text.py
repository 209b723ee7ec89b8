"""Findings on a terminal: first the verdict, what is lost and the first steps; then a row each, what follows from one
folded below it; at the end what each rule says, once. JSON lines keep the order findings, summary.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from engine.cli.output import Column, Output, iso, plain
from engine.counted import capital
from engine.rules.findings import SEVERITIES, SNAPSHOT_FIRST, STORE, of_store

Record = dict[str, Any]
COLUMNS = (
    Column("Severity", "severity", "plain"),
    Column("Rule", "id", "plain"),
    Column("Group", "group", "plain", spare=1),
    Column("File", "file", "path"),
    Column("Offset", "offset", "number"),
    Column("Finding", "message", "prose"),
)
WIDTH = 110
MOST_QUEUES = 20


def tell(
    records: Sequence[Record],
    out: Output,
    store: str,
    columns: Sequence[Column] = COLUMNS,
    *,
    every: bool = False,
    config: str | None = None,
) -> None:
    """Tell ``finding`` records in the order of the check of ``store``, last their ``summary``; ``every`` folds none."""
    *found, summary = records
    if not out.as_json:
        _verdict(summary, out)
    for record in found if every or out.as_json else _folded(found):
        out.record(record, columns)
    out.record(summary)
    if not out.as_json:
        out.flush()
        _rules([out.mask.record(one) if out.mask is not None else one for one in found], out, store, config)


def _verdict(summary: Record, out: Output) -> None:
    """Print the counts, and where something is wrong what happened, what is lost and what to do."""
    counts = ", ".join(f"{summary[name]} {name}" for name in reversed(SEVERITIES) if summary.get(name))
    clean = "nothing to complain about" if summary["complete"] else "no finding in what could be read"
    out.line(f"-- {counts or clean}")
    if summary.get("incident"):
        _incident(out.mask.record(summary)["incident"] if out.mask is not None else summary["incident"], out)
    if counts:
        out.line()


def _folded(found: Sequence[Record]) -> Iterator[Record]:
    """Each finding that stands by itself, then one row for all that follow from it."""
    shown: set[str] = set()
    at = 0
    while at < len(found):
        yield found[at]
        shown.add(found[at]["id"])
        at += 1
        below = list(takewhile(lambda one: one["causedBy"] in shown, found[at:]))
        if below:
            counts = Counter(one["id"] for one in below)
            shown.update(counts)
            said = ", ".join(f"{id_} {count:,}×" for id_, count in counts.items())
            follow = "1 more follows" if len(below) == 1 else f"{len(below):,} more follow"
            yield {"message": f"{follow} from it: {said}; --all shows each"}
            at += len(below)


def _rules(found: Sequence[Record], out: Output, store: str, config: str | None) -> None:
    """What each rule that spoke means, what to do, by which command, and where others met it."""
    of_rule: dict[str, list[Record]] = {}
    for one in found:
        of_rule.setdefault(one["id"], []).append(one)
    if any(one["nextStep"].startswith(SNAPSHOT_FIRST) for one in found):
        out.line()
        said = of_store(SNAPSHOT_FIRST.rstrip("; ").replace("STORE", STORE), store, config) + "."
        out.line(out.mask.words(said) if out.mask is not None else said)
    for id_, records in of_rule.items():
        out.line()
        out.line(f"**{id_} {records[0]['title']}**" if out.markdown else f"{id_}  {records[0]['title']}")
        _paragraph(records[0]["explanation"], out)
        for step in dict.fromkeys(one["nextStep"] for one in records if one["causedBy"] is None):
            said = step.removeprefix(SNAPSHOT_FIRST)
            _paragraph(f"→ {capital(said)}", out)
        for command in dict.fromkeys(one["command"] for one in records if one["command"]):
            out.line(f"    `{command}`" if out.markdown else f"      {command}")
        causes = dict.fromkeys(one["causedBy"] for one in records if one["causedBy"])
        if causes:
            _paragraph(f"→ Follows from {', '.join(causes)}: do what is said there.", out)
        if records[0]["knownIssues"]:
            _paragraph(f"Known: {', '.join(records[0]['knownIssues'])}", out)


def _incident(told: Record, out: Output) -> None:
    """The four answers: what happened, what is lost, what the next start loses, what to do now."""
    out.line("**In short**" if out.markdown else "In short")
    _paragraph(f"What happened: {told['whatHappened']}", out)
    already = told["lostAlready"]
    _paragraph(f"Lost already: {_lost(already) if already is not None else 'cannot be told'}", out)
    _queues(already, out)
    for releases, start in _alike(told["lostByNextStart"]):
        _paragraph(f"Lost by the next start of {' and '.join(releases)}: {_lost_by(start)}", out)
        _queues(start, out)
    _paragraph("First steps:", out)
    for number, step in enumerate(told["firstSteps"], 1):
        _paragraph(f"{number}. {step['text']}", out)
        if step["command"]:
            out.line(f"    `{step['command']}`" if out.markdown else f"      {step['command']}")


def _alike(starts: dict[str, Record | None]) -> list[tuple[list[str], Record | None]]:
    """Releases whose start loses the same, together."""
    found: list[tuple[list[str], Record | None]] = []
    for release, start in starts.items():
        if found and found[-1][1] == start:
            found[-1][0].append(release)
        else:
            found.append(([release], start))
    return found


def _lost(loss: Record) -> str:
    count = loss["messages"]
    return f"{count:,} message{'' if count == 1 else 's'}" if count else "nothing that the queues know of"


def _lost_by(start: Record | None) -> str:
    if start is None:
        return "cannot be told"
    if not start["starts"]:
        return f"it does not start: {start['why']}"
    parts = [_lost(start)] if start["messages"] else []
    if start.get("wrongNumbers"):
        parts.append(f"{start['wrongNumbers']:,} messages get wrong queue offsets")
    if start.get("losesNewMessages"):
        parts.append("every message that it acknowledges from then on")
    files = start["indexFilesDeleted"]
    return ", ".join(parts or ["no message"]) + (
        f"; deletes {files:,} index file{'' if files == 1 else 's'}" if files else ""
    )


def _queues(loss: Record | None, out: Output) -> None:
    for row in loss["queues"][:MOST_QUEUES] if loss is not None else ():
        at = f"{row['topic']}/{row['queueId']}"
        offsets = f"queue offsets {row['firstQueueOffset']:,} to {row['lastQueueOffset']:,}"
        times = ""
        first, last = row["firstTimestamp"], row["lastTimestamp"]
        if first is not None:
            times = f", stored from {iso(first)} on" if last is None else f", stored {iso(first)} to {iso(last)}"
        out.line(f"      {plain(at)}: {row['messages']:,}, {offsets}{times}")
    if loss is not None and len(loss["queues"]) > MOST_QUEUES:
        out.line(f"      and {len(loss['queues']) - MOST_QUEUES:,} more queues")


def _paragraph(text: str, out: Output) -> None:
    for line in textwrap.wrap(plain(text), WIDTH, break_on_hyphens=False):
        out.line(f"    {line}")
