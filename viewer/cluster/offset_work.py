"""Plan and make a move of a group's offsets on running brokers, in the worker process. No Qt.

What is set are the offsets that the plan showed. The old offsets are in an undo file before the first one is set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from engine.errors import CannotRead, cause_of
from viewer.cluster.access import NO_FILES, AccessFiles

if TYPE_CHECKING:
    from engine.client.offset_moves import GroupOffsets, OffsetMove
    from engine.client.routes import MessageQueue
    from viewer.runtime.control import Control

MoveKind = Literal["time", "end", "group", "undo"]
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class OffsetRequest:
    """Which offsets to set: those at ``time_ms``, the end of each queue, those of ``source_group``, or those in an
    ``undo_file``. For ``undo`` group and topic are those of the file.
    """

    addresses: tuple[str, ...]
    kind: MoveKind
    group: str = ""
    topic: str = ""
    time_ms: int = 0
    source_group: str = ""
    undo_file: Path | None = None
    access: AccessFiles = NO_FILES

    def options(self) -> list[str]:
        """Return the command line that asks the same."""
        servers = ["-n", ";".join(self.addresses)]
        match self.kind:
            case "time":
                words = ["resetOffsetByTime", *servers, "-g", self.group, "-t", self.topic, "-s", str(self.time_ms)]
            case "end":
                words = ["skipAccumulatedMessage", *servers, "-g", self.group, "-t", self.topic]
            case "group":
                words = ["cloneGroupOffset", *servers, "-s", self.source_group, "-d", self.group, "-t", self.topic]
            case "undo":
                words = ["restore-offsets", str(self.undo_file), *servers]
        return ["storescope", *words, *self.access.options()]


@dataclass(frozen=True, slots=True)
class OffsetPlan:
    """The moves, and the ids of the group's connected consumers. ``timestamp`` (ms) is given if all queues go to one
    time.
    """

    group: str
    moves: tuple[OffsetMove, ...]
    members: tuple[str, ...]
    timestamp: int | None = None

    @property
    def again_count(self) -> int:
        """Number of messages that come again."""
        return sum(len(move.again) for move in self.moves)

    @property
    def never_count(self) -> int:
        """Number of messages that never come."""
        return sum(len(move.never) for move in self.moves)

    @property
    def changes(self) -> bool:
        """Return True if any offset changes."""
        return any(move.changes for move in self.moves)


@dataclass(frozen=True, slots=True)
class OffsetResult:
    """The moves with the offsets of the moment, why some were not set, and the undo file."""

    moves: tuple[OffsetMove, ...]
    failures: dict[MessageQueue, str]
    undo_file: Path


def plan(_control: Control, request: OffsetRequest) -> OffsetPlan:
    """Return what a move means; nothing is set. Raises :class:`CannotRead` and :class:`engine.errors.UsageError`."""
    return _with_offsets(request, lambda offsets: _plan(offsets, request))


def apply(_control: Control, request: OffsetRequest, shown: OffsetPlan, undo_file: Path) -> OffsetResult:
    """Set the offsets that ``shown`` has, after the old ones were written. Raises as :func:`plan`, and ``OSError``."""
    from engine.client.offset_undo import undo_record, write_undo

    async def move(offsets: GroupOffsets) -> OffsetResult:
        for topic in sorted({move.queue.topic for move in shown.moves}):
            await offsets.queues(topic)  # the routes of the brokers
        targets = {move.queue: move.new for move in shown.moves}
        moves = tuple(await offsets.plan(shown.group, targets))  # the group may have gone on meanwhile
        write_undo(undo_file, undo_record(request.options()[1], request.addresses, shown.group, moves))
        return OffsetResult(moves, await offsets.apply(shown.group, moves, shown.timestamp), undo_file)

    return _with_offsets(request, move)


async def _plan(offsets: GroupOffsets, request: OffsetRequest) -> OffsetPlan:
    from engine.client.offset_moves import TO_END
    from engine.client.offset_undo import read_undo
    from engine.client.routes import MessageQueue

    group, timestamp = request.group, None
    if request.kind == "undo":
        assert request.undo_file is not None
        undo = read_undo(request.undo_file)
        group = undo["group"]
        rows = undo["offsets"]
        for topic in sorted({row["topic"] for row in rows}):
            await offsets.queues(topic)
        targets = {
            MessageQueue(row["topic"], row["brokerName"], row["queueId"]): row["offset"]
            for row in rows
            if row["offset"] is not None
        }
    elif request.kind == "group":
        targets = await offsets.offsets_to_clone(request.source_group, request.topic)
    else:
        timestamp = TO_END if request.kind == "end" else request.time_ms
        targets = await offsets.at_time(await offsets.queues(request.topic), timestamp)
    moves = await offsets.plan(group, targets)
    return OffsetPlan(group, tuple(moves), tuple(await offsets.members(group, targets)), timestamp)


def _with_offsets(request: OffsetRequest, work: Callable[[GroupOffsets], Awaitable[Answer]]) -> Answer:
    from engine.client.errors import ClientError
    from engine.client.instance import ClientInstance
    from engine.client.offset_moves import GroupOffsets
    from engine.remoting.answers import UnexpectedAnswer

    async def run() -> Answer:
        access = request.access
        instance = ClientInstance(";".join(request.addresses), account=access.read_account(), tls=access.read_tls())
        try:
            return await work(GroupOffsets(instance))
        finally:
            await instance.kill()

    try:
        return asyncio.run(run())
    except (ClientError, UnexpectedAnswer, TimeoutError) as error:
        raise CannotRead(cause_of(error)) from error


def undo_request(request: OffsetRequest, undo_file: Path) -> OffsetRequest:
    """Return the request that sets the old offsets again."""
    return replace(request, kind="undo", undo_file=undo_file)
