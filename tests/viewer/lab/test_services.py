"""Services of a lab store."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

from engine.codec.checkpoint import Checkpoint
from engine.config import MessageStoreConfig
from engine.lab.presets import PRESETS
from engine.lab.samples import PositionSample, ServiceState
from engine.store.latency import Histogram
from engine.store.positions import Positions
from viewer.lab.services import ServicesPanel

TIME_MS = 1_700_000_000_000


POSITIONS = Positions(
    0, 9000, 6000, 4000, 6000, 6000, 6000, 5900, Checkpoint(TIME_MS, TIME_MS, TIME_MS), 4, 0, Histogram(), Histogram()
)


def test_services_show_their_work_and_waiting_work(qapp: QApplication) -> None:
    panel = ServicesPanel()
    panel.show_store(PRESETS[2].config, able=True)
    services = {
        "commit": ServiceState(True, 10 << 20, TIME_MS - 6500, 314_573, "bytes"),
        "reput": ServiceState(False, 0, TIME_MS, 274, "units"),
        "queues": ServiceState(False, None, TIME_MS - 400, 1, "queues", 1097),
    }
    panel.show_sample(PositionSample(TIME_MS, POSITIONS, services=services))
    assert panel.lines["commit"].accessibleName() == "Commit paused. 307 KiB, 6.5 s ago. 10.0 MiB waiting"
    assert panel.lines["reput"].accessibleName() == "Dispatch . 274 units, now. nothing waits"
    assert "1,097 queues waiting" in panel.lines["queues"].accessibleName()
    assert "not there" in panel.lines["flush"].accessibleName()
    assert "pool" in panel.now.accessibleDescription()
    signals: list[object] = []
    panel.pauseRequested.connect(lambda name, on: signals.append((name, on)))
    panel.stepRequested.connect(signals.append)
    panel.reopenRequested.connect(signals.append)
    panel.lines["commit"].pause.click()
    panel.lines["reput"].step.click()
    panel.mode.click()
    panel.pool.click()
    assert signals == [
        ("commit", False),
        "reput",
        {"flush_disk_type": "SYNC_FLUSH"},
        {"transient_store_pool_enable": False},
    ]
    panel.show_store(MessageStoreConfig(), able=True)
    assert not panel.commit.isEnabled()
    panel.deleteLater()
