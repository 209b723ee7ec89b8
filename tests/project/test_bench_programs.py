"""Every program of tests/bench still starts: what it imports is there."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted((ROOT / "tests" / "bench").glob("*.py"))


def usage(program: Path) -> tuple[str, str]:
    """What is wrong with a program that is asked for its help; nothing where it gives it."""
    done = subprocess.run([sys.executable, program, "--help"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    return program.name, done.stderr if done.returncode or "usage:" not in done.stdout else ""


def test_every_one_tells_its_usage():
    assert PROGRAMS
    with ThreadPoolExecutor(2) as pool:
        assert {name: words for name, words in pool.map(usage, PROGRAMS) if words} == {}
