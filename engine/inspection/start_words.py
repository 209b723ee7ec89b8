"""What a plan of the next start says, for people: no reading of stores, so that a command line can begin without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from engine.codec.words import when
from engine.counted import counted
from engine.store.recovery.plan import Blocker, Loss


def folded(blockers: Sequence[Blocker]) -> Iterator[list[Blocker]]:
    """Blockers that say the same of several files, together."""
    yield from (list(same) for _, same in groupby(blockers, key=what))


def what(blocker: Blocker) -> tuple[str, str]:
    """A blocker's rule and message without the file that it names."""
    return blocker.finding, blocker.message.replace(f"{blocker.file}: ", "")


def undispatched_words(loss: Loss) -> str:
    """How many messages no start dispatches, of how many queues, between which units, from when."""
    what = f"{counted(loss.messages, 'messages')} of {counted(len(loss.queues), 'queues')}"
    times = [row.first_time for row in loss.queues if row.first_time > 0]
    ends = [row.last_time for row in loss.queues if row.last_time > 0]
    stored = f", stored {when(min(times))} to {when(max(ends))}" if times and ends else ""
    units = f"units {loss.first_unit:,} to {loss.last_unit:,}"
    them = "it" if loss.messages == 1 else "them"
    return f"{what} will be in no queue after the next start, and no later one will dispatch {them}: {units}{stored}"
