"""Before a Python is sent to another machine, the user is asked, with its size and its folder."""

from __future__ import annotations

import argparse
import os

import pytest
from ssh_stand_in import install_stand_in

from engine.cli import uploading
from engine.cli.main import main
from engine.cli.uploading import offer_upload
from engine.errors import UsageError
from engine.ssh.upload import UPLOAD_VARIABLE, NoPython

STORE = "ssh://someone@elsewhere/data/store"


class Terminal:
    """A terminal on which one answer is typed."""

    def __init__(self, answer):
        self.answer = answer

    def isatty(self):
        return True

    def readline(self):
        return self.answer

    def write(self, text):
        return len(text)

    def flush(self):
        pass


@pytest.fixture
def options(tmp_path, monkeypatch):
    install_stand_in(tmp_path, monkeypatch)
    monkeypatch.setattr("engine.ssh.connection._PYTHONS", ("python3-of-nobody",))
    monkeypatch.setattr("engine.ssh.upload.pack_python", lambda archive: bytes(3 << 20))
    monkeypatch.setenv(UPLOAD_VARIABLE, "")
    return argparse.Namespace(store=STORE, upload=tmp_path / "small.tar.xz")


@pytest.mark.parametrize(("answer", "is_agreed"), [("y\n", True), ("\n", False)])
def test_only_a_yes_lets_the_archive_go(answer, is_agreed, options, monkeypatch):
    monkeypatch.setattr(uploading.sys, "stdin", Terminal(answer))
    monkeypatch.setattr(uploading.sys, "stderr", Terminal(""))
    if is_agreed:
        offer_upload(options)
    else:
        with pytest.raises(NoPython, match="nothing was sent"):
            offer_upload(options)
    assert os.environ[UPLOAD_VARIABLE] == (str(options.upload) if is_agreed else "")


def test_size_and_folder_are_named_and_without_a_terminal_nothing_is_sent(options, capsys):
    with pytest.raises(UsageError, match=f"set {UPLOAD_VARIABLE}="):
        offer_upload(options)
    asked = capsys.readouterr().err
    assert "3.0 MiB of small.tar.xz" in asked
    assert "below /tmp, /var/tmp or the home folder, which only you can read" in asked


def test_a_store_of_this_machine_needs_no_upload(tmp_path, capsys):
    assert main(["info", str(tmp_path), "--upload", "x.tar.xz"]) == 2
    assert "--upload belongs to a store on another machine" in capsys.readouterr().err
