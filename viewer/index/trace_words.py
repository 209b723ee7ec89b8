"""A trace in words: the line from key to slot, counts as chips, the status bar's sentence, the equal command; no Qt."""

from __future__ import annotations

from viewer.index.hash_strip import StripPart
from viewer.index.trace_lanes import TraceQuery, TraceResult
from viewer.look.assets import plural_words, tr, tr_plural
from viewer.look.formats import clock, day
from viewer.runtime import places
from viewer.widgets.drawn_marks import DrawnMark, step_mark

_CHIPS = (
    ("match", "ok", plural_words("{n:,} match", "{n:,} matches")),
    ("collision", "warn", plural_words("{n:,} collision", "{n:,} collisions")),
    ("gone", "error", plural_words("{n:,} gone", "{n:,} gone")),
    ("loop", "loop", plural_words("{n:,} loop", "{n:,} loops")),
    ("beyondCount", "error", plural_words("{n:,} beyond count", "{n:,} beyond count")),
)


def strip_parts(question: TraceQuery | None, answer: TraceResult | None = None) -> list[StripPart]:
    """The way from the key to its slot as far as it is known."""
    if question is None:
        return [StripPart(tr("key text"), tr("topic#key, as RocketMQ hashes it"), "text3", code=False)]
    parts = [
        StripPart(tr("key text"), question.text, mark=_mark(question, "keyText", question.text)),
        StripPart(
            tr("Java hash, made positive"),
            f"{question.key_hash:,}",
            follows=True,
            mark=_mark(question, "javaHash", str(question.key_hash)),
        ),
    ]
    if answer is not None and answer.slots:
        slot = tr("slot {slot:,}", slot=question.key_hash % answer.slots)
        marks = [
            _mark(question, "slot", str(question.key_hash % answer.slots), slot),
            _mark(question, "slotPosition", str(answer.slot_position)),
        ]
        parts.append(StripPart(tr("mod {slots:,}", slots=answer.slots), slot, "accent", follows=True, mark=marks[0]))
        place = f"{answer.slot_position:,}"
        parts.append(StripPart(tr("first byte of the slot"), place, follows=True, mark=marks[1]))
    if question.begin is not None or question.end is not None:
        span = f"{_time(question.begin)} – {_time(question.end)}"
        parts.append(StripPart(tr("window"), span, mark=_mark(question, "window", span)))
    if answer is not None:
        steps = tr_plural("{n:,} step", "{n:,} steps", n=len(answer.steps))
        summary = tr_plural("{n:,} match in {steps}", "{n:,} matches in {steps}", n=len(answer.matches), steps=steps)
        if answer.passed_over:
            summary += tr_plural(", {n:,} file left out", ", {n:,} files left out", n=answer.passed_over)
        role = "ok" if answer.matches else "text"
        parts.append(StripPart(tr("found"), summary, role, code=False, mark=_mark(question, "matches", summary)))
    return parts


def _mark(question: TraceQuery, field: str, value: str, words: str = "") -> DrawnMark:
    link = places.trace(question.topic, question.indexed_text)
    return step_mark(field, question.topic, question.indexed_text, link, value, words or value)


def verdict_links(answer: TraceResult) -> list[tuple[str, str, int]]:
    """(shape, words with the count, number of its first step) of every verdict that is worth a link."""
    links = []
    for verdict, shape, counted in _CHIPS:
        steps = [step.step for step in answer.steps if step.verdict == verdict and step.kind == "entry"]
        if steps:
            links.append((shape, tr_plural(*counted, n=len(steps)), steps[0]))
    return links


def sentence(answer: TraceResult) -> str:
    """The result for the status bar; says whether it is all."""
    parts = [
        tr("Trace of {topic} / {key}", topic=answer.question.topic, key=answer.question.indexed_text),
        tr_plural("{n:,} step", "{n:,} steps", n=len(answer.steps)),
        tr_plural("{n:,} match", "{n:,} matches", n=len(answer.matches)),
    ]
    loops = [step.file for step in answer.steps if step.verdict == "loop"]
    if loops:
        parts.append(tr("chain in {file} has a loop: entries to which it once led may be missing", file=loops[0]))
    complete = answer.end is not None and answer.end.complete and not answer.cut
    parts.append(tr("complete") if complete else tr("not complete"))
    return " · ".join(parts)


def command_of(question: TraceQuery) -> list[str]:
    """The words of the command that asks the same."""
    parts = ["storescope", "trace", "STORE"]
    if question.begin is not None:
        parts += ["--begin", str(question.begin)]
    if question.end is not None:
        parts += ["--end", str(question.end)]
    if question.index_type is not None:
        parts += ["--keyType", question.index_type]
    return [*parts, "--max", str(question.most), "--", question.topic, question.key]


def _time(ms: int | None) -> str:
    return "…" if ms is None else f"{day(ms)[5:]} {clock(ms)[:8]}"
