"""Staged patches: each step is undone and redone, and a new step ends what could be redone."""

from __future__ import annotations

from engine.patching.patches import RemoveFile
from viewer.runtime.patch_bench import BenchState, PatchBench

FIRST, SECOND, OWN = (RemoveFile(file=name, size=1, sample="", why="") for name in ("first", "second", "own"))


def test_steps_are_undone_and_redone() -> None:
    changes = []
    bench = PatchBench(lambda: changes.append(bench.state))
    bench.take_patch(FIRST, "leave out 1", is_taken=False)
    bench.add([OWN, OWN], "own patch")
    bench.take_repair("log", "leave out log", is_taken=False)
    assert bench.taken_patches([FIRST, SECOND]) == (SECOND, OWN)
    assert bench.undo_title == "leave out log"
    bench.undo()
    bench.undo()
    assert (bench.edits, bench.undo_title, bench.redo_title) == ((), "leave out 1", "own patch")
    bench.redo()
    assert bench.edits == (OWN,)
    bench.drop(OWN, "drop")
    assert (bench.edits, bench.redo_title) == ((), "")
    bench.redo()
    assert len(changes) == 7
    bench.forget()
    bench.undo()
    assert (bench.state, bench.undo_title) == (BenchState(), "")


def test_a_step_that_changes_nothing_is_none() -> None:
    bench = PatchBench()
    bench.take_patch(FIRST, "take 1", is_taken=True)
    assert bench.undo_title == ""
    bench.take_patch(FIRST, "leave out 1", is_taken=False)
    bench.add([FIRST], "open it again")
    assert bench.taken_patches([]) == (FIRST,)


def test_patches_are_unsaved_until_a_file_has_them() -> None:
    bench = PatchBench()
    bench.take_patch(FIRST, "leave out 1", is_taken=False)
    assert not bench.is_unsaved
    before = bench.state
    bench.add([OWN], "own patch")
    assert bench.is_unsaved
    bench.note_saved()
    assert not bench.is_unsaved
    bench.put(before, "own patch")
    assert (bench.edits, bench.undo_title, bench.is_unsaved) == ((), "own patch", False)
