"""Layout of the picture, computed as arrays before painting. No Qt.

Lengths are px at 100 %; the canvas scales them. There are two pictures: :class:`LinesPlan` draws each queue and
client, :class:`CellsPlan` a row of cells for each topic and a row for each group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from engine.cluster.state import BrokerPart, Queue
from viewer.cluster.cluster_model import Selection
from viewer.cluster.rows import (
    LARGE_LAG,
    SMALL_LAG,
    BrokerRow,
    ClientRow,
    GroupRow,
    Picture,
    ProducerRow,
    QueueRow,
    TopicRow,
)

Floats = NDArray[np.float64]
Line = tuple[float, float, float, float, float | None, int, bool, str]
"""A line: x0, y0, x1, y1, messages a second, colour number, dashed or not, client id."""
EDGE, TOP, GAP = 16, 44, 20
CARD, CARD_HEIGHT, CARD_STEP = 204, 62, 72
MIDDLE, MIN_SIDE = 336, 288
"""Px from either edge to the brokers, and its minimum in narrow windows."""
MIN_MIDDLE = 480
QUEUE_HEIGHT, TOPIC_HEIGHT, BROKER_HEIGHT, SLAVE_HEIGHT, GROUP_HEIGHT, GROUP_GAP = 37, 32, 40, 38, 50, 24
FOOT = 48
"""Height of the legend, px."""
THIN, THICK, PER_PX = 1.5, 8.0, 130.0
"""Minimum and maximum width of a line, and messages a second for each px."""
SPREAD = 9.0
"""Px between two lines at a card."""


def widths(rates: Sequence[float | None]) -> Floats:
    """Return line widths in px, in steps of half a px; unmeasured rates get the thinnest line."""
    known_rates = np.array([0.0 if rate is None else rate for rate in rates], np.float64)
    return np.round(np.clip(known_rates / PER_PX, THIN, THICK) * 2) / 2


@dataclass(frozen=True, slots=True)
class LineSegments:
    """Lines: ends, width, colour number (−1: grey), dashed or not, and client id of each."""

    x0: Floats
    y0: Floats
    x1: Floats
    y1: Floats
    width: Floats
    place: NDArray[np.int64]
    dashed: NDArray[np.bool_]
    client_ids: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.client_ids)

    def crossing(self, top: float, bottom: float) -> NDArray[np.int64]:
        """Return the numbers of the lines that cross the range."""
        upper_y, lower_y = np.minimum(self.y0, self.y1), np.maximum(self.y0, self.y1)
        return np.nonzero((upper_y <= bottom) & (lower_y >= top))[0]


def _bands(rows: Sequence[Line]) -> LineSegments:
    ends = np.array([row[:4] for row in rows], np.float64).reshape(-1, 4)
    return LineSegments(
        ends[:, 0],
        ends[:, 1],
        ends[:, 2],
        ends[:, 3],
        widths([row[4] for row in rows]),
        np.array([row[5] for row in rows], np.int64),
        np.array([row[6] for row in rows], np.bool_),
        tuple(row[7] for row in rows),
    )


@dataclass(frozen=True, slots=True)
class LinesPlan:
    """Producers left, brokers and queues in the middle, consumers right; y are upper edges, for queues centres."""

    width: float
    height: float
    side: float
    """Px from either edge to the brokers."""
    brokers: tuple[tuple[BrokerRow, float, float], ...]
    topics: tuple[tuple[str, tuple[QueueRow, ...], float], ...]
    queues: tuple[QueueRow, ...]
    queue_y: Floats
    slaves: tuple[tuple[BrokerPart, float], ...]
    senders: tuple[tuple[ProducerRow, float], ...]
    groups: tuple[tuple[GroupRow, float], ...]
    clients: tuple[tuple[ClientRow, float], ...]
    left_bands: LineSegments
    right_bands: LineSegments

    @property
    def middle(self) -> float:
        """Width of the brokers."""
        return self.width - 2 * self.side

    @property
    def unreachable(self) -> tuple[BrokerRow, ...]:
        """Brokers that do not answer: their values are old."""
        return tuple(row for row, _, _ in self.brokers if row.master is None or row.master.words)

    @property
    def right_edge(self) -> float:
        """Left edge of the consumers."""
        return self.width - EDGE - CARD

    def visible_queues(self, top: float, bottom: float) -> range:
        """Return the numbers of the queues in a range."""
        first_number = int(np.searchsorted(self.queue_y, top - QUEUE_HEIGHT / 2))
        return range(first_number, int(np.searchsorted(self.queue_y, bottom + QUEUE_HEIGHT / 2)))


def lines_plan(picture: Picture, width: float) -> LinesPlan:
    """Lay out a small cluster on ``width`` px."""
    width = max(width, 2 * MIN_SIDE + MIN_MIDDLE)
    side = min(float(MIDDLE), (width - MIN_MIDDLE) / 2)
    brokers, topics, rows, ys, slaves = [], [], [], [], []
    y = float(TOP)
    for broker in picture.brokers:
        top = y
        y += BROKER_HEIGHT
        for name, queues in broker.topics:
            topics.append((name, queues, y))
            y += TOPIC_HEIGHT
            for queue in queues:
                rows.append(queue)
                ys.append(y + QUEUE_HEIGHT / 2)
                y += QUEUE_HEIGHT
        for slave in broker.slaves:
            slaves.append((slave, y))
            y += SLAVE_HEIGHT
        y += 0 if broker.slaves else 8
        brokers.append((broker, top, y))
        y += GAP
    end = y
    senders, y = [], float(TOP)
    for sender in picture.producers:
        senders.append((sender, y))
        y += CARD_STEP + GAP / 2
    end, y = max(end, y), float(TOP)
    groups, clients = [], []
    for group in sorted(picture.groups, key=lambda group_row: (group_row.broadcast, group_row.name)):
        groups.append((group, y))
        y += GROUP_HEIGHT
        for client in group.clients:
            clients.append((client, y))
            y += CARD_STEP
        y += GROUP_GAP
    broker_parts = (tuple(brokers), tuple(topics), tuple(rows), np.array(ys, np.float64))
    left_bands = _producer_bands(senders, brokers, side)
    right_bands = _owner_bands(groups, clients, rows, ys, topics, (width - side, width - EDGE - CARD))
    return LinesPlan(
        width,
        max(end, y) + FOOT,
        side,
        *broker_parts,
        tuple(slaves),
        tuple(senders),
        tuple(groups),
        tuple(clients),
        left_bands,
        right_bands,
    )


def _producer_bands(
    senders: Sequence[tuple[ProducerRow, float]], brokers: Sequence[tuple[BrokerRow, float, float]], side: float
) -> LineSegments:
    """Lines from producers to the brokers they are connected to; brokers begin at ``side``."""
    tops = {broker.name: top for broker, top, _ in brokers}
    senders_by_broker: dict[str, list[tuple[ProducerRow, float]]] = {}
    for sender, y in senders:
        for name in sender.brokers if not sender.has_left else ():
            if name in tops:
                senders_by_broker.setdefault(name, []).append((sender, y))
    rows: list[Line] = []
    for name, connected in senders_by_broker.items():
        for number, (sender, y) in enumerate(connected):
            broker_y = tops[name] + BROKER_HEIGHT / 2 + (number - (len(connected) - 1) / 2) * 4
            shift = (sender.brokers.index(name) - (len(sender.brokers) - 1) / 2) * SPREAD
            rows.append(
                (
                    EDGE + CARD,
                    y + CARD_HEIGHT / 2 + shift,
                    side - 4.0,
                    broker_y,
                    None,
                    sender.badge.place,
                    False,
                    sender.client.client_id,
                )
            )
    return _bands(rows)


def _owner_bands(
    groups: Sequence[tuple[GroupRow, float]],
    clients: Sequence[tuple[ClientRow, float]],
    rows: Sequence[QueueRow],
    ys: Sequence[float],
    topics: Sequence[tuple[str, tuple[QueueRow, ...], float]],
    ends: tuple[float, float],
) -> LineSegments:
    """Lines from queues to their owners; for a broadcast group, from topics to readers. ``ends`` are their x."""
    queue_y = {row.queue: y for row, y in zip(rows, ys, strict=True)}
    rates = {(group.name, row.queue): row.out_rate for group, _ in groups for row in group.queues}
    broadcast = {group.name for group, _ in groups if group.broadcast}
    lines: list[Line] = []
    queue_x, client_x = ends
    for client, y in clients:
        middle = y + CARD_HEIGHT / 2
        name = client.client.client_id
        if client.group in broadcast:
            names = {queue.topic for queue in client.owned or ()}
            lines += [
                (queue_x, top + TOPIC_HEIGHT / 2, client_x, middle, None, -1, True, name)
                for topic, _, top in topics
                if topic in names
            ]
            continue
        owned = [queue for queue in client.owned or () if queue in queue_y]
        step = min(SPREAD, (CARD_HEIGHT - 16) / max(len(owned), 1))
        lines += [
            (
                queue_x,
                queue_y[queue],
                client_x,
                middle + (number - (len(owned) - 1) / 2) * step,
                rates.get((client.group, queue)),
                client.badge.place,
                False,
                name,
            )
            for number, queue in enumerate(owned)
        ]
    return _bands(lines)


# ---- the large picture -----------------------------------------------------------------------------------------------

ROW, CELL, CELL_STEP = 26, 14, 16
WIDE_TABLES, SLIM_TABLES, SLIM = (272.0, 336.0, 356.0, 292.0), (150.0, 182.0, 290.0, 258.0), 1340
"""Left table's width, start of the middle table, its end from the right edge, right table's width; the second set is
for windows narrower than ``SLIM``.
"""
CELLS_AT, NUMBERS = 168, 276
"""Start of a topic's cells in the middle table, and width of its figures at the right."""
MIN_CELLS_WIDTH = 1040
FEW, SOME_BEHIND, FAR_BEHIND, NO_OWNER, UNKNOWN = range(5)
"""Codes of a cell: lag below 10, 10 and more, 1,000 and more, no owner, unknown."""


@dataclass(frozen=True, slots=True)
class SenderGroup:
    """Producers of a group."""

    name: str
    members: tuple[ProducerRow, ...]


@dataclass(frozen=True, slots=True)
class CellsPlan:
    """Three tables in one scroll area: producer groups, topics with a cell for each queue, consumer groups.

    The opened group is followed by its clients. ``cells`` has a row for each topic with the code of each queue, −1
    beyond its last queue.
    """

    width: float
    height: float
    tables: tuple[float, float, float, float]
    """Like :data:`WIDE_TABLES`."""
    topics: tuple[TopicRow, ...]
    cells: NDArray[np.int8]
    shown_cells: int
    """Number of cells of a topic that fit; the others are shown as a number."""
    trouble_end: int
    """Number of topics in trouble; a line separates them from the others."""
    senders: tuple[SenderGroup, ...]
    groups: tuple[GroupRow | ClientRow, ...]
    bands: LineSegments

    @property
    def senders_width(self) -> float:
        return self.tables[0]

    @property
    def middle_at(self) -> float:
        return self.tables[1]

    @property
    def middle(self) -> float:
        """Width of the topics' table."""
        return self.width - self.tables[1] - self.tables[2]

    @property
    def groups_at(self) -> float:
        return self.width - self.tables[3]

    @property
    def groups_width(self) -> float:
        return self.tables[3]

    def visible_rows(self, top: float, bottom: float) -> range:
        """Return the numbers of the rows in a range."""
        return range(max(int(top // ROW), 0), int(np.ceil(bottom / ROW)))


def cell_codes(topics: Sequence[TopicRow]) -> NDArray[np.int8]:
    """Return the code of each queue of each topic as one array."""
    max_queues = max((len(topic.queues) for topic in topics), default=0)
    codes = np.full((len(topics), max_queues), -1, np.int8)
    if not max_queues:
        return codes
    counts = np.array([len(topic.queues) for topic in topics])
    exists = np.arange(max_queues) < counts[:, None]
    rows = [row for topic in topics for row in topic.queues]
    lags = np.array([-1 if row.worst is None else row.worst for row in rows], np.int64)
    queue_codes = np.select(
        [lags >= LARGE_LAG, lags >= SMALL_LAG, lags >= 0], [FAR_BEHIND, SOME_BEHIND, FEW], UNKNOWN
    ).astype(np.int8)
    has_no_group = np.array([not row.group for row in rows], np.bool_)
    queue_codes[has_no_group] = FEW
    queue_codes[np.array([row.orphan for row in rows], np.bool_)] = NO_OWNER
    codes[exists] = queue_codes
    return codes


def cells_plan(picture: Picture, width: float, chosen: Selection, order: Sequence[str] = ()) -> CellsPlan:
    """Lay out a large cluster on ``width`` px; ``order`` is the earlier order of the topics."""
    width = max(width, MIN_CELLS_WIDTH)
    topics = in_order(picture.topics, order)
    senders = tuple(
        SenderGroup(name, tuple(members))
        for name, members in groupby(sorted(picture.producers, key=_first_group), key=_first_group)
    )
    leading = chosen.name if chosen.kind == "group" else chosen.group
    topic = chosen.queue.topic if chosen.queue is not None else chosen.name if chosen.kind == "topic" else ""
    row = next((named_row for named_row in topics if named_row.name == topic), None)
    if not leading and row is not None and row.groups:
        leading = row.groups[0]
    groups = list(picture.groups)
    if row is not None:
        groups.sort(key=lambda named_row: named_row.name not in row.groups)
    opened: list[GroupRow | ClientRow] = []
    for group in groups:
        opened.append(group)
        if group.name == leading:
            opened += group.clients
    tables = WIDE_TABLES if width >= SLIM else SLIM_TABLES
    cells_width = width - tables[1] - tables[2] - CELLS_AT - NUMBERS
    shown = max(int(cells_width // CELL_STEP), 1)
    height = max(len(topics), len(opened), len(senders)) * ROW + ROW
    trouble_count = sum(bool(named_row.trouble) for named_row in topics)
    ends = (width - tables[2], width - tables[3])
    return CellsPlan(
        width,
        height,
        tables,
        topics,
        cell_codes(topics),
        shown,
        trouble_count,
        senders,
        tuple(opened),
        _chosen_bands(topics, opened, row, leading, ends),
    )


def _first_group(row: ProducerRow) -> str:
    return row.groups[0] if row.groups else ""


def in_order(topics: Sequence[TopicRow], order: Sequence[str]) -> tuple[TopicRow, ...]:
    """Keep the order of topics; sort anew only when one is added, removed, or its trouble changes."""
    by_name = {row.name: row for row in topics}
    if set(order) != by_name.keys():
        return tuple(topics)
    ordered = [by_name[name] for name in order]
    ranks = [not row.trouble for row in ordered]
    return tuple(ordered) if ranks == sorted(ranks) else tuple(topics)


def _chosen_bands(
    topics: Sequence[TopicRow],
    groups: Sequence[GroupRow | ClientRow],
    row: TopicRow | None,
    leading: str,
    ends: tuple[float, float],
) -> LineSegments:
    """Lines of the selection: from its topic to the owners of its queues, and one grey line to each other group."""
    lines: list[Line] = []
    places = {item.name: number for number, item in enumerate(topics)}
    leading_row = next((item for item in groups if isinstance(item, GroupRow) and item.name == leading), None)
    topic_names = (
        [row.name] if row is not None else list(leading_row.group.subscriptions) if leading_row is not None else []
    )
    topic_x, client_x = ends
    for name in topic_names:
        if name not in places:
            continue
        y = places[name] * ROW + ROW / 2
        members = [
            (row_number, item)
            for row_number, item in enumerate(groups)
            if isinstance(item, ClientRow) and any(queue.topic == name for queue in item.owned or ())
        ]
        for number, (row_number, item) in enumerate(members):
            owned_queues = [queue for queue in item.owned or () if queue.topic == name]
            shift = (number - (len(members) - 1) / 2) * min(2.2, 20 / max(len(members), 1))
            lines.append(
                (
                    topic_x,
                    y + shift,
                    client_x,
                    row_number * ROW + ROW / 2,
                    _rate(leading_row, owned_queues),
                    item.badge.place,
                    leading_row is not None and leading_row.broadcast,
                    item.client.client_id,
                )
            )
        lines += [
            (topic_x, y, client_x, row_number * ROW + ROW / 2, None, -1, True, "")
            for row_number, item in enumerate(groups)
            if row is not None and isinstance(item, GroupRow) and item.name in row.groups and item.name != leading
        ]
    return _bands(lines)


def _rate(group: GroupRow | None, queues: Sequence[Queue]) -> float | None:
    rates = [row.out_rate for row in group.queues if row.queue in queues and row.out_rate is not None] if group else []
    return sum(rates) if rates else None
