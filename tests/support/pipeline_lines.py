"""A pipeline job replayed from its JSON lines, as ``storescope pipeline … --json`` wrote them for golden stores.

A view that reads them needs no Spark: :func:`player` returns the command of a process that prints them again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from viewer.pipeline.request import JobRequest
from viewer.pipeline.state import JobState

HOUR = 3_600_000
FIRST = 1_795_248_000_000
TOPICS = (("OrderPaid", 12, 900), ("ShipmentEvents", 8, 1100), ("UserClicks", 20, 240), ("%RETRY%billing", 1, 600))
_PLAY = """
import json, signal, sys, time
plan = json.load(open(sys.argv[1]))
def stop(*_):
    sys.stderr.write(plan["stopped"])
    sys.exit(130)
signal.signal(signal.SIGINT, stop)
for line in plan["lines"]:
    print(json.dumps(line), flush=True)
    if line["type"] == "progress":
        time.sleep(plan["pause"])
sys.stderr.write(plan["words"])
while plan["hangs"]:
    time.sleep(0.05)
sys.exit(plan["code"])
"""


def player(
    folder: Path,
    lines: Iterable[dict[str, Any]],
    *,
    code: int = 0,
    words: str = "",
    hangs: bool = False,
    pause: float = 0.0,
) -> list[str]:
    """Return the command of a process that prints ``lines``, then ``words`` on its standard error, and ends with
    ``code``.

    A process that ``hangs`` ends when it is interrupted. Further arguments of the command are ignored.
    """
    folder.mkdir(parents=True, exist_ok=True)
    plan = folder / "plan.json"
    reported = {"lines": list(lines), "code": code, "words": words, "hangs": hangs, "pause": pause, "stopped": ""}
    plan.write_text(json.dumps(reported))
    script = folder / "play.py"
    script.write_text(_PLAY)
    return [sys.executable, str(script), str(plan)]


def stage(number: int, done: int, tasks: int, running: int = 0, retried: int = 0) -> dict[str, Any]:
    """Return one stage of a ``progress`` record."""
    return {"stage": number, "name": "toArrow", "done": done, "tasks": tasks, "running": running, "triedAgain": retried}


def progress(
    job: str,
    step: str,
    stages: list[dict[str, Any]],
    units: int = 0,
    size: int = 0,
    total: int = 0,
    seconds: float = 1.0,
) -> dict[str, Any]:
    """Return a ``progress`` record."""
    return {
        "type": "progress",
        "job": job,
        "step": step,
        "stages": stages,
        "done": sum(record["done"] for record in stages),
        "tasks": sum(row["tasks"] for row in stages),
        "units": units,
        "bytes": size,
        "totalBytes": total,
        "unitsPerSecond": round(units / seconds),
        "seconds": seconds,
    }


def summary(job: str, **figures: Any) -> dict[str, Any]:
    """Return the ``jobSummary`` record."""
    reported = {
        "type": "jobSummary",
        "job": job,
        "stores": 1,
        "splits": 8,
        "tasks": 8,
        "triedAgain": 0,
        "units": 0,
        "bytes": 0,
        "seconds": 2.5,
        "unitsPerSecond": 0,
        "sessionSeconds": 3.2,
        "master": "local[*]",
        "logFile": "",
    }
    return reported | figures


def stats(hours: int = 48) -> list[dict[str, Any]]:
    """Return a whole job ``stats``: four topics, each in two queues, two tags, two producers and ``hours`` hours."""
    rows: dict[str, list[dict[str, Any]]] = {}
    units = size = 0
    for number, (topic, rate, mean) in enumerate(TOPICS):
        each = [rate * 3600 + (position * (number + 3)) % 24 * rate * 90 for position in range(hours)]
        count = sum(each)
        units, size = units + count, size + count * mean
        rows.setdefault("statsTopic", []).append(
            {
                "topic": topic,
                "messages": count,
                "bytes": count * mean,
                "smallest": mean // 2,
                "mean": float(mean),
                "p50": mean,
                "p99": mean * 2,
                "largest": mean * 3,
                "badCrc": 0,
                "keys": count // 3,
                "uniqueKeys": count,
            }
        )
        for name, field, values in (
            ("statsQueue", "queueId", (0, 1)),
            ("statsTag", "tag", ("card", None)),
            ("statsProducer", "host", ("10.24.0.8", "10.24.0.9")),
        ):
            for index, value in enumerate(values):
                part = count - count // 3 if index == 0 else count // 3
                rows.setdefault(name, []).append({"topic": topic, field: value, "messages": part, "bytes": part * mean})
        for index, messages in enumerate(each):
            rows.setdefault("statsHour", []).append(
                {
                    "hour": FIRST + index * HOUR,
                    "topic": topic,
                    "messages": messages,
                    "bytes": messages * mean,
                    "perSecond": round(messages / 3600, 3),
                    "bytesPerSecond": round(messages * mean / 3600),
                }
            )
    for actual_row in rows.values():
        actual_row.sort(key=lambda row: -row["bytes"])
    rows["statsFile"] = [
        {
            "store": "/data/store",
            "broker": None,
            "path": "/data/store/commitlog/00000000000000000000",
            "startOffset": 0,
            "size": size,
            "messages": units,
            "units": size,
            "stale": 0,
            "blank": 0,
            "damage": 0,
            "damaged": 0,
            "zeros": 0,
            "missingBehind": 0,
        }
    ]
    total = {
        "type": "stats",
        "stores": 1,
        "files": 1,
        "bytes": size,
        "messages": units,
        "unitBytes": size,
        "stale": 0,
        "blank": 0,
        "damage": 0,
        "zeros": 0,
    }
    return [
        progress("stats", "counting", [stage(0, 2, 8, 2)], units // 4, size // 4, size, 1.2),
        progress("stats", "counting", [stage(0, 8, 8, 0, 1)], units, size, size, 2.4),
        total,
        *({"type": kind, **row} for kind, results in rows.items() for row in results),
        summary("stats", units=units, bytes=size, triedAgain=1, unitsPerSecond=units // 3),
    ]


def verify(findings: Iterable[dict[str, Any]], *, ended: bool = True) -> list[dict[str, Any]]:
    """Return a job ``verify`` with these ``finding`` records; without its end if not ``ended``."""
    complete, units = 38 << 30, 36_742_118
    actual_findings = list(findings)
    step = "holding units against their entries"
    lines = [
        progress("verify", step, [stage(0, 40, 152, 8)], units // 4, complete // 4, complete, 4.2),
        progress("verify", step, [stage(0, 152, 152, 0, 1)], units, complete, complete, 18.4),
        *actual_findings[: len(actual_findings) // 2],
        progress("verify", "checking stores", [stage(1, 58, 96, 8), stage(2, 0, 12)], units, complete, 0, 9.8),
    ]
    if not ended:
        return lines
    return [
        *lines,
        *actual_findings[len(actual_findings) // 2 :],
        summary("verify", units=units, bytes=complete, tasks=248, triedAgain=1),
    ]


def rebuild(out: Path, differences: Iterable[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """Return a job ``rebuild`` that wrote ``out`` and then compared."""
    actual_differences = list(differences)
    built = {
        "type": "dispatched",
        "path": str(out),
        "store": "/data/store",
        "units": 3137,
        "queues": 6,
        "entries": 3137,
        "indexFiles": 3,
        "indexEntries": 4113,
        "leftBehind": 0,
        "bytesLeftBehind": 0,
        "staleUnits": 0,
        "deletedTopics": [],
        "keptPieces": 0,
    }
    return [
        progress("rebuild", "reading the logs", [stage(0, 2, 2)], 3137, 2 << 20, 2 << 20),
        progress("rebuild", "building queues and index", [stage(1, 22, 22)], 3137, 2 << 20),
        built,
        progress("rebuild", "comparing", [stage(2, 5, 5)], 3137, 2 << 20),
        *actual_differences,
        summary("rebuild", units=3137, bytes=2 << 20, out=str(out), differences=len(actual_differences)),
    ]


def traced(key: str, verdict: str, store: Path, offset: int | None = None, topic: str | None = None) -> dict[str, Any]:
    """Return a ``whereResult`` record of the job ``trace``."""
    return {
        "type": "whereResult",
        "key": key,
        "store": str(store),
        "broker": None,
        "verdict": verdict,
        "physicalOffset": offset,
        "topic": topic,
        "queueId": None if topic is None else 0,
        "queueOffset": None if topic is None else 7,
        "evidence": [],
        "nextStep": "",
    }


def job(wish: JobRequest | None = None, number: int = 1) -> JobState:
    """Return a job that began and has no records yet."""
    return JobState(number, wish or JobRequest("stats", ("/data/store",)), 1_795_248_000.0, 100.0)


def ended_job(records: list[dict[str, Any]], wish: JobRequest | None = None, code: int | None = 0) -> JobState:
    """Return a job that printed ``records``, one a second, and ended."""
    new_job = job(wish)
    for index, record in enumerate(records):
        new_job.take(record, 101.0 + index)
    if code is not None:
        new_job.end(code, 101.0 + len(records))
    return new_job
