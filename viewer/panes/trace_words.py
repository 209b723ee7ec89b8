"""A trace in words:

the strip from key to slot, counts as chips, the status bar's sentence, the equal command; no Qt.
"""

from __future__ import annotations

import shlex

from viewer.assets import tr
from viewer.models.formats import clock, day
from viewer.panes.trace_lanes import Answer, Question
from viewer.widgets.hash_strip import StripPart

_CHIPS = (
    ("match", "ok", "1 match", "{n:,} matches"),
    ("collision", "warn", "1 collision", "{n:,} collisions"),
    ("gone", "error", "1 gone", "{n:,} gone"),
    ("loop", "loop", "1 loop", "{n:,} loops"),
    ("beyondCount", "error", "1 beyond count", "{n:,} beyond count"),
)


def strip_parts(question: Question | None, answer: Answer | None = None) -> list[StripPart]:
    """The way from the key to its slot as far as it is known."""
    if question is None:
        return [StripPart(tr("key text"), tr("topic#key, as RocketMQ hashes it"), "text3", code=False)]
    parts = [
        StripPart(tr("key text"), question.text),
        StripPart(tr("Java hash, made positive"), f"{question.key_hash:,}", follows=True),
    ]
    if answer is not None and answer.slots:
        slot = tr("slot {slot:,}", slot=question.key_hash % answer.slots)
        parts.append(StripPart(tr("mod {slots:,}", slots=answer.slots), slot, "accent", follows=True))
        parts.append(StripPart(tr("first byte of the slot"), f"{answer.slot_position:,}", follows=True))
    if question.begin is not None or question.end is not None:
        parts.append(StripPart(tr("window"), f"{_time(question.begin)} – {_time(question.end)}"))
    if answer is not None:
        form = "1 match in {steps:,} steps" if len(answer.matches) == 1 else "{n:,} matches in {steps:,} steps"
        found = tr(form, n=len(answer.matches), steps=len(answer.steps))
        if answer.passed_over:
            found += tr(", {n:,} files left out", n=answer.passed_over)
        parts.append(StripPart(tr("found"), found, "ok" if answer.matches else "text", code=False))
    return parts


def verdict_chips(answer: Answer) -> list[tuple[str, str]]:
    """(shape, words) of every verdict that is worth a chip, with its count."""
    counted = [(shape, one, many, answer.count(verdict)) for verdict, shape, one, many in _CHIPS]
    return [(shape, tr(one) if count == 1 else tr(many, n=count)) for shape, one, many, count in counted if count]


def sentence(answer: Answer) -> str:
    """The result for the status bar; says whether it is all."""
    parts = [
        tr("Trace of {topic} / {key}", topic=answer.question.topic, key=answer.question.key),
        tr("{n:,} steps", n=len(answer.steps)),
        tr("1 match") if len(answer.matches) == 1 else tr("{n:,} matches", n=len(answer.matches)),
    ]
    loops = [step.file for step in answer.steps if step.verdict == "loop"]
    if loops:
        parts.append(tr("chain in {file} runs in a circle: entries it once led to may be missing", file=loops[0]))
    complete = answer.end is not None and answer.end.complete and not answer.cut
    parts.append(tr("complete") if complete else tr("not complete"))
    return " · ".join(parts)


def command_of(question: Question, path: str) -> str:
    """The command that asks the same."""
    parts = ["storescope", "trace", path]
    if question.begin is not None:
        parts += ["--begin", str(question.begin)]
    if question.end is not None:
        parts += ["--end", str(question.end)]
    parts += ["--max", str(question.most), "--", question.topic, question.key]
    return shlex.join(parts)


def _time(ms: int | None) -> str:
    return "…" if ms is None else f"{day(ms)[5:]} {clock(ms)[:8]}"
