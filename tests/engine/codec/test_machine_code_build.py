"""Compiling the twins: the code needs nothing of numba at run time, and a failure is reported."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from numba import njit

from engine.codec import machine_code, machine_code_build
from engine.codec.machine_code import INT, TABLE, TABLE_WORDS, Function, Twins
from engine.codec.machine_code_build import _compile, import_compiled


@njit
def spread(start, target, table, shape, end_value):
    total = start + end_value
    for row in range(shape.shape[0]):
        for column in range(shape.shape[1]):
            total += shape[row, column]
    for position in range(target.shape[0]):
        target[position] += table[position]
    return total, table[8]


def test_arguments_of_every_kind_arrive_at_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    np = pytest.importorskip("numpy")
    function = Function("spread", (INT, "int64", TABLE, "int64:2", INT), 2)
    monkeypatch.setitem(machine_code.FUNCTIONS, "made", (function,))
    twins = Twins("made", [_compile(function, spread)])
    zeros, shape = np.zeros(3, np.int64), np.arange(6, dtype=np.int64).reshape(3, 2)
    assert twins.spread(100, zeros, tuple(range(TABLE_WORDS)), shape, -1) == (114, 8)
    assert zeros.tolist() == [0, 1, 2]


@njit
def asks(number):
    return len([number, number])


def test_code_that_needs_more_than_the_c_library_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"expected asks to need nothing of numba's, found .*NRT"):
        _compile(Function("asks", (INT,), 1), asks)


def test_concurrent_requests_compile_each_module_once_and_one_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a fresh cache a window reported "compiled code is not available, plain Python is used: generator already
    executing". Two threads had started compiling at once, which numba does not support.
    """
    threads, busy, compiled = 6, threading.Lock(), []

    def work(module: str) -> Twins:
        assert busy.acquire(blocking=False), "two threads compile at once"
        time.sleep(0.02)
        compiled.append(module)
        busy.release()
        return Twins(module, ())

    monkeypatch.setattr(machine_code_build, "_loaded", {})
    monkeypatch.setattr(machine_code_build, "load", lambda _module: None)
    monkeypatch.setattr(machine_code_build, "build", work)
    monkeypatch.setattr(machine_code_build.importlib, "import_module", work)
    for module in ("one", "other"):
        monkeypatch.setitem(machine_code.FUNCTIONS, module, ())
    monkeypatch.setitem(machine_code.FUNCTIONS, "engine.codec.third", ())
    start = threading.Barrier(threads)

    def ask(number: int) -> object:
        start.wait()
        return import_compiled("third") if number % 3 == 2 else machine_code_build.twins(("one", "other")[number % 3])

    with ThreadPoolExecutor(threads) as pool:
        answers = list(pool.map(ask, range(threads)))
    assert sorted(name for name in compiled if name != "engine.codec.third") == ["one", "other"]
    assert answers[0] is answers[3]
    assert answers[1] is answers[4]


def test_listeners_are_notified_of_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[bool] = []
    monkeypatch.setattr(machine_code_build, "on_compiling", events.append)
    monkeypatch.setattr(machine_code_build, "import_compiled", lambda _module: events.append("compile"))
    monkeypatch.setitem(machine_code.FUNCTIONS, "made", ())
    monkeypatch.setattr(machine_code_build.compiled_cache, "save", lambda *_arguments: None)
    machine_code_build.build("made")
    assert events == [True, "compile", False]
