"""Names the cause of an incident in one clause: the cause that explains most of the findings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from engine.codec.config_tables import TABLES
from engine.codec.words import time_text
from engine.english import capital, small
from engine.rules.findings import HAPPENED, STORED_FROM, STORED_TO, Finding
from engine.sentences import plural, sentence, with_text

CAUSES: tuple[tuple[str, str], ...] = (
    ("DK04", "a copy left files without a byte, or changed them"),
    ("CL12", "the commit log is empty or gone: its disk is not mounted, or its files were deleted"),
    ("CL14", "queues and commit log do not fit together"),
    ("CL07", "the files of the commit log are not contiguous"),
    ("CL05", "bytes from another place or from an earlier use of a file are in the commit log"),
    (
        "CL11",
        (
            "the commit log lost its last part: messages that queues, index or checkpoint know were never written, or "
            "were cut off"
        ),
    ),
    ("CL01", "a part of the commit log was overwritten or never written"),
    ("CL02", "the end of a log file was overwritten"),
    ("CL04", "properties of messages were written only in part, or changed afterwards"),
    ("CL03", "bodies of messages differ from what was stored: the disk, the memory or a copy changed them"),
    ("CL09", "the head of a message was changed on the disk"),
    ("CF14", "the tables in config/ do not fit this store"),
    ("CF03", "a configuration table was lost: a power cut or a full disk while it was written, or it was not copied"),
    ("CF01", "a configuration table was written only in part, or edited wrongly"),
    ("CF04", "there is text after the end of a configuration table"),
    ("CF05", "the broker's configuration does not fit this store"),
    ("RP02", "the commit log has a gap that dispatch has to cross"),
    ("CQ11", "the queues of a topic are not of the kind in its configuration"),
    ("CQ06", "the broker died after it created a queue file and before it filled it"),
    ("CQ01", "a file of a queue is missing or has a wrong length"),
    ("CQ05", "entries of a queue were written twice"),
    ("CQ04", "entries of a queue do not point to their units"),
    ("CQ03", "pages of a queue were lost"),
    ("CQ12", "entries of a queue go backwards in the log"),
    ("RP03", "queues end, and the log continues with later queue offsets: the messages in between are gone"),
    ("CQ10", "queues lost their last entries, a file or their folder, or never got messages that the log has"),
    ("RP01", "queues lost entries that the next start does not dispatch"),
    ("CQ13", "the commit log was cut and the queues were not"),
    ("CQ09", "tag codes of a queue differ from those of its messages"),
    ("TM03", "the timer wheel or the timer log was lost"),
    ("TM04", "the timer wheel has another length than brokers give it"),
    ("TM01", "the timer's checkpoint does not belong to this timer queue"),
    ("TM02", "units of the timer log lead to no timer message"),
    ("CK02", "the checkpoint is ahead of the data: it belongs to another store, or data was lost"),
    ("CK05", "the checkpoint was written only in part, or lost"),
    ("IX06", "the index belongs to another store, or the log was changed after it was built"),
    ("IX08", "an index file is incomplete"),
    ("IX11", "an index file was renamed"),
    ("CL06", "the last message was written only in part"),
    ("CL08", "the broker's clock jumped"),
    ("CQ14", "a topic is missing in topics.json"),
    ("CF07", "topics.json hides queues from clients"),
    ("CF15", "groups may not consume, and messages wait for them"),
    ("CF12", "groups have read more messages than the log ever held"),
    ("CF08", "groups have offsets in a topic of which the store has nothing"),
    ("CF13", "a broker service makes no progress"),
    ("CF09", "the delay levels' offsets do not match their queues"),
    ("CF06", "retention deleted messages before their group had read them"),
    ("CF02", "the offset of a group is beyond its queue"),
    ("CF10", "a filter has no bloom filter data, so a broker discards all filters"),
    ("CF11", "a client wrote an offset below zero"),
    ("DK01", "a foreign file or folder was put into the store's folders"),
    ("CQ15", "ext files of queues are gone, empty or short"),
    ("IX01", "the header of an index file does not match its entries"),
    ("IX02", "a link or a slot of an index file points beyond its last entry"),
    ("IX03", "a chain in an index file is a loop"),
    ("IX07", "the index has entries of messages after the end of the log"),
    ("IX09", "a chain in an index file skips entries"),
    ("CK04", "the confirm offset in the checkpoint is after the end of the log"),
)
"""Rules in the order in which they explain others, each with what happened then, where a finding does not say it
of its own kind and place; another rule's title speaks for it.
"""


def what_happened(grave: Sequence[Finding], *, crashed: bool) -> str:
    """One sentence on findings of a warning or more, with kind, place and times if they are known.

    ``crashed``: the abort file exists.
    """
    heads = [finding for finding in grave if finding.caused_by is None and finding.id not in ("AB01", "IX04")]
    if not heads:
        return sentence("The broker was killed or its machine lost power.")
    main_finding = by_cause(heads)[0]
    alike = sum(finding.id == main_finding.id for finding in heads)
    clause = _clause(main_finding)
    if alike > 1:
        clause = plural("{what} and at {n:,} more place", "{what} and at {n:,} more places", n=alike - 1, what=clause)
    clause = _with_times(clause, main_finding)
    if crashed:
        return sentence("The broker was not closed, and {what} ({rule}).", what=clause, rule=main_finding.id)
    return sentence("{what} ({rule}).", what=capital(clause), rule=main_finding.id)


def _clause(finding: Finding) -> str:
    """The finding's own clause on its kind and place; else its rule's clause, and the place."""
    own_clause: str | None = finding.evidence.get(HAPPENED)
    if own_clause:
        return own_clause
    clause = sentence(dict(CAUSES).get(finding.id, "")) or with_text(sentence(finding.title), small)
    if finding.group == "log" and finding.offset is not None:
        return sentence("{what}, at {offset:,} of the log", what=clause, offset=finding.offset)
    queue, entry = finding.evidence.get("queue"), finding.evidence.get("queueOffset")
    if isinstance(queue, str):
        return (
            sentence("{what}, in the queue {queue} at entry {entry:,}", what=clause, queue=queue, entry=entry)
            if isinstance(entry, int)
            else sentence("{what}, in the queue {queue}", what=clause, queue=queue)
        )
    if finding.file is None:
        return clause
    path = PurePath(finding.file)
    return sentence("{what}, in {file}", what=clause, file=f"{path.parent.name}/{path.name}")


def _with_times(clause: str, finding: Finding) -> str:
    """Return the clause with the store times of the messages around the place."""
    start_time, end_time = finding.evidence.get(STORED_FROM), finding.evidence.get(STORED_TO)
    if start_time is not None and start_time == end_time:
        return sentence("{what}, stored {time}", what=clause, time=time_text(start_time))
    if start_time is not None and end_time is not None:
        template = "{what}, between messages stored {first} and {last}"
        return sentence(template, what=clause, first=time_text(start_time), last=time_text(end_time))
    if start_time is not None:
        return sentence("{what}, after a message stored {time}", what=clause, time=time_text(start_time))
    if end_time is not None:
        return sentence("{what}, before a message stored {time}", what=clause, time=time_text(end_time))
    return clause


def by_cause(findings: Sequence[Finding]) -> list[Finding]:
    """Sort findings: those that explain the most come first; of tables, those that others depend on."""
    order = {rule: number for number, (rule, _) in enumerate(CAUSES)}
    tables = {name: number for number, name in enumerate(TABLES)}

    def rank(finding: Finding) -> tuple[int, int]:
        return order.get(finding.id, len(order)), tables.get(PurePath(finding.file or "").name, len(tables))

    return sorted(findings, key=rank)
