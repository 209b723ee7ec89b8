"""What a pipeline job is asked, how it stands, and what its results become: no process, no Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pipeline_lines as lines
import pytest

from engine.cli.main import build_parser
from viewer.pipeline.figures import GROUPINGS, byte_areas, rates
from viewer.pipeline.job_rows import JobList, JobRole
from viewer.pipeline.request import JOBS, LOCAL, Wish, join_places, split_places
from viewer.pipeline.stages import COLUMNS, ROWS, squares
from viewer.pipeline.state import MOST_ROWS, JobState

FAR = (1 << 62) + 3


def job(wish: Wish | None = None, number: int = 1) -> JobState:
    return JobState(number, wish or Wish("stats", ("/data/store",)), 1_795_248_000.0, 100.0)


def told(records: list[dict[str, Any]], wish: Wish | None = None, code: int | None = 0) -> JobState:
    """A job that said ``records``, one a second, and ended."""
    made = job(wish)
    for at, record in enumerate(records):
        made.take(record, 101.0 + at)
    if code is not None:
        made.end(code, 101.0 + len(records))
    return made


WISHES = (
    Wish("stats", ("/data/a store", "fleet/*/store")),
    Wish("verify", ("-odd",), master="spark://10.24.0.8:7077"),
    Wish("rebuild", ("/data/store",), out="/new/place"),
    Wish("export", ("/data/store",), out="/new/place", format="csv"),
    Wish("import", ("/an/export",), out="/new/store"),
    Wish("trace", ("/data/store",), keys=("SO-1", "--SO-2"), keys_file="/keys.txt"),
)


@pytest.mark.parametrize("wish", WISHES, ids=lambda wish: wish.job)
def test_the_command_line_knows_every_job_and_each_of_its_words(wish: Wish) -> None:
    assert not wish.fault()
    args = build_parser("pipeline").parse_args(wish.arguments("/tmp/spark.log"))
    assert args.job == wish.job
    assert args.as_json
    assert args.log_file == "/tmp/spark.log"
    assert args.master == (None if wish.master == LOCAL else wish.master)  # without the word small stores need no Spark
    assert tuple(getattr(args, "stores", None) or (args.source,)) == wish.places
    assert getattr(args, "out", wish.out) == wish.out
    if wish.job == "trace":
        assert tuple(args.key) == wish.keys
    plain = wish.command()
    assert plain.startswith(f"storescope pipeline {wish.job}")
    assert "--json" not in plain


def test_the_form_offers_what_the_command_line_has() -> None:
    from engine.cli.commands.pipeline import JOBS as KNOWN

    assert {kind.name for kind in JOBS} == set(KNOWN)


def test_what_is_missing_is_said() -> None:
    assert "store" in Wish("stats").fault()
    assert "export" in Wish("import", out="/x").fault().lower()
    assert "place" in Wish("rebuild", ("/s",)).fault()
    assert "key" in Wish("trace", ("/s",)).fault()
    assert "master" in Wish("stats", ("/s",), master="").fault()


def test_places_with_blanks_come_back_whole() -> None:
    places = ("/data/a store", "fleet/*/store", "it's")
    assert split_places(join_places(places)) == places
    assert split_places("/data '") is None
    assert split_places("a a b") == ("a", "b")


def test_stages_become_cards_in_their_order_with_what_was_tried_again() -> None:
    made = told(lines.verify([], ended=False), Wish("verify", ("/s",)), code=None)
    start, first, second, third = made.cards
    assert (start.state, start.seconds) == ("done", 1.0)
    assert (first.state, first.done, first.tasks, first.again) == ("done", 152, 152, 1)
    assert (second.state, second.done, second.running) == ("running", 58, 8)
    assert third.state == "waits"
    assert made.tasks == (210, 260)
    assert made.part == pytest.approx(58 / 108)
    assert made.seconds_left == pytest.approx(9.8 * 50 / 58)
    made.end(-9, 120.0)
    assert (made.standing, second.state) == ("failed", "failed")


def test_squares_stand_for_tasks_however_many_there_are() -> None:
    card = job().cards[0]
    card.done, card.tasks, card.running, card.again = 58, 96, 8, 2
    states, each = squares(card)
    assert (len(states), each) == (96, 1)
    assert [states.count(name) for name in ("done", "again", "running", "waits")] == [56, 2, 8, 30]
    card.done, card.tasks, card.running, card.again = 19_999, 20_000, 1, 0
    states, each = squares(card)
    assert len(states) <= COLUMNS * ROWS < 20_000 / (each - 1)
    assert states[-1] == "running"
    card.done = 20_000
    assert set(squares(card)[0]) == {"done"}
    card.done = card.tasks = card.running = 0
    assert squares(card) == ([], 1)


def test_findings_are_counted_by_rule_and_kept_up_to_a_limit() -> None:
    one = {"type": "finding", "id": "CQ02", "severity": "error", "group": "queue", "offset": FAR}
    made = job(Wish("verify", ("/s",)))
    made.take_all([{**one, "offset": FAR + n} for n in range(MOST_ROWS + 7)], 101.0)
    rule = made.rules["CQ02"]
    assert (rule.count, rule.first["offset"]) == (MOST_ROWS + 7, FAR)
    assert len(made.rows["finding"]) == MOST_ROWS
    assert made.severities == {"error": MOST_ROWS + 7}


@pytest.mark.parametrize(
    ("code", "stopping", "standing"),
    [(0, False, "done"), (1, False, "done"), (3, False, "failed"), (130, False, "cancelled"), (-9, True, "cancelled")],
)
def test_how_a_job_ended(code: int, stopping: bool, standing: str) -> None:
    made = job()
    made.take(lines.summary("stats"), 101.0)
    made.stopping = stopping
    made.end(code, 102.0)
    assert made.standing == standing


def test_a_failure_says_its_clear_line() -> None:
    made = job()
    for line in ("a warning", "storescope: file: expected 3 bytes, found 2", "something behind it"):
        made.say(line)
    made.end(3, 102.0)
    assert made.why == "file: expected 3 bytes, found 2"
    assert made.cards[0].state == "failed"


def test_areas_add_up_and_rates_have_every_hour() -> None:
    made = told(lines.stats(hours=30))
    whole = made.rows["stats"][0]["unitBytes"]
    for grouping, _ in GROUPINGS:
        root = byte_areas(made, grouping)
        assert root.bytes == whole
        assert all(area.bytes == sum(one.bytes for one in area.children) for area in root.children)
    found = rates(made, "messages")
    assert found is not None
    assert (found.first, found.hours) == (lines.FIRST, 30)
    assert sum(sum(one.rates) for one in found.series) * 3600 == pytest.approx(made.rows["stats"][0]["messages"])
    in_bytes = rates(made, "bytes")
    assert in_bytes is not None
    assert sum(sum(one.rates) for one in in_bytes.series) * 3600 == pytest.approx(whole)


def test_hours_without_messages_are_empty_and_hours_of_damaged_times_are_no_plot() -> None:
    made = job()
    hour = {"type": "statsHour", "topic": "T", "messages": 3600, "bytes": 7200}
    made.take_all([{**hour, "hour": lines.FIRST}, {**hour, "hour": lines.FIRST + 5 * lines.HOUR}], 101.0)
    found = rates(made, "messages")
    assert found is not None
    assert found.series[0].rates == (1.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    made.take({**hour, "hour": FAR}, 102.0)
    assert rates(made, "messages") is None


def test_the_list_keeps_qts_promises_while_jobs_come_and_go(qtbot: Any, qtmodeltester: Any) -> None:
    model = JobList(lambda one: (one.wish.job, Path(one.wish.places[0]).name, one.standing))
    qtmodeltester.data_display_may_return_none = True
    qtmodeltester.check(model)
    jobs = [job(number=number) for number in range(4)]
    for shown in (jobs[:1], jobs[1::-1], [jobs[3], *jobs[1::-1]], [jobs[3], jobs[0]], jobs[2:3], []):
        model.set_jobs(shown)
        assert [model.index(row).data(JobRole) for row in range(model.rowCount())] == shown
    model.set_jobs(jobs)
    jobs[1].end(0, 101.0)
    with qtbot.waitSignal(model.dataChanged):
        model.changed(jobs[1])
    said = model.index(1).data(11)
    assert said.startswith("done. stats ")
