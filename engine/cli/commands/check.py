"""``check``: the whole store against the rules, finding by finding."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import common, masked, open_given
from engine.cli.output import Column, Output, Progress, plain

SEVERITIES = ("chat", "note", "warn", "error")
COLUMNS = (
    Column("Severity", "severity", "plain"),
    Column("Rule", "id", "plain"),
    Column("Group", "group", "plain", spare=1),
    Column("File", "file", "path"),
    Column("Offset", "offset", "number"),
    Column("Finding", "message", "prose"),
)


def register(commands: Any) -> None:
    parser = commands.add_parser("check", parents=[common()], help="what is wrong with a store, and what to do next")
    parser.add_argument("store", metavar="STORE")
    parser.add_argument("--fail-on", choices=SEVERITIES, default="error", help="exit with 1 from this severity on")
    parser.add_argument("--only", metavar="IDS", help="rules, separated by commas")
    masked(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    from engine.inspection.findings import check
    from engine.rules.findings import Finding

    only = frozenset(args.only.replace(" ", "").split(",")) if args.only else None
    limit = SEVERITIES.index(args.fail_on)
    code = 0
    steps: list[str] = []
    with open_given(args) as store, Progress("check", store.log.sequence.total_size, out.quiet) as progress:
        for item in check(store, only=only, progress=lambda done, _: progress.at(done)):
            if isinstance(item, Finding):
                if SEVERITIES.index(item.severity) >= limit:
                    code = 1
                if item.next_step and item.next_step not in steps:
                    steps.append(item.next_step)
                out.record(item.record(), COLUMNS)
            else:
                record = item.record()
                out.record(record)
                counts = ", ".join(f"{record[name]} {name}" for name in reversed(SEVERITIES) if record.get(name))
                clean = "nothing to complain about" if item.complete else "no finding in what could be read"
                out.line(f"-- {counts or clean}")
    for number, step in enumerate(steps, 1):
        out.line(f"{number}. {plain(step)}")
    return code
