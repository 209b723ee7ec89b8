"""A damaged store is mended as an operator does it, and what the plan promised is compared with what came."""

from __future__ import annotations

import contextlib
import io
import json
import random
from pathlib import Path
from typing import Any

from engine.cli.main import main

NAMES_OF_LOST = {"CL02", "CL04", "CL11", "CL12"}
"""Rules that say which messages, or which parts of them, are gone."""
OF_NEXT_START = {"CK01", "CQ10", "CL06", "IX04"}
"""Rules that say what the next start does: it fills the queues, reads more of the log for it, leaves out bytes behind
the end of the log, and deletes index files.
"""


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


def broken_promises(
    lines: list[dict[str, Any]],
    mended: Path,
    start_of_broker: tuple[bool, int],
    release: str,
    config: tuple[object, ...] = (),
) -> list[str]:
    """Compare the plan with the findings, with whether the real release loads the store, and with its log's end."""
    summary = next(line for line in lines if line["type"] == "repairPlan")
    plan = summary["after"]
    _, answers = records("check", mended, *config)
    findings = sorted(
        line["id"] for line in answers if line["type"] == "finding" and line["severity"] in ("warn", "error")
    )
    wrong = []
    if findings != sorted(plan["findings"]):
        wrong.append(f"check finds {findings}, planned {plan['findings']}")
    if fresh := {*findings} - {*summary["before"]["findings"]} - NAMES_OF_LOST - OF_NEXT_START:
        wrong.append(f"check finds {fresh}, and did not before")
    start = next((start for start in plan["starts"] if release.startswith(start["release"])), None)
    if start is not None and (start["willStart"], start["endOffset"]) != start_of_broker:
        wrong.append(f"planned {start}, starts {start_of_broker}")
    return wrong
