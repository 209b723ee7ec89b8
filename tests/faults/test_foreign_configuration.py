"""A command on a copy never follows its broker's own configuration to the live store.

Every command that takes ``--config`` gets the file of a live store on the same machine, with that store's absolute
paths in it. The live store keeps every byte and time, whatever the command does.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import golden_stores
import handmade_stores
import pytest

from engine.cli.main import build_parser, main
from engine.config import MessageStoreConfig, read_config
from engine.errors import StoreLocked
from engine.files.store_folders import OutsidePath
from engine.lab.server import Lab
from engine.mapped.store_lock import StoreLock
from engine.message_store import MessageStore
from viewer.runtime.lab_client import config_for_writing

READS, WRITES = "reads", "writes"
COMMANDS: dict[str, list[tuple[str, list[str]]]] = {
    "info": [(READS, ["STORE"])],
    "units": [(READS, ["STORE"])],
    "queue": [(READS, ["STORE", "Orders", "0", "--resolve"])],
    "index": [(READS, ["STORE", "--entries"])],
    "trace": [(READS, ["STORE", "Orders", "K1"])],
    "get": [(READS, ["STORE", "Orders", "0", "0"])],
    "message": [(READS, ["STORE", "U00001"])],
    "offset": [(READS, ["STORE", "Orders", "0", "--time", "1700000000100"])],
    "where": [(READS, ["STORE", "U00001"])],
    "conversation": [(READS, ["STORE", "U00001"])],
    "positions": [(READS, ["STORE"])],
    "groups": [(READS, ["STORE"])],
    "space": [(READS, ["STORE", "--quick"])],
    "check": [(READS, ["STORE"])],
    "config": [(READS, ["STORE"])],
    "rows": [(READS, ["STORE"])],
    "waiting": [(READS, ["STORE"])],
    "resend": [(READS, ["STORE", "--where", "false", "--to", "127.0.0.1:9", "--plan"])],
    "timeline": [(READS, ["STORE"])],
    "histogram": [(READS, ["STORE"])],
    "sql": [(READS, ["STORE", "SELECT count(*) FROM units"])],
    "compat": [(READS, ["STORE"])],
    "recover": [(READS, ["STORE", "--plan"]), (WRITES, ["STORE", "--apply", "--yes"])],
    "diff": [(READS, ["STORE", "STORE"])],
    "repair": [(WRITES, ["STORE"]), (WRITES, ["STORE", "--apply", "--yes"])],
    "salvage": [(READS, ["STORE"]), (WRITES, ["STORE", "--to", "NEW"])],
    "set-offset": [(WRITES, ["STORE", "readers", "Orders", "0", "1", "--yes"])],
    "set-delay-offset": [(WRITES, ["STORE", "1", "0", "--yes"])],
    "set-checkpoint": [(WRITES, ["STORE", "physicMsgTimestamp", "1", "--yes"])],
    "dispatch": [(WRITES, ["STORE", "--yes"]), (WRITES, ["STORE", "--to", "NEW"])],
    "capsule": [(WRITES, ["STORE", "-o", "NEW"])],
    "snapshot": [(WRITES, ["STORE", "NEW"]), (WRITES, ["STORE", "NEW", "--recovery-set"])],
    "put": [(WRITES, ["STORE", "--topic", "Orders", "--body", "x", "--yes"]), (WRITES, ["STORE", "--plan", "PLAN"])],
    "copy": [(WRITES, ["STORE", "NEW"])],
    "serve": [(WRITES, ["STORE", "--port", "0", "--namesrv-port", "0"]), (WRITES, ["NEW", "--port", "0"])],
    "replicate": [(WRITES, ["127.0.0.1:1", "STORE"]), (WRITES, ["127.0.0.1:1", "NEW"])],
    "queryMsgByKey": [(READS, ["-s", "STORE", "-t", "Orders", "-k", "K1"])],
    "queryMsgById": [(READS, ["-s", "STORE", "-i", "7F00000100002A9F0000000000000090"])],
    "queryMsgByUniqueKey": [(READS, ["-s", "STORE", "-t", "Orders", "-i", "U00001"])],
    "queryMsgByOffset": [(READS, ["-s", "STORE", "-t", "Orders", "-i", "0", "-o", "3"])],
    "queryCq": [(READS, ["-s", "STORE", "-t", "Orders", "-q", "0", "-i", "3", "-c", "2"])],
    "printMsg": [(READS, ["-s", "STORE", "-t", "Orders"])],
    "printMsgByQueue": [(READS, ["-s", "STORE", "-t", "Orders", "-i", "0"])],
    "consumerProgress": [(READS, ["-s", "STORE", "-g", "readers"])],
    "topicStatus": [(READS, ["-s", "STORE", "-t", "Orders"])],
    "topicList": [(READS, ["-s", "STORE"])],
    "getBrokerEpoch": [(READS, ["-s", "STORE"])],
    "consumeMessage": [(READS, ["--store", "STORE", "-t", "Orders"])],
    "checkRocksdbCqWriteProgress": [(READS, ["-s", "STORE"])],
    "pipeline verify": [(READS, ["STORE"])],
    "pipeline rebuild": [(WRITES, ["STORE", "--out", "NEW"])],
    "pipeline import": [(WRITES, ["EXPORT", "--out", "NEW"])],
}
ASKS_COMMANDS = {"mcp"}
"""Gives its configuration to commands of this table (``tests/engine/cli/test_agent_tools.py``)."""
NOT_A_STORE_S = {"namesrv"}
"""Takes the file of a name server, which has none of a store's paths."""
LACKING = {"compat", "topicList", "checkRocksdbCqWriteProgress"}
"""End with 3: the configuration lacks the log's file size, the store a table of topics and queues in a RocksDB."""
DEEDS = {
    "recover": ["STORE", "--apply", "--yes"],
    "dispatch": ["STORE", "--yes"],
    "put": ["STORE", "--topic", "Orders", "--body", "x", "--yes"],
    "copy": ["STORE", "NEW"],
    "snapshot": ["STORE", "NEW"],
}
"""What is done to the copy where the user says that the paths of the file do not count."""
ROWS = [
    pytest.param(name, kind, words, id=f"{name} {kind} {n}")
    for name, rows in COMMANDS.items()
    for n, (kind, words) in enumerate(rows)
]


def leaves(parser: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command and subcommand with its parser."""
    below = [item for item in parser._actions if isinstance(item, argparse._SubParsersAction)]
    if not below:
        yield name, parser
    for action in below:
        for word, choice in action.choices.items():
            yield from leaves(choice, f"{name} {word}".strip())


def test_every_command_that_takes_a_configuration_is_tested() -> None:
    """A new command with ``--config`` must be in ``COMMANDS``, or this fails."""
    parser = build_parser()
    takes = {name for name, command_parser in leaves(parser) if "--config" in command_parser._option_string_actions}
    assert takes == set(COMMANDS) | NOT_A_STORE_S | ASKS_COMMANDS | {"view"}
    for name, subparser in leaves(parser):
        if name in COMMANDS:
            assert {"--paths-from-config", "--ignore-config-paths"} <= set(subparser._option_string_actions), name


@pytest.fixture
def reached() -> Iterator[socket.socket]:
    """Listen at the address of production's name server, and assert that nobody connects."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.fixture
def place(tmp_path: Path, reached: socket.socket) -> Path:
    """Make a live store, a copy of it from before a crash, and the live broker's configuration."""
    live = handmade_stores.healthy().write(tmp_path / "live")
    (live / "config").mkdir()
    (live / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": {"Orders@readers": {"0": 3}}}))
    (live / "lock").touch()
    shutil.copytree(live, tmp_path / "copy")
    with (max((tmp_path / "copy" / "commitlog").iterdir())).open("r+b") as file:
        file.seek(-2000, 2)
        file.write(bytes(2000))  # the two logs differ, so that an answer tells which one was read
    (tmp_path / "copy" / "abort").write_text("1")
    lines = {
        "storePathRootDir": live,
        "storePathCommitLog": live / "commitlog",
        "storePathIndex": live / "index",
        "storePathConsumeQueue": live / "consumequeue",
        "storeCheckpoint": live / "checkpoint",
        "abortFile": live / "abort",
        "brokerName": "broker-a",
        "namesrvAddr": f"127.0.0.1:{reached.getsockname()[1]}",
        "haMasterAddress": f"127.0.0.1:{reached.getsockname()[1]}",
    }
    (tmp_path / "broker.conf").write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    (tmp_path / "plan.json").write_text(json.dumps({"messages": [{"topic": "Orders", "body": "x"}]}))
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "_storescope.json").write_text(json.dumps({"format": "parquet", "stores": []}))
    return tmp_path


def run_command(place: Path, command: str, words: list[str], *arguments: str) -> tuple[int, str, str]:
    names = {
        "STORE": place / "copy",
        "NEW": place / "new",
        "PLAN": place / "plan.json",
        "EXPORT": place / "export",
    }
    line = [*command.split(), *(str(names.get(word, word)) for word in words), "--config", str(place / "broker.conf")]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*line, *arguments])
    return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize(("command", "kind", "words"), ROWS)
def test_no_command_follows_a_foreign_configuration(place: Path, command: str, kind: str, words: list[str]) -> None:
    """`recover COPY --apply --config broker.conf` cut the live store's log, under the copy's lock, and ended with 0."""
    fingerprint_before = golden_stores.fingerprint(place)
    code, output, err = run_command(place, command, words)
    fingerprint_after = golden_stores.fingerprint(place)
    assert golden_stores.changes(fingerprint_before, fingerprint_after) == []
    assert str(place / "live") in err
    assert str(place / ("new" if "NEW" in words and "STORE" not in words else "copy")) in err
    if kind is WRITES:
        assert code == 2
        assert err.count("leads to another store") == 1
        line = err.strip().splitlines()[-1]
        assert "storePathCommitLog" in line
        assert "--ignore-config-paths" in line
        assert output == ""
    else:
        assert code in {0, 1} or (command in LACKING and code == 3)
        without_paths = run_command(place, command, words, "--ignore-config-paths")
        assert str(place / "live") not in without_paths[2]
        if command not in {"check", "recover", "info", "pipeline verify"}:  # these say it in their answer, too
            assert (without_paths[0], without_paths[1]) == (code, output), "the copy was read, either way"


@pytest.mark.parametrize("command", DEEDS)
def test_with_the_paths_left_out_the_copy_is_written_and_nothing_else(place: Path, command: str) -> None:
    live, copy = golden_stores.fingerprint(place / "live"), golden_stores.fingerprint(place / "copy")
    code, _, err = run_command(place, command, DEEDS[command], "--ignore-config-paths")
    assert code == 0, err
    assert golden_stores.fingerprint(place / "live") == live
    written = (place / "new").exists() or golden_stores.fingerprint(place / "copy") != copy
    assert written


@pytest.mark.parametrize("command", ["recover", "put", "dispatch"])
def test_with_paths_from_config_no_command_writes_into_a_locked_store(place: Path, command: str) -> None:
    with StoreLock(place / "live" / "lock"):
        fingerprint_before = golden_stores.fingerprint(place / "live")
        code, _, err = run_command(place, command, DEEDS[command], "--paths-from-config")
        assert golden_stores.fingerprint(place / "live") == fingerprint_before
    assert code == 3
    assert str(place / "live") in err


def test_the_engine_refuses_it_as_the_commands_do(place: Path) -> None:
    config = read_config(place / "broker.conf")
    fingerprint_before = golden_stores.fingerprint(place)
    with pytest.raises(OutsidePath):
        MessageStore(place / "copy", config)
    with pytest.raises(OutsidePath):
        MessageStore(place / "new", config)
    with pytest.raises(OutsidePath):
        config_for_writing(place / "copy", config)
    with pytest.raises(OutsidePath):
        Lab().open_store(place / "copy", config, "5.3")
    assert golden_stores.changes(fingerprint_before, golden_stores.fingerprint(place)) == []
    with StoreLock(place / "live" / "lock"):
        fingerprint_before = golden_stores.fingerprint(place / "live")
        with pytest.raises(StoreLocked, match="live"):
            MessageStore(place / "copy", config, paths_from_config=True)
        assert golden_stores.fingerprint(place / "live") == fingerprint_before


def test_a_lab_store_has_no_paths(place: Path) -> None:
    config = read_config(place / "broker.conf")
    with pytest.raises(Exception, match="storePath"):
        Lab().start(place / "lab", config, "5.3", 1 << 30)
    lab = Lab()
    lab.start(place / "lab", MessageStoreConfig(mapped_file_size_commit_log=1 << 20), "5.3", 1 << 30)
    fingerprint_before = golden_stores.fingerprint(place / "live")
    try:
        from engine.lab.samples import ServeSettings

        state = lab.serve(ServeSettings(port=0, namesrv_port=0, ha_port=0, vip=False, config=place / "broker.conf"))
        assert {"namesrvAddr", "storePathCommitLog"} <= set(state.without_effect)
    finally:
        lab.close()
    assert golden_stores.fingerprint(place / "live") == fingerprint_before
