"""Content of the report: the incident first, if there is one."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from engine.inspection import open_store
from engine.rules.masking import Masking
from viewer.reports.content import ReportInputs, gather
from viewer.reports.report_html import render
from viewer.runtime.bookmarks import SavedBookmarks
from viewer.runtime.jobs import Control

pytestmark = pytest.mark.golden


@pytest.fixture(scope="module")
def incident(golden):
    done = subprocess.run(
        [sys.executable, "-m", "engine.cli.main", "check", str(golden("crash-flip-5.3.3")), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    records = [json.loads(line) for line in done.stdout.splitlines()]
    return next(record["incident"] for record in records if record.get("incident"))


def report_of(store, incident, mask=None):
    inputs = ReportInputs(None, (), True, None, SavedBookmarks((), ""), "", mask or Masking(), incident=incident)
    with open_store(store) as snapshot:
        return gather(Control(lambda *_progress: None), snapshot, inputs)


def test_the_incident_comes_first_with_its_answers_steps_and_losses(golden, incident):
    """The card's primary button saves the report, but the report did not contain the card's text. A recipient saw a
    picture of one folded line.
    """
    report = report_of(golden("crash-flip-5.3.3"), incident)
    section = report.sections[0]
    assert (section.key, section.title) == ("incident", "Incident")
    page = render(report)
    assert page.index("What happened") < page.index("Lost already") < page.index("Lost by the next start")
    assert ".:" not in page.partition("First steps")[2].partition("</section>")[0]
    for step in incident["firstSteps"]:
        assert step["command"] is None or step["command"].split()[0] in page
    lost = [part for part in section.parts if part.table is not None and len(part.table.heads) > 3]
    assert lost
    sums = {row[2] for part in lost for row in part.table.rows}
    already = incident["lostAlready"]["messages"]
    assert not already or f"{already:,}" in sums
    assert report.data["incident"]["lostAlready"]["messages"] == already


def test_a_store_without_loss_has_no_such_section(golden):
    report = report_of(golden("clean-5.3.3"), None)
    assert report.sections[0].key == "store"


def test_a_masked_report_names_no_path(golden, incident):
    store = golden("crash-flip-5.3.3")
    page = render(report_of(store, incident, Masking(True, True, True)))
    assert "Incident" in page
    assert str(store) not in page
