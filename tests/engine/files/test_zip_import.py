"""Modules are loaded from a zip, under names of files that represent them and are never run."""

from __future__ import annotations

import subprocess
import sys
import zipfile

PROGRAM = """
import sys, zipfile
from pathlib import Path
sys.path.insert(0, {root!r})
from engine.files.zip_import import ZipFinder
found = ZipFinder({archive!r}, Path({folder!r})).find_spec("engine.made_up", None)
import importlib.util
module = importlib.util.module_from_spec(found)
sys.modules["engine.made_up"] = module
found.loader.exec_module(module)
print(module.VALUE, module.__file__)
print(ZipFinder({archive!r}, Path({folder!r})).find_spec("json", None))
"""


def run(tmp_path, root):
    code = PROGRAM.format(root=str(root), archive=str(tmp_path / "engine.zip"), folder=str(tmp_path / "cache"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines()


def test_the_zip_s_code_runs_whatever_lies_in_the_cache(tmp_path, pytestconfig):
    with zipfile.ZipFile(tmp_path / "engine.zip", "w") as packed:
        packed.writestr("engine/made_up.py", "VALUE = 'from the zip'\n")
    value, none = run(tmp_path, pytestconfig.rootpath)
    file = tmp_path / "cache" / "engine" / "made_up.py"
    assert (value, none) == (f"from the zip {file}", "None")
    assert file.read_text() == "VALUE = 'from the zip'\n"
    file.write_text("VALUE = 'somebody s'   \n"[: file.stat().st_size])
    assert run(tmp_path, pytestconfig.rootpath)[0] == f"from the zip {file}"
