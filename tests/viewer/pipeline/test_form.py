"""The form of a pipeline job: its fields, missing input, and previews that run off the loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from viewer.pipeline.form import JobForm
from viewer.pipeline.preview import JobPreview


@pytest.fixture
def form(themed_app, qtbot):
    """A form whose previews run when the test says so: ``form.looks`` are the requested previews."""
    job_form = JobForm()
    job_form.looks = []
    job_form.runner = lambda work, done, failed: job_form.looks.append(done)
    qtbot.addWidget(job_form)
    return job_form


def show_preview(form, lacking=()):
    form._look()
    form.looks[-1]((JobPreview(), lacking))


def test_each_job_shows_its_fields(form):
    shown = {}
    for job in ("stats", "export", "import", "rebuild", "trace"):
        form.choose_job(job)
        parts = {"out": form._out_part, "format": form._format_part, "compare": form.compare, "keys": form._keys_part}
        shown[job] = {name for name, part in parts.items() if not part.isHidden()}
    assert shown == {
        "stats": set(),
        "export": {"out", "format"},
        "import": {"out"},
        "rebuild": {"out", "compare"},
        "trace": {"keys"},
    }


def test_stores_and_exports_are_remembered_separately(form):
    form.set_store("/data/my store")
    assert form.job_request().places == ("/data/my store",)
    form.choose_job("import")
    assert form.places.text() == ""
    form.places.setText("/exports/one")
    form.choose_job("stats")
    assert form.job_request().places == ("/data/my store",)
    form.choose_job("import")
    assert form.job_request().places == ("/exports/one",)


def test_the_open_store_does_not_replace_an_export(form):
    form.choose_job("import")
    form.places.setText("/exports/one")
    form.set_store("/data/store")
    assert form.job_request().places == ("/exports/one",)


def test_an_unclosed_quote_is_reported_and_nothing_runs(form, qtbot):
    form.places.setText('"/data/store')
    show_preview(form)
    assert form.fault.text() == "A quote is not closed."
    assert not form.run.isEnabled()
    with qtbot.assertNotEmitted(form.runRequested):
        form.run_now()


def test_missing_packages_are_named_and_the_command_can_still_be_copied(form, qtbot):
    form.set_store("/data/store")
    form.choose_job("stats")
    show_preview(form, ("pyspark", "pyarrow"))
    assert "pyspark, pyarrow" in form.lacks.text()
    assert not form.run.isEnabled()
    if form.copy.isEnabled():
        with qtbot.waitSignal(form.copyRequested) as blocker:
            form.copy.click()
        assert blocker.args[0] == form.job_request()


def test_a_late_preview_is_not_shown(form):
    form._look()
    first_look = form.looks[-1]
    form._look()
    form.looks[-1]((JobPreview(), ()))
    first_look((JobPreview(), ("pyspark",)))
    assert form.lacks.text() == ""


def test_the_home_folder_is_written_out(form):
    form.places.setText("~/store s3://bucket/~/store")
    form.out.setText("~/out")
    job_request = form.job_request()
    assert job_request.places == (str(Path.home() / "store"), "s3://bucket/~/store")
    assert job_request.out == str(Path.home() / "out")


def test_keys_of_a_file_are_named_by_it(form):
    form.choose_job("trace")
    form.set_keys_file("/tmp/lost-keys.txt")
    assert form.keys_file.text() == "lost-keys.txt"
    assert form.job_request().keys_file == "/tmp/lost-keys.txt"
    form.set_keys_file("")
    assert form.keys_file.text() == "From a file…"
