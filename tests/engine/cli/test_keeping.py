"""Commands that write into a store keep what they change.

Where a command writes: a new place, a store that is there, and what is refused before anything changes.
"""

from __future__ import annotations

import argparse
import io
import shutil
from pathlib import Path

import pytest
from made_stores import LOG_SIZE, MadeStore
from undone_stores import kept_in, made

from engine.cli import keeping
from engine.cli.keeping import find_target, given_config, refuse_used
from engine.cli.main import COMMANDS, build_parser, main
from engine.cli.output import Output
from engine.errors import NotAStore, UsageError

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


@pytest.fixture
def root(tmp_path):
    made = MadeStore()
    for _ in range(6):
        made.put()
    return made.write(tmp_path / "store")


def test_an_empty_place_is_a_new_store(tmp_path):
    target = find_target(str(tmp_path / "new"), None)
    assert (target.exists, target.recovery) == (False, None)
    assert list(target.planned()) == [f"{tmp_path / 'new'} has no commit log yet: one is begun."]


def test_the_sizes_of_a_store_that_is_there_are_its_files(root):
    target = find_target(str(root), None)
    assert (target.exists, target.config.mapped_file_size_commit_log) == (True, LOG_SIZE)
    first, second = target.planned()
    assert first.endswith("is opened as a broker opens it after an orderly end:")
    assert f"its log ends at {target.recovery.end_offset:,}" in second


def test_a_part_of_a_store_and_what_is_none_are_refused(root, tmp_path):
    with pytest.raises(UsageError, match="found a part of one"):
        find_target(str(root / "commitlog"), None)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "text").write_text("mine")
    with pytest.raises(NotAStore):
        find_target(str(tmp_path / "other"), None)


def test_a_copy_goes_into_an_empty_place_outside_the_store(root, tmp_path):
    assert refuse_used(str(tmp_path / "copy"), root) == tmp_path / "copy"
    with pytest.raises(UsageError, match="outside the store"):
        refuse_used(str(root / "copy"), root)
    with pytest.raises(UsageError, match="absent or empty"):
        refuse_used(str(root), tmp_path / "elsewhere")


def test_keys_that_no_broker_knows_are_named(tmp_path, capsys):
    file = tmp_path / "broker.conf"
    file.write_text("mappedFileSizeCommitLog=8192\nnobodysKey=1\n")
    out = Output(as_json=False, stream=io.StringIO())
    assert given_config(argparse.Namespace(config=str(file)), out).mapped_file_size_commit_log == 8192
    assert "no broker knows nobodysKey" in capsys.readouterr().err
    assert given_config(argparse.Namespace(config=None), out) is None
