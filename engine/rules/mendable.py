"""What ``storescope repair`` does about the findings of each rule, and why it leaves some of them as they are
(docs/formats/repair.md).
"""

from __future__ import annotations

from engine.sentences import Sentence, sentence

DATABASES = frozenset({"DK02"})
LOG = frozenset({"CL01", "CL02", "CL03", "CL05", "CL09"})
ENTRIES = frozenset({"CL01", "CL06", "DL01", "DL03"})
LOST_END = frozenset({"CL11", "CQ13"})
QUEUES = LOST_END | {"CQ01", "CQ03", "CQ04", "CQ05", "CQ06", "CQ09", "CQ10", "CQ12", "CQ15", "CQ16", "RP01", "RP03"}
INDEX = frozenset({"IX01", "IX02", "IX03", "IX09"})
INDEX_ENTRIES = frozenset({"CL11", "IX01", "IX06", "IX07", "IX08", "IX10"})
INDEX_ROWS = frozenset({"IX12"})
LOST_QUEUES = frozenset({"CQ10"})
CHECKPOINT = frozenset({"CK02", "CK04", "CK05", "CL11"})
TABLES = frozenset({"CF01", "CF03", "CF04", "CF19", "CK06"})
MISSING_FILES = frozenset({"RP02", "RP03"})
FILES = frozenset({"CL05", "CL07", "CL12", "CQ01", "DK01", "IX11"})
LENGTHS = frozenset({"CL07", "CF05"})
TOPICS = frozenset({"CF01", "CF03", "CF07", "CF19", "CQ11", "CQ14"})
OFFSETS = frozenset({"CF02", "CF08", "CF13"})
DELAY_OFFSETS = frozenset({"CF01", "CF03", "CF09"})
TIMERS = frozenset({"TM01", "TM02", "TM03", "TM04", "TM05"})
COMPACTED = frozenset({"CM02", "CM03"})
POPS = frozenset({"CF18"})

REPAIRS: dict[str, tuple[frozenset[str], Sentence]] = {
    "rocksdb": (DATABASES, sentence("Build the damaged RocksDB of queues again from the commit log")),
    "files": (FILES, sentence("Rename, move or remove files that a broker does not expect")),
    "tables": (TABLES, sentence("Mend the tables in config/")),
    "lengths": (LENGTHS, sentence("Give files of the commit log the length of the others")),
    "entries": (ENTRIES, sentence("Mend the headers of the DLedger log")),
    "missing-files": (MISSING_FILES, sentence("Replace missing files of the commit log")),
    "log": (LOG, sentence("Mend the damaged bytes of the commit log")),
    "queues": (QUEUES | {"CQ17", "CQ19"}, sentence("Mend the entries of the queues from the commit log")),
    "index-entries": (INDEX_ENTRIES, sentence("Write the entries of index files again from the commit log")),
    "index": (INDEX, sentence("Mend the chains of index files")),
    "index-rows": (INDEX_ROWS, sentence("Write the index rows in a RocksDB again from the commit log")),
    "topics": (TOPICS, sentence("Let topics.json say what the queues are")),
    "offsets": (OFFSETS, sentence("Set offsets of groups that no queue has")),
    "delay-offsets": (
        DELAY_OFFSETS,
        sentence("Let delay levels go on with their first message that was not delivered"),
    ),
    "timers": (TIMERS, sentence("Write the timer log again from the messages that wait")),
    "compacted": (COMPACTED, sentence("Mend compacted queues from the commit log")),
    "pops": (POPS, sentence("Delete rows of popped messages that no broker can read")),
    "checkpoint": (CHECKPOINT, sentence("Correct the checkpoint")),
    "start-of-dispatch": (LOST_QUEUES, sentence("Let the next start read the log from its first file")),
}
"""The repairs in their order: the rules whose findings each may mend, and its title."""
ALL = frozenset[str]().union(*(rules for rules, _ in REPAIRS.values()))
"""Rules of which at least one finding may be mended."""

_UNRELIABLE = sentence("the log lost its end, or log and tables are of two stores: the offsets may be right")
_HIDDEN_TIMERS = sentence("damage of the log hides which timer messages were delivered: restore the timer's files")
_COMPACTED = sentence(
    "the commit log has deleted the messages; or no file is left that shows the length of these files: give the "
    "configuration (--config)"
)
_DLEDGER = sentence("the other members of the DLedger group have the right entries, and send them")

LEFT: dict[str, Sentence] = {
    "AB01": sentence("nothing has to be mended: without this file the next start would not look for what a kill left"),
    "AB02": sentence(
        "the backup beside the store has everything as it was: storescope repair STORE --undo FOLDER; without a backup "
        "(--no-backup) this plan completes the change"
    ),
    "CF01": sentence(
        "the rows behind the damage are gone, and no .bak has them: only a backup or a replica does (--from)"
    ),
    "CF02": _UNRELIABLE,
    "CF03": sentence(
        "the rows are gone, and no other file of the store has them: only a backup or a replica does (--from)"
    ),
    "CF04": sentence(
        "what is in front of the text is no whole table either: only a backup or a replica has its rows (--from)"
    ),
    "CF05": sentence("the configuration decides this: correct the lines in broker.conf that the finding names"),
    "CF06": sentence("the log has deleted these messages, and no other file of the store has them"),
    "CF07": sentence("the settings of the topic decide this: mqadmin updateTopic changes them while the broker runs"),
    "CF08": _UNRELIABLE,
    "CF09": _UNRELIABLE,
    "CF10": sentence("nothing has to be mended: clients register their filters again with their heartbeats"),
    "CF11": sentence("a broker treats such an offset like none: the group starts in the same place without the row"),
    "CF12": sentence(
        "the store does not say which of the two belongs to it, the log or the offsets; if the log was deleted on "
        "purpose, set the offsets (storescope set-offset)"
    ),
    "CF13": sentence("no byte of the store is wrong: a setting, or an error of the running service, holds it up"),
    "CF14": sentence("the tables of this store are not in it: only a backup or a replica has them (--from)"),
    "CF15": sentence("somebody set consumeEnable to false: mqadmin updateSubGroup changes it while the broker runs"),
    "CF16": sentence("only the producers know whether these transactions were committed"),
    "CF17": sentence("no row is wrong: the log, or the rows of other half messages, are of another moment"),
    "CF18": sentence("the messages are gone, and a broker deletes these rows itself"),
    "CF19": sentence(
        "no file of the store says which of the ranges is right: only a replica may have them (--from); messages "
        "behind the end of a range are not mended: their producers have to send them again"
    ),
    "CK01": sentence("nothing has to be mended: a start reads more of the log, and a running broker writes new times"),
    "CK02": sentence("the log has no message whose time could take its place"),
    "CK03": sentence("nothing has to be mended: the times are right, and a running broker moves them on"),
    "CK04": sentence("the log has no message whose offset could take its place"),
    "CK05": sentence("the log has no message whose time and offset could take its place"),
    "CK06": sentence("the right rows are gone: the controller or a replica of the broker has them"),
    "CL01": sentence("no message of the log is behind these bytes: a start ends the log there, and loses no message"),
    "CL02": sentence("the bytes around the blank do not say where the next message begins"),
    "CL03": sentence("the bytes that were stored are gone, and a start keeps the message as it is"),
    "CL04": sentence(
        "the properties that were stored are gone, and no CRC covers them: only a replica has them (--from)"
    ),
    "CL05": sentence("the store does not hold the bytes that belong here: only a backup or a replica does"),
    "CL06": sentence("nothing has to be mended: a start leaves these bytes out, and new messages overwrite them"),
    "CL07": sentence("only the file that belongs here closes the gap, or says which of two files is right"),
    "CL08": sentence("the broker's clock was wrong, and no other bytes have the right times of these messages"),
    "CL09": sentence("the entries of its queue do not say for certain where the message belongs"),
    "CL10": sentence("nothing has to be mended: the room is empty, and no message is missing"),
    "CL11": sentence("the lost messages are in no file of this store: a replica or disk image may have them (--from)"),
    "CL12": sentence("the files of the log are not where a broker reads them: mount their disk, restore or move them"),
    "CL13": sentence("the store has the times that the clocks showed: correct the producer's clock"),
    "CL14": sentence("the store does not say which of the two belongs to it, the log or the queues"),
    "CL15": sentence(
        "the messages are gone: their producers, or a replica from which you copy the store, may have them"
    ),
    "CM01": sentence("nothing has to be mended: this is how compacted topics are kept"),
    "CM02": _COMPACTED,
    "CM03": _COMPACTED,
    "CQ01": sentence("the commit log does not hold all messages of the queue, so its entries cannot be written again"),
    "CQ03": sentence("two messages of the log claim this place of the queue, or the queue has a form of its own"),
    "CQ04": sentence("two messages of the log claim this place of the queue, or the queue has a form of its own"),
    "CQ05": sentence("two messages of the log claim this place of the queue, or the queue has a form of its own"),
    "CQ06": sentence(
        "a start continues in this file; where it takes zeros for an entry, only the name of this file has the queue's "
        "numbers: let groups begin behind that entry (storescope set-offset)"
    ),
    "CQ08": sentence("nothing has to be mended: the topic was deleted, and its messages expire with their files"),
    "CQ09": sentence("two messages of the log claim this place of the queue, or the queue has a form of its own"),
    "CQ10": sentence(
        "the next start dispatches these messages, or storescope dispatch builds queues of this form. If they were in "
        "a RocksDB, give the broker's configuration (--config), and the database is built: a new one of the broker "
        "leaves out the message at offset 0 of the log"
    ),
    "CQ11": sentence("the topic has folders of both kinds: move the one without its messages out of the store"),
    "CQ12": sentence("two messages of the log claim this place of the queue, or the queue has a form of its own"),
    "CQ13": sentence(
        "the messages of these entries are gone; the next start cuts the entries, or the queue has a form of its own"
    ),
    "CQ14": sentence(
        "the topics are in a RocksDB, not in topics.json: mqadmin updateTopic makes the topic again on the running "
        "broker"
    ),
    "CQ15": sentence("storescope dispatch builds the queues and their ext files together from the log"),
    "CQ16": sentence("the log does not have the messages around this bound, or more rows are wrong than are written"),
    "CQ17": sentence("a setting decides this while the broker runs, and no queue entry is missing on the disk"),
    "CQ18": sentence("a message in another queue would get another queue offset, and groups would miss or repeat it"),
    "CQ19": sentence("only the rows of the RocksDB are written, where the files have what the log says"),
    "DK01": sentence("a folder is not moved: what is in it may belong to somebody"),
    "DK02": sentence("Storescope does not read this part, so it changes nothing in it"),
    "DK03": sentence("nothing has to be mended: releases from 5.0 on read these messages"),
    "DK04": sentence("the bytes were not copied: copy the store again from its source"),
    "DL01": _DLEDGER,
    "DL02": sentence("a start writes the rows of the newest files again; another member has the older ones"),
    "DL03": _DLEDGER,
    "DL04": sentence("no file of this member says which term was the newest: another member of the group knows it"),
    "DL05": sentence("nothing has to be mended: the leader of the group decides about these entries"),
    "DL06": sentence("only the leader of the group has the messages with these queue offsets"),
    "IX01": sentence(
        "entries of this file are wrong, too, and others do not prove them: storescope dispatch builds it"
    ),
    "IX02": sentence(
        "entries of this file are wrong, too, and others do not prove them: storescope dispatch builds it"
    ),
    "IX03": sentence(
        "entries of this file are wrong, too, and others do not prove them: storescope dispatch builds it"
    ),
    "IX04": sentence("a start after a crash deletes the file, whatever it holds"),
    "IX05": sentence("no file is wrong: storescope dispatch builds the index with the missing keys from the log"),
    "IX06": sentence("the files beside this one do not say which keys it held: storescope dispatch builds the index"),
    "IX07": sentence("the messages of these entries are gone: storescope dispatch builds the index without them"),
    "IX08": sentence("the files beside this one do not say which keys it held: storescope dispatch builds the index"),
    "IX09": sentence(
        "entries of this file are wrong, too, and others do not prove them: storescope dispatch builds it"
    ),
    "IX10": sentence("the files beside this one do not say which keys it held: storescope dispatch builds the index"),
    "IX11": sentence("the names depend on the broker's time zone, which the files do not show"),
    "IX12": sentence("the RocksDB with these rows is not in the store's folder, or cannot take a write-ahead log"),
    "LT01": sentence("the settings of the topic decide this: mqadmin updateTopic changes them while the broker runs"),
    "RP01": sentence("the log lacks the messages in between; or storescope dispatch builds queues of this form"),
    "RP02": sentence("the queue entries do not say which messages were in the missing file: restore it"),
    "RP03": sentence("the queue entries do not say which messages are missing in between: restore the log"),
    "TM01": _HIDDEN_TIMERS,
    "TM02": sentence("the log has deleted these messages, and no other file of the store has them"),
    "TM03": _HIDDEN_TIMERS,
    "TM04": _HIDDEN_TIMERS,
    "TM05": sentence("the timer passes over messages of this size: raise maxMessageSize, and send them again"),
    "TM06": sentence(
        "timer rows are not written: read these messages from the log (storescope where shows each) and send them again"
    ),
    "TS01": sentence("no other file of the store has these bytes: only a backup of the tiered storage does"),
}
"""Why ``repair`` leaves a finding of the rule as it is: all of them, or those that do not fit its repair."""

IN_GROUP: dict[str, Sentence] = dict.fromkeys((*sorted(LOG), "CL06"), _DLEDGER)
"""Reasons that take the place of those of :data:`LEFT` on a member of a DLedger group that has others."""


def repairs_of(rule: str) -> tuple[str, ...]:
    """Return the names of the repairs that may mend findings of a rule."""
    return tuple(name for name, (rules, _) in REPAIRS.items() if rule in rules)
