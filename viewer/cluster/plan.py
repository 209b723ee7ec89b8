"""Where everything of the picture stands: computed whole, as arrays, before anything is painted; no Qt.

Lengths are px at 100 %; whoever paints scales them. There are two pictures: :class:`LinesPlan` draws each queue and
client, :class:`CellsPlan` a topic a row of cells, a group a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from engine.cluster.state import BrokerPart, Queue
from viewer.cluster.cluster_model import Chosen
from viewer.cluster.rows import MANY, SOME, BrokerRow, ClientRow, GroupRow, Picture, ProducerRow, QueueRow, TopicRow

Floats = NDArray[np.float64]
Line = tuple[float, float, float, float, float | None, int, bool, str]
"""Of one line x0, y0, x1, y1, messages a second, place, whether dashed, whose."""
EDGE, TOP, GAP = 16, 44, 20
CARD, CARD_HIGH, CARD_STEP = 204, 62, 72
MIDDLE, NEAREST_MIDDLE = 336, 288
"""Px from either edge to the brokers, and where there is less room."""
LEAST_MIDDLE = 480
QUEUE_HIGH, TOPIC_HIGH, BROKER_HIGH, SLAVE_HIGH, GROUP_HIGH, GROUP_GAP = 37, 32, 40, 38, 50, 24
FOOT = 48
"""Px for the legend below."""
THIN, THICK, PER_PX = 1.5, 8.0, 130.0
"""Px of a line at least and at most, and messages a second of a px."""
SPREAD = 9.0
"""Px between two lines at a card."""


def widths(rates: Sequence[float | None]) -> Floats:
    """Px of lines, in steps of half a px; what nobody measured is as thin as can be."""
    told = np.array([0.0 if rate is None else rate for rate in rates], np.float64)
    return np.round(np.clip(told / PER_PX, THIN, THICK) * 2) / 2


@dataclass(frozen=True, slots=True)
class Bands:
    """Lines: ends, width, the place of their colour (−1: grey), whether dashed, and whose each is (client id)."""

    x0: Floats
    y0: Floats
    x1: Floats
    y1: Floats
    width: Floats
    place: NDArray[np.int64]
    dashed: NDArray[np.bool_]
    whose: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.whose)

    def seen(self, top: float, bottom: float) -> NDArray[np.int64]:
        """Numbers of those that cross the stretch."""
        low, high = np.minimum(self.y0, self.y1), np.maximum(self.y0, self.y1)
        return np.nonzero((low <= bottom) & (high >= top))[0]


def _bands(rows: Sequence[Line]) -> Bands:
    ends = np.array([row[:4] for row in rows], np.float64).reshape(-1, 4)
    return Bands(
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
    """Producers left, brokers and queues in the middle, consumers right; y are upper edges, of queues middles."""

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
    left: Bands
    right: Bands

    @property
    def middle(self) -> float:
        """Width of the brokers."""
        return self.width - 2 * self.side

    @property
    def gone(self) -> tuple[BrokerRow, ...]:
        """Brokers that do not answer: what stands there of them is from before."""
        return tuple(row for row, _, _ in self.brokers if row.master is None or row.master.words)

    @property
    def right_edge(self) -> float:
        """Where the consumers begin."""
        return self.width - EDGE - CARD

    def queues_seen(self, top: float, bottom: float) -> range:
        """Numbers of the queues in a stretch."""
        low = int(np.searchsorted(self.queue_y, top - QUEUE_HIGH / 2))
        return range(low, int(np.searchsorted(self.queue_y, bottom + QUEUE_HIGH / 2)))


def lines_plan(picture: Picture, width: float) -> LinesPlan:
    """Lay out a small cluster on ``width`` px."""
    width = max(width, 2 * NEAREST_MIDDLE + LEAST_MIDDLE)
    side = min(float(MIDDLE), (width - LEAST_MIDDLE) / 2)
    brokers, topics, rows, ys, slaves = [], [], [], [], []
    y = float(TOP)
    for broker in picture.brokers:
        top = y
        y += BROKER_HIGH
        for name, queues in broker.topics:
            topics.append((name, queues, y))
            y += TOPIC_HIGH
            for queue in queues:
                rows.append(queue)
                ys.append(y + QUEUE_HIGH / 2)
                y += QUEUE_HIGH
        for slave in broker.slaves:
            slaves.append((slave, y))
            y += SLAVE_HIGH
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
    for group in sorted(picture.groups, key=lambda one: (one.broadcast, one.name)):
        groups.append((group, y))
        y += GROUP_HIGH
        for client in group.clients:
            clients.append((client, y))
            y += CARD_STEP
        y += GROUP_GAP
    made = (tuple(brokers), tuple(topics), tuple(rows), np.array(ys, np.float64))
    left = _left(senders, brokers, side)
    right = _right(groups, clients, rows, ys, topics, (width - side, width - EDGE - CARD))
    return LinesPlan(
        width,
        max(end, y) + FOOT,
        side,
        *made,
        tuple(slaves),
        tuple(senders),
        tuple(groups),
        tuple(clients),
        left,
        right,
    )


def _left(
    senders: Sequence[tuple[ProducerRow, float]], brokers: Sequence[tuple[BrokerRow, float, float]], side: float
) -> Bands:
    """Who is connected to which broker; brokers begin at ``side``."""
    tops = {broker.name: top for broker, top, _ in brokers}
    coming: dict[str, list[tuple[ProducerRow, float]]] = {}
    for sender, y in senders:
        for name in sender.brokers if not sender.left else ():
            if name in tops:
                coming.setdefault(name, []).append((sender, y))
    rows: list[Line] = []
    for name, some in coming.items():
        for number, (sender, y) in enumerate(some):
            at = tops[name] + BROKER_HIGH / 2 + (number - (len(some) - 1) / 2) * 4
            shift = (sender.brokers.index(name) - (len(sender.brokers) - 1) / 2) * SPREAD
            rows.append(
                (
                    EDGE + CARD,
                    y + CARD_HIGH / 2 + shift,
                    side - 4.0,
                    at,
                    None,
                    sender.badge.place,
                    False,
                    sender.client.client_id,
                )
            )
    return _bands(rows)


def _right(
    groups: Sequence[tuple[GroupRow, float]],
    clients: Sequence[tuple[ClientRow, float]],
    rows: Sequence[QueueRow],
    ys: Sequence[float],
    topics: Sequence[tuple[str, tuple[QueueRow, ...], float]],
    ends: tuple[float, float],
) -> Bands:
    """Who owns which queue; of a broadcast group, who reads which topic. ``ends`` are where lines begin and end."""
    at = {row.queue: y for row, y in zip(rows, ys, strict=True)}
    went = {(group.name, row.queue): row.went for group, _ in groups for row in group.queues}
    broadcast = {group.name for group, _ in groups if group.broadcast}
    found: list[Line] = []
    edge, goal = ends
    for client, y in clients:
        middle = y + CARD_HIGH / 2
        name = client.client.client_id
        if client.group in broadcast:
            names = {queue.topic for queue in client.owned or ()}
            found += [
                (edge, top + TOPIC_HIGH / 2, goal, middle, None, -1, True, name)
                for topic, _, top in topics
                if topic in names
            ]
            continue
        owned = [queue for queue in client.owned or () if queue in at]
        step = min(SPREAD, (CARD_HIGH - 16) / max(len(owned), 1))
        found += [
            (
                edge,
                at[queue],
                goal,
                middle + (number - (len(owned) - 1) / 2) * step,
                went.get((client.group, queue)),
                client.badge.place,
                False,
                name,
            )
            for number, queue in enumerate(owned)
        ]
    return _bands(found)


# ---- the large picture -----------------------------------------------------------------------------------------------

ROW, CELL, CELL_STEP = 26, 14, 16
WIDE_TABLES, SLIM_TABLES, SLIM = (272.0, 336.0, 356.0, 292.0), (150.0, 182.0, 290.0, 258.0), 1340
"""Width of the left table, where the middle one begins and, from the right edge, ends, width of the right table; below
so many px of width the second.
"""
CELLS_AT, NUMBERS = 168, 276
"""Where the cells of a topic begin within the middle table, and what its figures take at its right."""
LEAST_CELLS = 1040
FEW, SOME_BEHIND, MUCH, NOBODY, UNTOLD = range(5)
"""What a cell says: less than 10 behind, 10 and more, 1,000 and more, no owner, nobody told."""


@dataclass(frozen=True, slots=True)
class SenderGroup:
    """Producers by group."""

    name: str
    members: tuple[ProducerRow, ...]


@dataclass(frozen=True, slots=True)
class CellsPlan:
    """Three tables over one scroll: groups of producers, topics with a cell a queue, groups with the opened one's
    clients. ``cells`` has a row a topic: what each queue says, −1 where it has none.
    """

    width: float
    height: float
    tables: tuple[float, float, float, float]
    """As :data:`WIDE_TABLES`."""
    topics: tuple[TopicRow, ...]
    cells: NDArray[np.int8]
    shown_cells: int
    """Cells of a topic that have room; the rest is a number."""
    trouble_end: int
    """Topics in trouble: a line stands behind the last one."""
    senders: tuple[SenderGroup, ...]
    groups: tuple[GroupRow | ClientRow, ...]
    bands: Bands

    @property
    def senders_wide(self) -> float:
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
    def groups_wide(self) -> float:
        return self.tables[3]

    def rows_seen(self, top: float, bottom: float) -> range:
        """Numbers of the rows in a stretch."""
        return range(max(int(top // ROW), 0), int(np.ceil(bottom / ROW)))


def cell_codes(topics: Sequence[TopicRow]) -> NDArray[np.int8]:
    """What each queue of each topic says, as one array."""
    most = max((len(topic.queues) for topic in topics), default=0)
    codes = np.full((len(topics), most), -1, np.int8)
    if not most:
        return codes
    counts = np.array([len(topic.queues) for topic in topics])
    there = np.arange(most) < counts[:, None]
    rows = [row for topic in topics for row in topic.queues]
    behind = np.array([-1 if row.worst is None else row.worst for row in rows], np.int64)
    said = np.select([behind >= MANY, behind >= SOME, behind >= 0], [MUCH, SOME_BEHIND, FEW], UNTOLD).astype(np.int8)
    nobody = np.array([not row.group for row in rows], np.bool_)
    said[nobody] = FEW
    said[np.array([row.orphan for row in rows], np.bool_)] = NOBODY
    codes[there] = said
    return codes


def cells_plan(picture: Picture, width: float, chosen: Chosen, order: Sequence[str] = ()) -> CellsPlan:
    """Lay out a large cluster on ``width`` px; ``order`` are topics as they stood before."""
    width = max(width, LEAST_CELLS)
    topics = in_order(picture.topics, order)
    senders = tuple(
        SenderGroup(name, tuple(members))
        for name, members in groupby(sorted(picture.producers, key=_first_group), key=_first_group)
    )
    leading = chosen.name if chosen.kind == "group" else chosen.group
    topic = chosen.queue.topic if chosen.queue is not None else chosen.name if chosen.kind == "topic" else ""
    row = next((one for one in topics if one.name == topic), None)
    if not leading and row is not None and row.groups:
        leading = row.groups[0]
    groups = list(picture.groups)
    if row is not None:
        groups.sort(key=lambda one: one.name not in row.groups)
    opened: list[GroupRow | ClientRow] = []
    for group in groups:
        opened.append(group)
        if group.name == leading:
            opened += group.clients
    tables = WIDE_TABLES if width >= SLIM else SLIM_TABLES
    room = width - tables[1] - tables[2] - CELLS_AT - NUMBERS
    shown = max(int(room // CELL_STEP), 1)
    high = max(len(topics), len(opened), len(senders)) * ROW + ROW
    end = sum(bool(one.trouble) for one in topics)
    ends = (width - tables[2], width - tables[3])
    return CellsPlan(
        width,
        high,
        tables,
        topics,
        cell_codes(topics),
        shown,
        end,
        senders,
        tuple(opened),
        _chosen_bands(topics, opened, row, leading, ends),
    )


def _first_group(row: ProducerRow) -> str:
    return row.groups[0] if row.groups else ""


def in_order(topics: Sequence[TopicRow], order: Sequence[str]) -> tuple[TopicRow, ...]:
    """Topics where they stood: they are sorted anew only when one comes, goes, or gets into trouble or out of it."""
    sorted_now = {row.name: row for row in topics}
    if set(order) != sorted_now.keys():
        return tuple(topics)
    kept = [sorted_now[name] for name in order]
    ranks = [not row.trouble for row in kept]
    return tuple(kept) if ranks == sorted(ranks) else tuple(topics)


def _chosen_bands(
    topics: Sequence[TopicRow],
    groups: Sequence[GroupRow | ClientRow],
    row: TopicRow | None,
    leading: str,
    ends: tuple[float, float],
) -> Bands:
    """The lines of what is chosen: from its topic to the clients that own its queues; of other groups one, grey."""
    found: list[Line] = []
    places = {one.name: number for number, one in enumerate(topics)}
    lead = next((one for one in groups if isinstance(one, GroupRow) and one.name == leading), None)
    wanted = [row.name] if row is not None else list(lead.group.subscriptions) if lead is not None else []
    edge, goal = ends
    for name in wanted:
        if name not in places:
            continue
        y = places[name] * ROW + ROW / 2
        members = [
            (at, one)
            for at, one in enumerate(groups)
            if isinstance(one, ClientRow) and any(queue.topic == name for queue in one.owned or ())
        ]
        for number, (at, one) in enumerate(members):
            own = [queue for queue in one.owned or () if queue.topic == name]
            shift = (number - (len(members) - 1) / 2) * min(2.2, 20 / max(len(members), 1))
            found.append(
                (
                    edge,
                    y + shift,
                    goal,
                    at * ROW + ROW / 2,
                    _rate(lead, own),
                    one.badge.place,
                    lead is not None and lead.broadcast,
                    one.client.client_id,
                )
            )
        found += [
            (edge, y, goal, at * ROW + ROW / 2, None, -1, True, "")
            for at, one in enumerate(groups)
            if row is not None and isinstance(one, GroupRow) and one.name in row.groups and one.name != leading
        ]
    return _bands(found)


def _rate(group: GroupRow | None, queues: Sequence[Queue]) -> float | None:
    rates = [row.went for row in group.queues if row.queue in queues and row.went is not None] if group else []
    return sum(rates) if rates else None
