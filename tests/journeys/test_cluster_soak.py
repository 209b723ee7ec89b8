"""A watched cluster under churn: memory is bounded, clients and brokers come and go, everything closes.

It takes seconds; ``STORESCOPE_CLUSTER_SOAK=3600 python -m pytest -q tests/journeys/test_cluster_soak.py`` takes an
hour, with the bound of the full form: memory grows by 5 % at most once the lists of readings and deliveries are full.
That takes half an hour; a shorter run keeps half of its time, so that its lists are full as well.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from suite_minutes import account

SECONDS = float(os.environ.get("STORESCOPE_CLUSTER_SOAK", "4"))
pytestmark = [pytest.mark.journey, pytest.mark.timeout(SECONDS + 400)]
FULL = SECONDS >= 600
GROWTH = 0.05 if FULL else 0.25
ROOT = Path(__file__).resolve().parents[2]
DRIVE = ROOT / "tests" / "support" / "cluster_soak_drive.py"


def test_a_cluster_under_churn(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    figures = tmp_path / "figures.json"
    environment = os.environ | {
        "STORESCOPE_SOAK": str(SECONDS),
        "STORESCOPE_SOAK_FIGURES": str(figures),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(DRIVE.parent), os.environ.get("PYTHONPATH")))),
    }
    command = [sys.executable, "-m", "viewer", "--config-dir", str(tmp_path / "config"), "--drive", str(DRIVE)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS + 360, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr[-4000:]
    assert "Traceback" not in done.stderr, "clients say that a connection has ended, and nothing worse"
    record = json.loads(figures.read_text("utf-8"))
    grown = record["end"] / record["warm"] - 1
    minutes = " ".join(f"{minute >> 20}" for minute in record["minutes"])
    deeds = ", ".join(f"{count} {name}" for name, count in sorted(record["deeds"].items()))
    beside = ", ".join(f"{name} {warm >> 20} → {end >> 20}" for name, (warm, end) in sorted(record["beside"].items()))
    text = f"{SECONDS:.0f} s of a cluster, {deeds}, {record['clients']} clients, "
    text += f"{record['readings']} readings kept of {record['bounds']['readings']} at most; "
    text += f"{record['sent']} messages; MiB by minute: {minutes}; {grown:+.1%} after warm-up; beside it {beside}"
    account(request.node, "soak", [text])
    assert record["sent"] > 0, "messages went through it"
    assert record["failed"] == []
    if FULL:
        done = {name for name, count in record["deeds"].items() if count}
        assert done == {"came", "left", "killed", "slowed", "cut", "queues", "brokers", "brokers ended"}
    assert grown < GROWTH, f"memory grew by {grown:.1%} ({minutes} MiB); now " + "; ".join(record["pieces"])
