"""Views of a store with some or all messages in a DLedger log: none concludes that there are no messages."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from golden_stores import GoldenStores
from handmade_stores import healthy, into_dledger
from walker import Run, Walker

pytestmark = pytest.mark.journey

VIEWS = ("log", "queue", "index", "positions", "findings", "space", "groups", "config", "where")
CONCLUSIONS = re.compile(
    r"The log has no files|holds no unit|holds no message|has no commit log|no commitlog folder|No group has|"
    r"0 groups|0 messages|0 B of log|no consume queues|No problems found|Traceback"
)


def dledger_store(root: Path) -> Path:
    """Write a store with a group; it was classic before it changed to a DLedger log."""
    healthy(60).write(root)
    (root / "config").mkdir()
    offsets = {"offsetTable": {"Orders@readers": {"0": 3, "1": 5}}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps(offsets))
    into_dledger(root)
    return root


def test_no_view_concludes_from_a_dledger_log(run: Run, walker: Walker, tmp_path: Path) -> None:
    """The log "has no files", its store "no commitlog folder" and no topic, its groups had no offset, its days held no
    message; tables that only invite were "not for certain".
    """
    stores = [dledger_store(tmp_path / name) for name in ("pure", "classic before")]
    shutil.rmtree(stores[0] / "commitlog")

    async def walk() -> None:
        concluded = []
        for root in stores:
            await walker.open(root)
            for view in VIEWS:
                walker.window.show_view(view)
                await walker.rest()
                texts = walker.texts(walker.window)
                assert "DLedger log" in texts, view
                concluded += [
                    f"{root.name}, {view}: {conclusion}"
                    for conclusion in CONCLUSIONS.findall(texts + walker.status_text)
                ]
                if view in {"index", "where"}:
                    assert "Not for certain" not in walker.texts(walker.window.panes[view]), view
        assert concluded == []

    run(walk())


@pytest.mark.golden
def test_no_view_says_that_a_dledger_log_is_not_decoded(run: Run, walker: Walker, golden: GoldenStores) -> None:
    """Every view said so, and showed no message."""

    async def walk() -> None:
        await walker.open(golden("broker-dledger-5.5.1"))
        for view in VIEWS:
            walker.window.show_view(view)
            await walker.rest()
            texts = walker.texts(walker.window)
            assert "not decoded" not in texts, view
            assert not set(CONCLUSIONS.findall(texts)) - {"No problems found"}, view

    run(walk())
