"""The process of a decoder of the user's own."""

from __future__ import annotations

import json
import subprocess
import sys


def _framed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def test_it_answers_with_an_error_where_there_is_no_such_decoder_and_ends():
    command = [sys.executable, "-m", "engine.decoding.own_decoder_process", "nothing"]
    answer = subprocess.run(command, input=_framed(b"{}"), capture_output=True, timeout=60, check=True).stdout
    assert int.from_bytes(answer[:4], "big") == len(answer) - 4
    assert "StopIteration" in json.loads(answer[4:])["error"]
