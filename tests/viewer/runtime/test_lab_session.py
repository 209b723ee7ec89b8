"""The desk of a lab store, with a fake client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.codec.checkpoint import Checkpoint
from engine.errors import StoreError
from engine.lab.load_settings import LoadSettings
from engine.lab.presets import PRESETS
from engine.lab.samples import LoadCounts, PositionSample, PutAnswer
from engine.store.latency import Histogram
from engine.store.positions import Positions
from viewer.runtime.lab_session import LabSession, lab_of
from viewer.runtime.put_form import PutForm

POSITIONS = Positions(0, 90, 60, 40, 60, 60, 60, 59, Checkpoint(1, 1, 1), None, 0, Histogram(), Histogram())


class FakeEngine:
    """A fake engine that answers at once and records its requests."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.stopped = ""

    async def start(self, folder: Path, *_arguments: object) -> SimpleNamespace:
        self.calls.append(("start", *_arguments))
        return SimpleNamespace(
            root=folder / "store", folder=folder, is_lab=True, config=PRESETS[0].config, release="5.3"
        )

    async def sample(self) -> PositionSample:
        return PositionSample(len(self.calls), POSITIONS)

    async def counts(self) -> LoadCounts:
        return LoadCounts(not self.stopped, 1, 1, {"PUT_OK": 1}, stopped=self.stopped)

    async def put(self, message: Any) -> PutAnswer:
        return PutAnswer("PUT_OK", 40, 50, 3, unit=message.body)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def answer(*args: object) -> LoadCounts:
            self.calls.append((name, *args))
            return LoadCounts()

        return answer


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    engine = FakeEngine()
    monkeypatch.setattr(LabSession, "_client", lambda _self: engine)
    return engine


async def until(condition: Callable[[], object]) -> None:
    """Wait until the condition is true; the desk polls by itself."""
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


def _in_lab(tmp_path: Path, walk: Callable[[LabSession], Any]) -> None:
    async def main() -> None:
        lab = LabSession()
        await lab.open(tmp_path, None, "5.3")
        try:
            await walk(lab)
        finally:
            await lab.close()

    asyncio.run(main())


def test_the_desk_polls_and_is_found_by_its_directory(qapp: object, client: FakeEngine, tmp_path: Path) -> None:
    async def walk(lab: LabSession) -> None:
        emitted: list[PositionSample] = []
        lab.sampled.connect(emitted.append)
        await until(lambda: len(emitted) >= 2)
        assert lab.alive
        assert lab.can_cut_power
        session: Any = SimpleNamespace(path=tmp_path / "store")
        assert lab_of(session.path) is lab
        await lab.close()
        assert lab_of(session.path) is None
        assert ("close",) in client.calls

    _in_lab(tmp_path, walk)


def test_puts_are_listed_with_their_results(qapp: object, client: FakeEngine, tmp_path: Path) -> None:
    async def walk(lab: LabSession) -> None:
        emitted: list[object] = []
        lab.putDone.connect(emitted.append)
        done = await lab.put(PutForm("T", "1", body="x"))
        assert emitted == [done]
        assert done is not None
        assert (done.ok, done.offset, done.where()) == (True, 40, "40 · T/1/3")
        assert list(lab.done) == [done]

    _in_lab(tmp_path, walk)


def test_a_load_pauses_continues_and_reports_why_it_stopped(qapp: object, client: FakeEngine, tmp_path: Path) -> None:
    async def walk(lab: LabSession) -> None:
        settings = LoadSettings(rate=100)
        await lab.set_load(settings)
        await lab.pause_load(True)
        assert (lab.load, lab.load_paused) == (settings, True)
        await lab.pause_load(False)
        assert [item for item in client.calls if item[0] == "load"] == [
            ("load", settings),
            ("load", None),
            ("load", settings),
        ]
        words: list[str] = []
        lab.failed.connect(words.append)
        client.stopped = "the disk is full"
        await until(lambda: words)
        assert words == ["the disk is full"]
        assert lab.load is None

    _in_lab(tmp_path, walk)


def test_a_dead_client_is_reported_once_and_nothing_hangs(qapp: object, client: FakeEngine, tmp_path: Path) -> None:
    async def walk(lab: LabSession) -> None:
        emitted: list[str] = []
        lab.died.connect(emitted.append)
        await lab.set_load(LoadSettings())
        lab._fell(lab.client, StoreError("gone"))  # type: ignore[arg-type]
        assert (emitted, lab.dead, lab.alive, lab.load) == (["gone"], "gone", False, None)
        assert await lab.put(PutForm()) is None
        await lab.flush()

    _in_lab(tmp_path, walk)


def test_failures_are_reported(qapp: object, client: FakeEngine, tmp_path: Path) -> None:
    async def walk(lab: LabSession) -> None:
        words: list[str] = []
        lab.failed.connect(words.append)

        async def wrong() -> None:
            raise StoreError("refused")

        await lab.begin(wrong())
        assert words == ["refused"]

    _in_lab(tmp_path, walk)
