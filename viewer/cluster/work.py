"""Worker function of the view: reads a cluster repeatedly until it is stopped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from engine.cluster.reader import AnsweredRequest, ClusterReader
from viewer.cluster.access import NO_FILES, AccessFiles
from viewer.cluster.cluster_model import AdminRequest, Reading
from viewer.runtime.worker import WorkerControl

MIN_IDLE_SHARE = 0.25
"""Minimum pause between two readings, as a share of a reading's duration, to spare the brokers."""


def watch(control: WorkerControl, addresses: Sequence[str], interval_s: float, access: AccessFiles = NO_FILES) -> None:
    """Emit a reading each ``interval_s``. Raises StoreError if a file of ``access`` cannot be used."""
    asyncio.run(_watch(control, tuple(addresses), interval_s, access))


async def _watch(control: WorkerControl, addresses: tuple[str, ...], interval_s: float, access: AccessFiles) -> None:
    account, tls = access.read_account(), access.read_tls()
    requests: list[AnsweredRequest] = []
    stopped = asyncio.ensure_future(asyncio.to_thread(control.stop.wait))
    try:
        async with ClusterReader(addresses, requests.append, account=account, tls=tls) as reader:
            while not control.stop.is_set():
                start_time = time.monotonic()
                reading = asyncio.ensure_future(reader.read())
                await asyncio.wait({reading, stopped}, return_when=asyncio.FIRST_COMPLETED)
                if control.stop.is_set():
                    reading.cancel()
                    await asyncio.gather(reading, return_exceptions=True)
                    return
                duration_s = time.monotonic() - start_time
                control.emit(Reading(reading.result(), _count_requests(requests), duration_s * 1000))
                requests.clear()
                await asyncio.wait({stopped}, timeout=max(interval_s - duration_s, duration_s * MIN_IDLE_SHARE))
    finally:
        control.stop.set()
        await stopped


def _count_requests(requests: Sequence[AnsweredRequest]) -> tuple[tuple[AdminRequest, int, float], ...]:
    counts: dict[AdminRequest, tuple[int, float]] = {}
    for request in requests:
        admin_request = AdminRequest(request.address, request.code, request.name, request.answer)
        times, longest_ms = counts.get(admin_request, (0, 0.0))
        counts[admin_request] = (times + 1, max(longest_ms, request.ms))
    return tuple((admin_request, *totals) for admin_request, totals in counts.items())
