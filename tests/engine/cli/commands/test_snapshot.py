"""``snapshot``: the copy is complete, or there is none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import handmade_stores
import pytest

from engine import system
from engine.cli.main import main

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def store(tmp_path):
    """Write a small healthy store."""
    return handmade_stores.healthy().write(tmp_path / "store")


def start(*arguments, **how):
    """Start the command as a process."""
    return subprocess.Popen(
        [sys.executable, "-m", "engine.cli", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **how,
    )


def test_an_interrupted_snapshot_leaves_no_files(tmp_path):
    path = handmade_stores.healthy().write(tmp_path / "store")
    big = path / "commitlog" / f"{1 << 40:020d}"
    with big.open("wb") as file:
        for _ in range(64):
            file.write(os.urandom(1 << 20))
    process = start("snapshot", path, tmp_path / "copy")
    while not (tmp_path / "copy").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    code = process.wait(60)
    assert process.stderr.read() == b""
    process.stdout.close()
    process.stderr.close()
    assert code == 0 or (code == 130 and not (tmp_path / "copy").exists())


def test_it_names_what_takes_no_room(store, tmp_path, monkeypatch, capsys):
    """On btrfs and XFS the copy shares its blocks with the store."""
    monkeypatch.setattr(system, "clone_blocks", lambda _reading, _writing: True)
    assert main(["snapshot", str(store), str(tmp_path / "copy")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("; manifest storescope-manifest.json")
    assert lines[1].endswith("of them share their blocks with the store: they take no room until written")
