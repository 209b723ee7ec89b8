"""What an installation has and lacks, on machines that lack something."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from engine import system
from engine.cli import installation
from engine.cli.installation import Component, components
from engine.extras import PACKAGES


@pytest.fixture(autouse=True)
def no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "_window", lambda: iter(()))


def of(group: str, store: Path | None = None) -> dict[str, Component]:
    return {component.name: component for component in components(store) if component.group == group}


def test_every_package_is_listed_with_its_version() -> None:
    listed = {component.name: component for component in components(None) if component.value}
    for package in PACKAGES:
        assert listed[package.name].state == "ok"
        assert listed[package.name].value[0].isdigit()  # type: ignore[index]


def test_a_missing_package_has_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "_is_installed", lambda module: module not in {"lz4", "numba"})
    assert of("extra codecs")["lz4"].fix == "pip install 'storescope[codecs]'"
    assert of("extra codecs")["lz4"].state == "missing"
    assert of("packages")["numba"] == Component(
        "packages", "numba", "problem", "for machine code: scans and puts at full speed", "pip install storescope"
    )


def test_a_machine_without_java_is_told_what_spark_needs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    java = of("Java")["Java"]
    assert java.state == "missing"
    assert "which has no Java that runs" in str(java.value)


def test_few_open_files_are_reported_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "descriptor_limit", lambda: (256, 1 << 20))
    limit = of("limits")["open files"]
    assert (limit.state, limit.fix) == ("missing", "ulimit -n 65536")


def test_files_with_holes_show_that_the_file_system_can_have_them(tmp_path: Path) -> None:
    folder = tmp_path / "commitlog"
    folder.mkdir()
    with (folder / ("0" * 20)).open("wb") as file:
        file.truncate(1 << 20)
    parts = of("file system", tmp_path)
    assert parts["sparse files"].value == "yes: 1 of 1 files in commitlog/ have holes"
    assert " of " in str(parts["free"].value)
    assert parts["type"].value


def test_a_store_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    (part,) = of("file system", tmp_path / "none").values()
    assert part.state == "problem"


def test_a_window_that_ends_in_an_abort_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()

    def aborted(words: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(words, -6, "", "Aborted")

    monkeypatch.setattr(installation.subprocess, "run", aborted)
    (window,) = installation._window()
    assert (window.name, window.state) == ("Qt", "problem")
