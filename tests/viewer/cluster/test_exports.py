"""Exports of the Cluster view, with work that runs at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from PySide6.QtWidgets import QApplication, QWidget

from viewer.cluster.exports import ClusterExports


def _run(work: Callable[[], object], done: Callable[[object], object], failed: Callable[[Exception], object]) -> None:
    try:
        result = work()
    except OSError as error:
        failed(error)
    else:
        done(result)


@pytest.fixture
def exports(qtbot: Any, themed_app: Any) -> ClusterExports:
    view = QWidget()
    qtbot.addWidget(view)
    cluster_exports = ClusterExports(view, lambda: "| queue | lag |\n")
    model = SimpleNamespace(state=None, lag=SimpleNamespace(rows=list))
    cluster_exports.watch = cast("Any", SimpleNamespace(run=_run, model=model))
    return cluster_exports


@pytest.fixture
def texts(exports: ClusterExports) -> list[str]:
    emitted: list[str] = []
    exports.statusText.connect(emitted.append)
    return emitted


def test_markdown_is_written_and_copied(exports: ClusterExports, texts: list[str], tmp_path: Path) -> None:
    exports.write_markdown(tmp_path / "cluster.md")
    exports.copy_markdown()
    assert (tmp_path / "cluster.md").read_text("utf-8") == "| queue | lag |\n"
    assert QApplication.clipboard().text() == "| queue | lag |\n"
    assert texts == [f"Written: {tmp_path / 'cluster.md'}", "Copied the cluster as Markdown."]


def test_a_file_that_cannot_be_written_is_named(exports: ClusterExports, texts: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    exports.write_lag(tmp_path / "file" / "lag.csv")
    assert texts[0].startswith(str(tmp_path / "file" / "lag.csv"))


def test_without_a_cluster_no_file_is_asked_for(exports: ClusterExports, texts: list[str]) -> None:
    exports.ask_markdown()
    assert texts == ["There is nothing to export yet."]
