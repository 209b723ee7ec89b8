"""Sends whose messages wait for the next put: one call of the engine serves all of them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from engine.codec.encode import Message
from engine.remoting.connection import Connection
from engine.remoting.frame import Command
from engine.store.put.message import PutMessageResult


@dataclass(slots=True)
class Pending:
    """A message that is to be put, and who waits for which answer."""

    request: Command
    connection: Connection
    message: Message
    queue_id: int
    """The queue that was asked for: a delayed message goes to another."""
    told: dict[str, str]
    """Fields of the answer beside the message's place."""
    answer: Callable[[PutMessageResult], Command | None] | None = None
    """Gives the answer where it is not a send's; None for none (yet)."""


@dataclass(slots=True)
class PendingSends:
    """What waits. ``putter`` is the thread that waits for the disk where the loop must not; ``busy`` while it does."""

    waiting: list[Pending] = field(default_factory=list)
    putter: ThreadPoolExecutor | None = None
    busy: bool = False
    asked: bool = False
