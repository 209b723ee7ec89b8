"""Each choice of repairs has a plan and a command, and each patch a place."""

from __future__ import annotations

from pathlib import Path

import pytest
from broken_stores import BROKEN
from controls import FakeControl
from handmade_stores import healthy

from engine.patching.patches import BadPatch, WriteBytes
from viewer.findings import repair_work
from viewer.findings.repair_model import PatchRow, RepairModel, compared_rows, loss_headline, patch_text
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
    model.take("log", is_taken=False)
    assert model.plan is None
    assert model.begin() == ("checkpoint",)
    model.take("log", is_taken=True)
    model.end(None, "Stopped.")
    assert (model.plan, model.error) == (everything, "")
    model.take("log", is_taken=False)
    model.end(repair_work.plan(FakeControl(), root, None, model.begin()))
    assert model.command("S")[-2:] == ["--finding", "checkpoint"]
    assert [row.patched for row in compared_rows(model.current, model.patched)[:1]] == ["CL01"]
    model.take("checkpoint", is_taken=False)
    assert (model.begin(), model.plan, model.chosen) == (None, None, ())


def test_each_patch_is_taken_or_left_and_the_rest_is_judged(root) -> None:
    model = RepairModel()
    model.begin()
    model.end(repair_work.plan(FakeControl(), root, None, ()))
    everything = model.plan.patches
    assert (model.taken_patches, model.begin_judging()) == (everything, None)
    assert model.patched is model.plan.mended
    number = next(row.n for row in model.rows() if row.file == "checkpoint")
    model.take_patch(number, is_taken=False)
    assert model.command("S") == []
    assert compared_rows(model.current, model.patched)[0].patched == "…"
    assert loss_headline(model.current, model.patched).endswith("messages")
    patches = model.begin_judging()
    assert patches == tuple(patch for patch in everything if patch.file != "checkpoint")
    assert not model.is_stale
    model.end_judging(repair_work.judge(FakeControl(), root, None, patches))
    by_rule = {row.fact[:4]: row for row in compared_rows(model.current, model.patched)}
    assert (by_rule["CL01"].patched, by_rule["CK05"].patched) == ("gone", "1")
    assert " → 0 messages" in loss_headline(model.current, model.patched)
    model.saved = model.taken_patches, "/tmp/p.json"
    assert model.command("S")[-2:] == ["--patches", "/tmp/p.json"]
    model.bench.undo()
    assert model.taken_patches == everything
    model.bench.redo()
    assert model.taken_patches == patches
    for row in model.rows():
        model.take_patch(row.n, is_taken=False)
    assert (model.taken_patches, model.patched) == ((), model.current)


def test_patches_that_do_not_fit_together_are_named(root) -> None:
    model = RepairModel()
    model.begin()
    model.end(repair_work.plan(FakeControl(), root, None, ()))
    model.bench.add([WriteBytes(file="checkpoint", offset=0, old=b"\1" * 8, new=bytes(8), why="mine")], "own patch")
    own = model.rows()[-1]
    assert (own.title, own.costs, patch_text(own)) == ("own patch", "", "mine")
    patches = model.begin_judging()
    with pytest.raises(BadPatch):
        repair_work.judge(FakeControl(), root, None, patches)
    model.end_judging(None, "the patch does not fit", is_misfit=True)
    assert (model.misfit, model.begin_judging()) == ("the patch does not fit", None)
    model.take_patch(own.n, is_taken=False)
    assert model.misfit == ""
    model.add([model.patches[0], model.patches[-1]], "open a file")
    assert [row.is_taken for row in model.rows()] == [True] * len(model.patches)


def test_what_is_worked_out_is_dropped_when_the_store_changes(root) -> None:
    model = RepairModel()
    model.begin()
    model.forget()
    model.end(None, "Stopped.")
    assert (model.offered, model.error, model.begin()) == (None, "", ())


def test_a_patch_leads_to_what_is_there_now(root) -> None:
    patches = repair_work.plan(FakeControl(), root, None, ()).patches
    rows = [PatchRow(number, patch) for number, patch in enumerate(patches, 1)]
    in_log = next(row for row in rows if row.file.startswith("commitlog/"))
    assert in_log.place == places.log(int(Path(in_log.file).name) + in_log.offset)
    assert next(row for row in rows if row.file == "checkpoint").place.kind == "checkpoint"
