"""resetOffsetByTime, skipAccumulatedMessage, cloneGroupOffset: shown, made, and taken back by restore-offsets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import contract_records
import pytest

from engine.broker.serving import Addresses, serving_beside
from engine.cli.main import main
from engine.codec.encode import Message
from engine.message_store import MessageStore

OFFSETS = {0: 6, 1: 2}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Addresses]:
    """A broker with 2 queues of 10 messages; the group billing is at 6 and 2."""
    monkeypatch.chdir(tmp_path)
    with MessageStore(tmp_path / "store") as store:
        store.tables.create_topic("Orders", 2)
        for group in ("billing", "audit"):
            store.tables.create_group(group)
        for number in range(20):
            store.put_message(Message("Orders", b"%d" % number, queue_id=number % 2))
        for queue_id, offset in OFFSETS.items():
            store.tables.commit_consumer_offset("billing", "Orders", queue_id, offset)
        store.tables.commit_consumer_offset("audit", "Orders", 0, 9)
    with serving_beside(tmp_path / "store") as addresses:
        yield addresses


def run(capsys, *words: object) -> tuple[int, list[dict[str, Any]], str]:
    code = main([*map(str, words), "--json"])
    captured = capsys.readouterr()
    records = [json.loads(line) for line in captured.out.splitlines()]
    for record in records:
        assert not contract_records.complaints(record), record
    return code, records, captured.err


def offsets_of(capsys, cluster: Addresses, group: str) -> dict[int, int]:
    """Return the group's offsets, as a plan that changes nothing shows them."""
    words = ("resetOffsetByTime", "-n", cluster.namesrv, "-g", group, "-t", "Orders", "-s", "0", "--plan")
    _, records, _ = run(capsys, *words)
    return {row["queueId"]: row["oldOffset"] for row in records[:-1] if row["oldOffset"] is not None}


@pytest.mark.parametrize(
    ("words", "shown", "again", "never", "after"),
    [
        (
            ("resetOffsetByTime", "-s", "0"),
            ["6 → 0", "6 messages come again: offsets 0 to 5", "2 → 0"],
            8,
            0,
            {0: 0, 1: 0},
        ),
        (("resetOffsetByTime", "-s", "-1"), ["4 messages never come: offsets 6 to 9"], 0, 12, {0: 10, 1: 10}),
        (("resetOffsetByTime", "-s", "now"), ["8 messages never come: offsets 2 to 9"], 0, 12, {0: 10, 1: 10}),
        (
            ("resetOffsetByTime", "-q", "1", "-o", "1"),
            ["2 → 1", "1 message comes again: offset 1"],
            1,
            0,
            {0: 6, 1: 1},
        ),
        (("skipAccumulatedMessage",), ["in all: 0 messages come again, 12 messages never come"], 0, 12, {0: 10, 1: 10}),
    ],
)
def test_offsets_are_shown_set_and_set_back(cluster, tmp_path, capsys, words, shown, again, never, after) -> None:
    name, *options = words
    command = (name, "-n", cluster.namesrv, "-g", "billing", "-t", "Orders", *options)
    code, records, _ = run(capsys, *command, "--plan")
    assert code == 0
    assert (records[-1]["again"], records[-1]["never"], records[-1]["undoFile"]) == (again, never, None)
    code, _, asked = run(capsys, *command)
    assert (code, "--yes" in asked) == (2, True)
    assert [text for text in shown if text not in asked] == []
    assert offsets_of(capsys, cluster, "billing") == OFFSETS
    assert list(tmp_path.glob("*.json")) == []
    code, records, _ = run(capsys, *command, "--yes")
    assert code == 0
    assert {row["result"] for row in records[:-1]} <= {"set", "unchanged"}
    assert offsets_of(capsys, cluster, "billing") == after
    (undo,) = tmp_path.glob("billing.offsets-*.json")
    assert records[-1]["undoFile"] == undo.name
    code, records, asked = run(capsys, "restore-offsets", undo, "--undo-file", tmp_path / "redo.json", "--yes")
    assert (code, records[-1]["again"], records[-1]["never"]) == (0, never, again)
    assert offsets_of(capsys, cluster, "billing") == OFFSETS
    assert run(capsys, "restore-offsets", tmp_path / "redo.json", "-n", cluster.namesrv, "--yes")[0] == 0
    assert offsets_of(capsys, cluster, "billing") == after


def test_offsets_of_another_group_are_taken_over(cluster, tmp_path, capsys) -> None:
    words = ("cloneGroupOffset", "-n", cluster.namesrv, "-t", "Orders", "--undo-file", tmp_path / "undo", "--yes")
    code, records, asked = run(capsys, *words, "-s", "billing", "-d", "audit")
    assert code == 0
    assert "3 messages come again: offsets 6 to 8" in asked
    assert "no offset → 2 (the queue has offsets 0 to 9): 8 messages are read from there on" in asked
    assert (records[-1]["again"], records[-1]["never"]) == (3, 0)
    assert offsets_of(capsys, cluster, "audit") == OFFSETS
    code, _, asked = run(capsys, "restore-offsets", tmp_path / "undo", "--yes")
    assert code == 0
    assert "1 queue keeps its offset: there was none before" in asked
    assert offsets_of(capsys, cluster, "audit") == {0: 9, 1: 2}


def test_a_refusal_is_shown_for_its_queue_and_the_old_offsets_are_saved(cluster, tmp_path, capsys) -> None:
    words = ("resetOffsetByTime", "-n", cluster.namesrv, "-t", "Orders", "-q", "0", "--undo-file", tmp_path / "undo")
    code, records, _ = run(capsys, *words, "-g", "billing", "-o", "99", "--yes")
    assert code == 1
    assert "not in consume queue range" in records[0]["result"]
    assert json.loads((tmp_path / "undo").read_text())["offsets"][0]["offset"] == 6
    text_words = [*map(str, words[:-1]), str(tmp_path / "second"), "-g", "billing", "-o", "99", "--yes"]
    assert main(text_words) == 1
    output = capsys.readouterr().out
    assert "1 offset was not set" in output
    assert "restore-offsets" not in output
    code, _, output = run(capsys, *words, "-g", "billing", "-o", "5", "--yes")
    assert code == 3
    assert "File exists" in output
    assert offsets_of(capsys, cluster, "billing") == OFFSETS


def test_wrong_words_are_one_line(cluster, tmp_path, capsys) -> None:
    (tmp_path / "other").write_text("{}")
    here = ("-n", cluster.namesrv, "-g", "billing", "-t", "Orders")
    for words, expected in (
        (("resetOffsetByTime", *here), "one of them"),
        (("resetOffsetByTime", *here, "-s", "0", "-o", "1", "-q", "1"), "one of them"),
        (("resetOffsetByTime", *here, "-o", "1"), "needs the queue"),
        (("resetOffsetByTime", *here, "-s", "0", "-q", "7"), "know no such queue"),
        (("skipAccumulatedMessage", *here[:-1], "Nowhere"), "no broker serves the topic Nowhere"),
        (("skipAccumulatedMessage", "-n", "127.0.0.1:1", *here[2:]), "no name server answers"),
        (("cloneGroupOffset", *here[:2], *here[4:], "-s", "nobody", "-d", "audit"), "nobody has no offset"),
        (("restore-offsets", tmp_path / "other"), "expected an undo file"),
        (("restore-offsets", tmp_path / "absent"), "No such file"),
    ):
        code, records, output = run(capsys, *words)
        assert code in {2, 3}, words
        assert records == []
        assert expected in output
        assert len(output.strip().splitlines()) == 1
