"""What happened to a store, in one clause: of all that rules found, the cause that explains the most."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from engine.codec.tables import TABLES
from engine.codec.words import when
from engine.counted import capital, one_of, small
from engine.rules.findings import HAPPENED, STORED_FROM, STORED_TO, Finding

CAUSES: tuple[tuple[str, str], ...] = (
    ("CL12", "the commit log is empty or gone: its disk is not mounted, or its files were deleted"),
    ("CL07", "the files of the commit log do not follow each other"),
    ("CL05", "bytes of another place or of an older life of a file stand in the commit log"),
    ("CL11", "the commit log lost its tail: what queues, index or checkpoint know of was never written, or cut off"),
    ("CL01", "a stretch of the commit log was overwritten or never written"),
    ("CL02", "the end of a log file was overwritten"),
    ("CL04", "properties of messages were torn while they were written, or changed afterwards"),
    ("CL03", "bodies of messages are not what was stored: the disk, the memory or a copy changed them"),
    ("CL09", "the head of a message was changed on the disk"),
    ("CF03", "a configuration table was lost: a power cut or a full disk while it was written, or it was not copied"),
    ("CF01", "a configuration table was torn while it was written, or edited wrongly"),
    ("CF04", "a configuration table was written over a longer one"),
    ("CF05", "the broker's configuration is not the one that this store was made with"),
    ("RP02", "the commit log has a gap that dispatch has to cross"),
    ("CQ11", "the queues of a topic are not of the kind that its configuration has"),
    ("CQ06", "the broker died between making a queue file and filling it"),
    ("CQ01", "a file of a queue is missing, or of another length"),
    ("CQ05", "entries of a queue were written twice"),
    ("CQ04", "an entry of a queue was never written, or another queue's file stands in its place"),
    ("CQ03", "pages of a queue were lost"),
    ("CQ12", "a queue holds entries of an older life"),
    ("CQ10", "queues lost their last entries, a file or their folder, or never got what the log has"),
    ("RP01", "queues lost entries that lie before what the next start dispatches"),
    ("CQ13", "the commit log was cut and the queues were not"),
    ("CQ09", "tag codes of a queue are not those of its messages"),
    ("TM03", "the timer wheel or the timer log was lost"),
    ("TM04", "the timer wheel is one of another store"),
    ("TM01", "the timer's checkpoint is not the one of this timer queue"),
    ("TM02", "the timer log belongs to another commit log"),
    ("CK02", "the checkpoint is ahead of the data: it is another store's, or the data was lost behind it"),
    ("CK05", "the checkpoint was torn or lost"),
    ("IX06", "the index is another store's, or the log was changed below it"),
    ("IX08", "an index file was cut or torn"),
    ("CL06", "the write of the last message was torn"),
    ("CL08", "the broker's clock jumped"),
    ("CQ14", "a topic is missing in topics.json"),
    ("CF07", "topics.json hides queues from clients"),
    ("CF08", "a topic was deleted and its groups were not"),
    ("CF09", "the delay levels' offsets are not those of their queue"),
    ("CF06", "retention deleted messages before their group had read them"),
    ("CF02", "the offset of a group is beyond its queue"),
    ("DK01", "something was put into the store's folders"),
)
"""Rules in the order in which they explain others, each with what happened then, where a finding does not say it
of its own kind and place; another rule's title speaks for it.
"""
CRASHED = "the broker was not closed"
_KILLED = "the broker was killed or its machine lost power"


def what_happened(grave: Sequence[Finding], *, crashed: bool) -> str:
    """One sentence on findings of a warning or more, with kind, place and times where the facts tell them; ``crashed``
    where the abort file is there.
    """
    heads = [one for one in grave if one.caused_by is None and one.id not in ("AB01", "IX04")]
    if not heads:
        return f"{capital(_KILLED)}."
    most = by_cause(heads)[0]
    alike = sum(one.id == most.id for one in heads)
    more = f" and at {alike - 1:,} more places" if alike > 1 else ""
    clause = one_of(f"{_clause(most)}{more}{_times(most)}")
    if crashed:
        return f"{capital(CRASHED)}, and {clause} ({most.id})."
    return f"{capital(clause)} ({most.id})."


def _clause(one: Finding) -> str:
    """What the finding says of its own kind and place; else what its rule says, and where it is."""
    told: str | None = one.evidence.get(HAPPENED)
    if told:
        return told
    clause = dict(CAUSES).get(one.id, small(one.title))
    if one.group == "log" and one.offset is not None:
        return f"{clause}, at {one.offset:,} of the log"
    queue, entry = one.evidence.get("queue"), one.evidence.get("queueOffset")
    if isinstance(queue, str):
        return (
            f"{clause}, in the queue {queue} at entry {entry:,}"
            if isinstance(entry, int)
            else f"{clause}, in the queue {queue}"
        )
    if one.file is None:
        return clause
    path = PurePath(one.file)
    return f"{clause}, in {path.parent.name}/{path.name}"


def _times(one: Finding) -> str:
    """Between which messages, by their store times."""
    first, last = one.evidence.get(STORED_FROM), one.evidence.get(STORED_TO)
    if first is not None and first == last:
        return f", stored {when(first)}"
    if first is not None and last is not None:
        return f", between messages stored {when(first)} and {when(last)}"
    if first is not None:
        return f", behind a message stored {when(first)}"
    return f", in front of a message stored {when(last)}" if last is not None else ""


def by_cause(found: Sequence[Finding]) -> list[Finding]:
    """What explains the most first; of tables those without which others are not understood."""
    order = {rule: number for number, (rule, _) in enumerate(CAUSES)}
    tables = {name: number for number, name in enumerate(TABLES)}

    def rank(one: Finding) -> tuple[int, int]:
        return order.get(one.id, len(order)), tables.get(PurePath(one.file or "").name, len(tables))

    return sorted(found, key=rank)
