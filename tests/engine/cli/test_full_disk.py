"""Commands that write into a file system without a free page end with one line, and leave nothing behind."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from handmade_stores import healthy

UNSHARE = ("unshare", "--map-root-user", "--mount")
SCRIPT = """
import json, os, subprocess, sys
from contextlib import suppress
from pathlib import Path
from engine.cli.main import main

folder = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], check=True)
with open(folder / "fill", "wb", buffering=0) as file, suppress(OSError):
    while file.write(bytes(4096)) == 4096:
        pass
results = {}
for name, arguments in json.loads(sys.argv[2]).items():
    process = os.fork()
    if not process:
        errors = os.open(sys.argv[3], os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        sys.stderr = open(errors, "w", buffering=1)
        sys.stdout = open(os.devnull, "w")
        os._exit(main(arguments))
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    results[name] = status, Path(sys.argv[3]).read_text(), sorted(os.listdir(folder))
print(json.dumps(results))
"""


def is_allowed() -> bool:
    """Return True if a user may mount a file system of his own here."""
    try:
        return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("full-disk")
    store, full = healthy().write(folder / "store"), folder / "full"
    broken = healthy().write(folder / "broken")
    with (broken / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(300)
        file.write(bytes(40))
    full.mkdir()
    commands = {
        "dispatch": ["dispatch", store, "--to", full / "new", "--quiet"],
        "copy": ["copy", store, full / "new", "--quiet"],
        "snapshot": ["snapshot", store, full / "new", "--quiet"],
        "repair": ["repair", broken, "--to", full / "new", "--quiet"],
        "capsule": ["capsule", store, "-o", full / "new", "--quiet"],
    }
    texts = json.dumps({name: list(map(str, arguments)) for name, arguments in commands.items()})
    process = subprocess.run(
        [*UNSHARE, sys.executable, "-c", SCRIPT, full, texts, folder / "errors"],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(process.stdout.splitlines()[-1]))


@pytest.mark.skipif(not is_allowed(), reason="needs a mount of its own")
@pytest.mark.parametrize("command", ["dispatch", "copy", "snapshot", "repair", "capsule"])
def test_a_full_tmpfs_is_one_line(results: dict[str, Any], command: str) -> None:
    """dispatch --to ended by SIGBUS: it read the header of a new index file, which had no blocks, through the map."""
    status, errors, names = results[command]
    assert (status, names) == (3, ["fill"])
    (line,) = (line for line in errors.splitlines() if line.startswith("storescope: "))
    assert "No space left on device" in line or "0 bytes are free" in line
    assert "Traceback" not in errors
