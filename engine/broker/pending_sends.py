"""Sends whose messages wait for the next put: one call of the store puts all of them."""

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
    """A message to put, with the connection and the answer's fields."""

    request: Command
    connection: Connection
    message: Message
    queue_id: int
    """The requested queue; a delayed message goes to another one."""
    answer_fields: dict[str, str]
    """Fields of the answer besides those of the message's position."""
    answer: Callable[[PutMessageResult], Command | None] | None = None
    """Returns the answer if this is no send of a client; None for no answer (yet)."""


@dataclass(slots=True)
class PendingSends:
    """Sends that wait. ``putter`` is the thread that waits for the disk where the loop must not; ``busy`` is True
    while it does.
    """

    waiting: list[Pending] = field(default_factory=list)
    putter: ThreadPoolExecutor | None = None
    busy: bool = False
    is_scheduled: bool = False
