"""The facts of a finding: its place, expected and found values, next steps, and all of it as Markdown. No Qt."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from engine.codec.consume_queue import CQ_UNIT_SIZE
from engine.english import capital
from engine.files.layout import parse_file_name
from engine.rules.catalogue import RULES
from engine.rules.findings import HAPPENED, SNAPSHOT_FIRST, STORED_FROM, STORED_TO, Finding
from engine.sentences import without_beginning
from viewer.look.assets import language, tr, tr_in, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.evidence_words import EVIDENCE_WORDS
from viewer.look.formats import full_moment, hexadecimal, number, number_span
from viewer.look.rule_pages import WORDS
from viewer.runtime import places
from viewer.runtime.places import Place

LIST_CAPTIONS = {"lost": words("Lost"), "queues": words("Queues")}
"""Captions of lists of queues, by their name in the evidence."""
BROKER_LOG = "brokerLog"
"""Evidence with lines of a broker's log. They stay untranslated, so that a user can search for them."""
WITNESSES = "witnesses"
"""Evidence with a sentence from each finding about the same fault."""
CRC_RULES = frozenset({"CL03"})
"""Rules that compare two CRCs."""
MAX_VALUE_LENGTH, SHORT_VALUE_LENGTH = 400, 32


def title(finding: Finding) -> str:
    """Return the rule's name in the language of the window."""
    rule = RULES.get(finding.id)
    return tr(rule.title) if rule is not None else finding.message


def place_of(finding: Finding) -> Place | None:
    """Return the place that shows the finding best, or None."""
    file = Path(finding.file) if finding.file else None
    if file is None:
        return None
    if is_in_log(file) and finding.offset is not None:
        return places.log(finding.offset)
    if file.parent.name == "index":
        entry = finding.evidence.get("entry")
        if isinstance(entry, int):
            return places.index(file.name, "entry", entry)
        slot = finding.evidence.get("slot")
        return places.index(file.name, "slot", slot) if isinstance(slot, int) else places.index(file.name)
    return place_in_file(file, finding.offset)


def place_in_file(file: Path, offset: int | None) -> Place | None:
    """Return the place of ``offset`` in a file of a queue, or of a file that holds state; None for any other file."""
    queue = _queue_of(file)
    if queue is not None:
        topic, queue_id, start = queue
        if start is None or offset is None:
            return places.queue(topic, queue_id)
        return places.queue(topic, queue_id, (start + offset) // CQ_UNIT_SIZE)
    if file.name in {"checkpoint", "abort"}:
        return Place("checkpoint")
    if file.parent.name == "config":
        return Place("config", name=file.name)
    return None


def place_text(finding: Finding) -> str:
    """Return the place in words of its subject."""
    place = place_of(finding)
    if place is None:
        return Path(finding.file).name if finding.file else ""
    if place.kind == "log":
        return number(place.offset)
    if place.kind == "queue":
        tail = "" if place.queue_offset is None else f"/{place.queue_offset:,}"
        return f"{place.topic}/{place.queue_id}{tail}"
    return Path(finding.file or "").name


def log_offset(finding: Finding) -> int | None:
    """Return the place of a finding in the log: its own, or that of the message which its entry names."""
    if finding.file and finding.offset is not None and is_in_log(Path(finding.file)):
        return finding.offset
    offset = finding.evidence.get("physicalOffset")
    return offset if isinstance(offset, int) and offset >= 0 else None


def is_in_log(file: Path) -> bool:
    """Return True for a file of the commit log: its name is a number and its folder is of no other kind."""
    other_folders = {"consumequeue", "batchconsumequeue", "consumequeue_ext", "index", "timerlog"}
    return parse_file_name(file.name) is not None and not other_folders & set(file.parts[-4:-1])


def _queue_of(file: Path) -> tuple[str, int, int | None] | None:
    """Return (topic, queue id, start of the file) for a file or folder of a consume queue, otherwise None."""
    if "consumequeue" not in file.parts:
        return None
    tail = file.parts[file.parts.index("consumequeue") + 1 :]
    if len(tail) < 2 or parse_file_name(tail[1]) is None:
        return None
    start = parse_file_name(tail[2]) if len(tail) > 2 else None
    return tail[0], int(tail[1]), start


def evidence_facts(finding: Finding) -> list[tuple[str, str]]:
    """Return (name, value) pairs.

    Expected and found values come first, then lost messages with a line for each queue, then the other evidence:
    short values in one line, others in a line each. The file comes last.
    """
    evidence = {
        name: value for name, value in finding.evidence.items() if name not in (HAPPENED, STORED_FROM, STORED_TO)
    }
    lists = {name: evidence.pop(name) for name, value in list(evidence.items()) if _are_queues(value)}
    crcs = ("expected", "found") if finding.id in CRC_RULES else ()
    values = {name: _value(value, "crc" if name in crcs else name) for name, value in evidence.items()}
    captions = {"expected": tr("Expected"), "found": tr_in("evidence", "Found")}
    facts = [(caption, values.pop(name)) for name, caption in captions.items() if name in values]
    facts += [(tr(LIST_CAPTIONS.get(name, name)), _rows(rows, _total(evidence))) for name, rows in lists.items()]
    quoted_names = {name for name, value in evidence.items() if isinstance(value, str) and value in finding.message}
    remaining = [
        (name, value) for name, value in values.items() if value not in finding.message and name not in quoted_names
    ]
    short_facts = [f"{_words(name)} {value}" for name, value in remaining if _is_short(evidence[name], value)]
    if short_facts:
        facts.append((tr("Also seen"), " · ".join(short_facts)))
    facts += [(_caption(name), value) for name, value in remaining if not _is_short(evidence[name], value)]
    if finding.caused_by:
        facts.append((tr("Follows from"), f"{finding.caused_by} {tr(RULES[finding.caused_by].title)}"))
    if finding.file and place_of(finding) is None:
        facts.append((tr("File"), finding.file))
    return facts


def _are_queues(value: Any) -> bool:
    """Return True for a list of queues with the messages of each."""
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) and _count(item) for item in value)


def _count(row: dict[str, Any]) -> int:
    count = row.get("messages", row.get("units", 0))
    return count if isinstance(count, int) else 0


def _total(evidence: dict[str, Any]) -> int:
    """Return the messages of all queues, including those that are not listed."""
    return next((evidence[name] for name in ("queueEntries", "messages", "units") if name in evidence), 0)


def _rows(rows: list[dict[str, Any]], total: int) -> str:
    """Return a line ``AuditTrail/0 49–102 (54 messages)`` for each queue, after their sum if there are several."""
    lines, listed = [_queue_text(row) for row in rows], sum(_count(row) for row in rows)
    if len(rows) > 1:
        messages = tr_plural("{n:,} message", "{n:,} messages", n=listed)
        lines.insert(0, f"{messages} · {tr_plural('{n:,} queue', '{n:,} queues', n=len(rows))}")
    if total > listed:
        lines.append(tr("and {n:,} more", n=total - listed))
    return "\n".join(lines)


def _queue_text(row: dict[str, Any]) -> str:
    queue = row.get("queue") or f"{row.get('topic')}/{row.get('queueId')}"
    first_offset = row.get("first", row.get("firstQueueOffset"))
    last_offset = row.get("last", row.get("lastQueueOffset"))
    if first_offset is None and "end" in row:
        first_offset, last_offset = row["end"], row["end"] + _count(row) - 1
    span = "" if first_offset is None or last_offset is None else f" {number_span(first_offset, last_offset)}"
    return f"{queue}{span} ({tr_plural('{n:,} message', '{n:,} messages', n=_count(row))})"


def _is_short(value: Any, shown: str) -> bool:
    """Return True if the value can share a line with others."""
    return not isinstance(value, dict) and len(shown) <= SHORT_VALUE_LENGTH and "\n" not in shown


def _words(name: str) -> str:
    """Return ``byte positions`` for ``bytePositions``.

    Rule ids stay unchanged, and names without a translation too if the window is not in English.
    """
    if name in EVIDENCE_WORDS:
        return tr_in("evidence", EVIDENCE_WORDS[name])
    if name in RULES or language() != "en":
        return name
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower()


def _caption(name: str) -> str:
    caption = _words(name)
    return caption[:1].upper() + caption[1:]


def _value(value: Any, name: str = "") -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, int) and name.endswith("Timestamp") and value > 0:
        return full_moment(value)
    if name == BROKER_LOG:
        return str(value)
    if isinstance(value, int) and "crc" in name.lower():
        return hexadecimal(value)
    if name == WITNESSES:
        return "\n".join(engine_words(str(part)) for part in value)
    if isinstance(value, dict):
        return " · ".join(f"{name} {_value(item, name)}" for name, item in value.items())
    if isinstance(value, int):
        return number(value)
    text = ", ".join(_value(part) for part in value) if isinstance(value, (list, tuple)) else engine_words(str(value))
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]} …"


def next_steps(finding: Finding, path: str) -> list[tuple[str, str]]:
    """Return (step, text) in their order. A snapshot comes first if anything is wrong."""
    steps = []
    advice = finding.next_step
    if advice.startswith(SNAPSHOT_FIRST):
        snapshot_words = tr(
            "storescope snapshot {path} DST: copies every file byte for byte, with a manifest; work on the copy",
            path=path,
        )
        steps.append((tr("Take a snapshot"), snapshot_words))
        advice = without_beginning(advice, SNAPSHOT_FIRST)
    advice = engine_words(capital(advice))
    head, *tail = re.split("[;；]", advice, maxsplit=1)
    steps.append((head.rstrip("."), tail[0].strip() if tail else ""))
    if finding.command:
        steps.append((tr("By command"), finding.command))
    return steps


def finding_markdown(finding: Finding) -> str:
    """Return the finding as Markdown, for a ticket or a mail."""
    rule = RULES.get(finding.id)
    head = f"### {finding.id} · {tr(WORDS[finding.severity])} · {title(finding)}".replace("###  · ", "### ")
    lines = [head, "", engine_words(finding.message), ""]
    lines += [
        f"- {name}: {value}" for name, value in [(tr("Place"), place_text(finding)), *evidence_facts(finding)] if value
    ]
    if rule is not None:
        lines += ["", tr(rule.explanation)]
    lines += ["", f"**{tr('Safe next steps')}**", "", engine_words(finding.next_step)]
    if finding.command:
        lines += ["", f"    {finding.command}"]
    return "\n".join(lines) + "\n"
