"""The pipe to another machine: what is said where there is none, and that a broken one is replaced."""

from __future__ import annotations

import signal
import threading

import pytest
from ssh_stand_in import install_stand_in

from engine.errors import CannotRead
from engine.ssh.address import parse_address
from engine.ssh.connection import SSH_VARIABLE, SshConnection, ssh_command

ADDRESS = parse_address("ssh://someone@elsewhere:2200/data/store")


@pytest.fixture
def connection(tmp_path, monkeypatch):
    install_stand_in(tmp_path, monkeypatch)
    connection = SshConnection(ADDRESS)
    yield connection
    connection.close()


def facts_of(connection, path):
    return connection.request({"request": "stat", "path": str(path), "follow": True})[0]["facts"]


def test_the_command_line_names_user_port_and_host(monkeypatch):
    monkeypatch.delenv(SSH_VARIABLE, raising=False)
    command = ssh_command(ADDRESS, "true")
    assert command[0] == "ssh"
    assert command[-7:-1] == ["-p", "2200", "-l", "someone", "--", "elsewhere"]


def test_a_broken_pipe_is_replaced(connection, tmp_path):
    """The ssh command was killed: the next request starts another one and is answered."""
    assert facts_of(connection, tmp_path)
    connection._pipe.process.send_signal(signal.SIGKILL)
    connection._pipe.process.wait()
    assert facts_of(connection, tmp_path)


def test_requests_of_several_threads_survive_a_broken_pipe(connection, tmp_path):
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append([facts_of(connection, tmp_path) for _ in range(20)]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    connection._pipe.process.kill()
    for thread in threads:
        thread.join(30)
    assert [len(answer) for answer in answers] == [20] * 4


def test_what_a_shell_prints_at_its_start_is_skipped(tmp_path, monkeypatch):
    install_stand_in(tmp_path, monkeypatch, before="echo Welcome to this machine")
    connection = SshConnection(ADDRESS)
    try:
        assert facts_of(connection, tmp_path)
    finally:
        connection.close()


def test_the_last_words_of_ssh_say_why_there_is_no_connection(tmp_path, monkeypatch):
    install_stand_in(tmp_path, monkeypatch, before="echo 'ssh: Could not resolve hostname elsewhere' >&2; exit 255")
    with pytest.raises(CannotRead, match="no connection to elsewhere: ssh: Could not resolve hostname elsewhere"):
        SshConnection(ADDRESS)


def test_a_machine_without_python_is_named(tmp_path, monkeypatch):
    install_stand_in(tmp_path, monkeypatch)
    monkeypatch.setattr("engine.ssh.connection._PYTHONS", ("python3-of-nobody",))
    with pytest.raises(CannotRead, match=r"no Python 3\.7 or newer on elsewhere: --upload ARCHIVE"):
        SshConnection(ADDRESS)


def test_without_the_program_ssh_one_line_says_so(monkeypatch):
    monkeypatch.setenv(SSH_VARIABLE, "/nothing/of/this/name")
    with pytest.raises(CannotRead, match="the program ssh cannot be started"):
        SshConnection(ADDRESS)


def test_an_error_of_the_other_machine_keeps_its_kind(connection, tmp_path):
    with pytest.raises(FileNotFoundError):
        facts_of(connection, tmp_path / "absent")


def test_after_close_nothing_is_asked(connection, tmp_path):
    connection.close()
    with pytest.raises(OSError, match="no connection to elsewhere"):
        facts_of(connection, tmp_path)
