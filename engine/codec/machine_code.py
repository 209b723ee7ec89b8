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
from typing import Any, NamedTuple, cast

import numpy as np

from engine.codec import compiled_cache

INT, TABLE = "int", "table"
"""Kinds of parameters: a whole number of 64 bits; what ``TopicTable.table`` gives. Others are arrays of that type."""
TABLE_WORDS = 9
FULL, STOPPED, GROW_TOPICS = 0, 1, 2
"""Why ``read_and_scan`` ended: no row is left, something that is no unit, the topics' table must grow."""
NO_TAGS, WITH_TAGS, MARKED_TAGS = 0, 1, 2
"""What ``key_hashes`` does with tags: nothing, an entry as for keys, or one whose row number is inverted."""
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
        Function("key_hashes", (_I, _I, _I, _I, _I4, _I8, _I4, _U4, _I4, _I4, _I, _I), 2),
        Function("find_candidate", (_I,) * 5, 1),
    ),
    "compiled_chains": (Function("chains", (_I, _I4, _I4, *(_I,) * 7, _U1, _I8, _I8, _I8, _I, _U1), 2),),
    "compiled_dispatch": (
        Function("group_rows", (_I4, _I4, _I4, _I8, _I8, _I4, _I, _I, _I4, _I4, _I4, _I4, _I8, "bool", _I8, _I8), 2),
        Function("scatter_rows", (_I8, _I8, _I4, _I8, _I, _I, _I4, _I8, _I, _I4, _I8, _I8, _I), 0),
        Function("chain_entries", (_I, _I, _I, _I, _I, _I4, _I8, _I8), 1),
    ),
    "compiled_put": (Function("put_one", (_I, _I), 1), Function("put_many", (_I, _I), 1)),
    "compiled_texts": (
        Function("property_values", (_I, _I, _I8, _I4, _I, _I, _I8, _I4), 0),
        Function("ask", _ASKED, 0),
        Function("ask_keys", _ASKED, 0),
        Function("read_numbers", (_I, _I8, _I4, _I8, "int8"), 0),
        Function("compare", (_I, _I8, _I4, _I, _I, "int8", "bool"), 0),
        Function("judge_pairs", (_I8, _I4, _I, "int64:2", "int8"), 0),
    ),
}
"""By the name of their module."""


class Code(NamedTuple):
    """Object code of one function, and the symbol by which it is found in it."""

    symbol: str
    data: bytes


class Twins:
    """The functions of one module. Each of them keeps its code in memory, whoever holds it."""

    def __init__(self, module: str, codes: Iterable[Code]) -> None:
        self._placed: dict[str, tuple[int, object]] = {}
        self._entries: dict[str, _Entry] = {}
        for function, code in zip(FUNCTIONS[module], codes, strict=True):
            address, keeper = self._placed[function.name] = _placed(code)
            setattr(self, function.name, _callable(function, address, keeper))

    def bound(self, name: str, sheet: array[int]) -> Callable[[Any], Any]:
        """A builtin of one argument: the function ``name`` of two numbers, called with the address of ``sheet``'s
        numbers and that of the argument; what it gives is the address of the object that is given back.

        The interpreter's lock is held. A call takes 40 ns, where one through ctypes takes 400.
        """
        entry = self._entries.get(name)
        if entry is None:
            # Two threads may come at once: one entry wins for both. A builtin of the other would outlive its code.
            entry = self._entries.setdefault(name, _Entry(name, *self._placed[name]))
        return entry.bound(sheet)

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


class _MethodDef(ctypes.Structure):
    """C's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("call", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_ONE_ARGUMENT = 0x0008  # METH_O
_NEW_BUILTIN = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)


class _Entry:
    """A few instructions between the interpreter's way of calling a builtin and that of machine code at ``face``.

    One for a function, whatever it is bound to: the words that it hands over are of one call, under the interpreter's
    lock. Kept for good: a builtin outlives whoever bound it.
    """

    def __init__(self, name: str, face: int, keeper: object) -> None:
        import llvmlite.binding as llvm
        from llvmlite import ir

        self._words = array("q", (0, 0, 0, 0, 0))  # two arguments, the result, and two that numba's convention wants
        at = self._words.buffer_info()[0]
        number = ir.IntType(64)
        made = ir.Module()
        made.triple = llvm.get_process_triple()
        call = ir.Function(made, ir.FunctionType(number, (number, number)), name="call")
        build = ir.IRBuilder(call.append_basic_block())
        sheet, argument, result = (
            build.inttoptr(ir.Constant(number, at + 8 * word), number.as_pointer()) for word in range(3)
        )
        numbers = build.add(call.args[0], ir.Constant(number, _numbers_place()))
        build.store(build.load(build.inttoptr(numbers, number.as_pointer())), sheet)
        build.store(call.args[1], argument)
        build.store(ir.Constant(number, 0), result)
        convention = ir.FunctionType(ir.IntType(32), (number, number, number)).as_pointer()
        code = build.inttoptr(ir.Constant(number, face), convention)
        build.call(code, [ir.Constant(number, at + 24), ir.Constant(number, at + 32), ir.Constant(number, at)])
        build.ret(build.load(result))
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(str(made)), machine())
        self._engine.finalize_object()
        self._keeper = keeper
        self._told = _MethodDef(name.encode(), self._engine.get_function_address("call"), _ONE_ARGUMENT, None)

    def bound(self, sheet: array[int]) -> Callable[[Any], Any]:
        """See :meth:`Twins.bound`."""
        new = _NEW_BUILTIN(("PyCFunction_NewEx", ctypes.pythonapi))
        return cast("Callable[[Any], Any]", new(ctypes.addressof(self._told), sheet, None))


def _numbers_place() -> int:
    """Where in an array object the address of its numbers stands, in bytes. Raises ``ValueError``."""
    known = array("q", (1, 2, 3))
    words = [ctypes.c_int64.from_address(id(known) + at).value for at in range(0, array.__basicsize__, 8)]
    return 8 * words.index(known.buffer_info()[0])


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
    arrays = [
        (number, np.dtype(kind.partition(":")[0])) for number, kind in enumerate(parameters) if kind not in (INT, TABLE)
    ]
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
