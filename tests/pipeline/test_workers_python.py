"""The Python of the processes that Spark starts must be able to run tasks."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from engine.pipeline import workers_python
from engine.pipeline.java import CannotStart


def python(tmp_path, lines):
    path = tmp_path / "python3"
    path.write_text("#!/bin/sh\n" + lines)
    path.chmod(0o755)
    return str(path)


def check_workers_python_named(name):
    context = SimpleNamespace(pythonExec=name, pythonVer=f"{sys.version_info[0]}.{sys.version_info[1]}")
    workers_python.check_workers_python(SimpleNamespace(sparkContext=context))


def test_workers_with_another_python_are_an_error(tmp_path):
    """The first ``load`` died in a worker: ``ModuleNotFoundError: No module named 'engine'``."""
    remedy = f"set PYSPARK_PYTHON={sys.executable} before the session begins"
    check_workers_python_named(sys.executable)
    for name, why in (
        (str(tmp_path / "none"), "which does not exist"),
        (python(tmp_path, "exit 1"), "which does not run"),
    ):
        with pytest.raises(CannotStart, match=f"{name}.*{why}: {remedy}"):
            check_workers_python_named(name)
    with pytest.raises(CannotStart, match=f"a Python 3.9, and this is 3.*: {remedy}"):
        check_workers_python_named(python(tmp_path, "echo 3.9; echo"))
    text = f"{sys.version_info[0]}.{sys.version_info[1]}"
    with pytest.raises(CannotStart, match=f"which lacks engine.pipeline, numpy: {remedy}"):
        check_workers_python_named(python(tmp_path, f"echo {text}; echo engine.pipeline, numpy"))
    check_workers_python_named(python(tmp_path, f'exec "{sys.executable}" "$@"'))
