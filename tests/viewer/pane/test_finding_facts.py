"""The facts of a finding: its place, its evidence, the next step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.rules.catalogue import RULES
from engine.rules.findings import Finding
from viewer.look import assets
from viewer.pane.finding_facts import (
    evidence_facts,
    finding_markdown,
    next_steps,
    place_of,
    place_text,
)
from viewer.runtime import places
from viewer.runtime.places import Place


def finding(id_: str, file: str | None, offset: int | None = None, **evidence: object) -> Finding:
    return RULES[id_].finding("message", file, offset, evidence)


def test_times_and_tables_of_values_are_readable() -> None:
    item = finding(
        "CK02", None, None, found={"physicMsgTimestamp": 1_700_000_000_000, "logicsMsgTimestamp": 0}, bytes=5
    )
    (_, output), *_ = evidence_facts(item)
    assert output.startswith("physicMsgTimestamp 2023-11-1")
    assert output.endswith(" · logicsMsgTimestamp 0")


@pytest.mark.parametrize(
    ("finding_", "place", "text"),
    [
        (finding("CL03", "/s/commitlog/00000000000000001024", 1030), places.log(1030), "1,030"),
        (finding("CQ06", "/s/consumequeue/T/3/00000000000000006000", 40), places.queue("T", 3, 302), "T/3/302"),
        (finding("CQ06", "/s/consumequeue/T/3"), places.queue("T", 3), "T/3"),
        (finding("IX03", "/s/index/2026", 80, entry=7), places.index("2026", "entry", 7), "2026"),
        (finding("AB01", "/s/abort"), Place("checkpoint"), "abort"),
        (finding("CF01", "/s/config/topics.json", 9), Place("config", name="topics.json"), "topics.json"),
        (finding("CF01", None), None, ""),
    ],
)
def test_a_finding_links_to_its_place(finding_, place, text) -> None:
    assert place_of(finding_) == place
    assert place_text(finding_) == text


def test_the_first_step_on_a_damaged_store_is_a_snapshot() -> None:
    steps = next_steps(finding("CL03", "/s/commitlog/00000000000000000000", 1), "/data/store")
    assert steps[0][0] == "Take a snapshot"
    assert "/data/store" in steps[0][1]
    assert len(next_steps(finding("CQ08", None), "/data/store")) == 1


def test_evidence_does_not_repeat_the_message_in_any_language(themed_app) -> None:
    """In Chinese the explanation of a wrong CRC appeared twice, because its translation was compared with English
    words.
    """
    explained = "would be explained by bit 2 of byte 79 of the body"
    item = replace(
        finding("CL03", None, None, explanation=explained, bodyOffset=5), message=f"a wrong CRC: {explained}"
    )
    assets.set_language("zh_CN")
    assert [value for _, value in evidence_facts(item)] == ["消息体偏移量 5"]


def test_a_line_of_the_brokers_log_is_unchanged(themed_app) -> None:
    """Its colons became Chinese ones, and matching words were translated, so the line could not be found in the log."""
    line = (
        "load exception java.lang.RuntimeException: The queue type of topic: Orders should be SimpleCQ, but is BatchCQ"
    )
    assets.set_language("zh_CN")
    assert evidence_facts(finding("CQ11", None, None, brokerLog=line))[-1][1].endswith(line)


def test_evidence_begins_with_expected_and_found_and_is_shortened() -> None:
    facts = evidence_facts(finding("CL03", None, None, bodyOffset=5, found=[1, 2], expected="x" * 1000))
    assert [name for name, _ in facts] == ["Expected", "Found", "Also seen"]
    assert len(facts[0][1]) < 500
    assert facts[1][1] == "1, 2"
    assert facts[2][1] == "body offset 5"


def test_long_evidence_is_a_line_each_and_a_crc_is_written_as_in_the_log() -> None:
    """The evidence was one long line, "witnesses … cq13 queue …", and a CRC was a decimal number."""
    witnesses = ["the queue knows more", "the index too"]
    item = finding("CL11", None, None, witnesses=witnesses, CQ13={"queue": "A/0"}, bodyCrc=255)
    assert evidence_facts(item) == [
        ("Also seen", "body crc 0x000000FF"),
        ("Witnesses", "the queue knows more\nthe index too"),
        ("CQ13", "queue A/0"),
    ]


def test_names_of_evidence_are_translated(themed_app) -> None:
    """In Chinese the JSON names "firstQueueEntry" and "bytePositions" were shown."""
    item = finding("CL01", None, None, firstQueueEntry="A/0/17", indexEntries=11, bytePositions=[1, 2], other=3)
    assert evidence_facts(item) == [
        ("Also seen", "first queue entry A/0/17 · index entries 11 · byte positions 1, 2 · other 3")
    ]
    assets.set_language("zh_CN")
    assert evidence_facts(item) == [("另见", "第一个队列条目 A/0/17 · 索引条目 11 · 字节位置 1, 2 · other 3")]


def test_expected_and_found_of_a_wrong_crc_are_written_as_in_the_log() -> None:
    """Findings showed both CRCs as decimal numbers, but the log shows them as hex, so they looked different."""
    item = finding("CL03", None, None, expected=220177541, found=1117307468, bodyOffset=1310988)
    assert evidence_facts(item) == [
        ("Expected", "0x0D1FA485"),
        ("Found", "0x4298C24C"),
        ("Also seen", "body offset 1,310,988"),
    ]


def test_a_finding_is_copied_as_markdown(themed_app) -> None:
    item = finding("CL03", "/s/commitlog/0", 4096, expected="0x1", found="0x2")
    actual_finding_markdown = finding_markdown(item)
    assert actual_finding_markdown.startswith("### CL03 · error · Wrong body CRC")
    assert RULES["CL03"].explanation in actual_finding_markdown
    assert "- Expected: 0x1" in actual_finding_markdown


def test_losses_have_one_line_per_queue_a_sum_and_are_not_cut() -> None:
    rows = [{"queue": f"Audit/{n}", "first": 10, "last": 10 + n, "messages": n + 1} for n in range(40)]
    lost_finding = replace(
        finding("CL07", "/s/commitlog/9", 9), evidence={"lost": rows, "queueEntries": 820, "happened": "x"}
    )
    facts = dict(evidence_facts(lost_finding))
    sum_line, *lines = facts["Lost"].split("\n")
    assert sum_line == "820 messages · 40 queues"
    assert (lines[0], lines[-1], len(lines)) == ("Audit/0 10 (1 message)", "Audit/39 10–49 (40 messages)", 40)
    assert "happened" not in str(facts)
