"""Texts for a rebalance: steps, their impact with bounds, and the whole as Markdown. No Qt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.cluster.state import Queue
from viewer.cluster.cluster_model import ClusterModel, TimeMark
from viewer.cluster.deliveries import Deliveries
from viewer.cluster.markdown import markdown_table
from viewer.cluster.rebalance import AllocationStep, DurationBounds, Timeline
from viewer.cluster.words import UNKNOWN, queue_name
from viewer.look.assets import tr, tr_plural, words
from viewer.look.formats import clock, full_moment

LONG_PAUSE_MS = 250
"""Minimum ms without a delivery for a warning."""
LAST_STEP_MS = 1_000
"""Ms after the last reading that still belong to the last step."""
REASONS = {
    "start": words("it started"),
    "notice": words("the broker's notice"),
    "interval": words("its interval"),
    "asked for": words("asked for"),
    "subscribed": words("it subscribed"),
    "unsubscribed": words("it unsubscribed"),
    "offset moved": words("an offset moved"),
    "assigned": words("queues were assigned"),
}
"""Reasons of a rebalance in the words of :mod:`engine.client`, with their labels."""
LISTS_AFTER_MS, LISTS_BEFORE_MS = 30_000, 2_000
"""Client lists from LISTS_BEFORE_MS before a step to LISTS_AFTER_MS after it belong to the step: a client may see a
change before our reading does.
"""


@dataclass(frozen=True, slots=True)
class Impact:
    """Impact of a step: figure, meaning, and severity (warn, ok, or chat if unknown)."""

    name: str
    figure: str
    note: str
    kind: str


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step as a row."""

    number: int
    begin: int
    description: str
    moved: int
    pause: str
    burst: str
    idle: int


@dataclass(frozen=True, slots=True)
class MoveRow:
    """A queue of a step: owners before and after."""

    queue: str
    owners_before: str
    owners_after: str
    change: str


def duration_range(span: DurationBounds) -> str:
    """Return ``2.0–4.0 s``: lower and upper bound."""
    return f"{span.min_ms / 1000:.1f}–{span.max_ms / 1000:.1f} s"


def short_name(queue: Queue) -> str:
    """Return ``broker-a q2``."""
    return f"{queue.broker} q{queue.queue_id}"


def client_names(model: ClusterModel, clients: Sequence[str]) -> str:
    """Return the short names, in the given order."""
    return " ".join(model.name_of(client_id) for client_id in clients)


def step_words(model: ClusterModel, step: AllocationStep) -> str:
    """Describe a step: clients that joined or left, or only moved queues."""
    parts = []
    if step.number == 1:
        return tr("at the first reading: {names}", names=client_names(model, step.clients) or "–")
    if step.joined:
        parts.append(tr("{names} joins", names=client_names(model, step.joined)))
    killed = [client for client in step.departed if client in model.killed]
    departed = [client for client in step.departed if client not in model.killed]
    if killed:
        parts.append(tr("{names} killed", names=client_names(model, killed)))
    if departed:
        parts.append(tr("{names} left", names=client_names(model, departed)))
    idle = [
        client
        for client in step.joined
        if not any(client in queue_owners for queue_owners in step.owners_after.values())
    ]
    if idle:
        parts.append(tr("{names} idle", names=client_names(model, idle)))
    return ", ".join(parts) or tr("queues move")


MARKS = {
    "joins": words("{name} joins"),
    "left": words("{name} left"),
    "killed": words("{name} killed"),
    "registers": words("{name} registers"),
    "gone": words("{name} is gone"),
}


def mark_words(model: ClusterModel, time_mark: TimeMark) -> str:
    """Describe a mark of the slider."""
    killed = time_mark.kind == "left" and time_mark.name in model.killed
    return tr(MARKS["killed" if killed else time_mark.kind], name=model.name_of(time_mark.name))


def end_of_step_ms(model: ClusterModel, line: Timeline, step: AllocationStep) -> int:
    """Return the time (ms) up to which events belong to a step.

    That is the next step, the end of the group's lesson, or shortly after the last reading.
    """
    end = line.steps[step.number].begin if step.number < len(line.steps) else line.end + LAST_STEP_MS
    return min(end, model.lesson_ends.get(line.group, end))


def impacts(
    step: AllocationStep, interval_s: float, deliveries: Deliveries | None = None, group: str = "", end: int = 0
) -> list[Impact]:
    """Return the four impacts of a step.

    Counted from deliveries up to ``end`` if our clients were in the group, else as far as readings tell. ``interval_s``
    is the reading interval in seconds.
    """
    if deliveries is not None and deliveries.knows(group):
        return [*_counted_impacts(step, deliveries, group, end), _idle(step)]
    step_impacts = []
    worst = step.worst_pause
    if worst is None:
        step_impacts.append(
            Impact(tr("Pause"), "0", tr("no queue was without owner; read every {n} s", n=f"{interval_s:g}"), "ok")
        )
    else:
        queue, span = worst
        further_count = len(step.pauses) - 1
        note = tr("{queue} had no owner", queue=short_name(queue))
        if further_count:
            note += " · " + tr_plural("{n:,} more queue", "{n:,} more queues", n=further_count)
        step_impacts.append(Impact(tr("Pause"), duration_range(span), note, "warn"))
    step_impacts.append(_duplicates(step))
    burst = step.worst_burst
    if burst is None:
        step_impacts.append(Impact(tr("Burst"), "× 1", tr("no queue became faster afterwards"), "ok"))
    else:
        queue, rates = burst
        note = tr(
            "{queue}: {after} after {before}",
            queue=short_name(queue),
            after=f"{rates.rate_after:,.0f} /s",
            before=f"{rates.rate_before:,.0f} /s",
        )
        step_impacts.append(Impact(tr("Burst"), f"× {rates.factor:.1f}", note, "warn" if rates.factor >= 1.5 else "ok"))
    step_impacts.append(_idle(step))
    return step_impacts


def _idle(step: AllocationStep) -> Impact:
    queues = tr_plural("{n:,} queue", "{n:,} queues", n=len(step.owners_after))
    note = tr_plural("{n:,} consumer for {queues}", "{n:,} consumers for {queues}", n=len(step.clients), queues=queues)
    return Impact(tr("Idle consumers"), f"{step.idle_before} → {step.idle}", note, "warn" if step.idle else "ok")


def _counted_impacts(step: AllocationStep, deliveries: Deliveries, group: str, end: int) -> Iterator[Impact]:
    """Yield pause, duplicates and burst, from the deliveries to our clients."""
    pauses = deliveries.pauses(group, step.begin, step.end, end)
    ongoing_pauses = dict[Queue, int]()
    for queue, owners in step.owners_after.items() if step.is_complete else ():
        since = deliveries.since(group, queue, end - LAST_STEP_MS) if not owners else None
        if since is not None and since > pauses.get(queue, 0):
            ongoing_pauses[queue] = pauses[queue] = since
    worst = max(pauses, key=lambda queue: pauses[queue], default=None)
    if worst is None:
        yield Impact(tr("Pause"), UNKNOWN, tr("nothing was delivered around it"), "chat")
    else:
        other_pauses = [pause_ms for queue, pause_ms in pauses.items() if queue != worst]
        figure, max_other_ms = f"{pauses[worst]:,} ms", max(other_pauses, default=0)
        note = tr("{queue}; the others at most {n:,} ms", queue=short_name(worst), n=max_other_ms)
        if worst in ongoing_pauses:
            figure = f"≥ {figure}"
            note = tr("{queue} has no owner; the others at most {n:,} ms", queue=short_name(worst), n=max_other_ms)
        yield Impact(tr("Pause"), figure, note, "warn" if pauses[worst] >= LONG_PAUSE_MS else "ok")
    repeated = deliveries.repeated(group, step.begin, end)
    note = tr("of {n:,} delivered since, by queue and offset", n=deliveries.delivered_count(group, step.begin, end))
    if deliveries.dropped:
        note += " · " + tr("at least this many ({n:,} not reported)", n=deliveries.dropped)
    yield Impact(tr("Delivered twice"), f"{len(repeated):,}", note, "warn" if repeated else "ok")
    bursts = deliveries.bursts(group, step.begin, step.end, end)
    fastest = max(bursts, key=lambda queue: bursts[queue][1] / bursts[queue][0], default=None)
    if fastest is None:
        yield Impact(tr("Burst"), UNKNOWN, tr("too little was delivered before it"), "chat")
    elif bursts[fastest][1] <= bursts[fastest][0]:
        yield Impact(tr("Burst"), "× 1", tr("no queue became faster afterwards"), "ok")
    else:
        rate_before, rate_after = bursts[fastest]
        note = tr(
            "{queue}: {after} after {before}",
            queue=short_name(fastest),
            after=f"{rate_after:,.0f} /s",
            before=f"{rate_before:,.0f} /s",
        )
        yield Impact(
            tr("Burst"), f"× {rate_after / rate_before:.1f}", note, "warn" if rate_after >= 1.5 * rate_before else "ok"
        )


@dataclass(frozen=True, slots=True)
class ListRow:
    """A rebalance as one client saw it, as a row."""

    client: str
    time_ms: int
    ids: str
    owns: str
    change: str
    reason: str


def list_rows(model: ClusterModel, line: Timeline, step: AllocationStep) -> list[ListRow]:
    """Return the rebalances that our clients saw around a step."""
    rebalances = model.deliveries.lists(
        line.group, step.begin - LISTS_BEFORE_MS, max(step.end + LISTS_BEFORE_MS, step.begin + LISTS_AFTER_MS)
    )
    return [
        ListRow(
            model.name_of(rebalance.client_id),
            rebalance.time_ms,
            client_names(model, rebalance.client_ids),
            _short(rebalance.owned),
            " ".join(
                [
                    *(f"+{short_name(queue)}" for queue in rebalance.added),
                    *(f"−{short_name(queue)}" for queue in rebalance.released),
                ]
            ),
            tr(REASONS.get(rebalance.reason, rebalance.reason)),
        )
        for rebalance in rebalances
        if rebalance.time_ms < end_of_step_ms(model, line, step)
    ]


def _short(queues: Sequence[Queue]) -> str:
    return ", ".join(short_name(queue) for queue in queues) or "–"


def _duplicates(step: AllocationStep) -> Impact:
    notes = []
    if step.doubles:
        queue, span = max(step.doubles.items(), key=lambda item: item[1].max_ms)
        notes.append(tr("{queue} had two owners for {span}", queue=short_name(queue), span=duration_range(span)))
    if step.went_back:
        notes.append(tr("offsets fell by {n:,}: these are read again", n=step.went_back))
    notes.append(tr("the number is unknown: no admin request shows it"))
    figure = f"≥ {step.went_back:,}" if step.went_back else UNKNOWN
    return Impact(tr("Delivered twice"), figure, " · ".join(notes), "warn" if len(notes) > 1 else "chat")


def step_rows(model: ClusterModel, line: Timeline) -> list[StepRow]:
    """Return the steps in order."""
    return [
        StepRow(
            step.number,
            step.begin,
            step_words(model, step),
            step.moved,
            duration_range(step.worst_pause[1]) if step.worst_pause is not None else "",
            f"× {step.worst_burst[1].factor:.1f}" if step.worst_burst is not None else "",
            step.idle,
        )
        for step in line.steps
    ]


def move_rows(model: ClusterModel, step: AllocationStep) -> list[MoveRow]:
    """Return a row for each queue of a step."""
    rows = []
    has_several_topics = len({queue.topic for queue in step.owners_after}) > 1
    for queue, owners_after in step.owners_after.items():
        owners_before = step.owners_before.get(queue, ())
        change = (
            tr("unchanged")
            if owners_before == owners_after
            else tr("moved")
            if owners_before and owners_after
            else tr("taken")
            if owners_after
            else (tr("no owner has it"))
        )
        rows.append(
            MoveRow(
                queue_name(queue) if has_several_topics else short_name(queue),
                client_names(model, owners_before) or "–",
                client_names(model, owners_after) or "–",
                change,
            )
        )
    return rows


def rebalance_markdown(model: ClusterModel, line: Timeline) -> str:
    """Return the timeline of a group with its figures."""
    if not line.steps:
        return ""
    span = f"{full_moment(line.begin)} – {clock(line.end)}"
    lines = [f"# {tr('Rebalance')} {line.group}", "", f"{model.address} · {span}", ""]
    lines += markdown_table(
        (tr("Step"), tr("Time"), tr("What"), tr("Queues moved"), tr("Pause"), tr("Burst"), tr("Idle")),
        (
            (str(row.number), clock(row.begin), row.description, str(row.moved), row.pause, row.burst, str(row.idle))
            for row in step_rows(model, line)
        ),
    )
    for step in line.steps:
        lines += [f"## {step.number}. {step_words(model, step)}", ""]
        step_impacts = impacts(step, model.interval_s, model.deliveries, line.group, end_of_step_ms(model, line, step))
        lines += [f"- {impact.name}: {impact.figure}, {impact.note}" for impact in step_impacts if step.number > 1]
        lines.append("")
        lines += markdown_table(
            (tr("Queue"), tr("Before it"), tr("After it"), ""),
            ((row.queue, row.owners_before, row.owners_after, row.change) for row in move_rows(model, step)),
        )
    return "\n".join(lines).rstrip() + "\n"
