"""Load machine code of the compiled twins that an earlier process saved, without numba.

numba saves machine code too, but only numba can load it: that costs an import of half a second and 60 MiB of a
compiler that compiles nothing. So each function of :data:`FUNCTIONS` is also compiled with an entry function
(:mod:`engine.codec.machine_code_build`): it takes the address of a row of 64-bit words with its arguments, and
writes its results behind them. Such code needs only LLVM's loader.

A code file is for one state of the twins' sources, one release of LLVM and one processor. Its first line names
them, with the digest of the rest. A file that differs is not loaded. docs/architecture/machine-code.md explains the
whole.
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
"""Kinds of parameters: a whole number of 64 bits; the tuple of ``TopicTable.table``. Others are arrays of that type."""
TABLE_WORDS = 9
FULL, STOPPED, GROW_TOPICS = 0, 1, 2
"""Outcomes of ``read_and_scan``: no row is left, the next bytes are invalid, the topics' table must grow."""
NO_TAGS, WITH_TAGS, MARKED_TAGS = 0, 1, 2
"""Ways in which ``key_hashes`` treats tags: no entry, an entry as for keys, or one whose row number is inverted."""
PATCH = -(1 << 63)
"""Stands for a tags code that only Python can compute."""


class Function(NamedTuple):
    """The signature of a compiled twin: a kind for each parameter, and the number of whole numbers that it returns."""

    name: str
    parameters: tuple[str, ...]
    results: int


_I, _I4, _I8, _U1, _U4 = INT, "int32", "int64", "uint8", "uint32"
_ARGUMENT_TYPES = (_I, _I, _I8, _I4, _I, _I, _I, _I, _I, "int8")
FUNCTIONS: dict[str, tuple[Function, ...]] = {
    "compiled": (
        Function("read_and_scan", (*(_I,) * 8, _I8, _I, _I, TABLE, _I8, _I), 5),
        Function("key_hashes", (_I, _I, _I, _I, _I4, _I8, _I4, _U4, _I4, _I4, _I, _I), 2),
        Function("find_candidate", (_I,) * 5, 1),
    ),
    "compiled_chains": (Function("chains", (_I, _I4, _I4, *(_I,) * 7, _U1, _I8, _I8, _I8, _I, _U1), 2),),
    "compiled_copies": (
        Function("digest_pages", (_I, _I8), 0),
        Function("count_whole_rows", (_I8, _I, _I), 1),
    ),
    "compiled_dispatch": (
        Function("group_rows", (_I4, _I4, _I4, _I8, _I8, _I4, _I, _I, _I4, _I4, _I4, _I4, _I8, "bool", _I8, _I8), 2),
        Function("scatter_rows", (_I8, _I8, _I4, _I8, _I, _I, _I4, _I8, _I, _I4, _I8, _I8, _I), 0),
        Function("chain_entries", (_I, _I, _I, _I, _I, _I4, _I8, _I8), 1),
    ),
    "compiled_put": (Function("put_one", (_I, _I), 1), Function("put_many", (_I, _I), 1)),
    "compiled_search": (
        Function("search", (*(_I,) * 8, _I8, _I, TABLE, _I8, _I, _I, _I), 5),
        Function("runs", (_I, _I, _I8, _I, _U1, _I8), 1),
        Function("compare", (_I, _I, _I8, _I8, _I8, _I, _I, _I8), 0),
        Function("judge", (_I, _I, _I8, _I8, _I8, _U1), 0),
        Function("join", (*(_I8,) * 6, _I, _I, _I8), 0),
    ),
    "compiled_survey": (
        Function("survey", (*(_I,) * 8, _I8, _I, TABLE, *(_I8,) * 3, _I, *(_I8,) * 4, _I, *(_I8,) * 4, _I), 5),
    ),
    "compiled_texts": (
        Function("property_values", (_I, _I, _I8, _I4, _I, _I, _I8, _I4), 0),
        Function("ask", _ARGUMENT_TYPES, 0),
        Function("ask_keys", _ARGUMENT_TYPES, 0),
        Function("read_numbers", (_I, _I8, _I4, _I8, "int8"), 0),
        Function("compare", (_I, _I8, _I4, _I, _I, "int8", "bool"), 0),
        Function("zero_runs", (_I8, _I4, _I, _I, _I4), 1),
        Function("judge_pairs", (_I8, _I4, _I, "int64:2", "int8"), 0),
    ),
    "compiled_times": (
        Function(
            "add_units",
            (
                *(_I8, _I, _I, _I, _I8, _I4, _I8, _I8, _I4, _I4, _I8, _I4, _I8, "bool", _I, _I, _I, _I),
                *(_I4, _I8, _I8, _I8, _I4, _I8, _I8, _I8, _I8),
            ),
            1,
        ),
    ),
}
"""The functions of each module."""


class Code(NamedTuple):
    """Object code of one function, and the symbol under which it is found in it."""

    symbol: str
    data: bytes


class Twins:
    """The functions of one module. Each function keeps its code in memory."""

    def __init__(self, module: str, codes: Iterable[Code]) -> None:
        self._code_places: dict[str, tuple[int, object]] = {}
        self._entries: dict[str, _Entry] = {}
        for function, code in zip(FUNCTIONS[module], codes, strict=True):
            address, code_owner = self._code_places[function.name] = _load_code(code)
            setattr(self, function.name, _callable(function, address, code_owner))

    def bound(self, name: str, sheet: array[int]) -> Callable[[Any], Any]:
        """Return a builtin of one argument that calls the function ``name`` with two numbers: the address of
        ``sheet``'s numbers and the address of the argument. The function returns the address of the object to
        return.

        The interpreter's lock is held. A call takes 40 ns; one through ctypes takes 400.

        """
        entry = self._entries.get(name)
        if entry is None:
            # Two threads may come at once: both use the same entry. A builtin of another entry would outlive its code.
            entry = self._entries.setdefault(name, _Entry(name, *self._code_places[name]))
        return entry.bound(sheet)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(name)


def _load_code(code: Code) -> tuple[int, object]:
    """Load a function's code into memory; returns its address and the object that keeps it there."""
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
    """A few instructions that translate the interpreter's call of a builtin into a call of machine code at
    ``entry_address``.

    There is one per function, whatever it is bound to: its words belong to one call at a time, under the
    interpreter's lock. It is kept for good, because a builtin may outlive every other reference.
    """

    def __init__(self, name: str, entry_address: int, code_owner: object) -> None:
        import llvmlite.binding as llvm
        from llvmlite import ir

        self._words = array("q", (0, 0, 0, 0, 0))  # two arguments, the result, and two that numba's convention needs
        words_address = self._words.buffer_info()[0]
        number = ir.IntType(64)
        module = ir.Module()
        module.triple = llvm.get_process_triple()
        call = ir.Function(module, ir.FunctionType(number, (number, number)), name="call")
        build = ir.IRBuilder(call.append_basic_block())
        sheet, argument, result = (
            build.inttoptr(ir.Constant(number, words_address + 8 * word), number.as_pointer()) for word in range(3)
        )
        numbers = build.add(call.args[0], ir.Constant(number, _numbers_position()))
        build.store(build.load(build.inttoptr(numbers, number.as_pointer())), sheet)
        build.store(call.args[1], argument)
        build.store(ir.Constant(number, 0), result)
        convention = ir.FunctionType(ir.IntType(32), (number, number, number)).as_pointer()
        code = build.inttoptr(ir.Constant(number, entry_address), convention)
        build.call(
            code,
            [
                ir.Constant(number, words_address + 24),
                ir.Constant(number, words_address + 32),
                ir.Constant(number, words_address),
            ],
        )
        build.ret(build.load(result))
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(str(module)), machine())
        self._engine.finalize_object()
        self._code_owner = code_owner
        self._method_def = _MethodDef(name.encode(), self._engine.get_function_address("call"), _ONE_ARGUMENT, None)

    def bound(self, sheet: array[int]) -> Callable[[Any], Any]:
        """Implement :meth:`Twins.bound`."""
        new = _NEW_BUILTIN(("PyCFunction_NewEx", ctypes.pythonapi))
        return cast("Callable[[Any], Any]", new(ctypes.addressof(self._method_def), sheet, None))


def _numbers_position() -> int:
    """Return the position of the pointer to the numbers in an array object, in bytes. Raises ``ValueError``."""
    sample = array("q", (1, 2, 3))
    words = [ctypes.c_int64.from_address(id(sample) + position).value for position in range(0, array.__basicsize__, 8)]
    return 8 * words.index(sample.buffer_info()[0])


def load(module: str) -> Twins | None:
    """Load the functions of ``module`` from the user's cache; None if there is no code for this machine and these
    sources. Raises ``OSError``, and LLVM's exceptions.
    """
    content = compiled_cache.read_saved(file_name_of(module))
    codes = None if content is None else decode_codes(content)
    return None if codes is None else Twins(module, codes)


def file_name_of(module: str) -> str:
    """Return the name under which the code of ``module`` for this machine is saved."""
    words = "\n".join((module, *_machine_properties()))
    return f"{module}-{hashlib.sha256(words.encode()).hexdigest()[:16]}.code"


def encode_codes(codes: Sequence[Code]) -> bytes:
    """Return code as it is saved: a line of JSON, then the object code of the functions one behind the other."""
    data = b"".join(code.data for code in codes)
    header = {
        "for": _machine_properties(),
        "sha256": hashlib.sha256(data).hexdigest(),
        "functions": [[code.symbol, len(code.data)] for code in codes],
    }
    return json.dumps(header).encode() + b"\n" + data


def decode_codes(content: bytes) -> list[Code] | None:
    """Return the functions in the result of :func:`encode_codes`; None if it is incomplete or for another machine."""
    first_line, _, data = content.partition(b"\n")
    try:
        header = json.loads(first_line)
        if header["for"] != _machine_properties() or header["sha256"] != hashlib.sha256(data).hexdigest():
            return None
        codes, position = [], 0
        for symbol, size in header["functions"]:
            codes.append(Code(symbol, data[position : position + size]))
            position += size
    except (ValueError, KeyError, TypeError):  # cut or changed: it is compiled again
        return None
    return codes


def _machine_properties() -> list[str]:
    """Return the properties of this machine that machine code must match to run here."""
    import llvmlite
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    return [str(llvmlite.__version__), llvm.get_process_triple(), llvm.get_host_cpu_name(), features]


def machine(features: str = "") -> Any:
    """Return LLVM's target machine for code that runs in this process, with the ``features`` that code may use."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu = llvm.get_host_cpu_name()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="static", jit=True
    )


def _callable(function: Function, address: int, code_owner: object) -> Callable[..., Any]:
    """Return a Python function that writes its arguments into a row of words and calls the code at ``address``.

    ``code_owner`` keeps the code in memory and lives as long as the function. Arrays are passed by address and
    length: each must have the type that the code was compiled for, without gaps. The interpreter's lock is
    released meanwhile, as with numba's ``nogil``.

    """
    # numba's convention: address of a result (unused), address of an error, then the parameters
    call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)
    name, parameters, results = function
    arrays = [
        (number, np.dtype(kind.partition(":")[0])) for number, kind in enumerate(parameters) if kind not in (INT, TABLE)
    ]
    tables = [number for number, kind in enumerate(parameters) if kind == TABLE]
    empty = [0] * results

    def run(*arguments: Any) -> Any:
        words: list[Any] = [*arguments]
        for number, kind in arrays:
            argument = arguments[number]
            if argument.dtype != kind or not argument.flags.c_contiguous:
                raise TypeError(f"expected an array of {kind} in one piece as parameter {number} of {name}")
            words[number] = argument.ctypes.data
            words.append(len(argument))
        for number in tables:
            words[number] = 0
            words += arguments[number]
        sheet = array("q", [*words, *empty, 0, 0])
        sheet_address = sheet.buffer_info()[0]
        if call(sheet_address + 8 * len(sheet) - 16, sheet_address + 8 * len(sheet) - 8, sheet_address):
            raise ArithmeticError(f"machine code of {name} ended early")
        if results == 1:
            return sheet[-3]
        return tuple(sheet[-2 - results : -2]) if results else None

    run.__name__, run.code_owner = name, code_owner  # type: ignore[attr-defined]
    return run
