"""What exists on one operating system only is called in ``engine/system`` alone, and types hold on all of them.

Which names these are is read from the type checker's description of the standard library.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import mypy
import pytest

ROOT = Path(__file__).resolve().parents[2]
STUBS = Path(mypy.__file__).parent / "typeshed" / "stdlib"
SYSTEMS = ("linux", "darwin", "win32")
FIELDS_OF_FILES = {"st_blksize", "st_blocks", "st_flags", "st_rdev"}
ARGUMENTS = {"dir_fd", "pass_fds", "preexec_fn", "process_group", "start_new_session"}
FOLDERS_OF_THE_SYSTEM = ("/dev/", "/proc", "/sys/")
SENT_ELSEWHERE = Path("engine/ssh/file_server.py")
"""A program of one file that runs on another machine, without this project."""


def is_true(test: ast.expr, system: str) -> bool:
    """Return what a condition of a stub is on ``system``."""
    text = ast.unparse(test)
    return bool(eval(text.replace("sys.platform", repr(system)), {"sys": sys, "TYPE_CHECKING": True}))


def defined(statements: list[ast.stmt], system: str) -> Iterator[str]:
    for statement in statements:
        match statement:
            case ast.If():
                yield from defined(statement.body if is_true(statement.test, system) else statement.orelse, system)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield statement.name
            case ast.Assign():
                yield from (target.id for target in statement.targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.ImportFrom(module=str(module), names=[ast.alias(name="*")]):
                yield from names_of(module, system)
            case ast.ImportFrom() | ast.Import():
                yield from (alias.asname or alias.name for alias in statement.names)


@functools.cache
def names_of(module: str, system: str) -> frozenset[str]:
    """Return the names that a module of the standard library has on ``system``; empty if it has no stub."""
    for file in (STUBS / f"{module.replace('.', '/')}.pyi", STUBS / module.replace(".", "/") / "__init__.pyi"):
        if file.is_file():
            return frozenset(defined(ast.parse(file.read_text("utf-8")).body, system))
    return frozenset()


@functools.cache
def of_some_systems(module: str) -> frozenset[str]:
    """Return the names of ``module`` that one of the systems lacks."""
    names = [names_of(module, system) for system in SYSTEMS]
    return frozenset().union(*names) - frozenset.intersection(*names)


def may_use(source: str) -> bool:
    """Return False if no word of a module can be such a use: most need not be parsed."""
    words = set(re.findall(r"\w+", source))
    imports = set(re.findall(r"^\s*(?:import|from) ([\w.]+)", source, re.MULTILINE))
    suspicious = (FIELDS_OF_FILES | ARGUMENTS | {"platform", "CDLL"}).union(*map(of_some_systems, imports))
    return bool(words & suspicious) or any(text in source for text in ("os.name", *FOLDERS_OF_THE_SYSTEM))


def module_of(node: ast.expr, modules: dict[str, str]) -> str:
    """Return the module that an expression names; empty if it names none."""
    match node:
        case ast.Name(id=name):
            return modules.get(name, "")
        case ast.Attribute(value=value, attr=name) if outer := module_of(value, modules):
            return f"{outer}.{name}"
    return ""


def uses(source: str) -> set[str]:
    """Return what a module uses that one of the systems lacks, and where it asks for the system."""
    if not may_use(source):
        return set()
    tree = ast.parse(source)
    modules = {
        alias.asname or alias.name.partition(".")[0]: alias.name if alias.asname else alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    used = set()
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)):
                used |= {f"{module}.{alias.name}" for alias in node.names if alias.name in of_some_systems(module)}
            case ast.Attribute(attr=name) if name in FIELDS_OF_FILES:
                used.add(name)
            case ast.Attribute(value=value, attr=name):
                module = module_of(value, modules)
                if name in of_some_systems(module) or (module, name) in {("sys", "platform"), ("os", "name")}:
                    used.add(f"{module}.{name}")
            case ast.Call(func=ast.Name(id="hasattr" | "getattr"), args=[ast.Name(id=module), ast.Constant(), *_]):
                if of_some_systems(modules.get(module, "")) and module != "sys":
                    used.add(ast.unparse(node))
            case ast.Call(func=ast.Attribute(attr="CDLL"), args=[ast.Constant(value=None), *_]):
                used.add("ctypes.CDLL(None)")
            case ast.keyword(arg=str(name)) if name in ARGUMENTS:
                used.add(name)
            case ast.Constant(value=str(text)) if text.startswith(FOLDERS_OF_THE_SYSTEM):
                used.add(text)
    return used


def test_a_name_of_some_systems_is_reported():
    source = """
import os, sys, signal as signals, ctypes
from fcntl import flock
os.open("f", os.O_RDONLY | os.O_CLOEXEC)
if sys.platform == "linux" and hasattr(os, "pread") and os.stat("f").st_blocks and open("/proc/self/maps"):
    signals.pthread_sigmask(signals.SIG_BLOCK, {signals.SIGINT})
    ctypes.CDLL(None, use_errno=True)
"""
    assert uses(source) == {
        *("fcntl.flock", "os.O_CLOEXEC", "sys.platform", "hasattr(os, 'pread')", "st_blocks", "/proc/self/maps"),
        *("signal.pthread_sigmask", "signal.SIG_BLOCK", "ctypes.CDLL(None)"),
    }


def test_only_one_package_knows_which_system_this_is():
    modules = [path for top in ("engine", "viewer", "resources") for path in (ROOT / top).rglob("*.py")]
    assert len(modules) > 900
    others = {
        str(path.relative_to(ROOT)): used
        for path in modules
        if ROOT / "engine" / "system" not in path.parents and path != ROOT / SENT_ELSEWHERE
        if (used := uses(path.read_text("utf-8")))
    }
    assert others == {}


def test_the_program_that_is_sent_to_another_machine_needs_nothing_of_the_project():
    tree = ast.parse((ROOT / SENT_ELSEWHERE).read_text("utf-8"))
    imports = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)}
    assert not [line for line in imports if "engine" in line or "viewer" in line]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_types_hold_on_other_systems(system, tmp_path):
    """Only the package that knows systems: no other module uses a name that another system lacks."""
    command = [sys.executable, "-m", "mypy", "--platform", system, "--cache-dir", tmp_path, "-p", "engine.system"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.full_form(keep=0)
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_types_of_all_modules_hold_on_other_systems(system, tmp_path):
    command = [sys.executable, "-m", "mypy", "--platform", system, "--cache-dir", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1100, check=False)
    assert done.returncode == 0, done.stdout
