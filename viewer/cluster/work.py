"""What the worker process does for the view: reads a cluster again and again until it is told to stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from engine.cluster.reader import Asked, ClusterReader
from viewer.cluster.cluster_model import Look, Question
from viewer.runtime.worker import WorkerControl

REST = 0.25
"""At least this share of the time that a reading took lies between it and the next: brokers have other things to do."""


def watch(control: WorkerControl, addresses: Sequence[str], every: float) -> None:
    """Emit a :class:`Look` each ``every`` seconds."""
    asyncio.run(_watch(control, tuple(addresses), every))


async def _watch(control: WorkerControl, addresses: tuple[str, ...], every: float) -> None:
    asked: list[Asked] = []
    stopped = asyncio.ensure_future(asyncio.to_thread(control.stop.wait))
    try:
        async with ClusterReader(addresses, asked.append) as reader:
            while not control.stop.is_set():
                begun = time.monotonic()
                reading = asyncio.ensure_future(reader.read())
                await asyncio.wait({reading, stopped}, return_when=asyncio.FIRST_COMPLETED)
                if control.stop.is_set():
                    reading.cancel()
                    await asyncio.gather(reading, return_exceptions=True)
                    return
                took = time.monotonic() - begun
                control.emit(Look(reading.result(), _counted(asked), took * 1000))
                asked.clear()
                await asyncio.wait({stopped}, timeout=max(every - took, took * REST))
    finally:
        control.stop.set()
        await stopped


def _counted(asked: Sequence[Asked]) -> tuple[tuple[Question, int, float], ...]:
    found: dict[Question, tuple[int, float]] = {}
    for one in asked:
        question = Question(one.address, one.code, one.name, one.answer)
        times, longest = found.get(question, (0, 0.0))
        found[question] = (times + 1, max(longest, one.ms))
    return tuple((question, *told) for question, told in found.items())
