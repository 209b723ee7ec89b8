"""Commands answer on other systems as here: ``STORESCOPE_SYSTEM`` lets them use what is used there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from engine.inspection.samples import sample

COMMANDS = """
import contextlib, io, sys
from pathlib import Path
from engine import system
from engine.cli.main import main

good, damaged, target = sys.argv[1:]
for words in (
    ["info", good], ["check", damaged], ["trace", good, "Orders", "O-1042"], ["where", good, "Orders/0/0"],
    ["repair", damaged, "--to", target + "/repaired"], ["snapshot", good, target + "/copy"],
):
    print(words[0], main([*words]))
with contextlib.redirect_stdout(io.StringIO()):
    assert main(["put", target + "/new", "--topic", "T", "--body", "x", "--quiet"]) == 0
print("system", system.NAME)
"""


def answers(name: str, folder, stores) -> tuple[list[str], dict[str, bytes]]:
    """Return what the commands print, and the files of the stores that they wrote, as on the system ``name``."""
    folder.mkdir()
    environment = {**os.environ, "STORESCOPE_SYSTEM": name, "COLUMNS": "200"}
    command = [sys.executable, "-c", COMMANDS, *map(str, stores), str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    lines = done.stdout.replace(str(folder), "TARGET").splitlines()
    assert lines[-1:] == [f"system {name or 'linux'}"], done.stderr
    files = {
        str(path.relative_to(folder)): path.read_bytes()
        for part in ("repaired", "copy")
        for path in (folder / part).rglob("*")
        if path.is_file() and path.suffix != ".json" and path.name != "abort"
    }
    assert len(files) > 50
    return [line for line in lines[:-1] if "SHA" not in line], files


@pytest.mark.skipif(sys.platform != "linux", reason="compares with Linux")
@pytest.mark.full_form(keep=1)
@pytest.mark.parametrize("name", ["win32", "darwin"])
def test_commands_answer_and_write_on_another_system_as_on_linux(name, tmp_path):
    stores = [sample(store, tmp_path / "cache") for store in ("orders", "orders-damaged")]
    assert answers(name, tmp_path / name, stores) == answers("", tmp_path / "linux", stores)
