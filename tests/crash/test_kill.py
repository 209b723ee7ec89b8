"""kill -9 at any moment of a store's life, in each flush mode: no acknowledged message is lost, queues and index agree.

A process under load, with one to four producers, is killed again and again, while it opens, puts, flushes or closes;
after each kill the store is opened here and every promise counted. Twenty kills, unless ``--kills`` sets more.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import killed_writer
import pytest
from power_loss import MODES, PutLedger, check

from engine.config import MessageStoreConfig
from engine.message_store import MessageStore

pytestmark = pytest.mark.crash
LIVES_OF_A_STORE = 5
MAX_SECONDS_TO_KILL = 0.4  # seconds until the kill, at most
REPOSITORY = Path(__file__).resolve().parent.parent.parent


class Killer:
    """The process that forks the lives, and the kills."""

    def __init__(self) -> None:
        path = os.pathsep.join((str(REPOSITORY), str(REPOSITORY / "tests" / "support")))
        self._process = subprocess.Popen(
            [sys.executable, killed_writer.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )

    def close(self) -> None:
        self._process.stdin.close()
        assert self._process.wait(60) == 0
        self._process.stdout.close()

    def live(self, order: dict, seconds: float, since: str) -> list[list[str]]:
        """Run one life and kill it ``seconds`` after the line ``since``; return the acknowledgements."""
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        self._process.stdin.flush()
        lines, timer = [], None
        for raw in self._process.stdout:
            line = raw.decode().split()
            if line[0] == since:
                timer = threading.Timer(seconds, kill, (int(line[1]),))
                timer.start()
            if line[0] == "end":
                break
            if line[0] not in {"pid", "open"}:
                assert line[0] != "died", " ".join(line)
                lines.append(line)
        if timer is not None:
            timer.cancel()
            timer.join()
        return lines


def kill(process):
    with contextlib.suppress(ProcessLookupError):  # it had ended in order
        os.kill(process, signal.SIGKILL)


@pytest.fixture(scope="module")
def killer():
    logging.disable(logging.CRITICAL)  # what the store says to each of its crashes is not asked here
    sample = Killer()
    yield sample
    sample.close()
    logging.disable(logging.NOTSET)


def pytest_generate_tests(metafunc):
    if "seed" in metafunc.fixturenames:
        stores = -(-metafunc.config.getoption("--kills") // (LIVES_OF_A_STORE * len(MODES)))
        first_seed = metafunc.config.getoption("--kill-first")
        metafunc.parametrize("seed", range(first_seed, first_seed + stores))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", MODES)
def test_a_killed_store_keeps_its_promises(killer, tmp_path, mode, seed):
    rng, ledger = random.Random(f"{mode} {seed}"), PutLedger()
    config = MessageStoreConfig(**killed_writer.SIZES, **MODES[mode])
    threads = rng.choice([1, 1, 2, 4])
    for number in range(LIVES_OF_A_STORE):
        life = seed * LIVES_OF_A_STORE + number
        order = {"store": str(tmp_path), "config": MODES[mode], "life": life, "threads": threads}
        since = rng.choice(["pid", "open", "open"])
        live = killer.live({**order, "puts": rng.choice([20, 5000, 5000])}, rng.random() * MAX_SECONDS_TO_KILL, since)
        note(ledger, live, life, threads, in_buffers="pool" in mode)
        store = MessageStore(tmp_path, config, services=False)
        try:
            ledger.keep(check(store, ledger, 0).units)
        except AssertionError as error:
            error.add_note(f"{mode}, seed {seed}, life {number}, {len(live)} acknowledgements")
            raise
        (store.close if rng.random() < 0.3 else store.abandon)()


def note(ledger, received, life, threads, *, in_buffers):
    """Note the promises: with a pool every committed message, else every acknowledged one."""
    acks = [line for line in received if line[0] == "ack"]
    closed = received and received[-1] == ["closed"]
    committed = max((int(line[3]) for line in acks), default=0)
    for thread in range(threads):
        acks_of_thread = [line for line in acks if line[1] == str(thread)]
        # One put more than was heard of may have been made.
        for number, sample in enumerate(itertools.islice(killed_writer.puts(life, thread), len(acks_of_thread) + 1)):
            ledger.tried.update((message.body, (message.topic, message.queue_id)) for message in sample)
            if number == len(acks_of_thread):
                break
            assert int(acks_of_thread[number][2]) == len(sample), acks_of_thread[number]
            for message, place in zip(sample, acks_of_thread[number][4:], strict=True):
                offset, end = map(int, place.split(":"))
                ledger.placed[message.body] = offset, end
                if not in_buffers or closed or end <= committed:
                    ledger.promised.add(message.body)
