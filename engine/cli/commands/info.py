"""``info``: the one-page account of a store, in time and memory that do not grow with it."""

from __future__ import annotations

import argparse
from typing import Any

from engine.cli.options import add_command, add_release, add_store, common_options, open_named_store
from engine.cli.output import Column, Output, escape_controls, iso_time, size_text
from engine.english import number_of
from engine.inspection import records
from engine.inspection.dledger import DLedgerInfo
from engine.inspection.info import QueueInfo, StoreInfo, TieredInfo, messages_in, store_info
from engine.inspection.timer_wheel import WheelInfo

_QUEUES = (
    Column("Topic", "topic"),
    Column("Queues", "queues", "number"),
    Column("Messages", "messages", "number"),
    Column("Min offsets", "min"),
    Column("Max offsets", "max"),
)
_LEAST_LITE_MINUTES = 15
"""Default of ``minLiteTTl``: a broker deletes no lite topic earlier, whatever its expiration is."""
_COMPACTED = (
    Column("Compacted queue", "queue"),
    Column("Messages", "messages", "number"),
    Column("Min offset", "min", "number"),
    Column("Max offset", "max", "number"),
    Column("Log bytes", "bytes", "number"),
)
_TIERED = (
    Column("Tiered queue", "queue"),
    Column("Messages", "messages", "number"),
    Column("Min offset", "min", "number"),
    Column("Max offset", "max", "number"),
    Column("Bytes", "bytes", "number"),
)
_INDEX = (
    Column("Index file", "name", "plain"),
    Column("Entries", "entries", "number"),
    Column("Slots used", "hashSlotCount", "number", spare=2),
    Column("Begin", "beginTimestamp", "time"),
    Column("End", "endTimestamp", "time", spare=3),
    Column("Begin offset", "beginPhyOffset", "number", spare=1),
    Column("End offset", "endPhyOffset", "number"),
)


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "info",
        "info ~/store",
        "info ~/store --json",
        parents=[common_options()],
    )
    add_store(parser, can_be_patched=True)
    add_release(parser, "judge the start of this RocketMQ release (default: the one that probably wrote the store)")
    parser.set_defaults(run=run, tells_undecoded=True)


def run(args: argparse.Namespace, out: Output) -> int:
    with open_named_store(args, out) as store:
        info = store_info(store)
    if out.as_json:
        out.record(records.store(info))
    else:
        _print_info(info, out)
    return 0


def _print_info(info: StoreInfo, out: Output) -> None:
    lock = {
        "held": "locked: a broker has it open",
        "free": "not locked",
        "absent": "no lock file",
        "unknown": "unknown whether it is locked",
    }[info.lock]
    messages = (
        "messages not known"
        if _is_partial(info)
        else f"{number_of(messages_in(info), 'message', 'messages')} in their queues"
    )
    out.fields(
        (
            ("Store", escape_controls(info.path)),
            ("State", f"{_state(info)}; {lock}"),
            ("Flavour", " ".join(info.flavour)),
            ("Commit log", _log(info)),
            *([("Terms of masters", info.epochs.words)] if info.epochs is not None else []),
            *([("DLedger", _dledger(info.dledger))] if info.dledger is not None else []),
            *(
                [("Terms of leaders", info.dledger.term_words)]
                if info.dledger is not None and len(info.dledger.terms) > 1
                else []
            ),
            *(("Timer wheel", _wheel(wheel)) for wheel in info.timer_wheels),
            ("Topics", info.unknown.get("log") or info.unknown.get("queues") or f"{len(info.topics)}, {messages}"),
            *([("Lite topics", _lite(info))] if info.lite_topics else []),
            ("Bytes", ", ".join(f"{kind} {size_text(size)}" for kind, size in info.bytes.items())),
            *((name, _size(info.file_bytes.get(name, 0), source)) for name, source in info.sizes.items()),
        )
    )
    if info.checkpoint is not None:
        page = info.checkpoint
        out.fields(
            (
                ("Checkpoint, log", iso_time(page.physic_msg_timestamp) if page.physic_msg_timestamp else "zero"),
                ("Checkpoint, queues", iso_time(page.logics_msg_timestamp) if page.logics_msg_timestamp else "zero"),
                ("Checkpoint, index", iso_time(page.index_msg_timestamp) if page.index_msg_timestamp else "zero"),
                *(
                    [("Checkpoint, queue entries", f"written up to {page.logics_physical_offset:,} of the log")]
                    if page.logics_physical_offset
                    else []
                ),
            )
        )
    for note in info.notes:
        out.line(f"Note: {escape_controls(note)}")
    out.line()
    for topic, queues in info.topics.items():
        out.record(
            {
                "topic": topic,
                "queues": len(queues),
                "messages": _messages(queues),
                "min": _few([q.min_offset for q in queues]),
                "max": _few([q.max_offset for q in queues]),
            },
            _QUEUES,
        )
    if info.compacted:
        out.line()
    for compacted in info.compacted:
        out.record(
            {
                "queue": f"{compacted.topic}/{compacted.queue_id}",
                "messages": compacted.messages,
                "min": compacted.min_offset,
                "max": compacted.max_offset,
                "bytes": compacted.size,
            },
            _COMPACTED,
        )
    if info.tiered is not None:
        _print_tiered(info.tiered, out)
    if info.index:
        out.line()
    for name, header in info.index:
        out.record(records.index_header(name, header) | {"entries": header.entries}, _INDEX)


def _print_tiered(tiered: TieredInfo, out: Output) -> None:
    place = tiered.folder or "its files are not here (--config FILE.conf with tieredStoreFilePath names them)"
    out.line()
    out.line(f"Tiered storage: {size_text(tiered.size)}; {place}")
    for topic, queue_id, min_offset, max_offset, size in tiered.queues:
        out.record(
            {
                "queue": f"{topic}/{queue_id}",
                "messages": max(max_offset - min_offset, 0),
                "min": min_offset,
                "max": max_offset,
                "bytes": size,
            },
            _TIERED,
        )


def _size(size: int, source: str) -> str:
    """Describe a size of the store's files, and how it is known."""
    return f"{number_of(size, 'byte', 'bytes')}: {source}" if size else source


def _lite(info: StoreInfo) -> str:
    """Describe the lite topics: how many each topic has, and when a broker deletes them."""
    return "; ".join(
        f"{number_of(lite.count, 'lite topic', 'lite topics')} of {escape_controls(lite.topic)}"
        + (
            f", deleted {number_of(max(lite.expiration_minutes, _LEAST_LITE_MINUTES), 'minute', 'minutes')} after the "
            "last message"
            if lite.expiration_minutes is not None
            else ""
        )
        for lite in info.lite_topics
    )


def _wheel(wheel: WheelInfo) -> str:
    """Describe a snapshot of the timer wheel."""
    words = f"{wheel.name}: {number_of(wheel.messages, 'message waits', 'messages wait')}"
    if wheel.is_taken:
        words += "; a start with timerWheelSnapshotFlush=true takes it"
    return words


def _log(info: StoreInfo) -> str:
    """Describe where the log begins and ends."""
    end = "an end that is not known" if info.max_offset is None else f"{info.max_offset:,}"
    span = f"{info.min_offset:,} to {end} in {number_of(len(info.log_files), 'file', 'files')}"
    if "log" in info.unknown:
        beside_units = any(part.beside_units for part in info.undecoded)
        return f"{span}; {info.unknown['log']}" if beside_units else info.unknown["log"]
    return span if info.log_files else "no commit log"


def _dledger(dledger: DLedgerInfo) -> str:
    """Describe the entries of a DLedger log."""
    first_header, last_header, committed = dledger.first_header, dledger.last_header, dledger.committed_index
    entries = (
        "no entries"
        if first_header is None or last_header is None
        else f"entries {first_header.index:,} to {last_header.index:,}"
    )
    term = f", term {last_header.term:,}" if last_header is not None else ""
    state = "committed index not known" if committed is None else f"committed up to {committed:,}"
    return f"member {dledger.member or '?'}, {entries}{term}, {state}"


def _state(info: StoreInfo) -> str:
    """Describe the state in which the store was left. Nothing is called closed over files that could not be read."""
    if info.unread:
        return f"not known: {number_of(len(info.unread), 'file', 'files')} or folders could not be read"
    if info.abort:
        return "not closed (abort is there)"
    return "closed cleanly" if info.kind == "store" else "not known"


def _is_partial(info: StoreInfo) -> bool:
    return bool(info.unread) or any(q.max_offset is None for queues in info.topics.values() for q in queues)


def _messages(queues: list[QueueInfo]) -> int | None:
    """Count the messages of a topic; None if a queue's bounds are not known."""
    bounds = [(q.min_offset, q.max_offset) for q in queues if q.min_offset is not None and q.max_offset is not None]
    return (
        sum(max_offset - max(min_offset, 0) for min_offset, max_offset in bounds)
        if len(bounds) == len(queues)
        else None
    )


def _few(offsets: list[int | None]) -> str:
    shown = " ".join("?" if n is None else f"{n:,}" for n in offsets[:4])
    return f"{shown} …" if len(offsets) > 4 else shown
