"""Machine code of the compiled twins as it is kept from one process to the next, loaded without numba.

numba keeps machine code, too, but only numba finds it again: an import of half a second, and 60 MiB of a compiler that
compiles nothing. So each function of :data:`FUNCTIONS` is also compiled behind a face of its own
(:mod:`engine.codec.machine_code_build`): it takes the address of a row of 64-bit words, its arguments, and writes its
results behind them. Such code needs LLVM's loader and nothing else.

A file of code is for one state of the twins' sources, one release of LLVM and one processor; it says so in its first
line, together with the digest of the rest: whatever differs is not loaded.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.codec import compiled_cache

INT, TABLE = "int", "table"
"""Kinds of parameters: a whole number of 64 bits; what ``TopicTable.table`` gives. Others are arrays of that type."""
TABLE_WORDS = 9
FULL, STOPPED, GROW_TOPICS = 0, 1, 2
"""Why ``read_and_scan`` ended: no row is left, something that is no unit, the topics' table must grow."""
PATCH = -(1 << 63)
"""A tags code that only Python can tell."""


class Function(NamedTuple):
    """What a compiled twin takes and gives: a kind for each parameter, and how many whole numbers come back."""

    name: str
    parameters: tuple[str, ...]
    results: int


_I, _I4, _I8, _U1, _U4 = INT, "int32", "int64", "uint8", "uint32"
_ASKED = (_I, _I, _I8, _I4, _I, _I, _I, _I, _I, "int8")
FUNCTIONS: dict[str, tuple[Function, ...]] = {
    "compiled": (
        Function("read_and_scan", (*(_I,) * 8, _I8, _I, _I, TABLE, _I8, _I), 5),
        Function("key_hashes", (_I, _I, _I, _I, _I4, _I8, _I4, _U4, _I4, _I4, _I), 2),
        Function("find_candidate", (_I,) * 5, 1),
    ),
    "compiled_chains": (
        Function("chains", (_I, _I4, _I4, *(_I,) * 7, _U1, _I8, _I8, _I8, _I, _U1), 2),
    ),
    "compiled_dispatch": (
        Function(
            "group_rows", (_I4, _I4, _I4, _I8, _I8, _I4, _I, _I, _I4, _I4, _I4, _I4, _I8, "bool", _I8, _I8), 2
        ),
        Function("scatter_rows", (_I8, _I8, _I4, _I8, _I, _I, _I4, _I8, _I, _I4, _I8, _I8, _I), 0),
        Function("chain_entries", (_I, _I, _I, _I, _I, _I4, _I8, _I8), 1),
    ),
    "compiled_texts": (
        Function("property_values", (_I, _I, _I8, _I4, _I, _I, _I8, _I4), 0),
        Function("ask", _ASKED, 0),
        Function("ask_keys", _ASKED, 0),
        Function("read_numbers", (_I, _I8, _I4, _I8, "int8"), 0),
        Function("compare", (_I, _I8, _I4, _I, _I, "int8", "bool"), 0),
        Function("judge_pairs", (_I8, _I4, _I, "int64:2", "int8"), 0),
    ),
}  # fmt: skip
"""By the name of their module."""


class Code(NamedTuple):
    """Object code of one function, and the symbol by which it is found in it."""

    symbol: str
    data: bytes


class Twins:
    """The functions of one module. Each of them keeps its code in memory, whoever holds it."""

    def __init__(self, module: str, codes: Iterable[Code]) -> None:
        for function, code in zip(FUNCTIONS[module], codes, strict=True):
            setattr(self, function.name, _callable(function, *_placed(code)))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(name)


def _placed(code: Code) -> tuple[int, object]:
    """The address of a function whose code is put into memory, and what keeps it there."""
    import llvmlite.binding as llvm

    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code.data))
    engine.finalize_object()
    address = engine.get_function_address(code.symbol)
    if not address:
        raise LookupError(f"expected the function {code.symbol} in its machine code, found none")
    return int(address), engine


def load(module: str) -> Twins | None:
    """The functions of ``module`` from the user's cache; None where no code for this machine and these sources is
    there. Raises ``OSError``, and what LLVM raises.
    """
    kept = compiled_cache.kept(name_of(module))
    codes = None if kept is None else taken_apart(kept)
    return None if codes is None else Twins(module, codes)


def name_of(module: str) -> str:
    """The name by which the code of ``module`` for this machine is kept."""
    words = "\n".join((module, *_made_for()))
    return f"{module}-{hashlib.sha256(words.encode()).hexdigest()[:16]}.code"


def put_together(codes: Sequence[Code]) -> bytes:
    """Code as it is kept: a line of JSON, then the object code of the functions one behind the other."""
    data = b"".join(code.data for code in codes)
    head = {
        "for": _made_for(),
        "sha256": hashlib.sha256(data).hexdigest(),
        "functions": [[code.symbol, len(code.data)] for code in codes],
    }
    return json.dumps(head).encode() + b"\n" + data


def taken_apart(kept: bytes) -> list[Code] | None:
    """The functions in what :func:`put_together` made; None where it is not whole, or for another machine."""
    head, _, data = kept.partition(b"\n")
    try:
        told = json.loads(head)
        if told["for"] != _made_for() or told["sha256"] != hashlib.sha256(data).hexdigest():
            return None
        codes, at = [], 0
        for symbol, size in told["functions"]:
            codes.append(Code(symbol, data[at : at + size]))
            at += size
    except (ValueError, KeyError, TypeError):  # cut or changed: it is made again
        return None
    return codes


def _made_for() -> list[str]:
    """What machine code must have been made for to run here."""
    import llvmlite
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    return [str(llvmlite.__version__), llvm.get_process_triple(), llvm.get_host_cpu_name(), features]


def machine(features: str = "") -> Any:
    """LLVM's machine for code that runs in this process; with the ``features`` that code may be made for."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu = llvm.get_host_cpu_name()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="static", jit=True
    )


def _callable(function: Function, address: int, keeper: object) -> Callable[..., Any]:
    """A function of Python's that puts its arguments into a row of words and has the code at ``address`` read them;
    ``keeper`` keeps that in memory and lives as long as the function does.

    Arrays go by address and length: each must have the type that the code was made for, without gaps. The
    interpreter goes on meanwhile, as with numba's ``nogil``.
    """
    # numba's own convention: where a result goes (nothing does), where an error would be told, then the parameters
    call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)
    name, parameters, results = function
    arrays = [(number, np.dtype(kind.partition(":")[0])) for number, kind in enumerate(parameters)
              if kind not in (INT, TABLE)]  # fmt: skip
    tables = [number for number, kind in enumerate(parameters) if kind == TABLE]
    empty = [0] * results

    def run(*given: Any) -> Any:
        words: list[Any] = [*given]
        for number, kind in arrays:
            one = given[number]
            if one.dtype != kind or not one.flags.c_contiguous:
                raise TypeError(f"expected an array of {kind} in one piece as parameter {number} of {name}")
            words[number] = one.ctypes.data
            words.append(len(one))
        for number in tables:
            words[number] = 0
            words += given[number]
        sheet = array("q", [*words, *empty, 0, 0])
        at = sheet.buffer_info()[0]
        if call(at + 8 * len(sheet) - 16, at + 8 * len(sheet) - 8, at):
            raise ArithmeticError(f"machine code of {name} ended early")
        if results == 1:
            return sheet[-3]
        return tuple(sheet[-2 - results : -2]) if results else None

    run.__name__, run.keeper = name, keeper  # type: ignore[attr-defined]
    return run
