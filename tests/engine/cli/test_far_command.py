"""``check`` of a store on another machine runs there if it can."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from handmade_stores import healthy
from ssh_stand_in import install_stand_in, on_machine

from engine import __version__
from engine.cli.main import main

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def store(tmp_path):
    store = healthy().write(tmp_path / "a store")
    (store / "abort").write_text("1")
    return store


def install_storescope(folder, version=__version__):
    """Put a program ``storescope`` into ``folder``; with another version it answers nothing but that."""
    script = folder / "storescope"
    run = (
        f"PYTHONPATH='{ROOT}' exec '{sys.executable}' -m engine.cli.main \"$@\"" if version == __version__ else "exit 9"
    )
    script.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo storescope {version} && exit\n{run}\n')
    script.chmod(0o700)


def test_the_findings_are_those_of_the_machine(store, tmp_path, monkeypatch, capsys):
    install_storescope(tmp_path)
    install_stand_in(tmp_path, monkeypatch, before=f"PATH='{tmp_path}':$PATH")
    expected = main(["check", str(store), "--json", "--fail-on", "warn"]), capsys.readouterr().out
    assert (main(["check", str(on_machine(store)), "--json", "--fail-on", "warn"]), capsys.readouterr().out) == expected
    main(["check", str(on_machine(store))])
    said = capsys.readouterr()
    assert f"run by storescope {__version__} on elsewhere" in said.err
    assert str(on_machine(store)) not in said.out


@pytest.mark.parametrize("version", ["0.0.1", None])
def test_without_the_same_version_there_the_store_is_read_through_ssh(store, tmp_path, monkeypatch, capsys, version):
    before = f"PATH='{tmp_path}':/usr/bin:/bin; HOME='{tmp_path}'"
    if version is not None:
        install_storescope(tmp_path, version)
    install_stand_in(tmp_path, monkeypatch, before=before)
    main(["check", str(on_machine(store))])
    assert str(on_machine(store)) in capsys.readouterr().out


def test_a_machine_that_cannot_be_reached_is_one_line(store, tmp_path, monkeypatch, capsys):
    install_stand_in(tmp_path, monkeypatch, before="exit 255")
    assert main(["check", str(on_machine(store))]) == 3
    assert "no connection to elsewhere" in capsys.readouterr().err
