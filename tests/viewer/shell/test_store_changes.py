"""Changes under the window are shown at their places: counters, rail, status, and a replaced store."""

from __future__ import annotations

import shutil

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
