"""A cluster as Markdown: the whole picture, and the results of lessons. No Qt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from viewer.cluster.cluster_model import ClusterModel
from viewer.cluster.rows import QueueRow, queue_lines
from viewer.cluster.words import (
    UNKNOWN,
    count,
    how_it_consumes,
    owner_words,
    rate,
    refusal_words,
    release,
    software,
    status_sentence,
)
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.look.formats import full_moment, number

if TYPE_CHECKING:
    from viewer.cluster.lessons import LessonRun


def markdown(model: ClusterModel) -> str:
    """Return the whole picture with its figures as Markdown."""
    state, picture = model.state, model.picture
    if state is None:
        return ""
    lines = [f"# {tr('Cluster')} {model.address}", "", f"{full_moment(state.time_ms)} · {status_sentence(model)}", ""]
    lines += markdown_table(
        (tr("Broker"), tr("Role"), tr("Address"), tr("Release"), tr("In /s"), ""),
        (
            (
                row.name,
                tr("master") if part.is_master else tr("slave {n}", n=part.broker_id),
                part.address,
                release(part),
                rate(row.in_rate) if part.is_master else "",
                engine_words(part.words),
            )
            for row in picture.brokers
            for part in (row.master, *row.slaves)
            if part is not None
        ),
    )
    lines += markdown_table(
        (tr("Producer"), tr("Client"), tr("Group"), tr("Language"), tr("Brokers")),
        (
            (
                row.badge.name,
                row.client.client_id,
                ", ".join(row.groups),
                software(row.client.language, row.client.version),
                ", ".join(row.brokers),
            )
            for row in picture.producers
        ),
    )
    lines += markdown_table(
        (
            tr("Group"),
            tr("Model"),
            tr("Consumer"),
            tr("Client"),
            tr("Language"),
            tr("Owns"),
            tr("Consumes"),
            tr("Behind"),
        ),
        (
            (
                group.name,
                how_it_consumes(group),
                row.badge.name,
                row.client.client_id,
                software(row.client.language, row.client.version),
                UNKNOWN if row.owned is None else number(len(row.owned)),
                rate(row.out_rate),
                count(row.lag),
            )
            for group in picture.groups
            for row in group.clients
        ),
    )
    lines += markdown_table(
        (
            tr("Topic"),
            tr("Broker"),
            tr("Queue"),
            tr("Max offset"),
            tr("Group"),
            tr("Next offset"),
            tr("Behind"),
            tr("Owner"),
            tr("In /s"),
            tr("Out /s"),
        ),
        (_queue_cells(model, row) for row in queue_lines(picture)),
    )
    if state.refusals:
        lines += [f"- {refusal_words(refusal)}" for refusal in state.refusals]
    return "\n".join(lines).rstrip() + "\n"


def _queue_cells(model: ClusterModel, row: QueueRow) -> tuple[str, ...]:
    queue = row.queue
    return (
        queue.topic,
        queue.broker,
        str(queue.queue_id),
        number(row.ends.max_offset),
        row.group,
        count(row.next_offset) if row.group else "",
        count(row.lag) if row.group else "",
        owner_words(model, row),
        rate(row.in_rate),
        rate(row.out_rate) if row.group else "",
    )


def markdown_table(heads: Sequence[str], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Return the lines of a Markdown table and an empty line; nothing without rows."""
    cells = [tuple(_cell(cell) for cell in row) for row in rows]
    if not cells:
        return []
    lines = [f"| {' | '.join(heads)} |", f"|{'|'.join(' --- ' for _ in heads)}|"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in cells), ""]


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def lessons_markdown(runs: Iterable[LessonRun]) -> str:
    """Return the results of all finished runs as Markdown; "" if there are none."""
    lines: list[str] = []
    for run in runs:
        if run.status == "done":
            lines += [
                f"## {tr(run.lesson.title)}",
                "",
                tr(run.lesson.description),
                "",
                f"{run.group} · {run.topic}",
                "",
            ]
            lines += [f"- {figure.name}: {figure.figure}, {figure.note}" for figure in run.figures]
            lines.append("")
    return "\n".join(["", f"# {tr('Lessons')}", "", *lines]).rstrip() + "\n" if lines else ""
