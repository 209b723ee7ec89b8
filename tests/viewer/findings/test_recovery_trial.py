"""A plan is tried on a copy: the copy is recovered, the store is unchanged, and a stop leaves no files."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.config import MessageStoreConfig
from engine.errors import UsageError
from engine.inspection import open_store
from engine.inspection.recovery import plan as plan_of
from engine.inspection.written_release import guess
from tests.support.controls import FakeControl, StoppedByTest
from viewer.findings.recovery_trial import again, plan_text, save_plan, trial


def prints(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.rglob("*")
        if file.is_file()
    }


@pytest.fixture
def plan(golden):
    with open_store(golden("crash-flip-5.3.3")) as store:
        return plan_of(store, "5.3")


@pytest.mark.golden
def test_the_copy_is_recovered_as_planned_and_the_store_is_unchanged(golden, plan, tmp_path) -> None:
    store, control = golden("crash-flip-5.3.3"), FakeControl()
    prints_before = prints(store)
    result = trial(control, store, None, plan, tmp_path / "copy")
    assert (result.end_offset, result.folder, result.round) == (plan.end_offset, tmp_path / "copy", 1)
    record = {figure.name: (figure.planned, figure.done) for figure in result.figures}
    assert record["unitsDropped"] == (plan.units_dropped, plan.units_dropped)
    assert plan.units_dropped > 0
    ends = {f"{queue.topic}/{queue.queue_id}": (queue.max_offset, queue.max_offset) for queue in plan.queues}
    assert ends.items() <= record.items()
    assert result.as_expected
    assert control.progress
    with open_store(tmp_path / "copy") as copy:
        assert copy.log.max_offset == plan.end_offset
        assert not copy.abort
    assert prints(store) == prints_before
    assert [entry.name for entry in tmp_path.iterdir()] == ["copy"]


@pytest.mark.golden
def test_a_second_recovery_changes_nothing_and_a_change_is_detected(golden, plan, tmp_path) -> None:
    first_trial = trial(FakeControl(), golden("crash-flip-5.3.3"), None, plan, tmp_path / "copy")
    second_trial = again(FakeControl(), first_trial, None)
    assert (second_trial.round, second_trial.end_offset, second_trial.as_expected) == (2, first_trial.end_offset, True)
    assert {figure.name for figure in second_trial.figures} >= {"endOffset", "units", "unitsDropped", "unitsDispatched"}
    (tmp_path / "copy" / "abort").touch()
    crashed = again(FakeControl(), second_trial, None)
    assert [figure.name for figure in crashed.figures if not figure.equal] == ["unitsDispatched"]
    assert not crashed.as_expected


@pytest.mark.golden
@pytest.mark.parametrize("stop_at_check", [1, 4])
def test_a_stop_leaves_no_files(golden, plan, tmp_path, stop_at_check) -> None:
    with pytest.raises(StoppedByTest):
        trial(FakeControl(stop_at_check), golden("crash-flip-5.3.3"), None, plan, tmp_path / "copy")
    assert not list(tmp_path.iterdir())


@pytest.mark.golden
def test_a_directory_in_use_is_refused(golden, plan, tmp_path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(UsageError):
        trial(FakeControl(), golden("crash-flip-5.3.3"), None, plan, tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine"]


@pytest.mark.golden
def test_folders_of_the_configuration_are_never_written_to(golden, plan, tmp_path) -> None:
    store = golden("crash-flip-5.3.3")
    prints_before = prints(store)
    own_config = MessageStoreConfig(store_path_root_dir=str(store), store_path_commit_log=str(store / "commitlog"))
    assert trial(FakeControl(), store, own_config, plan, tmp_path / "copy").end_offset == plan.end_offset
    with pytest.raises(UsageError):
        trial(FakeControl(), store, replace(own_config, store_path_commit_log="/elsewhere"), plan, tmp_path / "other")
    assert prints(store) == prints_before
    assert [entry.name for entry in tmp_path.iterdir()] == ["copy"]


@pytest.mark.golden
def test_the_saved_plan_is_what_the_command_prints(golden, plan, tmp_path, capsys) -> None:
    main(["recover", str(golden("crash-flip-5.3.3")), "--plan", "--json"])
    with open_store(golden("crash-flip-5.3.3")) as store:
        other_plan, written = plan_of(store, "4.9"), guess(store)
    save_plan(plan, other_plan, written, tmp_path / "plan.json")
    printed = capsys.readouterr().out
    assert (tmp_path / "plan.json").read_text(encoding="utf-8") == plan_text(plan, other_plan, written) == printed
