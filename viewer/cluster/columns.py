"""The tables of the view: every line of the picture as a row, every request with its answers. No Qt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.cluster.state import Refusal
from viewer.cluster.cluster_model import Chosen, ClusterModel
from viewer.cluster.words import UNTOLD, owner_words, queue_lines
from viewer.look.assets import tr, words
from viewer.look.engine_words import engine_words
from viewer.widgets.columns import Chip, Column, RecordKind, RowLook, chip_column, gutter, number_column, text_column


@dataclass(frozen=True, slots=True)
class LineRow:
    """A queue and a group that consumes it, as a row; ``place`` and ``entry`` are where they lead in the open store."""

    group: str
    topic: str
    broker: str
    queue_id: int
    next_offset: int | None
    max_offset: int
    behind: int | None
    owner: str
    trouble: str
    came: int | None
    went: int | None
    chosen: Chosen
    address: str
    held: int | None = None
    place: object = None
    entry: object = None

    @property
    def key(self) -> object:
        """What it is a row of."""
        return self.group, self.chosen.queue


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A request of an administrator: of whom, what came of it, how often."""

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
        """What it is a row of."""
        return self.address, self.code, self.request, self.answer, self.about


def line_rows(model: ClusterModel, link_of: Callable[[Chosen], object | None]) -> list[LineRow]:
    """What is in sight, a row each queue and group; ``link_of`` says where a thing leads to."""
    found = []
    for row in queue_lines(model.picture):
        chosen = Chosen("queue", group=row.group, queue=row.queue)
        found.append(
            LineRow(
                row.group,
                row.queue.topic,
                row.queue.broker,
                row.queue.queue_id,
                row.next_offset,
                row.ends.max_offset,
                row.behind,
                owner_words(model, row) if row.group else "",
                row.trouble,
                _whole(row.came),
                _whole(row.went),
                chosen,
                model.address,
                row.held,
                link_of(chosen),
                link_of(Chosen("group", row.group)) if row.group else None,
            )
        )
    return found


def request_rows(model: ClusterModel) -> list[RequestRow]:
    """What was asked, by address and code; what was refused in the last reading stands first."""
    refused: list[Refusal] = list(model.state.refusals) if model.state is not None else []
    rows = [
        RequestRow(
            one.address,
            0,
            one.request,
            tr("no answer") if one.code < 0 else f"{one.code}",
            "error",
            1,
            0,
            f"{one.about} {engine_words(one.words)}".strip(),
        )
        for one in refused
    ]
    for asking in model.requests.values():
        question = asking.question
        said = "SUCCESS" if question.answer == 0 else tr("no answer") if question.answer < 0 else str(question.answer)
        rows.append(
            RequestRow(
                question.address,
                question.code,
                question.name,
                said,
                "" if question.answer == 0 else "warn",
                asking.times,
                round(asking.longest),
            )
        )
    return rows


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _told(read: Callable[[LineRow], int | None]) -> Callable[[LineRow], str]:
    return lambda row: UNTOLD if row.group and read(row) is None else "" if read(row) is None else f"{read(row):,}"


def _figure(key: str, title: str, width: int, read: Callable[[LineRow], int | None], **more: object) -> Column:
    return Column(key, title, width, _told(read), read, right=True, mono=True, filterable=False, **more)  # type: ignore[arg-type]


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
            lambda row: row.behind,
            tone=lambda row: "warn" if row.trouble == "warn" else "",
        ),
        _figure("held", words("Held pulls"), 84, lambda row: row.held),
        text_column(
            "owner", words("Owner"), 170, tone=lambda row: "error" if row.trouble == "error" else "", filterable=False
        ),
        _figure("came", words("In /s"), 80, lambda row: row.came),
        _figure("went", words("Out /s"), 80, lambda row: row.went),
    ),
    look=lambda row: RowLook(mark=row.trouble),
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
