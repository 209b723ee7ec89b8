"""The process in which a decoder of the user's own runs: ``python -m engine.decoding.own_decoder_process NAME``.

It reads the options, then bodies, from standard input, and answers each with JSON on what was its standard output; each
message has its length in front, 4 bytes. What the decoder prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import entry_points
from typing import Any, BinaryIO

from engine import system
from engine.decoding.own_decoders import GROUP
from engine.decoding.values import BadBody, as_json_value

MAX_MEMORY_BYTES = 2 << 30
"""Address space that the process may take."""


def main(name: str) -> None:
    """Answer until standard input ends."""
    source = sys.stdin.buffer
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    system.limit_memory(MAX_MEMORY_BYTES)
    options = json.loads(_receive(source) or b"{}")
    try:
        point = next(point for point in entry_points(group=GROUP) if point.name == name)
        decode = point.load()
    except Exception as error:  # noqa: BLE001 (the user's own code: its error is the answer)
        _send(target, {"error": _words(error)})
        return
    _send(target, {"value": None})
    while (body := _receive(source)) is not None:
        try:
            answer: dict[str, Any] = {"value": as_json_value(decode(body, dict(options)))}
        except BadBody as error:
            answer = {"error": str(error.problem)}
        except Exception as error:  # noqa: BLE001 (the user's own code: its error is the answer)
            answer = {"error": _words(error)}
        _send(target, answer)


def _words(error: BaseException) -> str:
    return (f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)[:500]


def _receive(source: BinaryIO) -> bytes | None:
    head = source.read(4)
    return source.read(int.from_bytes(head, "big")) if len(head) == 4 else None


def _send(target: BinaryIO, answer: dict[str, Any]) -> None:
    content = json.dumps(answer).encode()
    target.write(len(content).to_bytes(4, "big") + content)
    target.flush()


if __name__ == "__main__":
    main(sys.argv[1])
