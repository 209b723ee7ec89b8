"""Commands that write into a store save a backup of what they change."""

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
def test_no_backup_skips_the_backup(store, tmp_path, command):
    assert main([command[0], str(store), *command[1:], "--yes", "--no-backup"]) == 0
    assert kept_in(tmp_path) == []


WRITES_ANEW = {"copy", "snapshot", "capsule", "pipeline", "bench", "salvage"}
OPENS = {"serve", "replicate"}
"""Start as a broker does: say what that changes, keep it, and go on without a question."""


SENDS = {"resend"}
"""Ask before they send to a broker; the store is only read."""


def test_every_writing_command_can_run_with_and_without_a_backup():
    """A command that asks before it writes has all three options. A command whose purpose is writing asks, or makes its
    own backup.
    """
    for name in set(COMMANDS) - {"mqadmin"} - SENDS:  # mqadmin is many reading commands under one name
        first_command = next(iter(COMMANDS[name]))  # set_values has three
        parsers = build_parser(first_command)._subparsers._group_actions[0].choices.values()
        options = [{option for action in parser._actions for option in action.option_strings} for parser in parsers]
        asks = any("--yes" in words for words in options)
        for words in options:
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
def test_a_user_at_a_terminal_is_asked(crashed, capsys, monkeypatch, answer, code):
    terminal = io.StringIO(answer)
    terminal.isatty = lambda: True
    monkeypatch.setattr(backup.sys, "stdin", terminal)
    monkeypatch.setattr(backup.sys.stderr, "isatty", lambda: True, raising=False)
    assert main(["recover", str(crashed), "--apply"]) == code
    assert "[y/N]" in capsys.readouterr().err
    assert (crashed / "abort").exists() == (code == 2)


def _backup_of_one_start(store: Path, command: str, out: Output) -> Path:
    """Run the backup of one start of a command; return the backup folder."""
    args = argparse.Namespace(command=command, no_backup=False, config=None)
    with backup.backed_up(args, store, MessageStoreConfig()) as saved:
        saved.settled = True
        backup.remove_earlier_backups(saved, out)
    assert saved.writer is not None
    return saved.writer.folder


def test_a_broker_keeps_the_backup_of_its_last_start(store, tmp_path, capsys):
    """Each start of serve after a kill left a backup folder: ten kills of a 238 MB store left ten folders of 30 MB and
    more.
    """
    out = Output(as_json=False)
    recover_backup = _backup_of_one_start(store, "recover", out)
    folders = [_backup_of_one_start(store, "serve", out) for _ in range(3)]
    other_backup = _backup_of_one_start(store_to_recover(tmp_path / "store.kept-not"), "serve", out)
    assert kept_in(tmp_path) == sorted([recover_backup, folders[-1], other_backup, tmp_path / "store.kept-not"])
    assert capsys.readouterr().err.count("was removed: serve keeps only the backup of its last start") == 2


def test_a_start_without_losses_leaves_no_backup(tmp_path):
    """After a kill, queues and index are rebuilt from an unchanged log, so no backup is needed."""
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
