"""A package that is not installed is named with the line that installs it, by every command that needs it."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from golden_stores import GoldenStores
from raw_units import raw_unit

from engine.extras import PACKAGES, install_line, line_of

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NOT_FOR_USERS = {"all", "test", "dev"}
MODULES_OF_ALL = {"shiboken6", "google", *(package.module for package in PACKAGES)} - {"numpy", "platformdirs"}
"""What a bare installation may lack: numpy and platformdirs come first, nothing works without them."""

DECODERS = {
    "MessagePack": {"decoder": "msgpack"},
    "CBOR": {"decoder": "cbor"},
    "Protobuf": {"decoder": "protobuf", "descriptorSet": "file", "messageType": "a.B"},
    "Avro": {"decoder": "avro", "schema": "file"},
}
CASES = {
    # First: it is reported once in a process.
    "machine code": (["check", "{store}"], "compiled code is not available, plain Python is used", ""),
    "lz4": (["message", "{store}", "0"], "lz4 bodies need the package lz4", "codecs"),
    "zstd": (["message", "{store}", "168"], "zstd bodies need the package zstandard", "codecs"),
    "searched": (
        ["units", "{store}", "--where", 'body contains "tea"'],
        "zstd bodies are not searched: they need the package zstandard",
        "codecs",
    ),
    "spark": (["pipeline", "stats", "{store}"], "Spark, which is not installed here", "spark"),
    "sql": (["sql", "{store}", "select 1"], "SQL needs the package duckdb", "sql"),
    "mcp": (["mcp", "{store}"], "mcp needs the package mcp", "mcp"),
    "metrics": (
        ["serve", "{store}-new", "--port", "0", "--metrics", "0"],
        "--metrics needs the package prometheus_client",
        "metrics",
    ),
    "rocksdb": (["info", "{rocks}"], "RocksDB is read with the package rocksdict", "rocksdb"),
    "rocksdb rows": (["rows", "{rocks}"], "RocksDB is read with the package rocksdict", "rocksdb"),
    **{
        name: (["units", "{store}", "--decoded", "--decode", f"{{{name}}}"], f"decoding {name} needs", "decoders")
        for name in DECODERS
    },
    "window": (["view", "{store}", "--screenshot", "{store}.png"], "the window needs the package PySide6", ""),
    "flipped bit": (["message", "{store}", "336"], "the search for flipped bits needs the package crcmod", ""),
}
"""Words of the command, what it says, and the extra that brings the package."""


@pytest.fixture(scope="module")
def answers(golden: GoldenStores, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str, str]]:
    """Return exit code, output and errors of each case, all in one process without the packages."""
    folder = tmp_path_factory.mktemp("bare")
    log = folder / "store" / "commitlog" / ("0" * 20)
    log.parent.mkdir(parents=True)
    units = [raw_unit(body=b"x" * 50, sys_flag=0x101), raw_unit(168, body=b"y" * 50, sys_flag=0x201)]
    units.append(raw_unit(336, body=b"z" * 50, body_crc=1))
    log.write_bytes(b"".join(units).ljust(1 << 16, b"\0"))
    places = {"store": str(folder / "store"), "rocks": str(golden("rocksdb-rows-5.5.1"))}
    (folder / "file").write_text('"string"', "utf-8")
    for name, rule in DECODERS.items():
        places[name] = str(folder / f"{name}.json")
        Path(places[name]).write_text(json.dumps({"rules": [{"topic": "*", **rule}]}), "utf-8")
    commands = {name: [word.format(**places) for word in words] for name, (words, _, _) in CASES.items()}
    script = ROOT / "tests/support/without_packages.py"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), ",".join(sorted(MODULES_OF_ALL))],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return {name: (code, out, err) for name, (code, out, err) in json.loads(done.stdout).items()}


def test_every_extra_has_a_case() -> None:
    assert {extra for _, _, extra in CASES.values()} == {"", *PROJECT["optional-dependencies"]} - NOT_FOR_USERS


@pytest.mark.parametrize("name", CASES)
def test_a_missing_package_is_named_with_the_line_that_installs_it(
    answers: dict[str, tuple[int, str, str]], name: str
) -> None:
    """A filter on bodies that nothing could unpack gave no message and no word: it looked as if there were none."""
    _, message, extra = CASES[name]
    code, output, errors = answers[name]
    text = " ".join((output + errors).split())
    assert message in text
    assert line_of(extra) in text
    assert "Traceback" not in text
    assert code in {0, 1, 2, 3}


def test_the_table_has_the_packages_of_the_project() -> None:
    def names(requirements: list[str]) -> set[str]:
        return {requirement.split(">")[0] for requirement in requirements}

    extras = PROJECT["optional-dependencies"]
    table = {package.name for package in PACKAGES if not package.extra}
    assert table == names(PROJECT["dependencies"])
    assert {package.name for package in PACKAGES if package.extra} == {
        name for extra, requirements in extras.items() if extra not in NOT_FOR_USERS for name in names(requirements)
    }
    for package in PACKAGES:
        assert not package.extra or package.name in names(extras[package.extra])


def test_the_line_of_a_module_is_that_of_its_package() -> None:
    assert install_line("google.protobuf.descriptor_pb2") == "pip install 'storescope[decoders]'"
    assert install_line("PySide6.QtWidgets") == "pip install storescope"
    assert install_line("pyarrow") == "pip install 'storescope[sql]'"


def test_a_package_that_an_archive_lacks_is_in_the_archive_with_the_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The small archive named ``pip install`` for SQL and the window. It has no pip, and its packages are fixed."""
    monkeypatch.setattr("sys.prefix", str(tmp_path / "python"))
    (tmp_path / "MANIFEST.txt").touch()
    assert line_of("sql") == line_of("") == "the archive with the window has it"
    assert line_of("spark") == "pip install 'storescope[spark]'"
