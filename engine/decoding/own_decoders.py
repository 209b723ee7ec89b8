"""Decoders of the user's own: entry points of the group ``storescope.decoders``.

They run in a process of their own with a time limit for each body, so that they cannot stop a listing, a filter or the
window. A decoder is a function ``decode(body: bytes, options: dict[str, str])`` that returns a value with JSON's types
(bytes, times and decimals become text), or raises any exception, whose text becomes the error of that body.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from importlib.metadata import entry_points
from typing import Any

from engine import system
from engine.decoding.decoders import Decode
from engine.decoding.rules import DecodingRule
from engine.decoding.values import BadBody
from engine.errors import UsageError
from engine.sentences import sentence

GROUP = "storescope.decoders"
TIME_LIMIT_S = 1.0
"""Seconds for one body."""
START_LIMIT_S = 30.0
"""Seconds until the process has loaded the decoder."""
MAX_TIMEOUTS = 3
"""Bodies over the time limit after which a decoder is not called any more."""
MAX_ANSWER_BYTES = 64 << 20


def own_decoder_names() -> list[str]:
    """Return the names of the decoders that installed packages provide."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def prepare(name: str, rule: DecodingRule) -> Decode:
    """Return the decoder ``name`` of an installed package. Raises :class:`UsageError`."""
    names = own_decoder_names()
    if name not in names:
        listed = ", ".join(names) or sentence("none")
        raise UsageError(
            sentence(
                "no installed package provides the decoder {name}; provided are: {names}", name=repr(name), names=listed
            )
        )
    return _OwnDecoder(name, rule)


class _OwnDecoder:
    """Passes bodies to the process of a decoder. Starts it when it is needed, and ends it with itself."""

    def __init__(self, name: str, rule: DecodingRule) -> None:
        self._name = name
        self._options = dict(rule.options) | {"topic": rule.topic}
        self._process: subprocess.Popen[bytes] | None = None
        self._timeouts = 0
        self._lock = threading.Lock()

    def __call__(self, body: bytes) -> Any:
        with self._lock:
            if self._timeouts >= MAX_TIMEOUTS:
                raise BadBody(
                    sentence("the decoder {name} is not called after {n} timeouts", name=self._name, n=MAX_TIMEOUTS)
                )
            answer = self._ask(body)
        if "error" in answer:
            raise BadBody(sentence("the decoder {name}: {problem}", name=self._name, problem=answer["error"]))
        return answer["value"]

    def _ask(self, body: bytes) -> dict[str, Any]:
        try:
            process = self._process or self._start()
            return self._exchange(process, len(body).to_bytes(4, "big") + body, TIME_LIMIT_S)
        except _TimeLimit:
            self._timeouts += 1
            self._stop()
            raise BadBody(
                sentence("the decoder {name} took more than {n:g} s", name=self._name, n=TIME_LIMIT_S)
            ) from None
        except (OSError, EOFError, ValueError) as error:
            self._timeouts += 1
            self._stop()
            raise BadBody(
                sentence("the process of the decoder {name} ended: {problem}", name=self._name, problem=error)
            ) from None

    def _start(self) -> subprocess.Popen[bytes]:
        if not system.CAN_LIMIT_PROCESSES:
            raise BadBody(sentence("a decoder of your own needs a system that limits its time and memory"))
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        command = [sys.executable, "-m", "engine.decoding.own_decoder_process", self._name]
        process = subprocess.Popen(  # noqa: S603 (this program itself)
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self._process = process
        options = json.dumps(self._options).encode()
        answer = self._exchange(process, len(options).to_bytes(4, "big") + options, START_LIMIT_S)
        if "error" in answer:
            self._stop()
            self._timeouts = MAX_TIMEOUTS
            raise BadBody(sentence("the decoder {name}: {problem}", name=self._name, problem=answer["error"]))
        return process

    def _exchange(self, process: subprocess.Popen[bytes], request: bytes, limit_s: float) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        deadline = time.monotonic() + limit_s
        source, target = process.stdout.fileno(), process.stdin.fileno()
        system.set_unblocking(target)
        unsent = memoryview(request)
        while unsent:
            _wait(target, deadline, to_write=True)
            unsent = unsent[os.write(target, unsent[: 1 << 16]) :]
        size = int.from_bytes(_read(source, 4, deadline), "big")
        if size > MAX_ANSWER_BYTES:
            raise ValueError(sentence("an answer of {n:,} bytes", n=size))
        answer = json.loads(_read(source, size, deadline))
        if not isinstance(answer, dict):
            raise ValueError(sentence("no answer"))
        return answer

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def __del__(self) -> None:
        self._stop()


class _TimeLimit(Exception):
    """The process has not answered in time."""


def _wait(descriptor: int, deadline: float, *, to_write: bool = False) -> None:
    remaining = deadline - time.monotonic()
    if remaining <= 0 or not system.wait_ready(descriptor, remaining, to_write=to_write):
        raise _TimeLimit


def _read(descriptor: int, size: int, deadline: float) -> bytes:
    pieces = bytearray()
    while len(pieces) < size:
        _wait(descriptor, deadline)
        piece = os.read(descriptor, min(size - len(pieces), 1 << 20))
        if not piece:
            raise EOFError(sentence("no answer"))
        pieces += piece
    return bytes(pieces)
