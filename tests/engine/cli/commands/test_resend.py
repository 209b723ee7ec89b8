"""``storescope resend``: dead letters go back to their topics, once, whatever interrupts it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import contract_records
import golden_stores
import pytest
from engine_units import units_of
from handmade_stores import HandmadeStore

from engine.broker.serving import serving_beside
from engine.cli.main import main
from engine.codec.message import Unit
from engine.message_store import MessageStore
from engine.resend.sending import Destination

DEAD = 'topic startswith "%DLQ%"'


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Four dead letters of two topics, one whose topic is not known, and the message that one of them was."""
    store = HandmadeStore()
    store.put("Orders", unique="A", body=b"tea")
    for key in "ABC":
        store.put("%DLQ%billing", unique=key, body=b"tea", more={"RETRY_TOPIC": "Orders"}, tags="paid")
    store.put("%DLQ%billing", unique="D", more={"RETRY_TOPIC": "Payments"})
    store.put("%DLQ%billing", unique="E")
    return store.write(tmp_path / "source")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    with MessageStore(tmp_path / "target") as store:
        store.tables.create_topic("Orders", 2)
        store.tables.create_topic("Payments", 1)
    return tmp_path / "target"


def run(capsys, *words: object) -> tuple[int, list[dict[str, Any]], str]:
    code = main([*map(str, words), "--json"])
    captured = capsys.readouterr()
    records = [json.loads(line) for line in captured.out.splitlines()]
    for record in records:
        assert not contract_records.complaints(record), record
    return code, records, captured.err


def sent_to(target: Path, topic: str) -> list[Unit]:
    return [unit for unit in units_of(target) if unit.topic == topic]


def test_dead_letters_are_sent_to_their_topics_and_never_again(source: Path, target: Path, capsys) -> None:
    files = golden_stores.fingerprint(source)
    with serving_beside(target) as addresses:
        command = ("resend", source, "--where", DEAD, "--to", addresses.broker, "--yes")
        code, records, asked = run(capsys, *command)
        assert code == 1  # one of them cannot be sent
        assert "5 messages match; 4 are sent to" in asked
        assert "to Orders: 3 messages, stored from" in asked
        assert "1 cannot be sent: its original topic is not known" in asked
        plan, unsent, *results, end = records
        assert (plan["type"], plan["toSend"], plan["kinds"]) == ("resendPlan", 4, {"deadLetter": 4})
        assert (unsent["result"], unsent["uniqueKey"]) == ("cannotBeSent", "E")
        assert [(row["result"], row["msgId"], row["topic"]) for row in results] == [
            ("sent", "A", "Orders"),
            ("sent", "B", "Orders"),
            ("sent", "C", "Orders"),
            ("sent", "D", "Payments"),
        ]
        assert (end["sent"], end["cannotBeSent"], end["remaining"]) == (4, 1, 0)
        command = ("resend", source, "--where", DEAD + ' and uniqueKey != "E"', "--to", addresses.broker, "--yes")
        for again in (command, (*command, "--topic", "Payments"), (*command, "--resend-unknown")):
            code, (plan,), _ = run(capsys, *again)
            assert (code, plan["toSend"], plan["alreadySent"], plan["knownKeys"]) == (0, 0, 4, 4)
    units = sent_to(target, "Orders")
    assert [(unit.unique_key, unit.body, unit.tags) for unit in units] == [
        (key, b"tea", "paid") for key in ("A", "B", "C")
    ]
    assert golden_stores.changes(files, golden_stores.fingerprint(source)) == []


def test_it_asks_first_and_a_plan_sends_nothing(source: Path, target: Path, capsys) -> None:
    with serving_beside(target) as addresses:
        command = ("resend", source, "--where", DEAD, "--to", addresses.broker)
        code, _, asked = run(capsys, *command)
        assert code == 2
        assert "--yes" in asked
        code, records, _ = run(capsys, *command, "--plan")
        assert code == 1
        assert [record["type"] for record in records] == ["resendPlan"]
        main([*map(str, command), "--plan"])
        assert "4 dead letters" in capsys.readouterr().out
    assert sent_to(target, "Orders") == []
    assert not (source.parent / "source.resent.jsonl").exists()


def test_a_topic_that_the_broker_does_not_have_is_not_created(source: Path, target: Path, capsys) -> None:
    with serving_beside(target) as addresses:
        code, records, _ = run(
            capsys, "resend", source, "--where", DEAD, "--to", addresses.namesrv, "--topic", "Again", "--yes"
        )
        assert code == 1
        assert list(records[0]["cannotBeSent"].values()) == [5]
    with MessageStore(target) as store:
        assert "Again" not in store.tables.topics()


def test_a_retry_topic_reaches_only_its_group(source: Path, target: Path, capsys) -> None:
    with MessageStore(target) as store:
        store.tables.create_group("billing")
        store.tables.create_topic("%RETRY%billing", 1)
    with serving_beside(target) as addresses:
        words = ("--to", addresses.broker, "--topic", "%RETRY%billing", "--yes")
        code, _, _ = run(capsys, "resend", source, "--where", 'uniqueKey = "B"', *words)
    assert code == 0
    (unit,) = sent_to(target, "%RETRY%billing")
    assert (unit.unique_key, unit.properties["RETRY_TOPIC"], unit.reconsume_times) == ("B", "Orders", 0)


class Killed(BaseException):
    """Stands for the end of the process."""


def test_a_message_whose_answer_was_lost_is_only_sent_again_on_request(
    source: Path, target: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process ends between "sending" and "sent", after the broker has stored the message."""
    send = Destination.send

    async def send_and_die(self, message, *others):
        outcome = await send(self, message, *others)
        if message.unique_key == "B":
            raise Killed
        return outcome

    with serving_beside(target) as addresses:
        command = ("resend", source, "--where", DEAD, "--to", addresses.broker, "--yes")
        with monkeypatch.context() as patch:
            patch.setattr(Destination, "send", send_and_die)
            with pytest.raises(Killed):
                main([*map(str, command)])
        capsys.readouterr()
        code, records, asked = run(capsys, *command)
        assert code == 1
        assert "1 left out: not known whether they arrived" in asked
        assert [record["msgId"] for record in records if record.get("result") == "sent"] == ["C", "D"]
        code, records, _ = run(capsys, *command, "--resend-unknown")
        assert [record["msgId"] for record in records if record.get("result") == "sent"] == ["B"]
    assert [unit.unique_key for unit in sent_to(target, "Orders")] == ["A", "B", "C", "B"]


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_was_ended_goes_on_where_it_was(
    source: Path, target: Path, tmp_path: Path, capsys, signal_number: signal.Signals
) -> None:
    journal = tmp_path / "sent.jsonl"
    with serving_beside(target) as addresses:
        command = ["resend", str(source), "--where", DEAD, "--to", addresses.broker, "--yes", "--journal", str(journal)]
        script = "from engine.cli.main import main; raise SystemExit(main())"
        process = subprocess.Popen([sys.executable, "-c", script, *command, "--rate", "2"], stdout=subprocess.DEVNULL)
        end = time.monotonic() + 30
        while not (journal.exists() and b'"sent"' in journal.read_bytes()):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.01)
        process.send_signal(signal_number)
        assert process.wait(timeout=30) == (130 if signal_number is signal.SIGINT else -signal.SIGKILL)
        _, records, _ = run(capsys, *command)
        assert records[0]["alreadySent"] == 1
        assert records[-1]["sent"] == 3
    assert [unit.unique_key for unit in sent_to(target, "Orders")] == ["A", "B", "C"]
    assert [unit.unique_key for unit in sent_to(target, "Payments")] == ["D"]


def test_wrong_words_are_one_line(source: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "other").write_text("mine")
    here = ("resend", source, "--where", DEAD, "--to", "127.0.0.1:1")
    for words, expected in (
        ((*here, "--yes"), "cannot be reached"),
        ((*here, "--journal", tmp_path / "other"), "expected a journal of resend"),
        ((*here, "--journal", tmp_path / "no" / "journal", "--yes"), "cannot be reached"),
        ((*here, "--rate", "0"), "expected a number above 0"),
        ((*here, "--topic", "a b"), "illegal characters"),
        ((*here[:3], "nothing(", *here[4:]), "filter, character"),
        (("resend", source, "--where", DEAD, "--to", "a:1;b:2"), "expected one HOST:PORT"),
    ):
        code, records, output = run(capsys, *words)
        assert code in {2, 3}
        assert records == []
        assert expected in output
        assert len(output.strip().splitlines()) == 1
    assert (tmp_path / "other").read_text() == "mine"
    assert main([*map(str, here), "--plan", "--where", 'topic = "Absent"']) == 0
    assert "0 messages match; none is sent" in capsys.readouterr().out


@pytest.mark.golden
@pytest.mark.parametrize("name", ["broker-retries-4.9.7", "broker-retries-5.5.1"])
def test_dead_letters_of_real_brokers_go_to_their_topics(golden, tmp_path: Path, capsys, name: str) -> None:
    where = 'topic startswith "%DLQ%" or topic startswith "%RETRY%"'
    dead = {
        unit.unique_key: unit
        for unit in units_of(golden(name))
        if unit.topic.startswith(("%DLQ%", "%RETRY%")) and unit.body
    }
    topics = {unit.properties["RETRY_TOPIC"] for unit in dead.values()}
    with MessageStore(tmp_path / "target") as store:
        for topic in topics:
            store.tables.create_topic(topic, 4)
    with serving_beside(tmp_path / "target") as addresses:
        words = ("--to", addresses.broker, "--yes", "--journal", tmp_path / "sent.jsonl")
        code, records, _ = run(capsys, "resend", golden(name), "--where", where, *words)
    assert (code, records[-1]["sent"]) == (0, len(dead))
    units = units_of(tmp_path / "target")
    assert len(units) == len(dead)
    for unit in units:
        original = dead[unit.unique_key]
        assert (unit.topic, unit.body, unit.tags) == (original.properties["RETRY_TOPIC"], original.body, original.tags)
        assert unit.keys == original.keys
        assert unit.properties["ORIGIN_MESSAGE_ID"] == original.properties["ORIGIN_MESSAGE_ID"]
        assert not {"RETRY_TOPIC", "DELAY", "REAL_TOPIC", "REAL_QID"} & unit.properties.keys()
