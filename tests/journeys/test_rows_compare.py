"""Two stores side by side, going together; the first byte that differs, and the unit and field that it falls in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from walker import Run, Walker

from viewer.bridge import places
from viewer.desk.compare import sentence
from viewer.desk.windows import close_all, windows

pytestmark = pytest.mark.journey
LOG = "units.table"


@pytest.fixture
def alone(run: Run) -> Iterator[None]:
    """Whatever happens, no second window stays."""
    yield
    run(close_all())


def test_row_10_two_stores_go_together_and_differ_in_a_named_byte(
    run: Run, walker: Walker, orders: Path, copied: Callable[[Path], Path], alone: None
) -> None:
    store = copied(orders)
    log = store / "commitlog" / "00000000000001048576"
    raw = bytearray(log.read_bytes())
    unit = 1_049_472
    at = 1_200_003
    for offset in (at, at + 200_000):
        raw[offset - 1_048_576] ^= 0xFF
    log.write_bytes(raw)

    async def walk() -> None:
        window = walker.window
        await walker.open(orders)
        assert await window.desk.comparison.find() is None
        assert "Nothing to compare with" in walker.said
        other = window.desk.comparison.begin(store)
        assert other is not None
        await walker.until(lambda: other.session is not None and window.view == "log", "the other stands beside")
        await walker.until(lambda: window.jobs.idle and other.jobs.idle, "nothing is under way")
        first = await window.desk.comparison.find(0)
        assert first is not None
        assert (first.offset, (first.here or 0) ^ (first.there or 0)) == (at, 0xFF)
        assert "First difference" in sentence(first)
        assert f" · {first.entry} · {first.field}" in sentence(first), "the unit and the field are named"
        beside = Walker(other)
        await beside.rest()
        await walker.rest()
        here = walker.value(LOG, "Physical offset")
        assert here <= at < here + walker.value(LOG, "Size")
        assert beside.value(LOG, "Physical offset") == here, "both stand there"
        second = await window.desk.comparison.find()
        assert second is not None
        assert second.offset == at + 200_000
        assert await window.desk.comparison.find() is None
        other.go(places.log(unit))
        await asyncio.sleep(0.1)
        await walker.rest()
        assert walker.value(LOG, "Physical offset") == beside.value(LOG, "Physical offset"), "either leads"
        await close_all()
        await asyncio.sleep(0.05)
        assert windows() == ()
        window.go(places.log(0))
        await walker.rest()

    run(walk())
