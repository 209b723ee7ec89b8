"""The plan's lines where the log is gone: the likely cause stands first, in the window's language."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from made_stores import healthy
from PySide6.QtWidgets import QApplication

from engine.inspection.findings import check
from engine.inspection.recovery import plan
from engine.inspection.snapshot import open_store
from viewer import assets
from viewer.panes.plan_words import headline, plan_rows
from viewer.sayings import engine_words


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_a_log_that_is_gone_is_said_first(dressed: QApplication, tmp_path: Path, language: str) -> None:
    root = healthy().write(tmp_path / "store")
    shutil.rmtree(root / "commitlog")
    with open_store(root) as store:
        found = plan(store)
        finding = next(check(store))
    assets.set_language(language)
    first = plan_rows(found)[0]
    said = {"en": "is its disk mounted?", "zh_CN": "它的磁盘挂载了吗？"}[language]
    assert first.mark == "error"
    assert first.why.endswith(said)
    assert engine_words(finding.message).endswith(said)
    assert headline(found)[0][1].endswith(said)
