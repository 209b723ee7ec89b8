"""Every program of tests/bench starts: its imports exist."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted((ROOT / "tests" / "bench").glob("*.py"))


def usage(program: Path) -> tuple[str, str]:
    """Ask a program for its help; return its name and its error, or ""."""
    done = subprocess.run([sys.executable, program, "--help"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    return program.name, done.stderr if done.returncode or "usage:" not in done.stdout else ""


def test_every_program_prints_its_usage():
    assert PROGRAMS
    with ThreadPoolExecutor(2) as pool:
        assert {name: words for name, words in pool.map(usage, PROGRAMS) if words} == {}
