"""Commands that write where the disk takes no more end with one line that names a file, and leave nothing behind.

The walk needs no rights: a limit of the process refuses each byte of a file behind some position, as a full disk does.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from handmade_stores import healthy

SCRIPT = """
import io, json, os, resource, sys
from contextlib import redirect_stdout
from pathlib import Path
from engine.cli.main import build_parser, main

folder = Path(sys.argv[1])
with redirect_stdout(io.StringIO()):
    build_parser()
    main(["repair", "broken", "--quiet"])  # whatever is loaded now is not loaded by each command
results = []
for limit, arguments in json.loads(sys.argv[2]):
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        os.close(reading)
        os.dup2(writing, 2)
        sys.stderr = open(2, "w", buffering=1, closefd=False)
        sys.stdout = open(os.devnull, "w")
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        os._exit(main(arguments))
    os.close(writing)
    with open(reading, encoding="utf-8") as errors:
        text = errors.read()
    results.append((os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), text, sorted(os.listdir(folder))))
print(json.dumps(results))
"""
COMMANDS: dict[str, tuple[int, list[str]]] = {
    "dispatch": (1_000, ["dispatch", "store", "--to", "new"]),
    "dispatch in place": (1_000, ["dispatch", "store", "--yes"]),
    "copy": (100, ["copy", "store", "new"]),
    "snapshot": (1_000, ["snapshot", "store", "new"]),
    "repair": (10_000, ["repair", "broken", "--to", "new"]),
    "recover": (100, ["recover", "broken", "--apply", "--yes"]),
    "capsule": (100, ["capsule", "store", "-o", "new"]),
    "put": (0, ["put", "store", "--topic", "Orders", "--queue", "0", "--body", "text", "--yes"]),
    "serve": (0, ["serve", "store", "--port", "0", "--namesrv-port", "0"]),
}
"""Each command with the number of bytes that a file may have."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("full-disk")
    healthy().write(folder / "store")
    broken = healthy().write(folder / "broken")
    with (broken / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(300)
        file.write(bytes(40))
    (broken / "config").mkdir()
    (broken / "config" / "consumerOffset.json").write_text('{"offsetTable": {' + " " * 20_000 + "}}")
    jobs = [(limit, [*arguments, "--quiet"]) for limit, arguments in COMMANDS.values()]
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, folder, json.dumps(jobs)],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    return dict(zip(COMMANDS, json.loads(process.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_disk_that_takes_no_more_is_one_line_with_the_file(results: dict[str, Any], command: str) -> None:
    """snapshot, repair and recover said that a file is too large, and not which one."""
    status, errors, names = results[command]
    assert (status, names) == (3, ["broken", "store"])
    *_, line = errors.splitlines()
    reason = "no new file of the commit log" if command == "copy" else "File too large"
    assert re.fullmatch(rf"storescope: \S+: .*{reason}.*", line)
    assert "Traceback" not in errors
