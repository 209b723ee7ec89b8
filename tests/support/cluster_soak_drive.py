"""Drive file of ``tests/journeys/test_cluster_soak.py``: watches a cluster that the lab serves while clients come, are
slowed, cut, stopped and killed, queues come and go, and a broker leaves and comes again.

Run as ``storescope view --drive``, in a process that holds only the window; the cluster and the clients have
processes of their own. Figures go into the file named by ``STORESCOPE_SOAK_FIGURES``, as JSON: bytes, seconds.
"""

from __future__ import annotations

import asyncio
import gc
import json
import multiprocessing
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

from soak_drive import largest_pieces, resident

from engine.lab.presets import PRESETS
from engine.lab.samples import ServeSettings
from viewer.cluster import cluster_model, deliveries
from viewer.cluster.cluster_model import ClusterModel, Selection

SECONDS = float(os.environ["STORESCOPE_SOAK"])
FULL = SECONDS >= 600
FIGURES = Path(os.environ["STORESCOPE_SOAK_FIGURES"])
WARM_UP = 0.6
"""Share of the time after which memory is measured for the first time: by then all that is kept is full."""
SHARE = min(SECONDS / 3600, 1.0)
"""What is kept is bounded by half an hour; in a shorter run by half of its time."""
STEP = 2.0 if FULL else 0.2
MAX_CLIENTS = 6
GROUP, TOPIC = "readers", "Orders"


async def wait_until(true: Any, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "timed out"
        await asyncio.sleep(0.05)


def own_memory() -> dict[str, int]:
    """Return the private memory of the processes beside the window, by name, in bytes: pages of files are left out."""
    results = {}
    for child in multiprocessing.active_children():
        lines = Path(f"/proc/{child.pid}/status").read_text("utf-8").splitlines()
        results[child.name] = next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))
    return results


class ClusterChurn:
    """Changes of the cluster in turn, and the views that a person opens meanwhile."""

    def __init__(self, window: Any, pane: Any) -> None:
        self._window, self._pane = window, pane
        self._lab, self._own = window.lab.session, pane.watch.own
        self.done: Counter[str] = Counter()
        """What was done, and how often."""
        self._turn = 0

    @property
    def _model(self) -> ClusterModel:
        model: ClusterModel = self._pane.watch.model
        return model

    async def step(self) -> None:
        """Make the next change, and open the next view."""
        self._turn += 1
        deeds = (self._join, self._slow, self._cut, self._join, self._leave, self._queues, self._join, self._kill)
        await deeds[self._turn % len(deeds)]()
        if self._turn % 40 == 20:
            await self._broker()
        self._look()

    def _running(self) -> list[Any]:
        return [row for row in self._own.rows.values() if row.status == "running" and row.spec.kind == "consumer"]

    async def _join(self) -> None:
        if len(self._running()) < MAX_CLIENTS:
            self._own.add("consumer", self._model.addresses, GROUP, TOPIC, 0)
            self.done["came"] += 1

    async def _leave(self) -> None:
        if len(self._running()) > 2:
            self._own.stop(self._running()[0].spec.number)
            self.done["left"] += 1

    async def _kill(self) -> None:
        if len(self._running()) > 2:
            self._own.kill(self._running()[-1].spec.number)
            self.done["killed"] += 1

    async def _slow(self) -> None:
        for item in self._running()[:1]:
            self._own.slow(item.spec.number, 0.0 if item.delay else 0.025)
            self.done["slowed"] += 1

    async def _cut(self) -> None:
        for client in self._running()[:1]:
            self.done["cut"] += await self._lab.cut_client(client.client_id, "") > 0

    async def _queues(self) -> None:
        turn = self._turn // 8
        await self._lab.set_queues("broker-a", f"Empty{turn % 3}", 2)
        await self._lab.set_queues("broker-a", f"Empty{turn % 3}", turn % 2)
        self.done["queues"] += 1

    async def _broker(self) -> None:
        folder = self._lab.folder.with_name("soak-broker-b")
        if len(self._lab.serving.brokers) > 1:
            await self._lab.end_broker("broker-b")
            self.done["brokers ended"] += 1
        else:
            await self._lab.add_broker("broker-b", folder)
            self.done["brokers"] += 1

    def _look(self) -> None:
        pane, model = self._pane, self._model
        pane.tabs.choose(("lines", "rebalance", "lines", "tables")[self._turn // 4 % 4])
        group = model.find_group(GROUP)
        selections = [Selection("group", GROUP), Selection("broker", "broker-a"), Selection("topic", TOPIC)]
        selections += [
            Selection("client", client.client.client_id, GROUP) for client in (group.clients if group else ())[:1]
        ]
        selections += [Selection("queue", queue=queue) for queue in list(model.state.queues if model.state else ())[:1]]
        pane.choose(selections[self._turn % len(selections)])
        if self._turn % 10 == 5:
            pane.go_to(model.span[0])
        elif self._turn % 10 == 7:
            pane.go_live()


async def drive(window: Any) -> None:
    """Serve, look, churn and measure; leave everything closed."""
    cluster_model.MAX_READINGS = max(round(cluster_model.MAX_READINGS * SHARE), 20)
    cluster_model.MAX_MOMENTS = max(round(cluster_model.MAX_MOMENTS * SHARE / 2), 20)
    deliveries.MAX_AGE_MS = max(round(deliveries.MAX_AGE_MS * SHARE), 2_000)
    deliveries.MAX_REBALANCES = max(round(deliveries.MAX_REBALANCES * SHARE / 2), 20)
    window.settings.lab_folder = FIGURES.parent / "lab"
    assert await window.lab.open_lab(window.settings.lab_folder / "soak", PRESETS[0].config, "5.3")
    lab = window.lab.session
    await lab.serve(ServeSettings(0, 0))
    await lab.set_queues("broker-a", TOPIC, 4)
    window.show_view("cluster")
    pane = window.panes["cluster"]
    pane.watch.set_interval(0.5)
    pane.watch.begin(lab.serving.namesrv)
    await wait_until(lambda: pane.watch.model.state is not None)
    own_clients = pane.watch.own
    own_clients.add("producer", pane.watch.model.addresses, "senders", TOPIC, 200)
    for _ in range(2):
        own_clients.add("consumer", pane.watch.model.addresses, GROUP, TOPIC, 0)
    await wait_until(lambda: sum(row.status == "running" for row in own_clients.rows.values()) == 3)
    churn = ClusterChurn(window, pane)
    begun, warm, minutes, beside = time.monotonic(), 0, [], {}
    while (elapsed := time.monotonic() - begun) < SECONDS or not warm:  # on a busy machine a step may outlast the time
        await churn.step()
        await asyncio.sleep(STEP)
        if elapsed >= 60 * len(minutes):
            gc.collect()
            minutes.append(resident())
        if not warm and elapsed > SECONDS * WARM_UP:
            gc.collect()
            warm, beside = resident(), own_memory()
    gc.collect()
    model = pane.watch.model
    figures: dict[str, Any] = {
        "deeds": churn.done,
        "clients": len(own_clients.rows),
        "readings": len(model.readings),
        "warm": warm,
        "end": resident(),
        "beside": {name: (beside[name], size) for name, size in own_memory().items() if name in beside},
        "minutes": minutes,
        "bounds": {"readings": cluster_model.MAX_READINGS, "deliveries_ms": deliveries.MAX_AGE_MS},
        "sent": sum(row.sent for row in own_clients.rows.values()),
        "failed": sorted({row.words for row in own_clients.rows.values() if row.status == "failed"}),
    }
    figures["pieces"] = await asyncio.to_thread(largest_pieces)
    pane.watch.end()
    own_clients.close()
    window.close_store()
    await asyncio.sleep(0.1)
    await lab.close()
    await asyncio.to_thread(FIGURES.write_text, json.dumps(figures), "utf-8")
