"""The model of the findings view: rows, severities, causes, and the status of the check."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.rules.catalogue import RULES
from engine.rules.findings import SEVERITIES, Finding
from viewer.findings.findings_model import (
    CHECK_AGAIN,
    CHECK_NOW,
    STOP,
    CheckedStore,
    FindingsModel,
    Progress,
    TableState,
)

LOG, QUEUE = "/s/commitlog/00000000000000000000", "/s/consumequeue/T/0"


def finding(id_: str, file: str | None, offset: int | None = None) -> Finding:
    return RULES[id_].finding("said", file, offset, {})


CAUSE, FOLLOWER, INDEPENDENT = (
    finding("CL07", LOG, 9),
    finding("CQ03", QUEUE, 5).follows("CL07"),
    finding("AB01", "/s/abort"),
)
DAMAGED = CheckedStore((CAUSE, FOLLOWER, INDEPENDENT), complete=True, log_bytes=4096)
CLEAN = CheckedStore(complete=True, log_bytes=4096)


def model_of(store: CheckedStore | None) -> FindingsModel:
    model = FindingsModel()
    model.open(store)
    return model


def rules(model: FindingsModel) -> list[str]:
    return [row.finding.id for row in model.rows]


def test_a_finding_below_its_cause_is_unfolded_when_it_is_chosen():
    model = model_of(DAMAGED)
    assert rules(model) == ["CL07", "CL07", "AB01"]
    assert model.find("CQ03") == 2
    assert rules(model) == ["CL07", "CL07", "CQ03", "AB01"]
    assert model.find("AB01") == 3
    assert model.find("IX03") is None
    model.toggle_cause("CL07")
    assert rules(model) == ["CL07", "CL07", "AB01"]


def test_hidden_severities_are_still_counted():
    model = model_of(DAMAGED)
    counts = {severity: model.count_of(severity) for severity in SEVERITIES}
    assert sum(counts.values()) == 3
    model.show_only([INDEPENDENT.severity])
    assert rules(model) == [row.id for row in (CAUSE, FOLLOWER, INDEPENDENT) if row.severity == INDEPENDENT.severity]
    assert {severity: model.count_of(severity) for severity in SEVERITIES} == counts
    model.show_only([])
    assert model.table_state() == TableState("empty", "All findings are hidden by their severity.")


def test_the_chosen_row_stays_chosen_after_the_rows_are_rebuilt():
    model = model_of(DAMAGED)
    chosen = model.rows[model.find("AB01")]
    model.toggle_cause("CL07")
    assert model.rows[model.same_row(chosen)].finding == INDEPENDENT
    model.set_store(CLEAN)
    assert model.same_row(chosen) == 0
    assert model.same_row(None) == 0


@pytest.mark.parametrize(
    ("store", "kind", "step", "words"),
    [
        (replace(CLEAN, complete=False), "empty", CHECK_NOW, "This store has not been checked: 4.00 KiB of log."),
        (replace(DAMAGED, complete=False), "cut", CHECK_AGAIN, "The check was stopped"),
        (CLEAN, "empty", "", "every rule checked the whole store"),
        (replace(CLEAN, is_whole=False), "empty", "", "Most rules need a complete store"),
        (replace(DAMAGED, has_unread=True, has_unreadable=True), "cut", CHECK_AGAIN, "unread files were not checked"),
        (replace(DAMAGED, has_unread=True), "cut", CHECK_AGAIN, "What is not decoded was not checked."),
    ],
    ids=["not checked", "stopped", "clean", "log only", "unread", "undecoded"],
)
def test_the_table_has_a_message_if_needed(store, kind, step, words):
    state = model_of(store).table_state()
    assert (state.kind, state.step) == (kind, step)
    assert words in state.text


def test_findings_of_the_whole_store_need_no_message():
    assert model_of(DAMAGED).table_state() is None
    assert model_of(None).table_state() is None
    assert model_of(None).status() == ""


def test_a_check_runs_is_stopped_and_reports_its_progress():
    model = model_of(replace(CLEAN, complete=False))
    model.begin_check()
    assert model.status() == "The check is running."
    assert model.table_state() == TableState("loading", "The check begins")
    state = model.table_state(Progress(1 << 20, 4 << 20, 2.0))
    assert (state.step, state.part) == (STOP, 0.25)
    assert state.text == "1.00 MiB of 4.00 MiB · 512 KiB/s · 6.0 s left"
    model.end_check(None, "The check was stopped.")
    assert model.table_state() == TableState("error", "The check was stopped.", CHECK_AGAIN)
    assert model.status() == "This store has not been checked."
    model.begin_check()
    model.end_check(4096)
    model.set_store(DAMAGED)
    assert model.status() == "Checked 4.00 KiB · 3 findings · complete"


def test_a_store_that_grew_since_its_check_shows_a_note():
    model = model_of(CLEAN)
    model.grow()
    assert not model.stale, "nothing was checked yet"
    model.end_check(4096)
    model.grow()
    assert model.table_state().kind == "stale"
    model.end_check(8192)
    assert model.table_state().kind == "empty"


def test_another_store_forgets_the_check_and_keeps_the_severities():
    model = model_of(DAMAGED)
    model.show_only([CAUSE.severity])
    model.begin_check()
    model.toggle_cause("CL07")
    model.open(CLEAN)
    assert (model.running, model.stale, model.error, model.opened) == (False, False, "", frozenset())
    assert model.shown == {CAUSE.severity}
    assert model.empty_detail() == "No finding: everything here is as a broker leaves it."
    assert (model.head_note(), model_of(None).head_note()) == ("all rules, whole store", "")
