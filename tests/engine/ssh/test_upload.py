"""A machine without Python: the Python of an archive goes there, and nothing of it is left behind."""

from __future__ import annotations

import getpass
import io
import shlex
import shutil
import socket
import subprocess
import sys
import tarfile
import time

import pytest
from real_cluster import free_port
from ssh_stand_in import install_stand_in

from engine.errors import UsageError
from engine.ssh import upload
from engine.ssh.address import parse_address
from engine.ssh.connection import SshConnection, ssh_command
from engine.ssh.upload import UPLOAD_VARIABLE, NoPython, pack_python, uploaded_python_command

ADDRESS = parse_address("ssh://someone@elsewhere/data/store")
TOP = "storescope-9.9-linux-x86_64-small"


@pytest.fixture
def archive(tmp_path):
    """Make an archive whose Python is that of this test, behind a script."""
    path = tmp_path / "small.tar.xz"
    files = {
        "storescope": b"#!/bin/sh\n",
        "python/bin/python3": f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n'.encode(),
        "python/lib/python3/dist-packages/numpy.py": bytes(1000),
        "python/lib/python3.11/os.py": b"# os\n",
    }
    with tarfile.open(path, "w:xz") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(f"{TOP}/{name}")
            member.size, member.mode = len(data), 0o755
            tar.addfile(member, io.BytesIO(data))
    return path


@pytest.fixture
def far_folder(tmp_path, monkeypatch):
    """Take the Python away from the other machine; return the folder below which it takes uploads."""
    folder = tmp_path / "far"
    folder.mkdir()
    install_stand_in(tmp_path, monkeypatch, outlives=True)
    monkeypatch.setattr("engine.ssh.connection._PYTHONS", ("python3-of-nobody",))
    monkeypatch.setattr(upload, "FOLDERS", (f"'{tmp_path / 'absent'}'", f"'{folder}'"))
    return folder


SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin")
COMMANDS = ("sh", "mktemp", "head", "tar", "gzip", "chmod", "rm")
"""All that the machine behind the real sshd has."""


@pytest.fixture
def real_machine(tmp_path, monkeypatch):
    """Start a sshd on the loopback whose users have no Python; return the address of a folder behind it."""
    (tmp_path / "bin").mkdir()
    for name in COMMANDS:
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    for name in ("host", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    port = free_port()
    settings = {
        "ListenAddress": f"127.0.0.1:{port}",
        "HostKey": tmp_path / "host",
        "AuthorizedKeysFile": tmp_path / "key.pub",
        "StrictModes": "no",
        "PidFile": "none",
        "SetEnv": f"PATH={tmp_path / 'bin'}",
    }
    (tmp_path / "sshd_config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    known = f"-o UserKnownHostsFile={tmp_path / 'known'} -o StrictHostKeyChecking=no -o LogLevel=ERROR"
    monkeypatch.setenv("STORESCOPE_SSH", f"ssh -F none -i {tmp_path / 'key'} {known}")
    assert SSHD is not None, "the full form needs sshd: install openssh-server"
    server = subprocess.Popen([SSHD, "-D", "-f", tmp_path / "sshd_config"], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    yield parse_address(f"ssh://{getpass.getuser()}@127.0.0.1:{port}{tmp_path}")
    server.terminate()
    server.communicate(timeout=20)


def is_empty_soon(folder):
    """Return True if the folder is empty within seconds: the shell there removes files after the pipe has ended."""
    deadline = time.monotonic() + 10
    while any(folder.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(folder.iterdir())


def facts_of(connection, path):
    return connection.request({"request": "stat", "path": str(path), "follow": True})[0]["facts"]


def test_the_standard_library_is_sent_and_the_packages_stay_here(archive):
    with tarfile.open(fileobj=io.BytesIO(pack_python(archive))) as tar:
        assert tar.getnames() == ["python/bin/python3", "python/lib/python3.11/os.py"]


@pytest.mark.parametrize("content", [b"", b"no archive", None], ids=["empty", "text", "absent"])
def test_a_file_that_is_no_archive_is_refused(tmp_path, content):
    path = tmp_path / "x.tar.xz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=r"x\.tar\.xz"):
        pack_python(path)


def test_nothing_is_sent_without_the_users_word(far_folder, monkeypatch):
    monkeypatch.delenv(UPLOAD_VARIABLE, raising=False)
    with pytest.raises(NoPython, match="--upload ARCHIVE"):
        SshConnection(ADDRESS)
    assert not any(far_folder.iterdir())


def test_the_uploaded_python_answers_and_is_removed_with_the_connection(far_folder, archive, monkeypatch, tmp_path):
    monkeypatch.setenv(UPLOAD_VARIABLE, str(archive))
    connection = SshConnection(ADDRESS)
    try:
        assert facts_of(connection, tmp_path)
        (private,) = far_folder.iterdir()
        assert private.stat().st_mode & 0o777 == 0o700
        connection._pipe.process.kill()
        assert facts_of(connection, tmp_path)
    finally:
        connection.close()
    assert is_empty_soon(far_folder)


def test_a_broken_upload_leaves_nothing(far_folder, archive):
    data = pack_python(archive)
    process = subprocess.run(
        ssh_command(ADDRESS, uploaded_python_command(len(data), "print(1)")),
        input=data[: len(data) // 2],
        capture_output=True,
        timeout=60,
    )
    assert process.returncode == 74
    assert b"the upload is incomplete" in process.stderr
    assert not any(far_folder.iterdir())


def test_a_machine_that_runs_no_program_of_ours_says_so(far_folder, archive, monkeypatch, tmp_path):
    monkeypatch.setattr(upload, "FOLDERS", (f"'{tmp_path / 'absent'}'",))
    monkeypatch.setenv(UPLOAD_VARIABLE, str(archive))
    with pytest.raises(Exception, match="no folder on this machine where programs may run"):
        SshConnection(ADDRESS)


@pytest.mark.full_form
def test_behind_a_real_sshd_the_uploaded_python_answers_also_after_a_cut(real_machine, archive, monkeypatch, tmp_path):
    folder = tmp_path / "far"
    folder.mkdir()
    monkeypatch.setattr(upload, "FOLDERS", (f"'{folder}'",))
    monkeypatch.setenv(UPLOAD_VARIABLE, "")
    with pytest.raises(NoPython):
        SshConnection(real_machine)
    monkeypatch.setenv(UPLOAD_VARIABLE, str(archive))
    connection = SshConnection(real_machine)
    try:
        assert facts_of(connection, tmp_path)
        connection._pipe.process.kill()
        assert facts_of(connection, tmp_path)
    finally:
        connection.close()
    assert is_empty_soon(folder)
