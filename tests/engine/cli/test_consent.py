"""A person is asked before a store is changed."""

from __future__ import annotations

import io
import shutil

import pytest

from engine.cli import consent
from engine.cli.main import main

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
    monkeypatch.setattr(consent.sys, "stdin", terminal)
    monkeypatch.setattr(consent.sys.stderr, "isatty", lambda: True, raising=False)
    assert main(["recover", str(crashed), "--apply"]) == code
    assert "[y/N]" in capsys.readouterr().err
    assert (crashed / "abort").exists() == (code == 2)
