"""Twins compiled behind faces: code that asks for nothing of numba's, and a failure that is told."""

from __future__ import annotations

import pytest
from numba import njit

from engine.codec import machine_code
from engine.codec.machine_code import INT, TABLE, TABLE_WORDS, Function, Twins
from engine.codec.machine_code_build import _compile


@njit
def spread(first, given, table, shape, last):
    total = first + last
    for row in range(shape.shape[0]):
        for column in range(shape.shape[1]):
            total += shape[row, column]
    for at in range(given.shape[0]):
        given[at] += table[at]
    return total, table[8]


def test_arguments_of_every_kind_arrive_at_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    np = pytest.importorskip("numpy")
    function = Function("spread", (INT, "int64", TABLE, "int64:2", INT), 2)
    monkeypatch.setitem(machine_code.FUNCTIONS, "made", (function,))
    twins = Twins("made", [_compile(function, spread)])
    given, shape = np.zeros(3, np.int64), np.arange(6, dtype=np.int64).reshape(3, 2)
    assert twins.spread(100, given, tuple(range(TABLE_WORDS)), shape, -1) == (114, 8)
    assert given.tolist() == [0, 1, 2]


@njit
def asks(number):
    return len([number, number])


def test_code_that_needs_more_than_the_c_library_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"expected asks to need nothing of numba's, found .*NRT"):
        _compile(Function("asks", (INT,), 1), asks)
