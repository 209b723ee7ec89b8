"""Qt's own tester watches every model of every view during a walk through a store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QAbstractItemModel
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QAbstractItemView
from walker import Run, Walker

from viewer.shell.views import BY_KIND

pytestmark = pytest.mark.journey
PLACES = (
    "log:1310900",
    "queue:OrderPaid/2/100",
    "index:20261121113900544/slot/4",
    "trace:ShipmentEvents/SO-000421",
    "where:SO-000749",
    "findings:IX03",
    "groups:billing",
    "config:topics.json",
    "positions",
    "log",
)


def test_every_model_keeps_qts_rules(run: Run, walker: Walker, damaged: Path, qtlog: Any) -> None:
    """Rows come, go, are sorted and filtered; a model with wrong signals can crash its view."""
    testers: list[QAbstractItemModelTester] = []

    async def walk() -> None:
        window = walker.window
        await walker.open(damaged)
        observed: set[int] = set()
        for view in BY_KIND:
            for shown in window.pane(view).findChildren(QAbstractItemView):
                model = shown.model()
                if isinstance(model, QAbstractItemModel) and id(model) not in observed:
                    observed.add(id(model))
                    testers.append(
                        QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Warning)
                    )
        tree = window.side.findChild(QAbstractItemView, "store.tree")
        assert tree is not None
        testers.append(QAbstractItemModelTester(tree.model(), QAbstractItemModelTester.FailureReportingMode.Warning))
        for place in PLACES:
            assert await window.go_to_text(place), place
            await asyncio.sleep(0.15)
        await walker.rest()
        await walker.act("go.last")
        await walker.act("view.refresh")
        window.close_store()
        await asyncio.sleep(0.05)

    try:
        run(walk())
        watched = len(testers)
    finally:
        testers.clear()  # before the models that they watch
    assert watched > 12
    messages = [record.message for record in qtlog.records if "FAIL" in record.message or "modeltest" in record.message]
    assert not messages, messages
