"""What the view says of itself: how it stands, where its rows come from, what was left out. No Qt."""

from __future__ import annotations

from dataclasses import dataclass

from viewer.look.assets import tr
from viewer.look.formats import clock, size
from viewer.requests.request_log import KEPT, RequestLog


@dataclass(slots=True)
class Standing:
    """Where rows come from.

    ``kind``: ``off``, ``reading``, ``file``, ``starting``, ``live``, ``paused`` or ``ended``.
    """

    kind: str = "off"
    name: str = ""
    """The file, or the address of the broker."""
    fault: str = ""
    left_out: int | None = 0
    """Frames for which a recording had no room; None: its end is missing."""
    rate: float = 0.0


def standing_words(log: RequestLog, standing: Standing) -> str:
    """The sentence of the status bar."""
    parts = []
    if standing.kind == "live":
        parts.append(tr("{n:,} requests a second", n=round(standing.rate)))
    elif standing.kind == "paused":
        parts.append(tr("paused"))
    elif standing.kind == "off":
        return tr("No requests are shown")
    if log.by_frame:
        every = log.showable
        parts.append(
            tr("{n:,} frames", n=every)
            if len(log.rows) == every
            else tr("{n:,} of {all:,} frames match", n=len(log.rows), all=every)
        )
    elif len(log.rows) != log.kept:
        parts.append(tr("{n:,} of {all:,} requests match", n=len(log.rows), all=log.kept))
    else:
        parts.append(tr("{n:,} requests", n=log.kept))
    parts.append(tr("{size} kept", size=size(log.bytes)))
    if log.dropped:
        parts.append(tr("{n:,} older requests have gone", n=log.dropped))
    if log.missed:
        parts.append(tr("{n:,} frames came too fast and are left out", n=log.missed))
    return " · ".join(parts)


def edge_words(standing: Standing, end_in_view: bool = True) -> str:
    """What stands behind the last row: live, or why nothing more comes."""
    if standing.kind == "live" and not end_in_view:
        return tr("The table stands still · {n:,} requests a second", n=round(standing.rate))
    if standing.kind == "live":
        return tr("The end stays in view · {n:,} requests a second", n=round(standing.rate))
    if standing.kind == "paused":
        return tr("Paused: what comes meanwhile is shown behind it, as far as {size} go", size=size(KEPT))
    if standing.kind == "ended":
        return tr("The broker at {address} has stopped serving.", address=standing.name)
    if standing.left_out is None:
        return tr("The file ends without its last line: whoever wrote it was ended, or writes still.")
    if standing.left_out:
        return tr("The recording was full: {n:,} frames behind it were left out.", n=standing.left_out)
    return ""


def card_words(log: RequestLog, standing: Standing) -> tuple[str, str, str]:
    """The card over the talks: what it is, where from and since when, what is kept."""
    of_file = standing.kind in {"file", "reading"}
    name = standing.name.rpartition("/")[2] if of_file else tr("Requests")
    first = next(iter(log.rows), None)
    since = tr("since {time}", time=clock(first.time)) if first is not None else ""
    where = tr("a file") if of_file else standing.name
    kept = tr("kept {size} of {most}", size=size(log.bytes), most=size(KEPT))
    if log.dropped:
        kept += " · " + tr("the oldest go")
    return name, " · ".join(part for part in (where, since) if part), kept
