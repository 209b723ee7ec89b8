"""A damaged store is mended as an operator does it."""

from __future__ import annotations

import contextlib
import io
import json
import random
from pathlib import Path
from typing import Any

from engine.cli.main import main


def records(*words: object) -> tuple[int, list[dict[str, Any]]]:
    """Return the exit status and the records of a command."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
        status = main([*map(str, words), "--json", "--quiet"])
    return status, [json.loads(line) for line in text.getvalue().splitlines()]


def mend(
    rng: random.Random, damaged: Path, target: Path, config: tuple[object, ...] = ()
) -> tuple[list[dict[str, Any]], Path]:
    """Mend as an operator does: a copy, or the store itself. Returns what the command printed, and the mended store."""
    if rng.random() < 0.5:
        status, lines = records("repair", damaged, "--to", target, *config)
        mended = target if target.exists() else damaged
    else:
        status, lines = records("repair", damaged, "--apply", "--yes", *config)
        mended = damaged
    assert status == 0, lines
    return lines, mended
