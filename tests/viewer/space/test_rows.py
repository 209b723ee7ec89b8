"""The table of Space adds up and uses the words of the account; the forecast is in sentences."""

from __future__ import annotations

from pathlib import Path

import pytest
from handmade_stores import HandmadeStore

from engine.inspection import open_store
from engine.inspection.space.account import Space, space_of
from viewer.space.rows import SLIM, SPACE, space_rows

DAY = 86_400_000


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = HandmadeStore()
    for number in range(120):
        store.put(topic=("Orders", "%RETRY%g", "Paid")[number % 3], queue_id=number % 2, tags="A", step=DAY // 6)
    return store.write(tmp_path_factory.mktemp("rows") / "store")


@pytest.fixture(scope="module")
def space(root: Path) -> Space:
    with open_store(root) as store:
        return space_of(store)


def test_rows_and_sum(space: Space) -> None:
    rows = space_rows(space)
    assert rows[-1].kind == "sum"
    queues = sum(row.queues or 0 for row in rows)
    assert sum(row.log for row in rows[:-1]) + queues == rows[-1].log == space.bytes
    assert sum(row.share for row in rows[:-1]) == pytest.approx(1)
    assert [row.key for row in rows if row.kind == "topic"][-1] == "%RETRY%g", "system topics come last"


def test_rows_are_said_and_copied(space: Space) -> None:
    rows = space_rows(space)
    assert "bytes, equal to the files ✓" in SPACE.as_text(rows[-1])
    assert f"{space.bytes:,}" in SPACE.as_text(rows[-1])
    assert SPACE.as_record(rows[0])["bytes"] == rows[0].log
    assert len(SLIM.columns) < len(SPACE.columns)
    look = SPACE.look(rows[-1])
    assert look is not None
    assert look.tone == "ok"


def test_a_sum_that_differs_is_an_error(space: Space) -> None:
    from dataclasses import replace

    row = space_rows(replace(space, counted=space.counted - 1))[-1]
    look = SPACE.look(row)
    assert look is not None
    assert look.tone == "error"
    assert f"{space.bytes:,}" in row.note
