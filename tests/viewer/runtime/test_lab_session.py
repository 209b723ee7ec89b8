"""The desk of a lab store over a client that only pretends."""

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
from viewer.runtime.lab_session import LabDesk, lab_of
from viewer.runtime.put_form import PutForm

POSITIONS = Positions(0, 90, 60, 40, 60, 60, 60, 59, Checkpoint(1, 1, 1), None, 0, Histogram(), Histogram())


class Pretended:
    """Answers at once; notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.stopped = ""

    async def start(self, folder: Path, *_more: object) -> SimpleNamespace:
        self.asked.append(("start", *_more))
        return SimpleNamespace(root=folder / "store", folder=folder, is_lab=True, config=PRESETS[0].config, like="5.3")

    async def sample(self) -> PositionSample:
        return PositionSample(len(self.asked), POSITIONS)

    async def counts(self) -> LoadCounts:
        return LoadCounts(not self.stopped, 1, 1, {"PUT_OK": 1}, stopped=self.stopped)

    async def put(self, message: Any) -> PutAnswer:
        return PutAnswer("PUT_OK", 40, 50, 3, unit=message.body)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def answer(*args: object) -> LoadCounts:
            self.asked.append((name, *args))
            return LoadCounts()

        return answer


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Pretended:
    made = Pretended()
    monkeypatch.setattr(LabDesk, "_client", lambda _self: made)
    return made


def _on_desk(tmp_path: Path, walk: Callable[[LabDesk], Any]) -> None:
    async def main() -> None:
        desk = LabDesk()
        await desk.open(tmp_path, None, "5.3")
        try:
            await walk(desk)
        finally:
            await desk.close()

    asyncio.run(main())


def test_it_looks_on_its_own_and_is_found_by_the_directory(qapp: object, client: Pretended, tmp_path: Path) -> None:
    async def walk(desk: LabDesk) -> None:
        seen: list[PositionSample] = []
        desk.sampled.connect(seen.append)
        await asyncio.sleep(0.25)
        assert len(seen) >= 2
        assert desk.alive
        assert desk.plug_possible
        session: Any = SimpleNamespace(path=tmp_path / "store")
        assert lab_of(session.path) is desk
        await desk.close()
        assert lab_of(session.path) is None
        assert ("close",) in client.asked

    _on_desk(tmp_path, walk)


def test_puts_are_kept_with_their_answers(qapp: object, client: Pretended, tmp_path: Path) -> None:
    async def walk(desk: LabDesk) -> None:
        told: list[object] = []
        desk.answered.connect(told.append)
        done = await desk.put(PutForm("T", "1", body="x"))
        assert told == [done]
        assert done is not None
        assert (done.ok, done.offset, done.where()) == (True, 40, "40 · T/1/3")
        assert list(desk.done) == [done]

    _on_desk(tmp_path, walk)


def test_a_load_pauses_goes_on_and_tells_why_it_stopped(qapp: object, client: Pretended, tmp_path: Path) -> None:
    async def walk(desk: LabDesk) -> None:
        settings = LoadSettings(rate=100)
        await desk.set_load(settings)
        await desk.pause_load(True)
        assert (desk.load, desk.load_paused) == (settings, True)
        await desk.pause_load(False)
        assert [one for one in client.asked if one[0] == "load"] == [
            ("load", settings), ("load", None), ("load", settings),
        ]  # fmt: skip
        words: list[str] = []
        desk.failed.connect(words.append)
        client.stopped = "the disk is full"
        await asyncio.sleep(0.3)
        assert words == ["the disk is full"]
        assert desk.load is None

    _on_desk(tmp_path, walk)


def test_a_client_that_dies_is_told_once_and_nothing_hangs(qapp: object, client: Pretended, tmp_path: Path) -> None:
    async def walk(desk: LabDesk) -> None:
        told: list[str] = []
        desk.died.connect(told.append)
        await desk.set_load(LoadSettings())
        desk._fell(desk.client, StoreError("gone"))  # type: ignore[arg-type]
        assert (told, desk.dead, desk.alive, desk.load) == (["gone"], "gone", False, None)
        assert await desk.put(PutForm()) is None
        await desk.flush()

    _on_desk(tmp_path, walk)


def test_what_fails_is_said(qapp: object, client: Pretended, tmp_path: Path) -> None:
    async def walk(desk: LabDesk) -> None:
        words: list[str] = []
        desk.failed.connect(words.append)

        async def wrong() -> None:
            raise StoreError("refused")

        await desk.begin(wrong())
        assert words == ["refused"]

    _on_desk(tmp_path, walk)
