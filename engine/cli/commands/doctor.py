"""``doctor``: what this installation has and lacks, with the line that brings it."""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path
from typing import Any

from engine.cli.installation import Component, components
from engine.cli.options import add_command, common_options
from engine.cli.output import Output
from engine.english import number_of
from engine.errors import CannotRead, MissingExtra, UsageError
from engine.extras import install_line
from engine.sentences import sentence

_MODULES = {
    "compiled": "reading a log",
    "compiled_chains": "chains of the index",
    "compiled_copies": "copies of a log in images",
    "compiled_dispatch": "queues and index from a log",
    "compiled_put": "writing messages",
    "compiled_search": "searching in a log",
    "compiled_survey": "messages in images",
    "compiled_texts": "filters on properties and bodies",
    "compiled_times": "times and timelines",
    "compiled_query": "looking keys up",
    "compiled_tally": "counting topics",
    "compiled_write": "writing many messages",
}
"""What the code of each module is for."""
_MARKS = {"ok": "", "missing": "missing", "problem": "PROBLEM"}


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "doctor",
        "doctor",
        "doctor ~/store",
        "doctor --compile",
        "doctor --json",
        parents=[common_options(store=False)],
    )
    parser.add_argument("store", metavar="STORE", nargs="?", type=Path, help="also look at this store's file system")
    parser.add_argument(
        "--compile",
        action="store_true",
        help="first compile all machine code for this processor, a minute once; otherwise a command compiles what it "
        "needs, when it needs it",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    if args.compile:
        _compile(out)
    looked_at = list(components(args.store))
    problems = [component for component in looked_at if component.state == "problem"]
    missing = [component for component in looked_at if component.state == "missing"]
    _summary(problems, missing, out)
    group = None
    for component, following in zip(looked_at, [*looked_at[1:], None], strict=True):
        out.record(component.record())
        if out.as_json:
            continue
        if component.group != group:
            group = component.group
            out.line()
            out.line(group, is_data=True)
        words = [word for word in (_MARKS[component.state], component.value) if word]
        out.line(f"  {component.name:22} {': '.join(words) or 'unknown'}", is_data=True)
        if component.fix and (following is None or following.fix != component.fix):
            out.line(f"  {'':22} {component.fix}", is_data=True)
    out.record({"type": "installation", "problems": len(problems), "missing": len(missing)})
    return 1 if problems else 0


def _compile(out: Output) -> None:
    """Fill the user's folder of machine code. Raises :class:`CannotRead` where it cannot be compiled."""
    if os.environ.get("STORESCOPE_PLAIN") == "1":
        raise UsageError(sentence("--compile: STORESCOPE_PLAIN=1 turns machine code off; unset it"))

    def report(module: str, number: int, count: int) -> None:
        out.say(f"machine code, {number} of {count}: {_MODULES[module]}")

    try:
        machine_code_build = importlib.import_module("engine.codec.machine_code_build")
        machine_code_build.compile_everything(report)
    except ImportError as error:
        name = error.name or "numba"
        raise MissingExtra(
            sentence("machine code needs the package {name}: {command}", name=name, command=install_line(name))
        ) from error
    except Exception as error:
        raise CannotRead(sentence("machine code cannot be compiled: {cause}", cause=str(error))) from error


def _summary(problems: list[Component], missing: list[Component], out: Output) -> None:
    if out.as_json:
        return
    if not problems:
        out.line(f"no problems; {number_of(len(missing), 'optional part', 'optional parts')} missing", is_data=True)
        return
    out.line(
        f"{number_of(len(problems), 'problem', 'problems')}; first: {problems[0].name}: {problems[0].value}",
        is_data=True,
    )
    if problems[0].fix:
        out.line(f"  {problems[0].fix}", is_data=True)
