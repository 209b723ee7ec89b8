"""``storescope serve``: prints its address, ends cleanly, and refuses with one line what it cannot serve."""

from __future__ import annotations

import contextlib
import io
import signal
import socket
import time
from pathlib import Path

import handmade_stores
import pytest
from failing_reads import FailingDisk
from served_stores import FREE, a_send, bytes_of, responses_of, served

from engine.cli.main import main
from engine.mapped.reading import read_through
from engine.message_store import MessageStore
from engine.remoting.frame import Command

TIMEOUT_S = 60.0


def run_serve(*words: str) -> tuple[int, str]:
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        return main(list(words)), err.getvalue()


def route_of(topic: str, namesrv: str) -> Command:
    """The answer of the name server: the broker registers a topic that a send creates a moment later."""
    end = time.monotonic() + TIMEOUT_S
    while True:
        (answer,) = responses_of(namesrv, Command(105, {"topic": topic}))
        if answer.code == 0 or time.monotonic() > end:
            return answer
        time.sleep(0.05)


def test_sent_messages_are_stored_and_ctrl_c_closes_the_store_cleanly(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with served(store) as (process, record):
        assert record["type"] == "serving"
        assert record["pid"] == process.pid
        answers = responses_of(record["broker"], a_send(b"first"), a_send(b"second"))
        assert [(answer.code, answer.fields["queueOffset"]) for answer in answers] == [(0, "0"), (0, "1")]
        route = route_of("Orders", record["namesrv"])
        assert route.code == 0
        assert record["broker"].encode() in bytes(route.body)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    with MessageStore(store) as opened:
        assert opened.recovery_plan.exit == "normal"
        assert opened.max_offset_in_queue("Orders", 0) == 2


def test_a_locked_store_is_refused(tmp_path: Path) -> None:
    with MessageStore(tmp_path / "store"):
        code, output = run_serve("serve", str(tmp_path / "store"), *FREE)
    assert code != 0
    assert len(output.strip().splitlines()) == 1, output
    assert "Traceback" not in output


def test_an_occupied_port_is_a_one_line_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code, output = run_serve("serve", str(tmp_path / "store"), "--port", str(port), "--namesrv-port", "0")
    assert code == 3
    assert f"127.0.0.1:{port}" in output.strip().splitlines()[-1]


def test_an_invalid_configuration_is_refused_with_its_line(tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text("brokerName=a\ndefaultTopicQueueNums=many\n")
    code, output = run_serve("serve", str(tmp_path / "store"), "--config", str(conf), *FREE)
    assert code == 2
    assert "line 2, defaultTopicQueueNums" in output
    assert not (tmp_path / "store").exists()


def test_a_missing_log_needs_the_empty_log_option(tmp_path: Path) -> None:
    store = handmade_stores.healthy().write(tmp_path / "store")
    for file in (store / "commitlog").iterdir():
        file.unlink()
    files_before = bytes_of(store)
    code, output = run_serve("serve", str(store), *FREE)
    assert code != 0
    assert "--empty-log" in output
    assert bytes_of(store) == files_before


@pytest.mark.parametrize("folder", ["commitlog", "consumequeue"])
def test_a_store_with_a_file_that_cannot_be_read_is_not_served(tmp_path: Path, folder: str) -> None:
    store = handmade_stores.healthy().write(tmp_path / "store")
    files_before = bytes_of(store)
    with read_through(FailingDisk(store / folder, "open", 0, "EACCES")):
        code, output = run_serve("serve", str(store), *FREE)
    assert code == 3, output
    assert folder in output
    assert bytes_of(store) == files_before


ACCOUNTS = "accounts:\n- accessKey: someuser\n  secretKey: 12345678\n  defaultTopicPerm: PUB|SUB\n"


def test_serving_beyond_this_machine_requires_accounts(tmp_path: Path) -> None:
    """The message explains the risk. Serving without accounts needs an explicit option."""
    store, acl = tmp_path / "store", tmp_path / "plain_acl.yml"
    code, words = run_serve("serve", str(store), "--listen", "192.0.2.1", "--port", "0")
    assert code == 2
    assert "everyone who can reach it can send, consume, read every message and delete topics" in words
    assert "--acl" in words
    assert not store.exists()
    code, words = run_serve("serve", str(store), "--listen", "0.0.0.0", "--without-acl")
    assert code == 2
    assert "clients cannot use this address" in words
    acl.write_text(ACCOUNTS)
    code, words = run_serve("serve", str(store), "--listen", "192.0.2.1", "--port", "0", *FREE[2:], "--acl", str(acl))
    assert code == 3
    assert f"listening on 192.0.2.1: clients that sign with an account of {acl} may do what the account allows" in words
    assert "cannot listen on 192.0.2.1" in words


def test_an_occupied_port_is_reported_with_its_purpose(tmp_path: Path) -> None:
    """If the HA port next to the broker's port was taken, the command named a number that the user had not given, and
    did not say that it is the HA port. After port 65,535 the system silently chose another port.
    """
    for _ in range(20):
        with socket.socket() as received:
            received.bind(("127.0.0.1", 0))
            received.listen()
            ha = received.getsockname()[1]
            code, words = run_serve("serve", str(tmp_path / "store"), "--port", str(ha - 1), *FREE[2:])
        if f":{ha}" in words:
            break
    assert code == 3
    assert f"127.0.0.1:{ha}, the HA port (the broker's own and one, unless haListenPort is set)" in words
    code, words = run_serve("serve", str(tmp_path / "store"), "--port", "65535", *FREE[2:])
    assert code == 3
    assert "cannot listen on 127.0.0.1:65536, the HA port" in words
    assert words.rstrip().endswith("ports end at 65535")


def test_requests_need_an_account(tmp_path: Path) -> None:
    (tmp_path / "plain_acl.yml").write_text(ACCOUNTS)
    with served(tmp_path / "store", "--acl", str(tmp_path / "plain_acl.yml")) as (_, record):
        (answer,) = responses_of(record["broker"], Command(26))
        assert (answer.code, answer.remark) == (16, "username cannot be null.")


def test_an_unknown_permission_is_reported(tmp_path: Path) -> None:
    """RocketMQ treats such a word as DENY. The warning went to a logger without a handler."""
    acl = tmp_path / "plain_acl.yml"
    acl.write_text(ACCOUNTS + "  topicPerms:\n  - topicA=READ\n")
    store = str(tmp_path / "store")
    code, output = run_serve("serve", store, "--listen", "192.0.2.1", "--port", "0", *FREE[2:], "--acl", str(acl))
    assert code == 3
    assert "account 1: topicPerms: topicA: 'READ' is no permission and counts as DENY" in output
    assert output.count("READ") == 1


def test_a_configuration_that_enables_accounts_is_respected(tmp_path: Path) -> None:
    (tmp_path / "broker.conf").write_text("aclEnable=true\n")
    code, words = run_serve("serve", str(tmp_path / "store"), "--config", str(tmp_path / "broker.conf"))
    assert code == 2
    assert "aclEnable=true: name the accounts with --acl plain_acl.yml" in words
    (tmp_path / "plain_acl.yml").write_text("accounts: none")
    code, words = run_serve("serve", str(tmp_path / "store"), "--acl", str(tmp_path / "plain_acl.yml"))
    assert code == 2
    assert "plain_acl.yml" in words
    assert "expected a list" in words
