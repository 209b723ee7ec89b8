"""RocketMQ's own integration tests (``rocketmq-test`` of Maven Central) against three brokers of ours."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import real_cluster

FOLDER = Path(__file__).resolve().parent.parent / "peer" / "rocketmq_tests"
BROKERS = ("broker-1", "broker-2", "broker-3")
SETTINGS = """
brokerClusterName=DefaultCluster
brokerIP1=127.0.0.1
enablePropertyFilter=true
enableCalcFilterBitMap=true
enableConsumeQueueExt=true
recallMessageEnable=true
loadBalancePollNameServerInterval=500
maxTransferCountOnMessageInMemory=1024
maxTransferCountOnMessageInDisk=1024
mappedFileSizeCommitLog=104857600
maxIndexNum=1000
maxHashSlotNum=4000
"""
"""What the tests set for the brokers that they start themselves."""


class Result(NamedTuple):
    """A test and how it ended; ``reason`` is empty where it passed."""

    name: str
    has_passed: bool
    reason: str


@contextlib.contextmanager
def three_brokers(folder: Path) -> Iterator[str]:
    """Serve three empty stores behind one name server, and yield its address."""
    names = f"127.0.0.1:{real_cluster.free_port()}"
    with contextlib.ExitStack() as stack:
        for name in BROKERS:
            home = folder / name
            home.mkdir(parents=True)
            (home / "broker.conf").write_text(f"{SETTINGS}brokerName={name}\n")
            finding = ("--namesrv-port", names.rpartition(":")[2]) if name == BROKERS[0] else ("--namesrv", names)
            words = [sys.executable, "-m", "engine.cli", "serve", home / "store", "--config", home / "broker.conf"]
            stack.enter_context(_served([*words, "--port", real_cluster.free_port(), *finding, "--json"], home))
        yield names


@contextlib.contextmanager
def _served(words: Sequence[object], home: Path) -> Iterator[None]:
    with (home / "errors.txt").open("wb") as errors:
        process = subprocess.Popen([*map(str, words)], stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, (home / "errors.txt").read_text()
            assert json.loads(line)["type"] == "serving"
            yield
        finally:
            process.terminate()
            process.communicate(timeout=60)


def run_tests(namesrv: str, tests: Sequence[str], timeout_s: float, limit_s: int = 60) -> list[Result]:
    """Run classes or single tests (``class#method``), each for at most ``limit_s`` seconds; leave out ignored ones."""
    environment = {**os.environ, **real_cluster.environment(), "LIMIT": str(limit_s)}
    done = subprocess.run(
        ["bash", str(FOLDER / "run"), namesrv, *tests],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return [Result(row[1], row[0] == "passed", row[3]) for row in rows if row[0] != "ignored"]


def run_tests_twice(namesrv: str, tests: Sequence[str], timeout_s: float) -> list[Result]:
    """:func:`run_tests`; what failed runs once more: the clients of the tests wait three seconds, whatever the load."""
    results = {result.name: result for result in run_tests(namesrv, tests, timeout_s)}
    failed = [result.name for result in results.values() if not result.has_passed and not result.name.endswith("#*")]
    if failed:
        results |= {result.name: result for result in run_tests(namesrv, failed, timeout_s, 120)}
    return list(results.values())


def all_classes() -> list[str]:
    """Return the classes of ``classes.txt``."""
    lines = (FOLDER / "classes.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]
