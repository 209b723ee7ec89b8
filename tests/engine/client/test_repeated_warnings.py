"""Warnings about other hosts: one line per second and cause, and none in a program that did not configure logging."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from engine.broker.serving import serving_beside
from engine.client import repeated_warnings
from engine.client.blocking import BlockingProducer
from engine.client.messages import Message
from engine.client.repeated_warnings import RepeatedWarnings

_log = logging.getLogger("engine.client.test")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(repeated_warnings.time, "monotonic", lambda: now[0])
    return now


def test_a_cause_is_logged_once_a_second_with_the_number_of_omitted_lines(
    clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    """A broker that was away for nine seconds caused 148 lines about routes and 72 about pulls."""
    warnings = RepeatedWarnings()
    for step in range(25):
        clock[0] = 100.0 + step / 10
        for queue in range(8):
            warnings.warn(_log, "Connection refused", "pull of queue %d: %s", queue, "Connection refused")
        warnings.warn(_log, "no answer", "heartbeat: %s", "no answer")
    messages = [record.getMessage() for record in caplog.records]
    assert messages == [
        "pull of queue 0: Connection refused",
        "heartbeat: no answer",
        "pull of queue 0: Connection refused (79 more of this cause since the last line)",
        "heartbeat: no answer (9 more of this cause since the last line)",
        "pull of queue 0: Connection refused (79 more of this cause since the last line)",
        "heartbeat: no answer (9 more of this cause since the last line)",
    ]


def test_the_number_of_remembered_causes_is_bounded(clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    warnings = RepeatedWarnings()
    for number in range(2000):
        warnings.warn(_log, str(number), "%d", number)
    assert len(caplog.records) == 2000
    clock[0] += 0.5
    warnings.warn(_log, "1999", "again")
    assert len(caplog.records) == 2000
    warnings.warn(_log, "0", "again")
    assert len(caplog.records) == 2001


_PROGRAM = """
import sys, time
from engine.client.blocking import BlockingConsumer
{logging}
consumer = BlockingConsumer("readers", lambda messages, context: True, sys.argv[1])
consumer.subscribe("Orders")
with consumer:
    print("ready", flush=True)
    sys.stdin.readline()  # the broker is gone
    time.sleep({seconds})
"""


@pytest.mark.parametrize("configured", [False, True])
def test_a_program_without_its_broker_gets_few_lines_or_none_without_logging(
    tmp_path: Path, *, configured: bool
) -> None:
    program = tmp_path / "program.py"
    text = "import logging; logging.basicConfig()" if configured else ""
    program.write_text(_PROGRAM.format(logging=text, seconds=4))
    environment = {"PYTHONPATH": str(Path(__file__).resolve().parents[3]), "PATH": ""}
    with serving_beside(tmp_path / "store") as addresses:
        with BlockingProducer("senders", addresses.namesrv) as producer:
            producer.send(Message("Orders", b"1"))
        words = [sys.executable, str(program), addresses.namesrv]
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    _, errors = process.communicate("\n", timeout=60)
    lines = errors.splitlines()
    assert process.returncode == 0
    assert bool(lines) is configured, lines
    assert len(lines) <= 20, lines
