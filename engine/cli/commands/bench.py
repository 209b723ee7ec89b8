"""``bench``: measured figures with their conditions, on stores of its own in a temporary folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from engine.cli.options import add_command, common_options, count
from engine.cli.output import Column, Output
from engine.errors import UsageError

READS = ("scan", "header", "query", "info", "check")
COMPARED_WITH_C = frozenset({"scan", "header", "append"})
WRITES = ("append", "dispatch", "flush", "topics", "recover", "lab")
NAMES = (*READS, *WRITES)
_MIN_LOG_BYTES = 1 << 20
_COLUMNS = (
    Column("Measured", "name", "prose"),
    Column("On", "on", "prose"),
    Column("Figure", "figure", "plain"),
    Column("Ratio", "ratio", "plain"),
    Column("Must reach", "target", "prose"),
)


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "bench",
        "bench scan append --size 268435456",
        parents=[common_options(store=False)],
    )
    names_help = f"what to measure, one or more of: {', '.join(NAMES)} (default: all)"
    parser.add_argument("what", nargs="*", metavar="WHAT", help=names_help)
    parser.add_argument("--repeats", type=count, metavar="N", help="repeat each measurement N times")
    parser.add_argument("--size", type=count, metavar="BYTES", help="size of the test log in bytes (default: 1 GiB)")
    parser.add_argument(
        "--folder", metavar="DIR", help="folder for the test stores, which are kept there (default: a temporary folder)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    from engine.bench import append, dispatch, lab, reads, recover, writes, yardstick

    unknown = [name for name in args.what if name not in NAMES]
    if unknown:
        raise UsageError(f"expected {', '.join(NAMES)}, found {unknown[0]!r}")
    options: dict[str, Any] = {"folder": Path(args.folder) if args.folder else None}
    if args.repeats is not None:
        options["repeats"] = args.repeats
    if args.size is not None:
        options["size"] = max(args.size, _MIN_LOG_BYTES)
    missing = yardstick.why_unavailable()
    if missing is not None and not COMPARED_WITH_C.isdisjoint(args.what or NAMES):
        out.say(f"nothing is compared with plain C: {missing}")
    for name in args.what or NAMES:
        out.say(f"measuring {name}; missing test stores are created first")
        modules = {"append": append, "dispatch": dispatch, "recover": recover, "lab": lab}
        measures = [reads if name in READS else modules.get(name, writes)]
        measures += [dispatch] if name == "query" else []  # the index of a store that is written
        for measure in measures:
            for row in measure.run(name, **options):
                out.record(row if out.as_json else _shown(row), _COLUMNS)
    out.line(" · ".join(f"{name} {value}" for name, value in reads.conditions().items()))
    return 0


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its figure in words."""
    per_key = row.get("microsecondsPerKey")
    figure = f"{per_key:.2f} µs a key" if per_key is not None else f"{row['seconds']:.3f} s"
    if row.get("messagesPerSecond") is not None:
        figure = f"{row['messagesPerSecond']:,.0f} a second"
    if row.get("putsPerSecond") is not None:
        figure = f"{row['putsPerSecond']:,.0f} a second, p50 {row['p50']:,.0f} µs, p99 {row['p99']:,.0f} µs"
    if row.get("mebibytes") is not None:
        figure += f", {row['mebibytes']:.0f} MiB"
    ratio = row.get("ratio")
    return {
        "name": row["name"],
        "on": row.get("log") or f"{row.get('bytes') or row.get('entries') or row.get('puts', 0):,}",
        "figure": figure,
        "ratio": "" if ratio is None else f"{ratio:.2f}",
        "target": row["target"],
    }
