"""Commands that write into a store keep what they change."""

from __future__ import annotations

import argparse
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from served_stores import a_send, responses_of
from undo_cases import kept_in, store_to_recover

from engine.cli import backup
from engine.cli.main import COMMANDS, build_parser, main
from engine.cli.output import Output
from engine.config import MessageStoreConfig

PUT = ["--topic", "Orders", "--body", "one more"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return store_to_recover(tmp_path / "store")


@pytest.mark.parametrize("command", [["recover", "--apply"], ["dispatch"], ["put", *PUT]])
def test_no_backup_does_without(store, tmp_path, command):
    assert main([command[0], str(store), *command[1:], "--yes", "--no-backup"]) == 0
    assert kept_in(tmp_path) == []


WRITES_ANEW = {"copy", "snapshot", "pipeline", "bench"}
OPENS = {"serve", "replicate"}
"""Start as a broker does: say what that changes, keep it, and go on without a question."""


def test_every_command_that_writes_into_a_store_can_do_it_with_and_without_keeping():
    """A command that asks before it writes has the three words; one that says that it writes asks, or makes its own."""
    for name in set(COMMANDS) - {"mqadmin"}:  # that one is many names for reading commands
        parser = build_parser(name)
        choices = parser._subparsers._group_actions[0].choices
        words = {option for action in choices[name]._actions for option in action.option_strings}
        asks = "--yes" in words
        assert (asks or name in OPENS) == ("--no-backup" in words) == ("--empty-log" in words), name
        source = Path("engine/cli/commands").joinpath(f"{name}.py").read_text("utf-8")
        if asks or name in OPENS:
            assert "with backed_up(" in source, name
        elif name not in WRITES_ANEW:
            assert "MessageStore" not in source, name


CRASHED = "crash-5.3.3"


@pytest.fixture
def crashed(golden, tmp_path):
    store = tmp_path / "store"
    shutil.copytree(golden(CRASHED), store)
    return store


@pytest.mark.parametrize(("answer", "code"), [("n\n", 2), ("\n", 2), ("y\n", 0)])
def test_a_person_is_asked(crashed, capsys, monkeypatch, answer, code):
    terminal = io.StringIO(answer)
    terminal.isatty = lambda: True
    monkeypatch.setattr(backup.sys, "stdin", terminal)
    monkeypatch.setattr(backup.sys.stderr, "isatty", lambda: True, raising=False)
    assert main(["recover", str(crashed), "--apply"]) == code
    assert "[y/N]" in capsys.readouterr().err
    assert (crashed / "abort").exists() == (code == 2)


def _keep(store: Path, command: str, out: Output) -> Path:
    """What one start of a command keeps of a store; its folder."""
    args = argparse.Namespace(command=command, no_backup=False, config=None)
    with backup.backed_up(args, store, MessageStoreConfig()) as saved:
        saved.settled = True
        backup.remove_earlier_backups(saved, out)
    assert saved.writer is not None
    return saved.writer.folder


def test_a_broker_keeps_what_its_last_start_changed(store, tmp_path, capsys):
    """Each start of serve behind a kill left a folder for ever: ten kills of 238 MB, ten of 30 MB and more."""
    out = Output(as_json=False)
    by_hand = _keep(store, "recover", out)
    folders = [_keep(store, "serve", out) for _ in range(3)]
    other = _keep(store_to_recover(tmp_path / "store.kept-not"), "serve", out)
    assert kept_in(tmp_path) == sorted([by_hand, folders[-1], other, tmp_path / "store.kept-not"])
    assert capsys.readouterr().err.count("was removed: serve keeps only the backup of its last start") == 2


def test_a_start_that_loses_nothing_keeps_nothing(tmp_path):
    """Behind a kill queues and index are made again from a log that stays as it is."""
    place = tmp_path / "store"
    words = [sys.executable, "-m", "engine.cli", "serve", str(place), "--port", "0", "--namesrv-port", "0", "--json"]
    for _ in range(2):
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["broker"]
        assert responses_of(address, *[a_send(b"x") for _ in range(40)])
        process.kill()
        process.communicate()
    assert (place / "abort").exists()
    assert kept_in(tmp_path) == []
