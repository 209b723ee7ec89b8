"""Views of stores whose queues are in a RocksDB: they show what they show of queues in files."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from golden_stores import GoldenStores
from walker import Run, Walker

pytestmark = [pytest.mark.journey, pytest.mark.golden]

VIEWS = ("log", "queue", "index", "positions", "findings", "space", "groups", "config", "rows", "waiting", "where")
NOT_ALL = re.compile(r"not all readable|not decoded|[0-9] unread|Not for certain|no consume queues")


@pytest.fixture(autouse=True)
def _needs_binding() -> None:
    pytest.importorskip("rocksdict")


def test_no_view_says_that_something_is_not_read(run: Run, walker: Walker, golden: GoldenStores) -> None:
    """All did: the tree had no topic, and the card said that not everything was readable."""

    async def walk() -> None:
        await walker.open(golden("rocksdb-orders-5.5.1"))
        for view in VIEWS:
            walker.window.show_view(view)
            await walker.rest()
            assert NOT_ALL.findall(walker.texts(walker.window)) == [], view

    run(walk())


def test_a_damaged_rocksdb_is_named_and_nothing_is_concluded(
    run: Run, walker: Walker, golden: GoldenStores, tmp_path: Path
) -> None:
    root = shutil.copytree(golden("rocks-5.5.1"), tmp_path / "store")
    for table in (root / "consumequeue").glob("*.sst"):
        table.unlink()

    async def walk() -> None:
        await walker.open(root)
        walker.window.show_view("queue")
        await walker.rest()
        texts = walker.texts(walker.window)
        assert "expected a table file of" in texts
        assert "no consume queues" not in texts
        assert "what its queues hold is not known" in texts

    run(walk())
