"""Each choice of repairs has a plan and a command, and each patch a place."""

from __future__ import annotations

from pathlib import Path

import pytest
from broken_stores import BROKEN
from controls import FakeControl
from handmade_stores import healthy

from viewer.findings import repair_work
from viewer.findings.repair_model import PatchRow, RepairModel, compared_rows
from viewer.runtime import places


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store with a damaged log and a wrong checkpoint."""
    store = healthy()
    path = store.write(tmp_path / "store")
    BROKEN["CL01"](path, store)
    BROKEN["CK05"](path, store)
    return path


def test_each_choice_has_a_plan_and_a_command(root) -> None:
    model = RepairModel()
    assert model.begin() == ()
    model.end(repair_work.plan(FakeControl(), root, None, ()))
    assert model.begin() is None
    assert model.command("S") == ["storescope", "repair", "S", "--apply"]
    everything = model.plan
    model.take("log", taken=False)
    assert model.plan is None
    assert model.begin() == ("checkpoint",)
    model.take("log", taken=True)
    model.end(None, "Stopped.")
    assert (model.plan, model.error) == (everything, "")
    model.take("log", taken=False)
    model.end(repair_work.plan(FakeControl(), root, None, model.begin()))
    assert model.command("S")[-2:] == ["--finding", "checkpoint"]
    assert [row.mended for row in compared_rows(model.plan)[:1]] == ["CL01"]
    model.take("checkpoint", taken=False)
    assert (model.begin(), model.plan, model.chosen) == (None, None, ())


def test_a_patch_leads_to_what_is_there_now(root) -> None:
    patches = repair_work.plan(FakeControl(), root, None, ()).patches
    rows = [PatchRow(number, patch) for number, patch in enumerate(patches, 1)]
    in_log = next(row for row in rows if row.file.startswith("commitlog/"))
    assert in_log.place == places.log(int(Path(in_log.file).name) + in_log.offset)
    assert next(row for row in rows if row.file == "checkpoint").place.kind == "checkpoint"
