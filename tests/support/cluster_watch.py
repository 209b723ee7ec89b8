"""A cluster that is read repeatedly while clients use it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Iterator

from engine.cluster.reader import ClusterReader
from engine.cluster.state import ClusterState


@contextlib.contextmanager
def watched(name_server: str, every: float = 1.0) -> Iterator[list[ClusterState]]:
    """Yield a list of states of the cluster, one each ``every`` seconds while the block runs."""
    states: list[ClusterState] = []
    ended = threading.Event()

    async def look() -> None:
        async with ClusterReader([name_server]) as reader:
            while not ended.is_set():
                states.append(await reader.read())
                await asyncio.to_thread(ended.wait, every)

    thread = threading.Thread(target=lambda: asyncio.run(look()))
    thread.start()
    try:
        yield states
    finally:
        ended.set()
        thread.join()


def assert_states_fit_java_clients(states: list[ClusterState]) -> None:
    """Assert that the states fit a cluster of Java clients: their language, owners, and offsets."""
    groups = [group for state in states for group in state.groups.values()]
    assert {client.language for group in groups for client in group.clients} == {"JAVA"}
    owned = [
        (state, group, queue)
        for state in states
        for group in state.groups.values()
        for queue in state.queues
        if group.model == "CLUSTERING" and group.owners(queue)
    ]
    assert owned
    assert all(queue.topic in group.subscriptions for _, group, queue in owned)
    assert all(
        offset <= state.queues[queue].max_offset
        for state in states
        for name in state.groups
        for queue, offset in state.offsets(name).items()
        if queue in state.queues
    )
    assert any(rate > 0 for earlier, later in itertools.pairwise(states) for rate in later.rates(earlier).values())
