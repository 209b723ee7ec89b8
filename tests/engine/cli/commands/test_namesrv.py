"""``storescope namesrv``: start, configuration and end."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys

import agree
import pytest

START = [sys.executable, "-m", "engine.cli", "namesrv"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("words", [[], ["--json"]])
def test_the_address_is_printed_and_the_end_is_quiet(how, words):
    process = subprocess.Popen(
        [*START, "--port", "0", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    line = process.stdout.readline()
    if words:
        record = json.loads(line)
        assert {name: record[name] for name in ("type", "pid")} == {"type": "serving", "pid": process.pid}
        address = record["namesrv"]
    else:
        assert line.startswith("serving: name server 127.0.0.1:")
        address = line.split()[3].rstrip(",")
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), 60):
        process.send_signal(how)
        remainder, errors = process.communicate(timeout=60)
    assert (process.returncode, remainder, errors) == (0, "", "")


def test_an_occupied_port_is_a_one_line_error():
    with socket.socket() as occupied:
        occupied.bind(("127.0.0.1", 0))
        occupied.listen()
        port = occupied.getsockname()[1]
        handler_before = signal.getsignal(signal.SIGINT)
        status, _, errors = agree.command("namesrv", "--port", str(port))
    assert signal.getsignal(signal.SIGINT) is handler_before
    assert status == 3
    assert f"cannot listen on 127.0.0.1:{port}, the name server's port: " in errors
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("listenPort=many\n", "line 1, listenPort: expected a number, found 'many'"),
        ("\norderMessageEnable=1\n", "line 2, orderMessageEnable: expected true or false, found '1'"),
        ("kvConfigPath=KV\n", "expected the key-value table of a name server"),
    ],
)
def test_a_wrong_configuration_is_one_line_with_its_place(tmp_path, text, words):
    path = tmp_path / "kv.json"
    path.write_text("[]")
    file = tmp_path / "namesrv.conf"
    file.write_text(text.replace("KV", str(path)))
    status, _, errors = agree.command("namesrv", "--port", "0", "--config", file)
    assert status == 2
    assert words in errors
    assert errors.count("\n") == 1


def test_a_missing_configuration_and_an_invalid_port():
    assert agree.command("namesrv", "--config", "/nowhere/namesrv.conf")[0] == 3
    status, _, errors = agree.command("namesrv", "--port", "70000")
    assert status == 2
    assert "expected a port from 0 to 65,535, found '70000'" in errors


def test_keys_without_effect_and_a_nonlocal_host_are_reported(tmp_path):
    """The test uses an address that no machine has, so it does not listen beyond the loopback."""
    file = tmp_path / "namesrv.conf"
    file.write_text("clusterTest=true\nserverWorkerThreads=8\nlistenPort=0\n")
    status, _, errors = agree.command("namesrv", "--host", "192.0.2.1", "--config", file)
    assert status == 3
    assert f"{file}: without effect here: clusterTest, serverWorkerThreads" in errors
    assert "everyone who can reach it can register brokers" in errors
    assert "cannot listen on 192.0.2.1:0" in errors
    assert "everyone who" not in agree.command("namesrv", "--host", "127.0.0.1", "--port", "70000")[2]


def test_a_key_value_table_outside_of_the_configurations_folder_is_refused(tmp_path):
    """The configuration of a running name server named that server's own table, and a trial overwrote it."""
    live, trial = tmp_path / "live", tmp_path / "trial"
    live.mkdir()
    trial.mkdir()
    table = live / "kvConfig.json"
    table.write_text('{"configTable":{"ORDER_TOPIC_CONFIG":{"T":"broker-a:4"}}}')
    table_before = table.read_bytes()
    file = trial / "namesrv.conf"
    (trial / "link.json").symlink_to(table)
    for path in (table, trial / ".." / "live" / "kvConfig.json", trial / "link.json"):
        file.write_text(f"kvConfigPath={path}\n")
        status, _, errors = agree.command("namesrv", "--port", "0", "--config", file)
        assert status == 2
        assert f"{file}: kvConfigPath={path} is not in {trial}, the folder of this configuration" in errors
        assert "--paths-from-config follows them" in errors
        assert errors.count("\n") == 1
    assert table.read_bytes() == table_before


@pytest.mark.parametrize("word", ["--paths-from-config", "--ignore-config-paths"])
def test_either_option_decides_which_key_value_table_is_used(tmp_path, word):
    """The table is damaged. If it is read, the error names it; if it is ignored, the invalid port is reported."""
    (tmp_path / "trial").mkdir()
    (tmp_path / "kv.json").write_text("[]")
    file = tmp_path / "trial" / "namesrv.conf"
    file.write_text(f"kvConfigPath={tmp_path / 'kv.json'}\n")
    status, _, errors = agree.command("namesrv", "--host", "192.0.2.1", "--port", "0", "--config", file, word)
    follows = word == "--paths-from-config"
    assert status == (2 if follows else 3)
    assert ("expected the key-value table of a name server" in errors) is follows
