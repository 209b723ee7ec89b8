"""Commands that write into a store keep what they change."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest
from undone_stores import kept_in, made

from engine.cli import keeping
from engine.cli.main import COMMANDS, build_parser, main

PUT = ["--topic", "Orders", "--body", "one more"]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return made(tmp_path / "store")


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
        known = parser._subparsers._group_actions[0].choices
        words = {option for action in known[name]._actions for option in action.option_strings}
        asks = "--yes" in words
        assert (asks or name in OPENS) == ("--no-backup" in words) == ("--empty-log" in words), name
        source = Path("engine/cli/commands").joinpath(f"{name}.py").read_text("utf-8")
        if asks or name in OPENS:
            assert "with keeping(" in source, name
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
    monkeypatch.setattr(keeping.sys, "stdin", terminal)
    monkeypatch.setattr(keeping.sys.stderr, "isatty", lambda: True, raising=False)
    assert main(["recover", str(crashed), "--apply"]) == code
    assert "[y/N]" in capsys.readouterr().err
    assert (crashed / "abort").exists() == (code == 2)
