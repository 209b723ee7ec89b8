"""Texts of the view about its source: status, progress, what was left out. No Qt."""

from __future__ import annotations

from dataclasses import dataclass

from viewer.look.assets import tr, tr_plural
from viewer.look.formats import clock, size
from viewer.requests.request_log import MAX_STORED_BYTES, RequestLog


@dataclass(slots=True)
class SourceStatus:
    """Source of the rows and its status.

    ``kind``: ``off``, ``reading``, ``file``, ``starting``, ``live``, ``paused`` or ``ended``.
    """

    kind: str = "off"
    name: str = ""
    """Path of the file, or address of the broker."""
    fault: str = ""
    left_out: int | None = 0
    """Number of frames that the recording had no space for; None: its end is missing."""
    rate: float = 0.0
    of_file: bool = False
    """True if the rows come from a recording that another process still writes."""


def status_words(log: RequestLog, source_status: SourceStatus) -> str:
    """Return the sentence of the status bar."""
    parts = []
    if source_status.kind == "live":
        parts.append(tr_plural("{n:,} request a second", "{n:,} requests a second", n=round(source_status.rate)))
    elif source_status.kind == "paused":
        parts.append(tr("paused"))
    elif source_status.kind == "off":
        return tr("No requests are shown")
    if log.by_frame:
        row_count = log.showable
        parts.append(
            tr_plural("{n:,} frame", "{n:,} frames", n=row_count)
            if len(log.rows) == row_count
            else tr_plural(
                "{part:,} of {n:,} frame matches", "{part:,} of {n:,} frames match", part=len(log.rows), n=row_count
            )
        )
    elif len(log.rows) != log.stored_count:
        parts.append(
            tr_plural(
                "{part:,} of {n:,} request matches",
                "{part:,} of {n:,} requests match",
                part=len(log.rows),
                n=log.stored_count,
            )
        )
    else:
        parts.append(tr_plural("{n:,} request", "{n:,} requests", n=log.stored_count))
    parts.append(tr("{size} kept", size=size(log.bytes)))
    if log.dropped:
        parts.append(tr_plural("{n:,} older request has gone", "{n:,} older requests have gone", n=log.dropped))
    if log.missed:
        parts.append(
            tr_plural(
                "{n:,} frame came too fast and is left out", "{n:,} frames came too fast and are left out", n=log.missed
            )
        )
    return " · ".join(parts)


def edge_words(source_status: SourceStatus, end_in_view: bool = True) -> str:
    """Return the text behind the last row: live, or why no more rows come."""
    if source_status.kind == "live" and not end_in_view:
        return tr_plural(
            "The table is paused · {n:,} request a second",
            "The table is paused · {n:,} requests a second",
            n=round(source_status.rate),
        )
    if source_status.kind == "live":
        return tr_plural(
            "The end stays in view · {n:,} request a second",
            "The end stays in view · {n:,} requests a second",
            n=round(source_status.rate),
        )
    if source_status.kind == "paused":
        return tr("Paused: new requests are kept up to {size} and shown afterwards", size=size(MAX_STORED_BYTES))
    if source_status.kind == "ended":
        return tr("The broker at {address} has stopped serving.", address=source_status.name)
    if source_status.left_out is None:
        return tr("The last line of the file is incomplete: new lines are shown as they are written.")
    if source_status.left_out:
        return tr_plural(
            "The recording was full: {n:,} frame after it was left out.",
            "The recording was full: {n:,} frames after it were left out.",
            n=source_status.left_out,
        )
    return ""


def card_words(log: RequestLog, source_status: SourceStatus) -> tuple[str, str, str]:
    """Return the texts of the card: title, source and start, amount stored."""
    is_file = source_status.of_file or source_status.kind in {"file", "reading"}
    name = source_status.name.rpartition("/")[2] if is_file else tr("Requests")
    first_row = next(iter(log.rows), None)
    since_text = tr("since {time}", time=clock(first_row.time)) if first_row is not None else ""
    where = tr("a file") if is_file else source_status.name
    stored = tr("kept {size} of {most}", size=size(log.bytes), most=size(MAX_STORED_BYTES))
    if log.dropped:
        stored += " · " + tr("the oldest are dropped")
    return name, " · ".join(part for part in (where, since_text) if part), stored
