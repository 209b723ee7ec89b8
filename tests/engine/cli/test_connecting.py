"""Commands on a running cluster that requires TLS and accounts. The secret is only in the file that names it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from engine_units import units_of
from guarded_broker import SECRET, credential_files, guarded_beside
from handmade_stores import HandmadeStore

from engine.broker.serving import Addresses
from engine.cli.main import main
from engine.codec.encode import Message
from engine.message_store import MessageStore


@pytest.fixture(params=["4.9", "5.5"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Addresses]:
    monkeypatch.chdir(tmp_path)
    with MessageStore(tmp_path / "target", release=request.param) as store:
        store.tables.create_topic("Orders", 1)
        store.tables.create_group("billing")
        for number in range(3):
            store.put_message(Message("Orders", b"%d" % number))
        store.tables.commit_consumer_offset("billing", "Orders", 0, 3)
    with guarded_beside(tmp_path / "target", tmp_path, request.param) as addresses:
        yield addresses


def run(capsys: Any, *words: object) -> tuple[int, list[dict[str, Any]], str]:
    code = main([*map(str, words), "--json"])
    captured = capsys.readouterr()
    assert SECRET not in captured.out + captured.err
    return code, [json.loads(line) for line in captured.out.splitlines()], captured.err


def test_messages_are_sent_and_offsets_moved(cluster: Addresses, tmp_path: Path, capsys: Any) -> None:
    made = HandmadeStore()
    made.put("%DLQ%billing", unique="A", body=b"tea", more={"RETRY_TOPIC": "Orders"})
    credentials = credential_files(tmp_path)
    for to in (cluster.broker, cluster.namesrv):
        source = made.write(tmp_path / f"source-{to.rpartition(':')[2]}")
        code, records, error = run(capsys, "resend", source, "--where", "size > 0", "--to", to, "--yes", *credentials)
        assert (code, records[-1]["sent"]) == (0, 1), error
        journal = Path(records[-1]["journal"]).read_text()
        assert SECRET not in journal
        assert "operator" not in journal

    move = ("resetOffsetByTime", "-n", cluster.namesrv, "-g", "billing", "-t", "Orders", "-s", "0", "--yes")
    code, records, error = run(capsys, *move, *credentials)
    assert (code, records[-1]["again"]) == (0, 3), error
    undo_file = Path(records[-1]["undoFile"])
    assert SECRET not in undo_file.read_text()
    code, records, _ = run(capsys, "restore-offsets", undo_file, "--yes", *credentials)
    assert [(row["oldOffset"], row["newOffset"], row["result"]) for row in records[:-1]] == [(0, 3, "set")]

    code, records, _ = run(capsys, "cluster", cluster.namesrv, *credentials)
    progress = next(row for row in records if row["type"] == "clusterProgress")
    assert (progress["offset"], progress["maxOffset"]) == (3, 5)
    code, records, _ = run(capsys, "topicList", "-n", cluster.namesrv, *credentials)
    assert (code, "Orders" in {row["topic"] for row in records}) == (0, True)


def test_a_refused_account_or_a_plain_connection_sends_nothing(cluster: Addresses, tmp_path: Path, capsys: Any) -> None:
    made = HandmadeStore()
    made.put("Orders", unique="B", body=b"tea")
    source = made.write(tmp_path / "source")
    command = ("resend", source, "--where", "size > 0", "--to", cluster.broker, "--yes")
    with_tls = credential_files(tmp_path)[2:]
    cases = {
        "has ended; does it require TLS?": (),
        "does it require an account?": with_tls,
        "refused by 127.0.0.1:": credential_files(tmp_path, "operator", "wrong-wrong"),
    }
    for words, credentials in cases.items():
        code, records, error = run(capsys, *command, *credentials)
        assert (code, records) == (3, []), error
        assert words in error, error
    assert not (tmp_path / "source.resent.jsonl").exists()
    assert [unit.unique_key for unit in units_of(tmp_path / "target") if unit.unique_key == "B"] == []
