"""An incident is reported only where messages are lost or will be."""

from __future__ import annotations

from datetime import timedelta, timezone
from typing import Any

from PySide6.QtWidgets import QApplication

from engine.rules.catalogue import CL12
from engine.rules.causes import what_happened
from viewer.look import assets
from viewer.look.formats import set_zone
from viewer.pane.incident_words import incident_of, lost_kind, lost_rows
from viewer.runtime import places


def incident_record(lost: int = 0, start: int = 0, starts: bool = True) -> dict[str, Any]:
    def loss(count: int) -> dict[str, Any]:
        return {"messages": count, "queues": [{"topic": "OrderPaid", "queueId": 0, "messages": count}] if count else []}

    item = {"starts": starts, "why": None if starts else "a gap", "indexFilesDeleted": 0, **loss(start)}
    return {
        "whatHappened": "A log file is missing: both neighbours are whole",
        "lostAlready": loss(lost),
        "release": "5.3",
        "releaseEvidence": "it has timerwheel",
        "lostByNextStart": {"5.3": item, "4.9": None},
        "firstSteps": [
            {"text": "Do not start a broker on this store yet; take a snapshot first.", "command": "storescope x"}
        ],
    }


def test_losses_are_listed_by_topic() -> None:
    incident = incident_of(incident_record(lost=1200), complete=True)
    assert incident is not None
    assert (incident.happened.clause, incident.happened.why) == ("A log file is missing", "Both neighbours are whole")
    assert (incident.lost.mark, incident.lost.clause, incident.lost.why) == (
        "error",
        "1,200 messages",
        "OrderPaid 1,200",
    )
    assert (incident.start.mark, incident.start.clause) == ("", "nothing more")
    assert incident.steps == (("Do not start a broker on this store yet; take a snapshot first.", "storescope x"),)


def test_losses_of_the_next_start_name_the_release() -> None:
    incident = incident_of(incident_record(start=41), complete=False)
    assert incident is not None
    assert (incident.lost.clause, incident.lost.why) == ("nothing", "Not all of the store was checked.")
    assert (incident.start.mark, incident.start.clause) == ("warn", "41 messages")
    assert incident.start.why.startswith("RocketMQ 5.3.3 probably wrote this store: it has timerwheel")
    assert "by the next start of RocketMQ 5.3.3: 41 messages" in incident.line
    assert incident.start_title == "Lost by the next start of RocketMQ 5.3.3"


def test_the_line_is_about_the_release_that_wrote_the_store() -> None:
    """A store of 5.3.3 had the headline "by the next start: 1,376 messages". These are 4.9.8's losses; 5.3.3 loses no
    further message.
    """
    starts = incident_record()["lostByNextStart"]
    worse = incident_record(start=1376)["lostByNextStart"]["5.3"]
    incident = incident_of(
        incident_record(lost=6) | {"lostByNextStart": {"5.3": starts["5.3"], "4.9": worse}}, complete=True
    )
    assert incident is not None
    assert incident.line.startswith(
        "Lost already: 6 messages · by the next start of RocketMQ 5.3.3: nothing more · "
        "RocketMQ 4.9.8 would lose 1,376 messages"
    )
    assert (incident.start.mark, incident.start.clause) == ("", "nothing more")
    assert incident.to_come == ()
    assert (
        incident_of(incident_record() | {"lostByNextStart": {"5.3": starts["5.3"], "4.9": worse}}, complete=True)
        is None
    )


def test_a_release_of_5_4_and_later_has_its_own_name(themed_app: QApplication) -> None:
    own_start = incident_record(start=1313)["lostByNextStart"]["5.3"]
    newer_start = incident_record(start=2)["lostByNextStart"]["5.3"]
    incident = incident_record() | {
        "release": "5.5",
        "lostByNextStart": {"5.5": own_start, "5.3": newer_start, "4.9": own_start},
    }
    shown_incident = incident_of(incident, complete=True)
    assert shown_incident is not None
    assert (
        "by the next start of RocketMQ 5.5.1: 1,313 messages · RocketMQ 5.3.3 would lose 2 messages"
        in shown_incident.line
    )
    assets.set_language("zh_CN")
    shown_incident = incident_of(incident, complete=True)
    assert shown_incident is not None
    assert "RocketMQ 5.5.1 下次启动将丢失：1,313" in shown_incident.line


def test_a_store_that_loses_nothing_has_no_incident() -> None:
    assert incident_of(incident_record(), complete=True) is None
    assert incident_of(incident_record(starts=False), complete=True) is None
    assert incident_of(None, complete=True) is None


def test_incident_and_cause_are_two_lines_in_chinese_too(themed_app: QApplication) -> None:
    """Chinese has its own colon, at which the text was not split."""
    assets.set_language("zh_CN")
    text = what_happened([CL12.finding("the log is empty", "/s/commitlog")], crashed=False)
    assert text == (
        "The commit log is empty or gone: its disk is not mounted, or its files were deleted, in s/commitlog (CL12)."
    )
    incident = incident_of(incident_record(lost=1) | {"whatHappened": text}, complete=True)
    assert incident is not None
    assert incident.happened.clause == "CommitLog 为空或不存在"
    assert incident.happened.why == "磁盘未挂载，或文件已被删除，位于 s/commitlog（CL12）。"


def test_times_of_an_incident_are_in_the_zone_that_is_shown() -> None:
    set_zone(timezone(timedelta(hours=8)))
    try:
        text = "The commit log was overwritten between 2026-11-21T20:10:30.534Z and 2026-11-21T20:10:30.539Z."
        incident = incident_of(incident_record(lost=1) | {"whatHappened": text}, complete=True)
    finally:
        set_zone(None)
    assert incident is not None
    assert "between 2026-11-22 04:10:30.534 and 2026-11-22 04:10:30.539" in incident.happened.clause


def queue(topic: str, number: int, messages: int, **options: Any) -> dict[str, Any]:
    known_values = {"firstUnit": 4096 * (number + 1), "firstTimestamp": None, "lastTimestamp": None}
    return (
        {
            "topic": topic,
            "queueId": number,
            "messages": messages,
            "firstQueueOffset": 10,
            "lastQueueOffset": 9 + messages,
        }
        | known_values
        | options
    )


def test_each_topic_has_its_sum_the_largest_first_and_the_last_row_is_all() -> None:
    rows = lost_rows([queue("Audit", 0, 3), queue("Orders", 1, 1000), queue("Orders", 0, 200)])
    assert [(row.topic, row.queue_id, row.queues, row.messages) for row in rows] == [
        ("Orders", None, 2, 1200),
        ("Orders", 0, 1, 200),
        ("Orders", 1, 1, 1000),
        ("Audit", None, 1, 3),
        ("Audit", 0, 1, 3),
        ("", None, 3, 1203),
    ]
    kind = lost_kind(rows)
    assert [kind.as_text(row, "|") for row in rows[:2]] == ["Orders|2 queues|1,200||4,096", "|0|200|10–209|4,096"]
    assert kind.as_text(rows[-1], "|") == "|All, 3 queues|1,203||4,096"


def test_a_row_leads_to_its_first_entry_and_to_its_first_unit() -> None:
    rows = lost_rows([queue("Orders", 1, 7)])
    jumps = {column.key: column.jump for column in lost_kind(rows).columns if column.jump is not None}
    assert jumps["firstQueueOffset"](rows[1]) == places.queue("Orders", 1, 10)
    assert jumps["firstUnit"](rows[1]) == places.log(8192)
    assert jumps["firstQueueOffset"](rows[0]) is None, "a topic's offsets are those of its queues"


def test_times_are_shown_if_any_is_known() -> None:
    rows = lost_rows([queue("Orders", 0, 7), queue("Orders", 1, 7, firstTimestamp=5_000, lastTimestamp=9_000)])
    assert [(row.first_timestamp, row.last_timestamp) for row in rows] == [
        (5_000, 9_000),
        (None, None),
        (5_000, 9_000),
        (5_000, 9_000),
    ]
    assert [column.key for column in lost_kind(rows).columns][-2:] == ["firstTimestamp", "lastTimestamp"]
    assert "firstTimestamp" not in [column.key for column in lost_kind(lost_rows([queue("Orders", 0, 7)])).columns]


def test_without_losses_there_are_no_rows() -> None:
    assert lost_rows([]) == []
