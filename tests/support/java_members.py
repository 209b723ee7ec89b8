"""Consumers of a group in processes of their own, Java's (``tests/clients/java/member``) and ours (``our_member.py``),
with their queues and messages.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import real_cluster


class Member:
    """A process; ``owned`` are ids of queues, ``received`` the lines of consumed messages."""

    def __init__(self, words: Sequence[str], environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.owned: list[int] = []
        self.received: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            row = json.loads(line)
            if row["kind"] == "owned":
                self.owned = row["queues"]
            else:
                self.received.append(row)

    def kill(self) -> None:
        """Kill the process like ``kill -9``."""
        self._process.kill()
        self._end()

    def stop(self) -> None:
        """Let the process say goodbye."""
        if self._process.poll() is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._end()

    def _end(self) -> None:
        self._process.wait(60)
        self._reader.join(60)
        self.owned = []
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class JavaMember(Member):
    """A consumer of RocketMQ's client."""

    def __init__(self, release: str, namesrv: str, group: str, topic: str, home: Path, *options: str) -> None:
        home.mkdir(parents=True, exist_ok=True)
        words = ["bash", str(real_cluster.JAVA / "member"), release, namesrv, group, topic, *options]
        super().__init__(words, {**real_cluster.environment(), "MEMBER_HOME": str(home)})


class OurMember(Member):
    """A consumer of our client."""

    def __init__(self, namesrv: str, group: str, topic: str, *options: str) -> None:
        words = [sys.executable, str(Path(__file__).with_name("our_member.py")), namesrv, group, topic, *options]
        super().__init__(words, real_cluster.environment())
