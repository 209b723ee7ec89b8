"""Saved machine code: another process loads it without numba, and only if it was made for this machine."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from array import array

import numpy as np
import pytest

from engine.codec import compiled_cache, machine_code
from engine.codec.machine_code import FUNCTIONS, INT, file_name_of, load
from engine.codec.machine_code_build import twins

WITHOUT_NUMBA = """
import sys
from engine.cli.main import main
code = main(sys.argv[1:])
assert "numba" not in sys.modules, "numba was loaded"
sys.exit(code)
"""


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Code of ``compiled_texts`` in a folder of this test."""
    twins("compiled_texts")
    content = compiled_cache.read_saved(file_name_of("compiled_texts"))
    monkeypatch.setattr(compiled_cache, "folder", lambda: tmp_path)
    compiled_cache.save(file_name_of("compiled_texts"), content)
    return tmp_path / file_name_of("compiled_texts")


@pytest.mark.parametrize(
    "command",
    [("check", "--quiet"), ("units", "--where", "keys contains '1'"), ("where", "K1"), ("info",)],
    ids=lambda command: command[0],
)
def test_reading_a_store_loads_no_numba(golden, command):
    for module in FUNCTIONS:
        twins(module)
    words = [command[0], str(golden("broker-orders")), *command[1:]]
    done = subprocess.run([sys.executable, "-c", WITHOUT_NUMBA, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1), done.stderr


def test_saved_code_is_loaded_unchanged(elsewhere):
    actual_load = load("compiled_texts")
    assert actual_load is not None
    texts = np.frombuffer(b"12 -7x", np.uint8).copy()
    values, states = np.zeros(2, np.int64), np.zeros(2, np.int8)
    actual_load.read_numbers(texts.ctypes.data, np.array([0, 3]), np.array([2, 3], np.int32), values, states)
    assert (values[0], states.tolist()) == (12, [0, 1])


@pytest.mark.parametrize("harm", ["cut", "changed", "another machine", "no code", "gone"])
def test_damaged_code_and_code_for_another_machine_are_not_loaded(elsewhere, harm):
    head, _, data = elsewhere.read_bytes().partition(b"\n")
    if harm == "cut":
        elsewhere.write_bytes(head + b"\n" + data[:-1])
    elif harm == "changed":
        elsewhere.write_bytes(head + b"\n" + bytes([data[0] ^ 1]) + data[1:])
    elif harm == "another machine":
        record = json.loads(head)
        record["for"][2] = "another"
        elsewhere.write_bytes(json.dumps(record).encode() + b"\n" + data)
    elif harm == "no code":
        elsewhere.write_bytes(b"\0" * 100)
    else:
        elsewhere.unlink()
    assert load("compiled_texts") is None


def test_an_array_of_another_type_or_with_gaps_is_an_error_and_never_a_wrong_address():
    actual_twins = twins("compiled_texts")
    starts, sizes = np.zeros(4, np.int64), np.zeros(4, np.int32)
    values, states = np.zeros(4, np.int64), np.zeros(4, np.int8)
    with pytest.raises(TypeError, match="int32"):
        actual_twins.read_numbers(0, starts, sizes.astype(np.int64), values, states)
    with pytest.raises(TypeError, match="in one piece"):
        actual_twins.read_numbers(0, starts[::2], sizes, values, states)


def test_every_function_declares_the_types_of_its_parameters():
    for module, functions in FUNCTIONS.items():
        source = __import__(f"engine.codec.{module}", fromlist=["x"])
        for function in functions:
            code = getattr(source, function.name).py_func.__code__
            assert code.co_argcount == len(function.parameters), function.name
            assert set(function.parameters) - {INT, "table"} <= {
                "int8",
                "int32",
                "int64",
                "int64:2",
                "uint8",
                "uint32",
                "bool",
            }


def test_threads_that_bind_a_function_at_once_share_one_entry(monkeypatch):
    """Two threads that put the first message at once each made an entry. The overwritten entry was freed while a
    builtin still used it, and sometimes the process crashed.
    """
    entries = []

    class SlowEntry:
        def __init__(self, *_words):
            time.sleep(0.05)

        def bound(self, _sheet):
            entries.append(self)

    monkeypatch.setattr(machine_code, "_Entry", SlowEntry)
    code = twins("compiled_put")
    monkeypatch.setattr(code, "_entries", {})
    threads = [threading.Thread(target=code.bound, args=("put_one", array("q", (0,)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(entries) == 8
    assert len({id(entry) for entry in entries}) == 1
