"""``positions``: every position that the files show, with a reason for each that they do not show. If a broker has the
store open, also its slaves, and how far each has followed the log.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

from engine.cli.options import (
    add_command,
    add_release,
    add_store,
    common_options,
    host_and_port,
    open_named_store,
    report_read_side,
)
from engine.cli.output import Column, Output
from engine.errors import CannotRead, UsageError
from engine.inspection import records
from engine.inspection.positions import positions
from engine.remoting.answers import UnexpectedAnswer
from engine.replication.master import SlavePosition, ask_slaves
from engine.sentences import sentence

_COLUMNS = (
    Column("Position", "name"),
    Column("Offset", "offset", "number"),
    Column("Time", "timestamp", "time"),
    Column("How, or why not", "description", "prose"),
)


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "positions",
        "positions ~/store",
        "positions ~/store --broker 127.0.0.1:10911",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    add_release(parser, "judge the start of this RocketMQ release (default: the one that probably wrote the store)")
    parser.add_argument(
        "--broker", metavar="HOST:PORT", help="ask the broker that runs on STORE for its slaves' positions too"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    with open_named_store(args, out) as store:
        report_read_side(store, out)
        record = records.positions(positions(store))
    slaves = _slaves(*host_and_port(args.broker)) if args.broker else ()
    if out.as_json:
        out.record(record)
        for slave in slaves:
            out.record(slave_record(slave))
        return 0
    rows = {name: value for name, value in record.items() if name not in ("type", "checkpoint", "epochs")}
    rows |= {f"checkpoint {name}": value for name, value in record["checkpoint"].items()}
    rows |= {f"term {name}": value for name, value in record["epochs"].items()}
    for name, value in rows.items():
        out.record({"name": name, **value, "description": value.get("how") or value.get("why")}, _COLUMNS)
    for slave in slaves:
        description = f"{slave.peer}: sent {slave.sent:,}, behind {slave.behind:,}"
        out.record({"name": "slave", "offset": slave.acknowledged, "description": description}, _COLUMNS)
    return 0


def _slaves(host: str, port: int) -> tuple[SlavePosition, ...]:
    try:
        slaves = asyncio.run(ask_slaves(host, port))
    except UnexpectedAnswer as error:
        raise CannotRead(str(error)) from error
    if slaves is None:
        raise UsageError(
            sentence(
                "the broker at {host}:{port} does not say who follows it (brokers of 5.x do, and ours)",
                host=host,
                port=port,
            )
        )
    return slaves


def slave_record(slave: SlavePosition) -> dict[str, Any]:
    """A slave on the ruler of its master's log."""
    return {
        "type": "slave",
        "peer": slave.peer,
        "wrote": slave.wrote,
        "sent": slave.sent,
        "acknowledged": slave.acknowledged,
        "behind": slave.behind,
    }
