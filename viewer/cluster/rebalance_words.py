"""What is said of a rebalance: steps, their harm with its bounds, the whole as Markdown. No Qt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.cluster.state import Queue
from viewer.cluster.cluster_model import ClusterModel, Mark
from viewer.cluster.deliveries import Deliveries
from viewer.cluster.rebalance import Span, Step, Timeline
from viewer.cluster.words import UNTOLD, markdown_table, queue_name
from viewer.look.assets import tr, words
from viewer.look.formats import clock, full_moment

LONG_PAUSE = 250
"""Ms without a delivery that are worth a mark."""
LAST = 1_000
"""Ms behind the last reading that are still of the last step."""
WHY = {
    "start": words("it started"),
    "notice": words("the broker's notice"),
    "interval": words("its interval"),
    "asked for": words("asked for"),
    "subscribed": words("it subscribed"),
    "unsubscribed": words("it unsubscribed"),
    "offset moved": words("an offset moved"),
    "assigned": words("queues were assigned"),
}
"""Why a client shared out anew, as :mod:`engine.client` says it, and what is shown."""
SINCE, AROUND = 30_000, 2_000
"""Ms behind a step in which lists are still of it, and ms before it at which a client may have seen it already."""


@dataclass(frozen=True, slots=True)
class Harm:
    """One harm of a step: its figure, what it means, and how bad that is (warn, ok, or chat for what nobody told)."""

    name: str
    figure: str
    note: str
    kind: str


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step as a row."""

    number: int
    begin: int
    what: str
    moved: int
    pause: str
    burst: str
    idle: int


@dataclass(frozen=True, slots=True)
class MoveRow:
    """A queue of a step as a row: whose it was, whose it is."""

    queue: str
    before: str
    after: str
    change: str


def length(span: Span) -> str:
    """``2.0–4.0 s``: at least and at most, as readings tell it."""
    return f"{span.low / 1000:.1f}–{span.high / 1000:.1f} s"


def short(queue: Queue) -> str:
    """``broker-a q2``."""
    return f"{queue.broker} q{queue.queue_id}"


def names(model: ClusterModel, clients: Sequence[str]) -> str:
    """Short names, in the order given."""
    return " ".join(model.name_of(one) for one in clients)


def step_words(model: ClusterModel, step: Step) -> str:
    """What happened: who came, who left, or only that queues moved."""
    parts = []
    if step.number == 1:
        return tr("as it was found: {names}", names=names(model, step.clients) or "–")
    if step.came:
        parts.append(tr("{names} joins", names=names(model, step.came)))
    killed = [one for one in step.left if one in model.killed]
    left = [one for one in step.left if one not in model.killed]
    if killed:
        parts.append(tr("{names} killed", names=names(model, killed)))
    if left:
        parts.append(tr("{names} left", names=names(model, left)))
    idle = [one for one in step.came if not any(one in mine for mine in step.after.values())]
    if idle:
        parts.append(tr("{names} idle", names=names(model, idle)))
    return ", ".join(parts) or tr("queues move")


MARKS = {
    "joins": words("{name} joins"),
    "left": words("{name} left"),
    "killed": words("{name} killed"),
    "registers": words("{name} registers"),
    "gone": words("{name} is gone"),
}


def mark_words(model: ClusterModel, one: Mark) -> str:
    """A mark of the slider."""
    killed = one.what == "left" and one.who in model.killed
    return tr(MARKS["killed" if killed else one.what], name=model.name_of(one.who))


def until(model: ClusterModel, line: Timeline, step: Step) -> int:
    """The time (ms) up to which what happens is a step's: that of the next one, the end of the group's lesson, or a
    little behind the last reading.
    """
    end = line.steps[step.number].begin if step.number < len(line.steps) else line.end + LAST
    return min(end, model.lesson_ends.get(line.group, end))


def harms(step: Step, every: float, told: Deliveries | None = None, group: str = "", end: int = 0) -> list[Harm]:
    """The four harms: counted from deliveries up to ``end`` where consumers of one's own were in the group, else as
    far as readings tell; ``every`` is the seconds between two of them.
    """
    if told is not None and told.knows(group):
        return [*_counted(step, told, group, end), _idle(step)]
    found = []
    worst = step.worst_pause
    if worst is None:
        found.append(
            Harm(tr("Pause"), "0", tr("no queue was seen without owner; looked every {n} s", n=f"{every:g}"), "ok")
        )
    else:
        queue, span = worst
        more = len(step.pauses) - 1
        note = tr("{queue} had no owner", queue=short(queue))
        if more:
            note += " · " + tr("{n:,} queues more", n=more)
        found.append(Harm(tr("Pause"), length(span), note, "warn"))
    found.append(_twice(step))
    burst = step.worst_burst
    if burst is None:
        found.append(Harm(tr("Burst"), "× 1", tr("no queue went faster afterwards"), "ok"))
    else:
        queue, rates = burst
        note = tr(
            "{queue}: {after} after {before}",
            queue=short(queue),
            after=f"{rates.after:,.0f} /s",
            before=f"{rates.before:,.0f} /s",
        )
        found.append(Harm(tr("Burst"), f"× {rates.factor:.1f}", note, "warn" if rates.factor >= 1.5 else "ok"))
    found.append(_idle(step))
    return found


def _idle(step: Step) -> Harm:
    said = tr("{n:,} consumers for {m:,} queues", n=len(step.clients), m=len(step.after))
    return Harm(tr("Idle consumers"), f"{step.idle_before} → {step.idle}", said, "warn" if step.idle else "ok")


def _counted(step: Step, told: Deliveries, group: str, end: int) -> Iterator[Harm]:
    """Pause, handed out twice and burst, from what consumers of one's own were handed."""
    pauses = told.pauses(group, step.begin, step.end, end)
    still = dict[Queue, int]()
    for queue, owners in step.after.items() if step.told else ():
        since = told.since(group, queue, end - LAST) if not owners else None
        if since is not None and since > pauses.get(queue, 0):
            still[queue] = pauses[queue] = since
    worst = max(pauses, key=lambda queue: pauses[queue], default=None)
    if worst is None:
        yield Harm(tr("Pause"), UNTOLD, tr("nothing was handed out around it"), "chat")
    else:
        others = [taken for queue, taken in pauses.items() if queue != worst]
        figure, most = f"{pauses[worst]:,} ms", max(others, default=0)
        note = tr("{queue}; the others at most {n:,} ms", queue=short(worst), n=most)
        if worst in still:
            figure = f"≥ {figure}"
            note = tr("{queue} has no owner; the others at most {n:,} ms", queue=short(worst), n=most)
        yield Harm(tr("Pause"), figure, note, "warn" if pauses[worst] >= LONG_PAUSE else "ok")
    again = told.twice(group, step.begin, end)
    note = tr("of {n:,} handed out since, by queue and offset", n=told.handed(group, step.begin, end))
    if told.dropped:
        note += " · " + tr("at least so many ({n:,} not told)", n=told.dropped)
    yield Harm(tr("Handed out twice"), f"{len(again):,}", note, "warn" if again else "ok")
    bursts = told.bursts(group, step.begin, step.end, end)
    fast = max(bursts, key=lambda queue: bursts[queue][1] / bursts[queue][0], default=None)
    if fast is None:
        yield Harm(tr("Burst"), UNTOLD, tr("too little was handed out before it"), "chat")
    elif bursts[fast][1] <= bursts[fast][0]:
        yield Harm(tr("Burst"), "× 1", tr("no queue went faster afterwards"), "ok")
    else:
        before, after = bursts[fast]
        note = tr(
            "{queue}: {after} after {before}", queue=short(fast), after=f"{after:,.0f} /s", before=f"{before:,.0f} /s"
        )
        yield Harm(tr("Burst"), f"× {after / before:.1f}", note, "warn" if after >= 1.5 * before else "ok")


@dataclass(frozen=True, slots=True)
class ListRow:
    """What a client saw and did at a rebalance, as a row."""

    client: str
    at: int
    ids: str
    owns: str
    change: str
    reason: str


def list_rows(model: ClusterModel, line: Timeline, step: Step) -> list[ListRow]:
    """What every client of one's own saw around a step."""
    found = model.deliveries.lists(line.group, step.begin - AROUND, max(step.end + AROUND, step.begin + SINCE))
    return [
        ListRow(
            model.name_of(one.client_id),
            one.at,
            names(model, one.client_ids),
            _short(one.owned),
            " ".join([*(f"+{short(queue)}" for queue in one.taken), *(f"−{short(queue)}" for queue in one.given_up)]),
            tr(WHY.get(one.reason, one.reason)),
        )
        for one in found
        if one.at < until(model, line, step)
    ]


def _short(queues: Sequence[Queue]) -> str:
    return ", ".join(short(queue) for queue in queues) or "–"


def _twice(step: Step) -> Harm:
    notes = []
    if step.doubles:
        queue, span = max(step.doubles.items(), key=lambda one: one[1].high)
        notes.append(tr("{queue} had two owners for {span}", queue=short(queue), span=length(span)))
    if step.went_back:
        notes.append(tr("offsets fell by {n:,}: these are read again", n=step.went_back))
    notes.append(tr("how many, no administrator's request tells"))
    figure = f"≥ {step.went_back:,}" if step.went_back else UNTOLD
    return Harm(tr("Handed out twice"), figure, " · ".join(notes), "warn" if len(notes) > 1 else "chat")


def step_rows(model: ClusterModel, line: Timeline) -> list[StepRow]:
    """The steps, the first first."""
    return [
        StepRow(
            step.number,
            step.begin,
            step_words(model, step),
            step.moved,
            length(step.worst_pause[1]) if step.worst_pause is not None else "",
            f"× {step.worst_burst[1].factor:.1f}" if step.worst_burst is not None else "",
            step.idle,
        )
        for step in line.steps
    ]


def move_rows(model: ClusterModel, step: Step) -> list[MoveRow]:
    """Each queue of a step."""
    rows = []
    several = len({queue.topic for queue in step.after}) > 1
    for queue, after in step.after.items():
        before = step.before.get(queue, ())
        change = (
            tr("stays")
            if before == after
            else tr("moved")
            if before and after
            else tr("taken")
            if after
            else (tr("nobody has it"))
        )
        rows.append(
            MoveRow(
                queue_name(queue) if several else short(queue),
                names(model, before) or "–",
                names(model, after) or "–",
                change,
            )
        )
    return rows


def rebalance_markdown(model: ClusterModel, line: Timeline) -> str:
    """The timeline of a group with its figures."""
    if not line.steps:
        return ""
    span = f"{full_moment(line.begin)} – {clock(line.end)}"
    lines = [f"# {tr('Rebalance')} {line.group}", "", f"{model.address} · {span}", ""]
    lines += markdown_table(
        (tr("Step"), tr("Time"), tr("What"), tr("Queues moved"), tr("Pause"), tr("Burst"), tr("Idle")),
        (
            (str(row.number), clock(row.begin), row.what, str(row.moved), row.pause, row.burst, str(row.idle))
            for row in step_rows(model, line)
        ),
    )
    for step in line.steps:
        lines += [f"## {step.number}. {step_words(model, step)}", ""]
        told = harms(step, model.every, model.deliveries, line.group, until(model, line, step))
        lines += [f"- {one.name}: {one.figure}, {one.note}" for one in told if step.number > 1]
        lines.append("")
        lines += markdown_table(
            (tr("Queue"), tr("Before it"), tr("After it"), ""),
            ((row.queue, row.before, row.after, row.change) for row in move_rows(model, step)),
        )
    return "\n".join(lines).rstrip() + "\n"
