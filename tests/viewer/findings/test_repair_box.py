"""What can be mended is shown, chosen and written into a copy; the store itself is only read."""

from __future__ import annotations

from pathlib import Path

import golden_stores
import pytest
from broken_stores import BROKEN
from handmade_stores import healthy
from panes import on_store, wait_until, wait_until_idle

from viewer.findings.pane import FindingsPane
from viewer.findings.repair_model import compared_rows


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store with a damaged log and a wrong checkpoint."""
    store = healthy()
    path = store.write(tmp_path / "store")
    BROKEN["CL01"](path, store)
    BROKEN["CK05"](path, store)
    return path


def test_repairs_are_taken_or_left_and_written_into_a_copy(qapp, root, tmp_path) -> None:
    async def drive(pane, session) -> None:
        messages, places_asked = [], []
        pane.statusMessage.connect(messages.append)
        pane.placeRequested.connect(places_asked.append)
        assert pane._mend.isVisible()
        pane.commands()["repair.show"]()
        box = pane.repair_box
        await wait_until(lambda: box.model.plan is not None)
        await wait_until_idle(session.jobs)
        assert [tick.property("repair") for tick in box.ticks] == ["log", "checkpoint"]
        assert box.compared.total_rows() == len(compared_rows(box.model.current, box.model.patched))
        assert box.patches.total_rows() == len(box.model.plan.patches)
        box.patches.go_to(0)
        assert "Costs: " in box.detail.text()
        box._followed(box.model.rows()[0].place)
        assert places_asked[-1].kind == "log"
        box.ticks[1].click()
        await wait_until(lambda: box.model.plan is not None)
        assert box.command.text().endswith("--apply --finding log")
        box.writer.save_to(root / "patches.json")
        assert "Nothing is written into the store" in box.note.text()
        box.writer.save_to(tmp_path / "patches.json")
        box.writer.copy_to(tmp_path / "mended")
        await wait_until_idle(session.jobs)
        assert "stays as it is" in box.note.text()
        assert messages[-1] == box.note.text()
        assert {entry.name for entry in tmp_path.iterdir()} >= {"mended", "patches.json"}
        box.writer.copy_to(tmp_path / "mended")
        await wait_until_idle(session.jobs)
        assert "No copy was written" in box.note.text()
        box.ticks[0].click()
        assert not box.write.isEnabled()
        assert box.patches.note.state.text == "No repair is chosen."
        box.close()
        assert pane.repair_box is None

    before = golden_stores.fingerprint(root)
    on_store(qapp, FindingsPane, root, drive)
    assert golden_stores.changes(before, golden_stores.fingerprint(root)) == []


def test_a_patch_is_left_out_by_key_and_the_store_is_shown_as_the_others_leave_it(qapp, root, tmp_path) -> None:
    async def drive(pane, session) -> None:
        pane.show_repairs()
        box = pane.repair_box
        await wait_until(lambda: box.model.plan is not None)
        await wait_until_idle(session.jobs)
        box.patches.go_to(1)
        assert box.patches.follow()  # the mark of a patch is its first cell: Enter and a click leave it out
        assert box.patches_head.note.text() == "1 of 2 patches taken"
        await wait_until(lambda: box.model.patched is not None)
        assert box.command.text() == ""
        box.writer.save_to(tmp_path / "patches.json")
        await wait_until_idle(session.jobs)
        assert box.command.text().endswith(f"--patches {tmp_path / 'patches.json'}")
        taken = box.model.taken_patches
        broken = session.snapshot.log.end_offset
        box.toggle_look()
        await wait_until(lambda: session.patches == taken)
        await wait_until_idle(session.jobs)
        assert session.snapshot.patched_disk is not None
        assert box.as_patched.text() == "Show the store as it is"
        assert "as patched" in session.writing_refusal
        pane.set_session(session)
        pane.check()
        await wait_until(lambda: session.findings_complete)
        assert {finding.id for finding in session.findings if finding.severity == "error"} & {"CL01"} == set()
        assert session.snapshot.log.end_offset >= broken
        box.writer.open_from(tmp_path / "patches.json")
        await wait_until_idle(session.jobs)
        assert [row.is_taken for row in box.model.rows()] == [True, False]
        await wait_until(lambda: box.model.patched is not None)
        box.toggle_look()
        await wait_until(lambda: session.patches == ())
        assert session.snapshot.patched_disk is None
        box.undo_step.click()
        assert [row.is_taken for row in box.model.rows()] == [True, True]

    before = golden_stores.fingerprint(root)
    on_store(qapp, FindingsPane, root, drive)
    assert golden_stores.changes(before, golden_stores.fingerprint(root)) == []


def test_a_healthy_store_has_no_button_and_a_clear_answer(qapp, tmp_path) -> None:
    async def drive(pane, session) -> None:
        assert not pane._mend.isVisible()
        pane.show_repairs()
        await wait_until_idle(session.jobs)
        assert pane.repair_box.note.text() == "Nothing that check finds here can be mended."
        assert not pane.repair_box.write.isEnabled()

    on_store(qapp, FindingsPane, healthy().write(tmp_path / "store"), drive)
