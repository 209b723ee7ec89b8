"""``doctor``: what this installation has and lacks, with the line that brings it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from engine.cli.installation import Component, components
from engine.cli.options import add_command, common_options
from engine.cli.output import Output
from engine.english import number_of

_MARKS = {"ok": "", "missing": "missing", "problem": "PROBLEM"}


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "doctor",
        "doctor",
        "doctor ~/store",
        "doctor --json",
        parents=[common_options(store=False)],
    )
    parser.add_argument("store", metavar="STORE", nargs="?", type=Path, help="also look at this store's file system")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
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
