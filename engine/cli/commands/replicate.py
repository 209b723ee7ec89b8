"""``replicate``: a live copy of a broker's log through its HA port; queues and index are built here."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
from dataclasses import replace
from typing import Any

from engine.cli.backup import Backup, add_opening, backed_up, refuse_empty, remove_earlier_backups
from engine.cli.options import add_command, add_config, add_release, common_options, host_and_port
from engine.cli.output import Output
from engine.cli.serving import ended_by_signals, print_line, print_record
from engine.cli.writing import WriteTarget, find_target, given_config
from engine.english import number_of
from engine.errors import CannotRead, UsageError, cause_of
from engine.message_store import MessageStore
from engine.remoting.answers import UnexpectedAnswer
from engine.replication.follower import Follower
from engine.replication.master import Master, ask_master, copy_tables
from engine.sentences import sentence

_PROGRESS_INTERVAL_S = 1.0
_CONNECT_TIMEOUT_S = 5.0


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "replicate",
        "replicate 10.0.0.5:10912 /tmp/replica --until-caught-up",
        parents=[common_options(store=False)],
    )
    parser.add_argument("master", metavar="HOST:HAPORT", help="the broker's HA port, usually its own port + 1")
    parser.add_argument(
        "store", metavar="DST", help="a new or empty folder, or the DST of an earlier run, which goes on"
    )
    parser.add_argument("--broker", metavar="HOST:PORT", help="the broker's own port (default: HAPORT - 1)")
    add_config(parser, "the broker's configuration file")
    parser.add_argument(
        "--last-file", action="store_true", help="start with the master's last log file, as a slave does"
    )
    parser.add_argument(
        "--until-caught-up", action="store_true", help="end when DST has everything that the master has"
    )
    add_release(
        parser, "write as this RocketMQ release does (default: as DST was written; new DST: the master's release)"
    )
    add_opening(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    host, port = host_and_port(args.master)
    broker_address = host_and_port(args.broker) if args.broker else (host, port - 1)
    try:
        master = asyncio.run(ask_master(*broker_address))
    except UnexpectedAnswer as error:
        raise CannotRead(str(error)) from error
    if master is not None and master.refusal:
        raise UsageError(master.refusal, file=args.master)
    target = find_target(args.store, given_config(args, out), args.release)
    refuse_empty(args, target.empty_log)
    config = target.config
    if target.recovery is None and args.release is None and master is not None and master.release is not None:
        target = replace(target, release=master.release)
    if master is None and target.recovery is None:
        asyncio.run(_check_master_answers(host, port))
    if master is not None and target.recovery is None:  # no log yet, be it that a run was killed before it had one
        config = replace(config, mapped_file_size_commit_log=master.file_size)
    if master is not None and config.mapped_file_size_commit_log != master.file_size:
        raise UsageError(
            sentence(
                "{store} has log files of {log_file_bytes}, the master's are of {file_size:,}",
                store=args.store,
                log_file_bytes=number_of(config.mapped_file_size_commit_log, "byte", "bytes"),
                file_size=master.file_size,
            )
        )
    changes = target.recovery is not None and not target.recovery.changes_nothing
    if changes:
        for line in target.planned():
            out.say(line)
    loses = changes and target.recovery is not None and not target.recovery.loses_nothing
    with backed_up(args, target.path, config, enabled=loses) as backup:
        asyncio.run(_follow(args, ((host, port), broker_address), replace(target, config=config), master, backup, out))
    backup.say(out)
    return 0


async def _check_master_answers(host: str, port: int) -> None:
    """Raise :class:`CannotRead` where nobody is at the HA port: a copy that is new is not begun for nothing. One that
    is there already waits for its master.
    """
    try:
        async with asyncio.timeout(_CONNECT_TIMEOUT_S):
            _, writer = await asyncio.open_connection(host, port)
    except (TimeoutError, OSError) as error:
        raise CannotRead(
            sentence("no broker's HA port at {host}:{port}: {cause}", host=host, port=port, cause=cause_of(error))
        ) from error
    writer.close()


async def _follow(
    args: argparse.Namespace,
    ports: tuple[tuple[str, int], tuple[str, int]],
    target: WriteTarget,
    master: Master | None,
    backup: Backup,
    out: Output,
) -> None:
    """Follow until Ctrl+C or TERM, or until the master has nothing more."""
    with ended_by_signals() as ended:
        async with contextlib.AsyncExitStack() as opened:
            store = await asyncio.to_thread(
                MessageStore,
                target.path,
                target.config,
                release=target.release,
                disk=backup.store_disk,
                empty_log=args.empty_log,
            )
            opened.push_async_callback(asyncio.to_thread, store.close)
            backup.settled = True
            remove_earlier_backups(backup, out)
            start = None if args.last_file or master is None else master.min_offset
            follower = Follower(store, *ports[0], start=start, ask_master=lambda: ask_master(*ports[1]))
            follower.on_status = out.say
            _say_begun(args, out, start)
            await _copy_tables(ports[1], store, out)
            following = asyncio.ensure_future(follower.run())
            waiting = asyncio.ensure_future(ended.wait())
            try:
                while not waiting.done() and not following.done():
                    await asyncio.wait(
                        {following, waiting}, timeout=_PROGRESS_INTERVAL_S, return_when=asyncio.FIRST_COMPLETED
                    )
                    _say_progress(follower, out)
                    if args.until_caught_up and _caught_up(follower, store, master):
                        break
            finally:
                following.cancel()
                waiting.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await following
            await asyncio.to_thread(store.flush)
            if not await _copy_tables(ports[1], store, out):
                out.say("topics, groups and offsets are not in the log, and the broker's own port did not give them")
            _say_ended(store, out)


async def _copy_tables(broker_address: tuple[str, int], store: MessageStore, out: Output) -> bool:
    """Copy the tables and return whether the broker gave them; an answer that cannot be read is reported, and
    changes nothing.
    """
    try:
        return await copy_tables(*broker_address, store.tables)
    except UnexpectedAnswer as error:
        out.say(str(error))
        return False


def _caught_up(follower: Follower, store: MessageStore, master: Master | None) -> bool:
    return follower.progress.caught_up or (master is not None and store.positions().wrote >= master.max_offset > 0)


def _say_begun(args: argparse.Namespace, out: Output, start: int | None) -> None:
    if start is None and not args.last_file:
        out.say("the broker's own port does not answer: a new copy starts with the master's last file")
    if out.as_json:
        print_record(out, {"type": "replicating", "master": args.master, "store": str(args.store), "pid": os.getpid()})
    else:
        print_line(out, f"replicating {args.master} to {args.store}, pid {os.getpid()}; Ctrl+C ends it")


def _say_progress(follower: Follower, out: Output) -> None:
    if out.as_json:
        progress = follower.progress
        state = {"received": progress.received, "flushed": progress.flushed, "caughtUp": progress.caught_up}
        print_record(out, {"type": "replicated", **state, "links": progress.links})


def _say_ended(store: MessageStore, out: Output) -> None:
    positions = store.positions()
    if not out.as_json:
        print_line(
            out,
            f"the log ends at {positions.wrote:,}, "
            f"{number_of(positions.wrote - max(positions.min, 0), 'byte', 'bytes')} of it are here",
        )
