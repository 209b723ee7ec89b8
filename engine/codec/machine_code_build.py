"""Compile the twins to machine code that later processes load without numba (:mod:`engine.codec.machine_code`).

Each function gets an entry function that reads its arguments from a row of 64-bit words: the parameters in order
(an array's address, 0 for a table), then the lengths of the arrays, then the words of a table, then room for the
results.

"""

from __future__ import annotations

import contextlib
import importlib
import re
import threading
from collections.abc import Callable
from operator import attrgetter
from types import ModuleType
from typing import Any

from engine.codec import compiled_cache
from engine.codec.machine_code import (
    FUNCTIONS,
    INT,
    TABLE,
    TABLE_WORDS,
    Code,
    Function,
    Twins,
    encode_codes,
    file_name_of,
    load,
    machine,
)

_ALLOWED = {"pread", "memcpy", "memset", "memmove", "memcmp", "bcmp"} | {
    "PyBytes_AsString",
    "PyBytes_Size",
    "PyDict_Next",
    "PyErr_Clear",
    "PyList_GetItem",
    "PyLong_AsLongLongAndOverflow",
    "PyLong_FromLongLong",
    "PySet_Contains",
    "PyUnicode_AsUTF8AndSize",
    "PyUnicode_Compare",
}
"""Functions that code may call: those of the C library and of the interpreter that every process has."""
_DECLARED = re.compile(r"^declare [^@]*@\"?([^\"(\s]+)|^@\"?([^\"\s]+)\"? = external", re.MULTILINE)
_FREES = re.compile(r"^declare [^@]*@(NRT_MemInfo_call_dtor)\(([^)]*)\).*$", re.MULTILINE)


SAVED_BY_NUMBA = ("compiled_query", "compiled_tally", "compiled_write")
"""Modules whose code numba itself saves and loads: they are called seldom, or with large arrays."""

_compiling = threading.RLock()
"""Held while numba or LLVM works: numba's registries are generators, and two threads that compile at once end with
"generator already executing".
"""
_loaded: dict[str, Twins] = {}
on_compiling: Callable[[bool], None] | None = None
"""Called with True before functions are compiled, and with False afterwards: a user who waits can be told the reason.
"""


def twins(module: str) -> Twins:
    """Return the functions of ``module``: the saved code, else compiled now, once per process.

    Other threads wait meanwhile. Raises any exception of numba and LLVM.

    """
    loaded = _loaded.get(module)
    if loaded is None:
        with _compiling:
            loaded = _loaded.get(module) or load(module) or build(module)
            _loaded[module] = loaded
    return loaded


def import_compiled(module: str) -> ModuleType:
    """Import ``engine.codec.<module>``, which numba compiles or loads during the import; other threads wait."""
    with _compiling:
        compiled_cache.prepare()
        return importlib.import_module(f"engine.codec.{module}")


def compile_everything(on_module: Callable[[str, int, int], None]) -> None:
    """Compile or load the code of every module, so that nothing is compiled when it is needed.

    ``on_module`` gets a module's name, its number and the number of modules before each. Raises any exception of numba
    and LLVM.

    """
    modules = [*FUNCTIONS, *SAVED_BY_NUMBA]
    for number, module in enumerate(modules, 1):
        on_module(module, number, len(modules))
        (twins if module in FUNCTIONS else import_compiled)(module)


def build(module: str) -> Twins:
    """Compile the functions of ``module`` and save their code for later processes. Takes seconds.

    Raises any exception of numba and LLVM. Code that cannot be saved is used all the same.

    """
    compiled_cache.note_compilation()
    with _compiling:
        if on_compiling is not None:
            on_compiling(True)
        try:
            source = import_compiled(module)
            codes = [_compile(function, getattr(source, function.name)) for function in FUNCTIONS[module]]
        finally:
            if on_compiling is not None:
                on_compiling(False)
    with contextlib.suppress(OSError):  # if it cannot be saved, the next process compiles it again
        compiled_cache.save(file_name_of(module), encode_codes(codes))
    return Twins(module, codes)


def _compile(function: Function, twin: Any) -> Code:
    """Compile the entry function with numba's call convention: (address of a result, address for an error, the
    sheet).
    """
    numba, compiler = importlib.import_module("numba"), importlib.import_module("numba.core.compiler")
    target = importlib.import_module("numba.core.registry").cpu_target
    flags = compiler.Flags()
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.error_model = "numpy"
    flags.nrt = True
    context, entry = target.target_context, _entry_function(function, twin)
    word, nothing = numba.types.int64, numba.types.void
    result = compiler.compile_extra(target.typing_context, context, entry, (word,), nothing, flags, {})
    descriptor, compiled = attrgetter("fndesc", "library")(result)
    return Code(descriptor.mangled_name, _object(function.name, compiled.get_llvm_str()))


def _object(name: str, text: str) -> bytes:
    """Return object code of LLVM's ``text``. The function that would free arrays is replaced by an empty one: all
    arrays are borrowed.
    """
    import llvmlite.binding as llvm

    text = _FREES.sub(r"define linkonce_odr void @\1(\2) { ret void }", text)
    needed = {function or value for function, value in _DECLARED.findall(text)}
    forbidden = {symbol for symbol in needed if not symbol.startswith("llvm.")} - _ALLOWED
    if forbidden:
        raise RuntimeError(f"expected {name} to need nothing of numba's, found {', '.join(sorted(forbidden))}")
    code: bytes = machine(llvm.get_host_cpu_features().flatten()).emit_object(llvm.parse_assembly(text))
    return code


def _entry_function(function: Function, twin: Any) -> Any:
    """Return ``def face(sheet)``, which reads the arguments from ``sheet`` and writes the results behind them."""
    from engine.codec.intrinsics import le64, pointer_to, put64

    numba = importlib.import_module("numba")
    names: dict[str, Any] = {"twin": twin, "word": le64, "put": put64, "carray": numba.carray, "int64": numba.int64}
    count = len(function.parameters)
    table = count + sum(kind not in (INT, TABLE) for kind in function.parameters)
    arguments = []
    for number, kind in enumerate(function.parameters):
        value = _word(number)
        if kind == TABLE:
            value = f"({', '.join(_word(table + index) for index in range(TABLE_WORDS))},)"
        elif kind != INT:
            item, _, columns = kind.partition(":")
            names[f"to_{item}"] = pointer_to(item)
            shape = f"({_word(count)},)" if not columns else f"({_word(count)}, {columns})"
            value = f"carray(to_{item}({value}), {shape})"
            count += 1
        arguments.append(value)
    count += TABLE_WORDS * (TABLE in function.parameters)
    results = [f"r{number}" for number in range(function.results)]
    assignment = f"{', '.join(results)} = " if results else ""
    lines = ["def face(sheet):", f"    {assignment}twin({', '.join(arguments)})"]
    lines += [f"    put(sheet + {8 * (count + index)}, int64(r{index}))" for index in range(function.results)]
    exec("\n".join(lines), names)  # noqa: S102  made only of the table above
    return names["face"]


def _word(number: int) -> str:
    return f"int64(word(sheet + {8 * number}))"
