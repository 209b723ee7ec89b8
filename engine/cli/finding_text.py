"""Findings on a terminal: first the verdict, the losses and the first steps; then a row for each finding, with those
that follow from it folded below; at the end the explanation of each rule, once. JSON lines keep the order findings,
summary.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from engine.cli.output import Column, Output, escape_controls, iso_time
from engine.english import capital, number_of
from engine.rules.findings import SEVERITIES, SNAPSHOT_FIRST, STORE, of_store
from engine.times import with_local_times

Record = dict[str, Any]
COLUMNS = (
    Column("Severity", "severity", "plain"),
    Column("Rule", "id", "plain"),
    Column("Group", "group", "plain", spare=1),
    Column("File", "file", "path"),
    Column("Offset", "offset", "number"),
    Column("Finding", "message", "prose"),
)
_NAMES = {
    "error": ("error", "errors"),
    "warn": ("warning", "warnings"),
    "note": ("note", "notes"),
    "chat": ("remark", "remarks"),
}
"""Names of one and of several findings of a severity."""
TEXT_WIDTH_CHARS = 110
MAX_SHOWN_QUEUES = 20


def print_findings(
    records: Sequence[Record],
    out: Output,
    store: str,
    columns: Sequence[Column] = COLUMNS,
    *,
    with_consequences: bool = False,
    config: str | None = None,
) -> None:
    """Print ``finding`` records in the order of the check of ``store``, last their ``summary``; ``with_consequences``
    shows consequences, too.
    """
    *findings, summary = records
    if not out.as_json:
        _print_verdict(summary, out)
    for record in findings if with_consequences or out.as_json else _fold_findings(findings):
        out.record(record, columns)
    out.record(summary)
    if not out.as_json:
        out.flush()
        # The first steps of an incident name the snapshot where one is needed.
        if not summary.get("incident") and any(finding["nextStep"].startswith(SNAPSHOT_FIRST) for finding in findings):
            _print_snapshot_first(out, store, config)
        _print_rules([out.mask.record(finding) if out.mask is not None else finding for finding in findings], out)


def _print_verdict(summary: Record, out: Output) -> None:
    """Print the counts, and where something is wrong what happened, what is lost and what to do."""
    counts = ", ".join(number_of(summary[name], *_NAMES[name]) for name in reversed(SEVERITIES) if summary.get(name))
    clean = "no problems found" if summary["complete"] else "no problems found in what could be read"
    out.line(f"-- {counts or clean}")
    if summary.get("incident"):
        _print_incident(out.mask.record(summary)["incident"] if out.mask is not None else summary["incident"], out)
    if counts:
        out.line()


def _fold_findings(findings: Sequence[Record]) -> Iterator[Record]:
    """Yield each finding that stands by itself, then one row for all that follow from it."""
    shown: set[str] = set()
    position = 0
    while position < len(findings):
        yield findings[position]
        shown.add(findings[position]["id"])
        position += 1
        below = list(takewhile(lambda finding: finding["causedBy"] in shown, findings[position:]))
        if below:
            counts = Counter(finding["id"] for finding in below)
            shown.update(counts)
            counts_text = ", ".join(f"{id_} {count:,}×" for id_, count in counts.items())
            yield {
                "message": (f"{number_of(len(below), 'consequence', 'consequences')}: {counts_text} (--all lists each)")
            }
            position += len(below)


def _print_snapshot_first(out: Output, store: str, config: str | None) -> None:
    out.line()
    sentence = of_store(SNAPSHOT_FIRST.rstrip("; ").replace("STORE", STORE), store, config) + "."
    out.line(out.mask.words(sentence) if out.mask is not None else sentence)


def _print_rules(findings: Sequence[Record], out: Output) -> None:
    """Print for each rule with findings its meaning, the next step, the command, and known issues."""
    of_rule: dict[str, list[Record]] = {}
    for finding in findings:
        of_rule.setdefault(finding["id"], []).append(finding)
    for id_, records in of_rule.items():
        out.line()
        out.line(f"**{id_} {records[0]['title']}**" if out.markdown else f"{id_}  {records[0]['title']}")
        _print_paragraph(records[0]["explanation"], out)
        for step in dict.fromkeys(finding["nextStep"] for finding in records if finding["causedBy"] is None):
            sentence = step.removeprefix(SNAPSHOT_FIRST)
            _print_paragraph(f"→ {capital(sentence)}", out)
        for command in dict.fromkeys(finding["command"] for finding in records if finding["command"]):
            out.line(f"    `{command}`" if out.markdown else f"      {command}")
        causes = dict.fromkeys(finding["causedBy"] for finding in records if finding["causedBy"])
        if causes:
            _print_paragraph(f"→ Consequence of {', '.join(causes)}: follow the steps there.", out)
        if records[0]["knownIssues"]:
            _print_paragraph(f"Known issues: {', '.join(records[0]['knownIssues'])}", out)


def _print_incident(incident: Record, out: Output) -> None:
    """Print the four answers: what happened, what is lost, what the next start loses, what to do now."""
    out.line("**In short**" if out.markdown else "In short")
    _print_paragraph(f"What happened: {incident['whatHappened']}", out)
    already = incident["lostAlready"]
    _print_paragraph(f"Lost already: {_lost(already) if already is not None else 'unknown'}", out)
    _print_queues(already, out)
    for releases, start in _group_same_losses(incident["lostByNextStart"]):
        names = " and ".join(part for part in (", ".join(releases[:-1]), releases[-1]) if part)
        if start is not None and not start["starts"]:
            _print_paragraph(f"RocketMQ {names} {'do' if len(releases) > 1 else 'does'} not start: {start['why']}", out)
            continue
        _print_paragraph(f"Lost by the next start of RocketMQ {names}: {_lost_by(start)}", out)
        _print_queues(start, out)
    _print_paragraph("First steps:", out)
    for number, step in enumerate(incident["firstSteps"], 1):
        _print_paragraph(f"{number}. {step['text']}", out)
        if step["command"]:
            out.line(f"    `{step['command']}`" if out.markdown else f"      {step['command']}")


def _group_same_losses(starts: dict[str, Record | None]) -> list[tuple[list[str], Record | None]]:
    """Group releases whose start loses the same."""
    groups: list[tuple[list[str], Record | None]] = []
    for release, start in starts.items():
        if groups and groups[-1][1] == start:
            groups[-1][0].append(release)
        else:
            groups.append(([release], start))
    return groups


def _lost(loss: Record) -> str:
    count = loss["messages"]
    return number_of(count, "message", "messages") if count else "no message, as far as the queues show"


def _lost_by(start: Record | None) -> str:
    if start is None:
        return "unknown"
    files = start["indexFilesDeleted"]
    return losses_text(
        start["messages"], start.get("wrongNumbers", 0), loses_new_messages=start.get("losesNewMessages", False)
    ) + (f"; deletes {files:,} index file{'' if files == 1 else 's'}" if files else "")


def losses_text(messages: int, wrong_offsets: int, *, loses_new_messages: bool) -> str:
    """Return what a start loses: messages, their queue offsets, messages it acknowledges later; or "no message"."""
    parts = [number_of(messages, "message", "messages")] if messages else []
    if wrong_offsets:
        parts.append(number_of(wrong_offsets, "message gets a wrong queue offset", "messages get wrong queue offsets"))
    if loses_new_messages:
        parts.append("every message that it acknowledges from then on")
    return ", ".join(parts or ["no message"])


def _print_queues(loss: Record | None, out: Output) -> None:
    for row in loss["queues"][:MAX_SHOWN_QUEUES] if loss is not None else ():
        queue = f"{row['topic']}/{row['queueId']}"
        offsets = offsets_text(row["firstQueueOffset"], row["lastQueueOffset"])
        times = ""
        first_timestamp, last_timestamp = row["firstTimestamp"], row["lastTimestamp"]
        if first_timestamp is not None and last_timestamp is None:
            times = f", stored from {iso_time(first_timestamp)} on"
        elif first_timestamp is not None:
            times = f", stored {times_text(first_timestamp, last_timestamp)}"
        out.line(f"      {escape_controls(queue)}: {row['messages']:,}, {offsets}{times}")
    if loss is not None and len(loss["queues"]) > MAX_SHOWN_QUEUES:
        out.line(f"      and {number_of(len(loss['queues']) - MAX_SHOWN_QUEUES, 'more queue', 'more queues')}")


def offsets_text(first_offset: int, last_offset: int) -> str:
    """Return ``queue offset 7``, or ``queue offsets 7 to 9``."""
    if first_offset == last_offset:
        return f"queue offset {first_offset:,}"
    return f"queue offsets {first_offset:,} to {last_offset:,}"


def times_text(first_time: int, last_time: int) -> str:
    """Return one time or two times (ms) in words."""
    return iso_time(first_time) if first_time == last_time else f"{iso_time(first_time)} to {iso_time(last_time)}"


def _print_paragraph(text: str, out: Output) -> None:
    for line in textwrap.wrap(escape_controls(with_local_times(text)), TEXT_WIDTH_CHARS, break_on_hyphens=False):
        out.line(f"    {line}")
