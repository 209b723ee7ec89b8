"""The state of a pipeline job in words: its line in the list, its head, its stages, its preview."""

from __future__ import annotations

import time
from pathlib import Path

from viewer.look.assets import tr, tr_plural, words
from viewer.look.engine_words import engine_words
from viewer.look.formats import size, span
from viewer.pipeline.job_rows import when
from viewer.pipeline.preview import JobPreview
from viewer.pipeline.request import JobRequest
from viewer.pipeline.state import LOCAL_START, START, Card, JobState

STEPS = {
    START: words("Start Spark"),
    LOCAL_START: words("Start the job"),
    "counting": words("Count units"),
    "holding units against their entries": words("Verify the units"),
    "checking stores": words("Check the stores"),
    "reading the logs": words("Read the logs"),
    "building queues and index": words("Build the files"),
    "comparing": words("Compare"),
    "writing rows": words("Write rows"),
    "sorting rows": words("Sort rows"),
    "looking for units": words("Look for units"),
    "asking the stores": words("Query the stores"),
}
CARD_STATES = (words("waits"), words("running"), words("done"), words("failed"), words("cancelled"))
"""What a card's mark says, for those who hear it."""
INSTALL = "pip install 'storescope[spark]'"
OUT_FAULTS = {
    "there": words("Something exists at this place already."),
    "nowhere": words("The folder above this place does not exist."),
    "closed": words("This place cannot be read."),
}


def short_count(count: int) -> str:
    """``36.7 M``, ``1,592``."""
    if count >= 10_000_000:
        return f"{count / 1e6:,.1f} M"
    return f"{count:,}"


def lasted(seconds: float) -> str:
    """``9.8 s``, ``3 min 12 s``."""
    return f"{seconds:,.1f} s" if seconds < 60 else span(round(seconds * 1000))


def places_words(job_request: JobRequest) -> str:
    """Return what the job reads, in short: the folder of one store, a pattern, or a number of stores."""
    if len(job_request.places) > 1:
        return tr_plural("{n:,} place", "{n:,} places", n=len(job_request.places))
    place = job_request.places[0] if job_request.places else ""
    path = Path(place)
    if "*" in place:
        return "/".join(path.parts[-3:])
    name = path.parent.name if path.name == "store" and path.parent.name else path.name
    return f"{name} → {Path(job_request.out).name}/" if job_request.kind.writes else name


def job_words(job: JobState) -> tuple[str, str, str]:
    """Return (name, stores, status) for the list."""
    name = job.request.job
    if job.request.job == "export":
        name = f"export, {job.request.format}"
    if job.request.job == "trace" and len(job.request.keys) == 1:
        name = f"trace, {job.request.keys[0]}"
    return name, places_words(job.request), job_status(job)


def job_status(job: JobState) -> str:
    """Return the state of a job in a few words."""
    if job.status == "cancelled":
        return tr("cancelled, nothing left behind") if job.request.kind.writes else tr("cancelled")
    if job.status == "failed":
        return engine_words(job.why) or tr("failed")
    if job.status == "done":
        return outcome(job)
    if job.stopping:
        return tr("stopping")
    if not job.progress:
        return tr("Spark is starting")
    seconds_left = job.seconds_left
    done, tasks = job.progress.get("done", 0), job.progress.get("tasks", 0)
    tasks_text = tr_plural("{done:,} of {n:,} task", "{done:,} of {n:,} tasks", done=done, n=tasks)
    return tasks_text if seconds_left is None else f"{tasks_text} · {tr('{time} left', time=lasted(seconds_left))}"


def outcome(job: JobState) -> str:
    """Return the result of an ended job."""
    summary, duration = job.summary, lasted(job.seconds)
    match job.request.job:
        case "verify":
            if not job.severities:
                return tr("no problems found")
            return found_words(job)
        case "rebuild":
            differ = summary.get("differences")
            if differ is None:
                return tr("built in {time}", time=duration)
            return (
                tr("equal to the existing ones") if not differ else tr_plural("{n:,} differs", "{n:,} differ", n=differ)
            )
        case "export":
            return tr("{size} written", size=size(summary.get("bytesWritten")))
        case "trace":
            keys, missing = int(summary.get("keys") or 0), int(summary.get("keysMissing") or 0)
            if not missing:
                return tr("{n:,} found", n=keys)
            return tr("{n:,} found, {missing:,} explained", n=keys - missing, missing=missing)
    units = int(job.figure("units") or 0)
    amount = short_count(units)
    return tr_plural("{amount} unit in {time}", "{amount} units in {time}", n=units, amount=amount, time=duration)


def found_words(job: JobState) -> str:
    """``9 errors, 41,207 notes``."""
    from viewer.pane.finding_rows import COUNTS

    parts = []
    for kind in ("error", "warn", "note", "chat"):
        count = job.severities[kind]
        if count:
            parts.append(tr_plural(*COUNTS[kind], n=count))
    return ", ".join(parts)


def title(job: JobState) -> str:
    """``verify · broker-a``."""
    return f"{job.request.job} · {places_words(job.request)}"


def note(job: JobState) -> str:
    """Return when it began, where it runs, and how long."""
    began = time.strftime("%H:%M:%S", time.localtime(job.began))
    parts = [tr("started {time}", time=began), job.request.master]
    if not job.running:
        parts.append(tr("took {time}", time=lasted(job.seconds)))
    return " · ".join(parts)


def figures(job: JobState) -> list[tuple[str, str, str]]:
    """(name, value, unit) of the head: read, units, speed, tasks, tried again, time of the start."""
    read, total_bytes = job.figure("bytes"), job.progress.get("totalBytes") or 0
    units, speed = job.figure("units"), job.figure("unitsPerSecond")
    done, tasks = job.tasks
    value, unit = _parted(size(read)) if read is not None else ("–", "")
    of = tr("{unit} of {size}", unit=unit, size=size(total_bytes)) if total_bytes and job.running else unit
    retried_tasks = job.tried_again
    begun = job.summary.get("sessionSeconds") or (job.cards[0].seconds if job.cards[0].state == "done" else None)
    return [
        (tr("Read"), value, of),
        (tr("Units"), f"{units:,}" if units is not None else "–", ""),
        (tr("Speed"), *_speed(speed)),
        (tr("Tasks"), f"{done:,}" if tasks else "–", tr("of {n:,}", n=tasks) if tasks else ""),
        (tr("Tried again"), f"{retried_tasks:,}" if tasks else "–", tr("tasks") if retried_tasks != 1 else tr("task")),
        (
            tr("Began in") if job.cards[0].step == LOCAL_START else tr("Spark began in"),
            f"{begun:,.1f}" if begun else "–",
            "s" if begun else "",
        ),
    ]


def _parted(text: str) -> tuple[str, str]:
    value, _, unit = text.rpartition(" ")
    return (value, unit) if value else (text, "")


def _speed(speed: object) -> tuple[str, str]:
    if not isinstance(speed, int | float) or not speed:
        return "–", ""
    return (f"{speed / 1e6:,.2f}", tr("M units/s")) if speed >= 1e6 else (f"{speed:,.0f}", tr("units/s"))


def card_words(card: Card) -> tuple[str, str, str]:
    """(head, note, seconds) of one stage's card."""
    head = STEPS.get(card.step)
    title = tr(head) if head is not None else card.step
    if card.key == START:
        reason = tr("Java and a session") if card.step == START else tr("a process of its own, without Spark")
        return title, reason, f"{card.seconds:,.1f} s" if card.state != "running" else ""
    retried_text = tr("{n:,} tried again", n=card.retried) if card.retried else ""
    stage = tr("stage {n}, {name}", n=card.key.rpartition(".")[2], name=card.name) if card.name else ""
    seconds = f"{card.seconds:,.1f} s" if card.state != "waits" else ""
    return title, " · ".join(part for part in (stage, retried_text) if part), seconds


def reads_words(job_request: JobRequest, preview: JobPreview) -> str:
    """Return what would be read, in numbers."""
    if preview.remote:
        return tr("Not looked at from here: Spark reads it.")
    if job_request.kind.source == "export":
        return tr("An export of {size}.", size=size(preview.log_bytes)) if preview.stores else ""
    if not preview.stores:
        return ""
    return tr_plural(
        "{stores}, {size} of log, {n:,} split",
        "{stores}, {size} of log, {n:,} splits",
        n=preview.splits,
        stores=tr_plural("{n:,} store", "{n:,} stores", n=preview.stores),
        size=size(preview.log_bytes),
    )


def writes_words(job_request: JobRequest, preview: JobPreview) -> str:
    """Return what would be written, in numbers; empty for jobs that only read."""
    if not job_request.kind.writes or not job_request.out:
        return ""
    free = tr("Free there: {size}.", size=size(preview.free)) if preview.free is not None else ""
    match job_request.job:
        case "rebuild":
            output_text = tr(
                "New queues and index files are built from {size} of log; the existing ones have {built}.",
                size=size(preview.log_bytes),
                built=size(preview.built_bytes),
            )
        case "export":
            output_text = tr("Every unit of {size} of log is written as a row.", size=size(preview.log_bytes))
        case _:
            output_text = tr("A new store is written, as large as its messages.")
    safety_text = tr("The stores stay as they are; a job that fails or is stopped leaves nothing.")
    return " ".join(part for part in (output_text, safety_text, free) if part)


def look_fault(job_request: JobRequest, preview: JobPreview) -> str:
    """Return what prevents the job; empty if nothing does."""
    if preview.out_fault:
        return tr(OUT_FAULTS[preview.out_fault])
    if preview.fault == "no export":
        return tr("Expected a directory that pipeline export wrote: it has no _storescope.json.")
    return engine_words(preview.fault) if preview.fault else job_request.fault()


__all__ = ["card_words", "figures", "job_words", "look_fault", "note", "outcome", "reads_words", "title", "when"]
