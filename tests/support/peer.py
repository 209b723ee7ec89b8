"""The real RocketMQ store as a partner: plans from a seed, stores that it writes, and its own reading of them.

The Java side is ``tests/peer/java``; it needs Java 17 and Maven, is built once per release and kept in the user's
cache.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

PEER = Path(__file__).resolve().parent.parent / "peer" / "java" / "peer"
EVERY_RELEASE = ("5.5.1", "5.4.0", "5.3.3", "4.9.8")
RELEASES = EVERY_RELEASE if os.environ.get("PEER_RELEASES") == "all" else ("5.5.1", "4.9.8")
"""Each is a partner of its own; ``PEER_RELEASES=all`` in the environment takes those in between, too."""
HALTED = 9
UNANSWERED = -1  # the process ended well before it said that the command was carried out
COMMANDS = 40  # that one process carries out: what it gathers in memory goes with it
TIMEOUT_S = 240.0  # seconds for one command
LOOK, LOOKS = 1.5, 4  # seconds between looks at where a start stands; a start that comes up takes two in all
ROCKSDB_PLAN: dict[str, Any] = {
    "config": {
        "storeType": "defaultRocksDB",
        "mappedFileSizeCommitLog": 65_536,
        "maxHashSlotNum": 100,
        "maxIndexNum": 400,
    },
    "topics": [{"name": "TopicA", "queues": 3}, {"name": "TopicB", "queues": 2}, {"name": "seldom", "queues": 1}],
    "body": {"min": 0, "max": 400},
    "halfEvery": 31,
    "endHalfEvery": 43,
    "batchEvery": 17,
    "delayEvery": 57,
    "delayLevels": [3, 16],
}
"""A store with its queues in a RocksDB, and several log files."""
DONE = '{"t":"done"}\n'
LEFT = '{"t":"left"}\n'  # done, and the process is about to end

# Taken before the tests give themselves a cache of their own: what Maven fetched is worth keeping.
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
BUILD = os.environ.get("PEER_BUILD") or str(_CACHE / "storescope" / "store-peer")


def missing() -> str | None:
    """Return what the peer lacks here, in words; None if it can run."""
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            return f"there is no {program} on the path (Java 17 and Maven are needed)"
    process = subprocess.run(["javac", "-version"], capture_output=True, text=True, timeout=60)
    release = re.search(r"javac (\d+)", process.stdout + process.stderr)
    if release is None or int(release[1]) < 17:
        return f"javac is older than 17: {(process.stdout + process.stderr).strip()}"
    return None


class _Server:
    """A process of one release that executes commands one after another, as long as each leaves nothing open.

    A command that halts, fails or leaves a store open ends it, as it would end a process of its own; so does every
    :data:`COMMANDS`-th one.
    """

    def __init__(self, release: str) -> None:
        environment = {**os.environ, "PEER_BUILD": BUILD, "PEER_JVM": "-Xmx1g -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
        self._chatter = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            ["bash", str(PEER), "-v", release, "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._chatter,
            encoding="utf-8",
            env=environment,
        )
        self._left = COMMANDS

    def carry_out(self, arguments: tuple[object, ...]) -> tuple[int, str]:
        """Return the end of the command (0, or the exit status of the process) and the last output of the libraries."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._left -= 1
        watch = threading.Timer(TIMEOUT_S, self._process.kill)
        watch.start()
        try:
            self._process.stdin.write(json.dumps([str(argument) for argument in arguments]) + "\n")
            self._process.stdin.flush()
            end_line = next((line for line in self._process.stdout if line in {DONE, LEFT}), None)
            status = 0 if end_line == DONE else self._process.wait()
        finally:
            watch.cancel()
        return UNANSWERED if end_line is None and status == 0 else status, self._last_output()

    def usable(self) -> bool:
        """Return True if it takes another command."""
        if self._left > 0 and self._process.poll() is None:
            return True
        self.close()
        return False

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait(TIMEOUT_S)
        self._process.stdout.close()
        self._chatter.close()

    def _last_output(self) -> str:
        end = self._chatter.seek(0, os.SEEK_END)
        self._chatter.seek(max(0, end - 3000))
        return self._chatter.read()


_servers: dict[str, _Server] = {}


def _server(release: str) -> _Server:
    server = _servers.get(release)
    if server is None or not server.usable():
        server = _servers[release] = _Server(release)
    return server


@atexit.register
def _close_servers() -> None:
    while _servers:
        _servers.popitem()[1].close()


class OpenOutcome(NamedTuple):
    """Result of opening a store: the process's exit status, its threads if it was still running, its output."""

    status: int
    stack: str
    output: str


def main_thread(stack: str) -> str:
    """Return the part of ``jstack``'s output about the thread that starts the store."""
    return stack.partition('"main"')[2].partition("\n\n")[0]


class Peer:
    """A release of the RocketMQ store, in a separate process, which runs until a command halts or fails."""

    def __init__(self, release: str, work: Path) -> None:
        self.release = release
        self._work = work

    def write(self, plan: dict[str, Any], store: Path) -> None:
        """Open or create ``store``, put the plan's messages, and close or halt like the plan says."""
        crash = ["--crash", plan["crash"]] if "crash" in plan else []
        self._run("write", "--store", store, "--plan", self._file(plan), *crash, ends=HALTED if crash else 0)
        if "damage" in plan:
            self._run("damage", "--store", store, "--plan", self._file(plan))

    def dump(self, plan: dict[str, Any], store: Path, *, in_place: bool = False) -> list[dict[str, Any]]:
        """Return Java's reading of a copy of ``store``; ``in_place`` leaves the directory as Java's recovery leaves
        it.
        """
        out = self._work / "dump.jsonl"
        extra = ["--in-place"] if in_place else []
        self._run("dump", "--store", store, "--plan", self._file(plan), "--out", out, "--max-keys", "200", *extra)
        with out.open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def account(self, plan: dict[str, Any], store: Path) -> dict[str, dict[Any, Any]]:
        """Return Java's messages of a copy of ``store`` by physical offset, its queue entries, and the bounds of its
        queues.
        """
        rows = self.dump(plan, store)
        assert next(row for row in rows if row["t"] == "load")["ok"]
        return {
            "messages": {row["phy"]: row for row in rows if row["t"] == "msg"},
            "entries": {
                (row["topic"], row["queue"], row["n"]): (row["phy"], row["size"]) for row in rows if row["t"] == "cq"
            },
            "bounds": {
                (row["topic"], row["queue"]): (row["min"], row["max"])
                for row in rows
                if row["t"] == "queue" and row["when"] == "dispatched"
            },
        }

    def consume(self, plan: dict[str, Any], store: Path, max_keys: int = 20) -> list[dict[str, Any]]:
        """Return what a consumer of a copy of ``store`` gets that reads every queue from offset 0 on, beside the
        messages, the queue entries and answers to queries by key (``askedKeys`` of the plan, too).
        """
        out = self._work / "consumed.jsonl"
        words = ("dump", "--store", store, "--plan", self._file(plan), "--out", out, "--max-keys", max_keys)
        self._run(*words, "--consume", "yes")
        with out.open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def start_copy(self, plan: dict[str, Any], store: Path) -> tuple[list[dict[str, Any]], str]:
        """Return Java's rows about a copy of ``store`` until its start is complete, and its error if it died."""
        out = self._work / "dump.jsonl"
        out.unlink(missing_ok=True)
        death = ""
        try:
            self._run("dump", "--store", store, "--plan", self._file(plan), "--out", out, "--until", "started")
        except AssertionError as error:
            death = str(error)
        with out.open(encoding="utf-8") as lines:
            return [json.loads(line) for line in lines if line.endswith("\n")], death

    def start(self, plan: dict[str, Any], store: Path, timeout_s: float, waits_in: str = "") -> OpenOutcome:
        """Open ``store`` in place in a process of its own, which is killed after ``timeout_s`` seconds.

        It is killed earlier if its main thread was in the frame ``waits_in`` at :data:`LOOKS` looks in turn.
        """
        out = self._work / "start.jsonl"
        words = ["dump", "--store", store, "--plan", self._file(plan), "--out", out, "--max-keys", "1", "--in-place"]
        with (self._work / "start.txt").open("w+", encoding="utf-8", errors="replace") as chatter:
            process = subprocess.Popen(
                ["bash", str(PEER), "-v", self.release, *map(str, words)],
                stdout=subprocess.DEVNULL,
                stderr=chatter,
                env={
                    **os.environ,
                    "PEER_BUILD": BUILD,
                    "PEER_JVM": "-Xmx600m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                },
            )
            stack, present, until = "", 0, time.monotonic() + timeout_s
            while process.poll() is None and present < LOOKS and time.monotonic() < until:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(LOOK if waits_in else timeout_s)
                if process.poll() is None:
                    shown = subprocess.run(["jstack", str(process.pid)], capture_output=True, text=True, timeout=60)
                    stack = shown.stdout
                    present = present + 1 if waits_in and waits_in in main_thread(stack) else 0
            if process.poll() is None:
                process.kill()
                process.wait()
            else:
                stack = ""
            chatter.seek(0)
            return OpenOutcome(process.returncode, stack, chatter.read())

    def _file(self, plan: dict[str, Any]) -> Path:
        path = self._work / "plan.json"
        path.write_text(json.dumps(plan, ensure_ascii=False), encoding="utf-8")
        return path

    def _run(self, *arguments: object, ends: int = 0) -> None:
        status, output = _server(self.release).carry_out(arguments)
        assert status == ends, f"{arguments[0]} ended with {status}: {output}"


def plans(seed: int, release: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return two small plans of one seed: one that closes cleanly and one that halts, most often with damage."""
    clean = _traffic(random.Random(f"{seed} {release}"), seed)
    yield "clean", clean
    pick = random.Random(f"{seed} {release} crash")
    halted = _traffic(pick, seed + 1000)
    halted["crash"] = pick.choice(["now", "dispatched", "flushed"])
    halted["crashAfter"] = halted["count"] - pick.randrange(1, 200)
    halted["flushAt"] = pick.randrange(1, halted["crashAfter"])
    # Halted at once, the log holds less than was put: planting damage by message would miss.
    harm = pick.choice(
        [
            [],
            [{"op": "tear", "file": "commitlog/last", "bytes": pick.randrange(1, 3000)}],
            [{"op": "delete", "file": f"consumequeue/TopicA/{pick.randrange(2)}"}],
            [{"op": "zero", "file": "index/last", "from": 0}],
            [{"op": "tear", "file": "consumequeue/TopicA/0/last", "bytes": 20 * pick.randrange(1, 30)}],
        ]
    )
    if harm:
        halted["damage"] = harm
    yield "halted", halted


def _traffic(pick: random.Random, seed: int) -> dict[str, Any]:
    slots = pick.choice([50, 100, 300])
    unicode = pick.random() < 0.5
    return {
        "config": {
            "mappedFileSizeCommitLog": pick.choice([262_144, 524_288, 1_048_576]),
            "mappedFileSizeConsumeQueue": 20 * pick.choice([100, 300, 1000]),
            "maxHashSlotNum": slots,
            "maxIndexNum": slots * pick.choice([2, 4]),
        },
        "topics": [
            {"name": "TopicA", "queues": 2 + pick.randrange(3)},
            {"name": "Größe" if unicode else "TopicB", "queues": 1 + pick.randrange(3)},
            {"name": "%RETRY%group", "queues": 1},
        ],
        "unicode": unicode,
        "bornHosts": ["10.1.2.3:40001", *(["[2001:db8::12:34]:40002"] if pick.random() < 0.5 else [])],
        "body": {"min": 0, "max": pick.choice([50, 600]), "largeEvery": 97, "largeSize": 9000},
        "keys": {"max": 3, "space": pick.choice([40, 400])},
        "halfEvery": pick.randrange(20, 60),
        "endHalfEvery": pick.randrange(30, 60),
        "batchEvery": pick.choice([0, 17]),
        "delayEvery": pick.randrange(30, 80),
        "delayLevels": [3, 17],
        "compressEvery": pick.randrange(20, 80),
        "pauseEvery": 400,
        "pauseMs": 1100,
        "seed": seed,
        "count": pick.randrange(600, 1200),
    }
