"""Tables of the view: a row for each queue and group, a row for each administrator's request. No Qt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.cluster.state import Refusal
from viewer.cluster.cluster_model import ClusterModel, Selection
from viewer.cluster.rows import queue_lines
from viewer.cluster.words import UNKNOWN, owner_words
from viewer.look.assets import tr, words
from viewer.look.engine_words import engine_words
from viewer.widgets.columns import (
    Chip,
    Column,
    RecordKind,
    RowAppearance,
    chip_column,
    gutter,
    number_column,
    text_column,
)


@dataclass(frozen=True, slots=True)
class LineRow:
    """A queue and a group that consumes it; ``place`` and ``entry`` lead into the open store."""

    group: str
    topic: str
    broker: str
    queue_id: int
    next_offset: int | None
    max_offset: int
    lag: int | None
    owner: str
    trouble: str
    in_rate: int | None
    out_rate: int | None
    chosen: Selection
    address: str
    held_pulls: int | None = None
    place: object = None
    entry: object = None

    @property
    def key(self) -> object:
        """Identity of the row."""
        return self.group, self.chosen.queue


@dataclass(frozen=True, slots=True)
class RequestRow:
    """An administrator's request: address, response, number of times."""

    address: str
    code: int
    request: str
    answer: str
    trouble: str
    times: int
    longest: int
    about: str = ""

    @property
    def key(self) -> object:
        """Identity of the row."""
        return self.address, self.code, self.request, self.answer, self.about


def line_rows(model: ClusterModel, link_of: Callable[[Selection], object | None]) -> list[LineRow]:
    """Return a row for each shown queue and group; ``link_of`` returns the place of an item."""
    lines = []
    for row in queue_lines(model.picture):
        chosen = Selection("queue", group=row.group, queue=row.queue)
        lines.append(
            LineRow(
                row.group,
                row.queue.topic,
                row.queue.broker,
                row.queue.queue_id,
                row.next_offset,
                row.ends.max_offset,
                row.lag,
                owner_words(model, row) if row.group else "",
                row.trouble,
                _rounded(row.in_rate),
                _rounded(row.out_rate),
                chosen,
                model.address,
                row.held_pulls,
                link_of(chosen),
                link_of(Selection("group", row.group)) if row.group else None,
            )
        )
    return lines


def request_rows(model: ClusterModel) -> list[RequestRow]:
    """Return the requests by address and code; refusals of the last reading come first."""
    refused: list[Refusal] = list(model.state.refusals) if model.state is not None else []
    rows = [
        RequestRow(
            refusal.address,
            0,
            refusal.request,
            tr("no answer") if refusal.code < 0 else f"{refusal.code}",
            "error",
            1,
            0,
            f"{refusal.about} {engine_words(refusal.words)}".strip(),
        )
        for refusal in refused
    ]
    for asking in model.requests.values():
        question = asking.question
        answer = "SUCCESS" if question.answer == 0 else tr("no answer") if question.answer < 0 else str(question.answer)
        rows.append(
            RequestRow(
                question.address,
                question.code,
                question.name,
                answer,
                "" if question.answer == 0 else "warn",
                asking.times,
                round(asking.longest_ms),
            )
        )
    return rows


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)


def _known_text(read: Callable[[LineRow], int | None]) -> Callable[[LineRow], str]:
    return lambda row: UNKNOWN if row.group and read(row) is None else "" if read(row) is None else f"{read(row):,}"


def _figure(key: str, title: str, width: int, read: Callable[[LineRow], int | None], **options: object) -> Column:
    return Column(key, title, width, _known_text(read), read, right=True, mono=True, filterable=False, **options)  # type: ignore[arg-type]


LINES = RecordKind(
    "clusterLine",
    (
        gutter(),
        text_column("group", words("Group"), 150, jump=lambda row: row.entry, elide="middle", filterable=False),
        text_column("topic", words("Topic"), 190, elide="middle", filterable=False),
        text_column("broker", words("Broker"), 120, elide="middle", filterable=False),
        number_column("queueId", words("Queue"), 64, jump=lambda row: row.place, filterable=False),
        _figure("nextOffset", words("Next offset"), 120, lambda row: row.next_offset, jump=lambda row: row.place),
        number_column("maxOffset", words("Max offset"), 120, filterable=False),
        _figure(
            "behind",
            words("Behind"),
            100,
            lambda row: row.lag,
            tone=lambda row: "warn" if row.trouble == "warn" else "",
        ),
        _figure("held", words("Held pulls"), 84, lambda row: row.held_pulls),
        text_column(
            "owner", words("Owner"), 170, tone=lambda row: "error" if row.trouble == "error" else "", filterable=False
        ),
        _figure("came", words("In /s"), 80, lambda row: row.in_rate),
        _figure("went", words("Out /s"), 80, lambda row: row.out_rate),
    ),
    look=lambda row: RowAppearance(mark=row.trouble),
    command=lambda row: ["storescope", "cluster", row.address],
    verdict=lambda row: row.owner,
)
REQUESTS = RecordKind(
    "clusterRequest",
    (
        text_column("request", words("Request"), 300, mono=True, filterable=False),
        Column(
            "code",
            words("Code"),
            64,
            lambda row: f"{row.code}" if row.code else "",
            lambda row: row.code,
            right=True,
            mono=True,
            filterable=False,
        ),
        text_column("address", words("Asked"), 180, mono=True, filterable=False),
        chip_column(
            "answer", words("Answer"), 130, lambda row: Chip(row.trouble or "ok", row.answer), filterable=False
        ),
        number_column("times", words("How often"), 80, filterable=False),
        number_column("longest", words("Longest ms"), 100, filterable=False),
        text_column("about", words("About"), 360, filterable=False),
    ),
)
