"""``doctor``: text and JSON, and the exit code."""

from __future__ import annotations

import json

import pytest
from contract_records import complaints

from engine.cli.commands import doctor
from engine.cli.installation import Component
from engine.cli.main import main
from engine.codec import machine_code_build
from engine.codec.machine_code import FUNCTIONS
from engine.codec.machine_code_build import SAVED_BY_NUMBA


def test_this_installation_has_no_problems(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line for record in records for line in complaints(record)] == []
    assert records[-1]["problems"] == 0
    groups = {record["group"] for record in records[:-1]}
    assert {"program", "packages", "window", "machine code", "limits"} <= groups


def test_a_problem_stands_first_with_its_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [
        Component("extra codecs", "lz4", "missing", "for bodies", "pip install lz4"),
        Component("extra codecs", "isal", "missing", "for a CRC", "pip install lz4"),
        Component("window", "Qt", "problem", "Qt lacks libEGL.so.1", "apt-get install libegl1"),
    ]
    monkeypatch.setattr(doctor, "components", lambda _: iter(parts))
    assert main(["doctor"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["1 problem; first: Qt: Qt lacks libEGL.so.1", "  apt-get install libegl1"]
    assert sum("pip install lz4" in line for line in lines) == 1


def test_compiling_ahead_names_each_module_before_it_is_compiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled: list[str] = []

    def compile_module(module: str) -> None:
        assert capsys.readouterr().err.startswith(f"storescope: machine code, {len(compiled) + 1} of ")
        compiled.append(module)

    monkeypatch.setattr(machine_code_build, "twins", compile_module)
    monkeypatch.setattr(machine_code_build, "import_compiled", compile_module)
    part = Component("program", "Python", "ok", "3.11")
    monkeypatch.setattr(doctor, "components", lambda _: iter((part,)))
    monkeypatch.delenv("STORESCOPE_PLAIN", raising=False)
    assert main(["doctor", "--compile"]) == 0
    assert compiled == [*FUNCTIONS, *SAVED_BY_NUMBA]


def test_compiling_ahead_without_the_compiler_names_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_module: str) -> None:
        raise ModuleNotFoundError("No module named 'numba'", name="numba")

    monkeypatch.setattr(machine_code_build, "twins", fail)
    monkeypatch.delenv("STORESCOPE_PLAIN", raising=False)
    assert main(["doctor", "--compile"]) == 3
    assert "needs the package numba: pip install storescope" in capsys.readouterr().err
