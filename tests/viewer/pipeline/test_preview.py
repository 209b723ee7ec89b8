"""The preview of a job before it begins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from viewer.pipeline.preview import look
from viewer.pipeline.request import JobRequest


def test_a_preview_reads_the_input_before_the_job(tmp_path: Path, golden: Callable[[str], Path]) -> None:
    store = golden("clean-5.3.3")
    results = look(JobRequest("rebuild", (str(store),), out=str(tmp_path / "new")))
    size = sum(path.stat().st_size for path in (store / "commitlog").iterdir())
    assert (results.stores, results.log_bytes, results.fault, results.out_fault) == (1, size, "", "")
    assert results.built_bytes > 0
    assert results.free is not None
    (tmp_path / "there").write_text("")
    assert look(JobRequest("export", (str(store),), out=str(tmp_path / "there"))).out_fault == "there"
    assert "commitlog" in look(JobRequest("stats", (str(tmp_path),))).fault
    assert look(JobRequest("import", (str(tmp_path),), out=str(tmp_path / "new"))).fault == "no export"
    assert look(JobRequest("stats", ("s3://bucket/store",))).remote


def test_packages_are_looked_for_without_being_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    from viewer.pipeline import preview as pipeline_look

    monkeypatch.setattr(pipeline_look.importlib.util, "find_spec", lambda name: None)
    assert pipeline_look.missing() == ("pyspark", "pandas", "pyarrow")
