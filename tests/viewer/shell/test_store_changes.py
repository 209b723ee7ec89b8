"""Changes under the window are shown at their places: counters, rail, status, and a replaced store."""

from __future__ import annotations

import shutil

from panes import wait_until

from engine.patching.patches import WriteBytes
from engine.rules import catalogue


def test_findings_are_counted_and_marked_on_the_rail(run, window, golden):
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    marks = []
    window.rail.set_mark = lambda kind, mark: marks.append((kind, mark))
    window.session.set_findings([catalogue.CL03.finding("Wrong"), catalogue.CK01.finding("Zero")], complete=True)
    assert marks[-1] == ("findings", "error")
    window.session.set_findings([], complete=True)
    assert marks[-1] == ("findings", "")


def test_the_survey_shows_the_kind_of_store(run, window, golden):
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    assert window.status.format.text() == window.session.survey.kinds
    assert window.settings.recent[0].path == str(window.session.path)


def test_replaced_files_are_reported(run, window, golden, tmp_path):
    store = shutil.copytree(golden("broker-orders"), tmp_path / "store")
    assert run(window.open(store))
    run(window.settled())
    output = []
    window.say = output.append
    window.session.replaced.emit()
    run(window.settled())
    assert output[0] == "Files of the store were replaced: everything was read again."


def test_a_store_that_is_shown_as_patched_says_so_and_leads_back(run, window, golden):
    assert run(window.open(golden("broker-orders")))
    run(window.settled())
    session = window.session
    old = (session.path / "checkpoint").read_bytes()[:8]
    patch = WriteBytes(file="checkpoint", offset=0, old=old, new=bytes(8), why="")
    session.stage([patch], "own patch")
    assert window.workspace.what_would_end() == ["1 patch of yours is in no file yet: save the patches first."]
    window.workspace.edits.undo()
    assert (session.bench.edits, window.patched.state) == ((), None)
    window.workspace.edits.redo()
    assert window.patched.state.text == "1 patch of yours is staged. Nothing is written yet."
    run(session.read_anew([patch]))
    run(window.settled())
    assert window.patched.state.text.startswith("The store is shown as 1 patch would leave it.")
    assert window.strip.promise.text() == "As patched, read-only"
    window.workspace.ask_report()
    assert "report is about the store as it is" in window.status.message.text()
    assert session.snapshot.small_file(session.snapshot.paths.checkpoint)[:8] == bytes(8)
    window.workspace.ask_rebuild()
    assert "shown as patched" in window.status.message.text()
    window.patched.step(0)
    run(wait_until(lambda: session.patches == ()))
    run(window.settled())
    assert window.strip.promise.text() == "Read-only"
    session.bench.forget()
    assert window.patched.state is None
