"""``copy``: every unit of a store appended again by the engine into a new one, whose files may have other sizes."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from engine.capsule.recognition import refuse_capsule
from engine.cli.decoding import add_rules, decoding
from engine.cli.options import add_command, add_release, add_store, common_options, stated_release
from engine.cli.output import Output, Progress, size_text
from engine.cli.writing import check_new_path, given_config
from engine.config import MessageStoreConfig
from engine.english import number_of
from engine.errors import UsageError
from engine.files.store_folders import settle_folders
from engine.inspection import records
from engine.inspection.derived_config import derived_config, quiet
from engine.inspection.recovery import open_each
from engine.inspection.snapshot import open_store
from engine.query import parse
from engine.sentences import sentence


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "copy",
        "copy ~/store /tmp/repaired",
        """copy ~/store /tmp/orders --where 'topic = "Orders"'""",
        parents=[common_options()],
    )
    add_store(parser, "SRC")
    parser.add_argument("to", metavar="DST", help="a new or empty folder; --config may give its files other sizes")
    parser.add_argument("--where", metavar="FILTER", help="copy only units that match this filter")
    add_rules(parser)
    add_release(parser, "write DST as this RocketMQ release does (default: the one that probably wrote SRC)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    unit_filter = (
        None if args.where is None else parse(args.where)
    )  # a mistake in the filter is reported before anything is opened
    refuse_capsule(args.store)
    given_settings = given_config(args, out)
    with open_store(args.store, _places(given_settings)) as source:
        settle_folders(source.path, given_settings).refuse_outside()
        if source.kind != "store":
            raise UsageError(sentence("expected a store, found a part of one"), file=args.store)
        open_each(source)
        source.refuse_unread("nothing is copied without it")
        if source.log.end_offset <= max(source.log.min_offset, 0):
            source.require("log")  # all messages are in a log that is not decoded: an empty copy would look complete
        target = check_new_path(args.to, source.path)
        from engine.cli.copying import copy_store, target_config

        config = quiet(target_config(_sizes(args.store, given_settings), given_settings))
        total = source.log.end_offset - max(source.log.min_offset, 0)
        with Progress("copy", total, out.quiet) as progress, decoding(args, source, out, unit_filter):
            done = copy_store(source, target, config, unit_filter, progress.update, stated_release(args, source))
    losses = {
        "leftBehind": done.left_behind,
        "bytesLeftBehind": done.left_size,
        "deletedTopics": list(done.deleted_topics),
        "shortened": [{"offset": offset, "leftOut": list(names)} for offset, names in done.shortened.items()],
    }
    out.record(records.copied(done.units, done.size, done.max_offset) | losses)
    out.line(
        f"{number_of(done.units, 'unit', 'units')}, {size_text(done.size)} appended to {target}; its log "
        f"ends at {done.max_offset:,}"
    )
    if done.left_behind:
        out.say(
            f"not copied because damaged: {number_of(done.left_behind, 'place', 'places')}, "
            f"{number_of(done.left_size, 'byte', 'bytes')}"
        )
    for offset, names in done.shortened.items():
        out.say(
            f"the unit at {offset:,} had more properties than their 16-bit length can say: it is in the copy without "
            f"{', '.join(names)}"
        )
    for topic in done.deleted_topics:
        out.say(f"{topic} was deleted in the source: its units are there, it has no queue")
    return 0


def _places(given_settings: MessageStoreConfig | None) -> MessageStoreConfig | None:
    """Return the places of the source in a given configuration: the sizes in it are the copy's."""
    return given_settings.only_paths() if given_settings is not None and given_settings.paths else None


def _sizes(path: str, given_settings: MessageStoreConfig | None) -> MessageStoreConfig:
    """Return the source's sizes; those of its index come from ``given_settings`` where the files do not tell them."""
    index = frozenset({"maxHashSlotNum", "maxIndexNum"})
    source_places = _places(given_settings)
    if given_settings is not None and index <= given_settings.given:
        source_places = replace(given_settings, given=index | given_settings.only_paths().given)
    with open_store(path, source_places) as source:
        return derived_config(source)
