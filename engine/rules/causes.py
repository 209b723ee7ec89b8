"""Names the cause of an incident in one clause: the worst finding, and among equals the one that explains the most."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from engine.codec.config_tables import TABLES
from engine.english import capital, small
from engine.rules.findings import HAPPENED, SEVERITIES, STORED_FROM, STORED_TO, Finding
from engine.sentences import Sentence, plural, sentence
from engine.times import time_text

CAUSES: tuple[tuple[str, Sentence], ...] = (
    ("DK04", sentence("a copy left files without a byte, or changed them")),
    ("CL12", sentence("the commit log is empty or gone: its disk is not mounted, or its files were deleted")),
    ("CL14", sentence("queues and commit log do not fit together")),
    ("CL07", sentence("the files of the commit log are not contiguous")),
    ("DL01", sentence("an entry of the DLedger log is damaged")),
    ("DL03", sentence("the DLedger log lost entries that were committed")),
    ("DL06", sentence("a leader replaced messages that were in queues already")),
    ("CL05", sentence("bytes from another place or from an earlier use of a file are in the commit log")),
    (
        "CL11",
        sentence(
            "the commit log lost its last part: messages that queues, index or checkpoint know were never written, or "
            "were cut off"
        ),
    ),
    ("AB02", sentence("a command that changes files of the store was stopped before its end")),
    ("CL01", sentence("a part of the commit log was overwritten or never written")),
    ("CL02", sentence("the end of a log file was overwritten")),
    ("CL04", sentence("properties of messages were written only in part, or changed afterwards")),
    ("CL03", sentence("bodies of messages differ from what was stored: the disk, the memory or a copy changed them")),
    ("CL09", sentence("the head of a message was changed on the disk")),
    ("CF14", sentence("the tables in config/ do not fit this store")),
    (
        "CF03",
        sentence(
            "a configuration table was lost: a power cut or a full disk while it was written, or it was not copied"
        ),
    ),
    ("CF01", sentence("a configuration table was written only in part, or edited wrongly")),
    ("CF04", sentence("there is text after the end of a configuration table")),
    ("CF05", sentence("the broker's configuration does not fit this store")),
    ("RP02", sentence("the commit log has a gap that dispatch has to cross")),
    ("CQ11", sentence("the queues of a topic are not of the kind in its configuration")),
    ("CQ06", sentence("the broker died after it created a queue file and before it filled it")),
    ("CQ01", sentence("a file of a queue is missing or has a wrong length")),
    ("CQ05", sentence("entries of a queue were written twice")),
    ("CQ04", sentence("entries of a queue do not point to their units")),
    ("CQ03", sentence("pages of a queue were lost")),
    ("CQ12", sentence("entries of a queue go backwards in the log")),
    ("RP03", sentence("queues end, and the log continues with later queue offsets: the messages in between are gone")),
    ("CQ17", sentence("dispatch stopped at a message")),
    (
        "CQ10",
        sentence("queues lost their last entries, a file or their folder, or never got messages that the log has"),
    ),
    ("RP01", sentence("queues lost entries that the next start does not dispatch")),
    ("CQ13", sentence("the commit log was cut and the queues were not")),
    ("CQ09", sentence("tag codes of a queue differ from those of its messages")),
    ("TM03", sentence("the timer wheel or the timer log was lost")),
    ("TM04", sentence("the timer wheel has another length than brokers give it")),
    ("TM01", sentence("the timer's checkpoint does not belong to this timer queue")),
    ("TM05", sentence("the timer passed over messages that were due")),
    ("IX12", sentence("the RocksDB of the index and the log are of different moments")),
    ("TM06", sentence("the RocksDB of timers and the log are of different moments, or a start passed over messages")),
    ("CF17", sentence("the RocksDB of transactions and the log are of different moments")),
    ("CF18", sentence("the RocksDB of popped messages was changed, or lost its messages")),
    ("CF19", sentence("the mapping of a static topic was changed, or belongs to another moment or broker")),
    ("TM02", sentence("units of the timer log lead to no timer message")),
    ("CK02", sentence("the checkpoint is ahead of the data: it belongs to another store, or data was lost")),
    ("CK01", sentence("the checkpoint contains times of zero")),
    ("CK05", sentence("the checkpoint was written only in part, or lost")),
    ("IX06", sentence("the index belongs to another store, or the log was changed after it was built")),
    ("IX08", sentence("an index file was cut or overwritten")),
    ("IX11", sentence("an index file was renamed")),
    ("CL06", sentence("the last message was written only in part")),
    ("CL08", sentence("the broker's clock jumped")),
    ("CQ14", sentence("a topic is missing in topics.json")),
    ("CF07", sentence("topics.json hides queues from clients")),
    ("CF15", sentence("groups may not consume, and messages wait for them")),
    ("CF12", sentence("groups have read more messages than the log ever held")),
    ("CF08", sentence("groups have offsets in a topic of which the store has nothing")),
    ("CF13", sentence("a broker service makes no progress")),
    ("CF09", sentence("the delay levels' offsets do not match their queues")),
    ("CF06", sentence("retention deleted messages before their group had read them")),
    ("CF02", sentence("the offset of a group is beyond its queue")),
    ("CF10", sentence("a filter has no bloom filter data, so a broker discards all filters")),
    ("CF11", sentence("a client wrote an offset below zero")),
    ("DK01", sentence("a foreign file or folder was put into the store's folders")),
    ("CM02", sentence("bytes of a compacted queue are damaged")),
    ("CM03", sentence("the files of compacted queues are lost")),
    ("CQ19", sentence("queues in files and in a RocksDB were not written by the same starts")),
    ("CQ18", sentence("something other than a broker of 5.4 or later stored messages with a priority")),
    ("LT01", sentence("no message came to a lite topic for longer than its topic allows")),
    ("TS01", sentence("files of tiered storage are lost")),
    ("CQ15", sentence("ext files of queues are gone, empty or short")),
    ("IX01", sentence("the header of an index file does not match its entries")),
    ("IX02", sentence("a link or a slot of an index file points beyond its last entry")),
    ("IX03", sentence("a chain in an index file is a loop")),
    ("IX07", sentence("the index has entries of messages after the end of the log")),
    ("IX09", sentence("a chain in an index file skips entries")),
    ("DL02", sentence("the index of the DLedger log does not fit it")),
    ("DL04", sentence("the member of the DLedger group lost its newest term")),
    ("CK04", sentence("the confirm offset in the checkpoint is after the end of the log")),
)
"""Rules in the order in which they explain others, each with what happened then, where a finding does not say it
of its own kind and place; another rule's title speaks for it.
"""


def what_happened(grave: Sequence[Finding], *, crashed: bool) -> str:
    """Return a sentence on findings of a warning or more, with kind, place and times if they are known.

    ``crashed``: the abort file exists.
    """
    heads = [finding for finding in grave if finding.caused_by is None and finding.id not in ("AB01", "IX04")]
    if not heads:
        return sentence("The broker was killed or its machine lost power.")
    main_finding = worst_first(heads)[0]
    alike = sum(finding.id == main_finding.id for finding in heads)
    clause = _clause(main_finding)
    if alike > 1:
        clause = plural("{what}, and at {n:,} more place", "{what}, and at {n:,} more places", n=alike - 1, what=clause)
    clause = _with_times(clause, main_finding)
    if crashed:
        return sentence("The broker was not closed, and {what} ({rule}).", what=clause, rule=main_finding.id)
    return sentence("{what} ({rule}).", what=capital(clause), rule=main_finding.id)


def _clause(finding: Finding) -> str:
    """The finding's own clause on its kind and place; else its rule's clause, and the place."""
    own_clause: str | None = finding.evidence.get(HAPPENED)
    if own_clause:
        return own_clause
    clause = dict(CAUSES).get(finding.id) or small(sentence(finding.title))
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
    return sentence("{what}, in {file}", what=clause, file=str(PurePath(*path.parts[-2:])))


def _with_times(clause: str, finding: Finding) -> str:
    """Return the clause with the store times of the messages around the place."""
    start_time, end_time = finding.evidence.get(STORED_FROM), finding.evidence.get(STORED_TO)
    if start_time is not None and start_time == end_time:
        return sentence("{what}; the message there was stored {time}", what=clause, time=time_text(start_time))
    if start_time is not None and end_time is not None:
        return sentence(
            "{what}, between messages stored {first} and {last}",
            what=clause,
            first=time_text(start_time),
            last=time_text(end_time),
        )
    if start_time is not None:
        return sentence("{what}, after a message stored {time}", what=clause, time=time_text(start_time))
    if end_time is not None:
        return sentence("{what}, before a message stored {time}", what=clause, time=time_text(end_time))
    return clause


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """Sort findings: errors come before warnings; of one severity, those that explain the most; of one rule, the tables
    that others depend on.
    """
    causes = {rule: number for number, (rule, _) in enumerate(CAUSES)}
    tables = {name: number for number, name in enumerate(TABLES)}

    def rank(finding: Finding) -> tuple[int, int, int]:
        return (
            -SEVERITIES.index(finding.severity),
            causes.get(finding.id, len(causes)),
            tables.get(PurePath(finding.file or "").name, len(tables)),
        )

    return sorted(findings, key=rank)
