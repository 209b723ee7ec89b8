"""``compat``: whether brokers of other releases and storage modes would start on a store, what they would lose, and
what they would not read of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from engine.cli.options import add_command, add_store, common_options, open_named_store, patches_of, read_config
from engine.cli.output import Column, Output, Progress
from engine.english import number_of
from engine.errors import UsageError
from engine.inspection.compatibility import Compatibility, CompatOptions, Verdict, all_pairs, chosen_pair, compare
from engine.inspection.snapshot import StoreSnapshot, open_store
from engine.inspection.undecoded import read_settings
from engine.releases import NAMES, Release, rules_of
from engine.rules.compatibility import MODES, StorageMode, modes_of
from engine.sentences import sentence

_MAX_TOPICS = 20
_VERDICT_WORDS: dict[Verdict, str] = {
    "safe": "loses nothing",
    "loses": "loses or hides",
    "refused": "does not start",
    "unknown": "cannot be told",
}
_ANSWERS = (
    Column("Release", "patch", "text"),
    Column("Mode", "mode", "text"),
    Column("Answer", "answer", "text"),
    Column("Lost messages", "messagesLost", "number"),
    Column("Entries cut", "entriesCut", "number", spare=2),
    Column("Entries added", "entriesAdded", "number", spare=3),
    Column("Index entries lost", "indexEntriesLost", "number", spare=4),
    Column("Not read", "hiddenKinds", spare=1),
)
_TOPICS = (
    Column("Topic", "topic"),
    Column("Lost messages", "lost", "number"),
    Column("Entries cut", "entriesCut", "number"),
    Column("Entries added", "entriesAdded", "number"),
)


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "compat",
        "compat ~/store --to 5.5 --config broker.conf",
        "compat ~/store --to 5.3 --to-mode files",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    parser.add_argument(
        "--to",
        "--release",
        choices=NAMES,
        dest="target",
        help="answer only for this RocketMQ release (the exit code is for the newest one without it)",
    )
    parser.add_argument(
        "--to-mode",
        choices=tuple(MODES),
        help="answer only for this storage mode: queues in files, in both (combined) or in a RocksDB; v2: tables in "
        "config/rdb (the exit code is for the mode of --config, else that of the store, without it)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    configuration = read_settings(args.config) if args.config else None
    with open_named_store(args, out) as store:
        pair = _chosen(args, store, configuration)
    is_single = args.target is not None or args.to_mode is not None
    pairs = (pair,) if is_single else tuple(dict.fromkeys((*all_pairs(), pair)))
    with Progress("compat", 1, out.quiet) as progress:
        options = CompatOptions(pairs, configuration, progress.update)
        answers = compare(lambda: open_store(args.store, read_config(args), patches_of(args)), options)
    chosen = next(answer for answer in answers if (answer.release, answer.mode) == pair)
    if out.as_json:
        for answer in answers:
            out.record(answer.record(chosen=answer is chosen))
    else:
        _show(chosen, answers, out)
    return chosen.exit_code


def _chosen(
    args: argparse.Namespace, store: StoreSnapshot, configuration: dict[str, str] | None
) -> tuple[Release, StorageMode]:
    """The release and the mode for which the exit code speaks. Raises :class:`UsageError` for a mode of later ones."""
    release, mode = chosen_pair(store, configuration)
    if args.target is not None:
        release = args.target
    if args.to_mode is not None:
        mode = MODES[args.to_mode]
        if mode not in modes_of(release):
            raise UsageError(
                sentence(
                    "--to-mode {mode}: {release} does not have it", mode=mode.name, release=rules_of(release).title
                )
            )
    return release, mode if mode in modes_of(release) else MODES["files"]


def _show(chosen: Compatibility, answers: list[Compatibility], out: Output) -> None:
    out.line(chosen.message)
    for line in _detail_lines(chosen):
        out.line(line)
    for topic in chosen.topics[:_MAX_TOPICS]:
        out.record(topic.record(), _TOPICS)
    if len(chosen.topics) > _MAX_TOPICS:
        out.line(f"-- and {number_of(len(chosen.topics) - _MAX_TOPICS, 'more topic', 'more topics')} (--json has all)")
    if len(answers) == 1:
        return
    out.line()
    for answer in answers:
        record = answer.record(chosen=answer is chosen)
        hidden_kinds = [str(item["kind"]) for item in record["hidden"]]
        out.record({**record, "answer": _VERDICT_WORDS[answer.verdict], "hiddenKinds": hidden_kinds}, _ANSWERS)
    out.line("-- for the details of a line: --to RELEASE --to-mode MODE")


def _detail_lines(answer: Compatibility) -> Iterator[str]:
    yield from (f"Does not start: {refusal}" for refusal in answer.refusals[1:])
    yield from (f"Not read: {item.text}" for item in answer.hidden)
    if answer.verdict != "unknown":
        yield from (f"Cannot be told: {text}" for text in answer.unknown)
    yield from (f"Set first: {item.key}={item.value} (without it: {item.without})" for item in answer.settings)
    yield from (f"Note: {note}" for note in answer.notes)
