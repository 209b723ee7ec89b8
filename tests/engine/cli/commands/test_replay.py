"""``storescope replay``, and the files that ``serve --record`` and ``--log-requests`` write for it."""

from __future__ import annotations

import contextlib
import io
import json
import signal
from pathlib import Path
from typing import Any

import contract_records
import recorded_requests
from brokers import run_scenario
from failing_reads import FailingDisk
from guarded_broker import SECRET, credential_files, guarded_beside
from served_stores import FREE, a_send, bytes_of, responses_of, served

from engine.broker.serving import serving_store
from engine.cli.main import main
from engine.mapped.reading import read_through
from engine.message_store import MessageStore
from engine.remoting.recording import Recorder


def run_replay(*words: object) -> tuple[int, list[dict[str, Any]], str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(out):
        code = main([*map(str, words), "--json"])
    records = [json.loads(line) for line in out.getvalue().splitlines()]
    for record in records:
        assert record["type"] == "unreadable" or not contract_records.complaints(record), record
    return code, records, err.getvalue()


def recorded(folder: Path) -> Path:
    recorder = Recorder(folder / "talk.requests")
    recorded_requests.seen_in_a_talk(folder / "first", recorder.take)
    recorder.close()
    return folder / "talk.requests"


def test_serve_records_requests_that_replay_sends_again(tmp_path: Path) -> None:
    log, recording = tmp_path / "requests.jsonl", tmp_path / "talk.requests"
    extra = ("--log-requests", str(log), "--record", str(recording))
    with served(tmp_path / "store", *extra) as (process, record):
        responses_of(record["broker"], a_send(b"first"), a_send(b"second"))
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert [line["answerName"] for line in lines if line["name"] == "SEND_MESSAGE_V2"] == ["SUCCESS", "SUCCESS"]
    assert {line["server"] for line in lines} == {"broker", "namesrv"}  # the broker registers with the name server
    code, records, _ = run_replay("replay", recording, "--store", tmp_path / "again")
    assert code == 0
    assert (records[-1]["sent"], records[-1]["same"], records[-1]["differs"]) == (2, 2, 0)
    with MessageStore(tmp_path / "again") as store:
        assert store.max_offset_in_queue("Orders", 0) == 2


def test_a_different_answer_is_a_row_and_sets_the_exit_code(tmp_path: Path) -> None:
    recording = recorded(tmp_path)
    code, records, _ = run_replay(
        "replay", recording, "--store", tmp_path / "again", "--only", "END_TRANSACTION,PULL_MESSAGE"
    )
    assert code == 1
    assert [record["type"] for record in records] == ["replayDifference"] * (len(records) - 1) + ["replayed"]
    assert {record["name"] for record in records[:-1]} <= {"END_TRANSACTION", "PULL_MESSAGE"}
    assert records[0]["before"] == "SUCCESS"
    assert records[-1]["byName"] == {"PULL_MESSAGE": 3, "END_TRANSACTION": 1}


def test_requests_are_replayed_to_a_running_broker(tmp_path: Path) -> None:
    recording = recorded(tmp_path)

    async def sent() -> None:
        import asyncio

        async with serving_store(tmp_path / "again", port=0) as server:
            code, records, _ = await asyncio.to_thread(run_replay, "replay", recording, "--to", server.address)
            assert (code, records[-1]["sent"]) == (0, 11), records

    run_scenario(sent)


def test_requests_are_replayed_to_a_broker_that_requires_tls_and_an_account(tmp_path: Path) -> None:
    recording = recorded(tmp_path)
    assert run_replay("replay", recording, "--store", tmp_path / "again")[0] == 0
    with guarded_beside(tmp_path / "again", tmp_path, "5.5") as addresses:
        credentials = credential_files(tmp_path)
        code, records, error = run_replay("replay", recording, "--to", addresses.broker, *credentials)
        assert (code, records[-1]["sent"], records[-1]["same"]) == (0, 11, 10), (records, error)
        code, records, error = run_replay("replay", recording, "--to", addresses.broker, *credentials[2:])
        assert code == 1
        assert {record["now"] for record in records[:-1]} == {"NO_PERMISSION"}
        code, records, error = run_replay("replay", recording, "--to", addresses.broker, "--only", "HEART_BEAT")
        assert (code, records[-1]["unanswered"], records[-1]["same"]) == (1, records[-1]["sent"], 0), (records, error)
        assert SECRET not in error
    code, records, error = run_replay("replay", recording, "--store", tmp_path / "new", *credentials)
    assert (code, records) == (2, [])
    assert "--tls and --account are for --to HOST:PORT" in error


def test_an_existing_store_needs_confirmation(tmp_path: Path) -> None:
    recording = recorded(tmp_path)
    files_before = bytes_of(tmp_path / "first")
    code, records, output = run_replay("replay", recording, "--store", tmp_path / "first")
    assert (code, records) == (2, [])
    assert "--yes" in output
    assert bytes_of(tmp_path / "first") == files_before
    code, records, _ = run_replay("replay", recording, "--store", tmp_path / "first", "--yes")
    assert (code, records[-1]["sent"]) == (0, 11), records


def test_a_store_that_cannot_be_read_is_left_alone(tmp_path: Path) -> None:
    recording = recorded(tmp_path)
    files_before = bytes_of(tmp_path / "first")
    with read_through(FailingDisk(tmp_path / "first" / "commitlog", "open", 0, "EACCES")):
        code, _, output = run_replay("replay", recording, "--store", tmp_path / "first", "--yes")
    assert code == 3, output
    assert bytes_of(tmp_path / "first") == files_before


def test_an_invalid_recording_is_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / "no").write_text("hello")
    for words, expected in (
        ((tmp_path / "no", "--store", tmp_path / "s"), "is not a recording"),
        ((tmp_path / "absent", "--store", tmp_path / "s"), "absent"),
        ((recorded(tmp_path), "--to", "127.0.0.1:1"), "cannot be reached"),
        ((tmp_path / "no",), "needs --store STORE or --to HOST:PORT"),
        ((tmp_path / "no", "--store", "s", "--only", "SEND"), "no request is called SEND"),
    ):
        code, _, output = run_replay("replay", *words)
        assert code in {2, 3}
        assert expected in output
        assert len(output.strip().splitlines()) == 1


def test_a_recording_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    code, _, output = run_replay("serve", tmp_path / "store", *FREE, "--record", tmp_path / "there")
    assert code == 2
    assert "exists already" in output
    assert (tmp_path / "there").read_text() == "mine"
