"""Printed findings: one row each, with consequences below their cause, and the meaning of each rule."""

from __future__ import annotations

import io

from engine.cli.finding_text import offsets_text, print_findings, times_text
from engine.cli.output import Output
from engine.rules.catalogue import RULES
from engine.rules.findings import Finding, summarise


def printed_findings(*arguments: Finding, **options: bool) -> str:
    stream = io.StringIO()
    out = Output(as_json=False, stream=stream, markdown=options.pop("markdown", False))
    print_findings(
        [*(item.record() for item in arguments), summarise(arguments, complete=True).record()], out, "/s", **options
    )
    out.flush()
    return stream.getvalue()


CAUSE = RULES["CQ10"].finding("65 units").of_store("/s")


FOLLOWERS = [RULES["CF02"].finding(f"group {n}", caused_by="CQ10") for n in range(16)]


LONE = RULES["CL10"].finding("a blank")


def test_consequences_of_a_finding_are_one_row_below_it() -> None:
    lines = printed_findings(CAUSE, *FOLLOWERS, LONE).splitlines()
    position = next(n for n, line in enumerate(lines) if "CQ10" in line)
    assert "65 units" in lines[position]
    assert "16 consequences: CF02 16× (--all lists each)" in lines[position + 1]
    assert "CL10" in lines[position + 2]
    assert lines[0] == "-- 1 error, 17 notes"


def test_all_shows_each_finding() -> None:
    output = printed_findings(CAUSE, *FOLLOWERS, LONE, with_consequences=True)
    assert "--all" not in output
    assert all(f"Group {n}" in output for n in range(16))


def test_each_violated_rule_is_explained_once_with_its_command() -> None:
    output = printed_findings(CAUSE, *FOLLOWERS, CAUSE)
    for rule in (RULES["CQ10"], RULES["CF02"]):
        assert output.count(rule.title) == 1
        assert " ".join(output.split()).count(rule.explanation) == 1
    assert output.count("Take a snapshot first (storescope snapshot /s DST) and work on that.") == 1
    assert output.count(f"      {CAUSE.command}\n") == 1
    assert "Consequence of CQ10" in output
    assert "Known issues: apache/rocketmq#405, apache/rocketmq#1434" in output
    assert "**CQ10 " in printed_findings(CAUSE, markdown=True)


def test_one_queue_offset_and_one_time_are_not_written_as_a_range() -> None:
    """The losses were printed as "queue offsets 201 to 201, stored 08:10:18.147 to 08:10:18.147"."""
    assert (offsets_text(201, 201), offsets_text(201, 1203)) == ("queue offset 201", "queue offsets 201 to 1,203")
    assert " to " not in times_text(1_000, 1_000)
    assert " to " in times_text(1_000, 2_000)


def test_a_snapshot_is_suggested_only_where_the_steps_need_it() -> None:
    """ "Take a snapshot first" was printed below "Start the broker: it loses nothing.", where it is not needed."""
    stream = io.StringIO()
    out = Output(as_json=False, stream=stream)
    incident = {
        "whatHappened": "The broker was killed.",
        "lostAlready": None,
        "lostByNextStart": dict.fromkeys(("5.5", "5.3", "4.9")),
        "firstSteps": [{"text": "Start the broker: it loses nothing.", "command": None}],
    }
    summary = summarise([CAUSE], complete=True).record() | {"incident": incident}
    print_findings([CAUSE.record(), summary], out, "/s")
    out.flush()
    assert "snapshot" not in stream.getvalue()
    assert "RocketMQ 5.5, 5.3 and 4.9: unknown" in stream.getvalue()
