"""The set-up detects the state of the machine; fake programs replace the real ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VENV = Path(sys.executable).parent.parent


def answer(tmp_path: Path, question: str, **programs: str) -> bool:
    """Return the answer of a function of ``environment.sh`` with these programs, bodies of scripts, first on the
    path.
    """
    for name, body in programs.items():
        file = tmp_path / name
        file.write_text(f"#!/bin/bash\n{body}\n", "utf-8")
        file.chmod(0o755)
    script = f"""
    set -euo pipefail
    export STORESCOPE_VENV="{VENV}"
    . "{ROOT}/packaging/environment.sh"
    PATH="{tmp_path}":$PATH
    if {question}; then echo yes; else echo no; fi
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout == "yes\n"


MUCH = 'for number in $(seq 20000); do echo "a line behind it, number $number"; done'
"""More than a pipe holds: who stops reading at the first hit ends the writer with a signal."""


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("libxcb-cursor.so.0 => not found", True),
        ("libxcb.so.1 => /usr/lib/libxcb.so.1", False),
    ],
)
def test_a_missing_library_is_found_before_much_output(tmp_path: Path, line: str, missing: bool) -> None:
    """On a bare Debian the libraries for displays were sometimes not installed: ``ldd`` had not ended when the first of
    ten was read, and with ``pipefail`` its end by a signal counted as "nothing is missing".
    """
    assert answer(tmp_path, "display_libraries_missing", ldd=f"echo '\t{line}'\n{MUCH}") is missing


@pytest.mark.parametrize(
    ("version", "runs"), [("17.0.12", True), ("21", True), ("11.0.2", False), ("1.8.0_402", False)]
)
def test_a_java_with_much_output_is_found(tmp_path: Path, version: str, runs: bool) -> None:
    java = f"echo 'openjdk version \"{version}\" 2024-07-16' >&2\n{{ {MUCH}; }} >&2"
    javac = f"echo 'javac {version}'\n{MUCH}"
    assert answer(tmp_path, "JAVA_HOME= java_runs", java=java) is runs
    assert answer(tmp_path, "java_is_there", javac=javac, mvn="true") is runs
