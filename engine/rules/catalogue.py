"""Every rule by its id. Ids are stable: reports and other programs name them."""

from __future__ import annotations

from engine.rules import catalogue_tables
from engine.rules.findings import (
    ALL,
    BOTH,
    BUILD,
    CHECKPOINT,
    CONFIG,
    INDEX,
    LOG,
    PLAN,
    PUT_IN_WORDS,
    QUEUE,
    SEEN,
    STATE,
    TIMER,
    Kind,
    Parts,
    Register,
)

RULES = Register(catalogue_tables.RULES)
NO_FOLDER = (
    "move it out of the folder; where a disk makes it (lost+found), give the store a folder of its own on that disk."
)
SHORT_NAMES = (
    "give the files their names of 20 digits back while the broker is stopped: brokers sort files by their names as "
    "text, and the next file that a broker makes has 20 digits and comes in front of these. What is written into it is "
    "lost at the start after that."
)
_rule = RULES.add

CL01 = _rule(
    "CL01",
    "error",
    "Bytes in the log that are no unit",
    "A broker that walks the log stops here: recovery cuts everything behind it, dispatch skips to the next file.",
    "compare the bytes with a replica's at the same offset; the units behind the damage can still be copied out.",
    "apache/rocketmq#6767",
    "apache/rocketmq#289",
    kinds={
        "foreign": Kind(
            step="find out what these files are (another program's log, a packed or encrypted copy) before anything "
            "starts on them: a broker cuts the log at its first byte. Bring this store's own log back from a backup."
        ),
        "overflow": Kind(
            step="copy the store: in the copy the message stands without its longest properties, and brokers read it. "
            "Here no broker dispatches it, and a recovery that begins in front of it cuts the log."
        ),
    },
    needs=SEEN,
)
CL02 = _rule(
    "CL02",
    "error",
    "A blank unit that does not reach to the end of its file",
    "The last unit of a file says how many bytes are left in it. RocketMQ 5 refuses one that says more.",
    "look at the 8 bytes; the number should be the distance to the end of the file.",
    needs=SEEN,
)
CL03 = _rule(
    "CL03",
    "error",
    "Wrong body CRC",
    "The body is not what was stored. Recovery that begins before it cuts the log here; consumers get a broken body.",
    "see which flipped bits would explain it, and compare with a replica.",
    "apache/rocketmq#9121",
    "mxsm/rocketmq-rust#10758",
    needs=SEEN,
)
CL04 = _rule(
    "CL04",
    "error",
    "Properties that are not what was stored",
    "The body's CRC does not cover the properties: a torn unit can have a sound body and zero or broken properties. "
    "Recovery does not see it: the unit stays and is delivered without them.",
    "compare the property text with a replica's.",
    "apache/rocketmq#7437",
    needs=SEEN,
)
CL05 = _rule(
    "CL05",
    "error",
    "A unit that says it belongs elsewhere",
    "PHYSICALOFFSET differs from the place: bytes of another place or of an older life of the file. No broker compares "
    "the two, so recovery would dispatch it.",
    "find out how the bytes came here (reused file, copy, restore) before any broker starts on the store.",
    "apache/rocketmq#10017",
    "apache/rocketmq#10038",
    kinds={
        "file": Kind(
            step="bring back this log's own file from a backup or a replica, or move this one out where the log ended "
            "in front of it; do not build the queues again: they tell which messages are lost."
        ),
        "renamed": Kind(
            step="give each such file its own name back while the broker is stopped, the offset that its first unit "
            "says, with 20 digits; begin with the last one, so that none is overwritten. Then nothing of it is lost."
        ),
    },
    needs=SEEN,
)
CL06 = _rule(
    "CL06",
    "warn",
    "Bytes behind the end of the log",
    "What lies behind the last good unit is dropped by the next recovery, or came back after one: RocketMQ moves its "
    "positions and leaves the bytes.",
    "ask recover --plan what the next start would keep and drop.",
    "apache/rocketmq#10666",
    command=PLAN,
    needs=BOTH,
)
CL07 = _rule(
    "CL07",
    "error",
    "Files of the log that do not follow each other",
    "Every file has the same length and begins where the one before ends. A broker refuses other lengths and names, "
    "and reads over a gap without a word.",
    "look for the missing or original file; never rename files to close a gap.",
    "apache/rocketmq#2141",
    "apache/rocketmq#6904",
    kinds={
        "gap": Kind(),
        "overlap": Kind(step="find out which of the two files is of this store; never rename a file."),
        "next": Kind(),
        "zeros": Kind(
            step="start no broker: move the file that is all zeros out of the log's folders, not the one that holds "
            "the messages; what a broker writes while both are there is read from the other file, as zeros."
        ),
        "double": Kind(
            step="start no broker: find out which of the two files is of this store, by what their units say of "
            "themselves, and move the other one out of the log's folders."
        ),
        "empty": Kind("warn", "remove the empty file: RocketMQ 5.3 does so itself, 4.9 refuses to start with it."),
        "short": Kind(step="bring the whole file from a replica or a backup; what is left can be copied out of it."),
        "unmade": Kind(
            step="move the file out of the log's folders: it holds no message, and a start makes a new one."
        ),
        "unfilled": Kind(
            step="bring the file to its length again: only zeros are missing, no message that a queue knows of."
        ),
        "long": Kind(
            step="give the broker the mappedFileSizeCommitLog that the other files were made with: it cannot be "
            "changed on a store that has files; copy the units out of the longer file, never cut it."
        ),
        "folder": Kind(step=NO_FOLDER),
        "name": Kind(step=SHORT_NAMES),
        "misnamed": Kind(
            step="give the file its name back, the offset that its first unit says, with 20 digits; then nothing of it "
            "is lost."
        ),
        "packed": Kind(
            step="unpack the file in its place, and take the packed one out of the folder: it is a part of this log. A "
            "log without it has lost its messages."
        ),
    },
    needs=LOG,
)
CL08 = _rule(
    "CL08",
    "warn",
    "Store times that the clock made wrong",
    "The broker's clock ran ahead or was set back. Searches by time, index queries, the choice of the recovery file "
    "and the time until files are deleted go by these times.",
    "compare the clock's history with the place; searches by time around it may miss messages.",
    "apache/rocketmq#9455",
    kinds={
        "ahead": Kind(
            None,
            "set the broker's clock right; for messages of this time ask by offset or key, not by time.",
        ),
        "behind": Kind(None, "for messages of this time ask by offset or key, not by time."),
    },
    needs=SEEN,
)
CL09 = _rule(
    "CL09",
    "error",
    "A unit whose address fields disagree with its queue",
    "Topic, queue or queue offset in the unit are not those under which its queue knows it; no CRC covers them.",
    "compare the unit's head with a replica's.",
    "apache/rocketmq#467",
    needs=BOTH,
)
CL10 = _rule(
    "CL10",
    "note",
    "A blank unit that the next unit would have fitted into",
    "A batch that did not fit leaves one on a healthy store, and nothing marks its units afterwards.",
    "nothing needs to be done.",
    needs=SEEN,
)
CL11 = _rule(
    "CL11",
    "error",
    "The log ends before what others know of it",
    "Queues, index and checkpoint tell of units behind the end of the log: its tail is lost. The next start truncates "
    "the queues and uses their offsets again.",
    "look for the lost bytes on a replica before any broker starts; ask recover --plan which groups would stand beyond "
    "the new end.",
    "apache/rocketmq#405",
    "apache/rocketmq#6767",
    command=PLAN,
    needs=LOG,
)
CL12 = _rule(
    "CL12",
    "error",
    "The log is empty, and others know of it",
    "Queues, index, consumer positions or checkpoint tell of messages, and the log has not one: most often its disk is "
    "not mounted. A start now deletes every queue.",
    "mount the disk of the log, or bring its files back, before any broker starts on the store.",
    kinds={
        "deeper": Kind(
            step="move the files of the log one folder up before any broker starts on the store: they were copied into "
            "a folder below their own."
        ),
    },
    needs=LOG,
)
CL14 = _rule(
    "CL14",
    "error",
    "Queues and a commit log that do not fit together",
    "An entry of a queue names a place in the log at which a unit of its topic, queue and offset begins. Here next to "
    "none does: the log or the queues are of another store, or of another time of this one. A broker starts on them "
    "without a word: consumers get bytes that are no message of theirs, or nothing, and new entries are appended "
    "behind the old ones.",
    "start no broker, and build no queues from this log: find out first which of the two is this store's, by the "
    "topics and store times of its messages, and put the other one in the place of the wrong one.",
    kinds={
        "": Kind(),
        "log": Kind(
            step="start no broker, and build no queues from this log: find the commit log that queues and index are "
            "of, and put it in the place of this one. Keep queues and index until then: they may be all that is left "
            "of it."
        ),
        "queues": Kind(
            step="start no broker: bring back the queues of this log, or build them again from it; keep those that are "
            "there elsewhere: they may be all that is left of another log.",
            command=BUILD,
        ),
        "some": Kind(
            step="move these folders out of consumequeue and keep them: a broker takes each for a queue of its topic, "
            "and hands out what their entries lead to."
        ),
        "case": Kind(
            step="start no broker: give these folders the names of their topics back, letter by letter; a broker takes "
            "them for other topics, and the queues of their own for lost."
        ),
    },
    needs=BOTH,
)
CQ01 = _rule(
    "CQ01",
    "error",
    "Files of a queue that do not follow each other",
    "Every file of a queue has the same length and begins where the one before ends. A broker refuses other lengths.",
    "the queue can be built again from the log, as long as the log holds its units.",
    "apache/rocketmq#1560",
    command=BUILD,
    kinds={
        "folder": Kind(None, NO_FOLDER, ""),
        "empty": Kind(
            None,
            "remove the empty file: RocketMQ 5 does so itself, 4.9 refuses to start with it. It holds no entry.",
            "",
        ),
        "name": Kind(None, SHORT_NAMES, ""),
    },
    needs=QUEUE,
)
CQ03 = _rule(
    "CQ03",
    "error",
    "A queue entry is missing",
    "The log has the unit, the queue has nothing at its offset: consumers never see the message.",
    "the queue can be built again from the log.",
    "apache/rocketmq#467",
    command=BUILD,
    needs=BOTH,
)
CQ04 = _rule(
    "CQ04",
    "error",
    "A queue entry that does not point at its unit",
    "Offset or size of the entry do not lead to the unit that belongs there. Behind a unit that was never dispatched "
    "all entries stand one place early; the broker logs: logic queue order maybe wrong … Diff 20.",
    "the queue can be built again from the log.",
    "apache/rocketmq#495",
    command=BUILD,
    needs=BOTH,
)
CQ05 = _rule(
    "CQ05",
    "error",
    "A queue entry twice",
    "Two entries of a queue point at the same unit: a message is consumed twice, and another may be hidden.",
    "the queue can be built again from the log.",
    "apache/rocketmq#495",
    command=BUILD,
    needs=BOTH,
)
CQ06 = _rule(
    "CQ06",
    "error",
    "An empty last file of a queue",
    "A 5.x broker dies while it corrects the queue's minimum, unless recovery fills the file before.",
    "ask recover --plan whether a broker would start.",
    "apache/rocketmq#9728",
    "apache/rocketmq#10108",
    command=PLAN,
    kinds={"filled": Kind("note", "nothing needs to be done: a start goes on in this file.", "")},
    needs=QUEUE,
)
CQ08 = _rule(
    "CQ08",
    "chat",
    "Units of a topic that has no queues",
    "The topic was deleted: its queues are gone, its units stay until their file expires.",
    "nothing needs to be done.",
    "apache/rocketmq#1852",
    needs=QUEUE | CONFIG,
)
CQ09 = _rule(
    "CQ09",
    "error",
    "A queue entry with the wrong tag code",
    "Filters by tag go by this number: the message is hidden from its consumers or shown to others.",
    "the queue can be built again from the log.",
    command=BUILD,
    needs=SEEN,
)
CQ10 = _rule(
    "CQ10",
    "error",
    "Units that are not in their queues",
    "The log has these messages and nobody can consume them. A start dispatches again only units behind its start "
    "file; after a clean close only those behind all that any queue knows (RocketMQ 5.3.2 and later). RocketMQ 5.4 and "
    "later look back at ten log files at most (commitLogRecoverMaxNum).",
    "build the queues again from the log before any broker starts: it keeps every message, and groups stay where they "
    f"are. Then, {PUT_IN_WORDS}",
    "apache/rocketmq#405",
    "apache/rocketmq#1434",
    command=BUILD,
    kinds={
        "again": Kind(step="leave consumer offsets alone: the next start dispatches these units again.", command=PLAN),
        "gone": Kind(
            None,
            "build the queues again from the log, with --config broker.conf where the broker's file sizes are its own: "
            f"no queue is left that tells them. Then, {PUT_IN_WORDS}",
        ),
    },
    needs=BOTH | STATE,
)
CQ11 = _rule(
    "CQ11",
    "error",
    "A topic with queues of the wrong kind",
    "The topics table says which kind of queue a topic has; a broker that finds a folder of the other kind does not "
    "start.",
    "move the wrong folder out of the store's folders.",
    needs=QUEUE | CONFIG,
)
CQ12 = _rule(
    "CQ12",
    "error",
    "Queue entries that go backwards",
    "Entries of a queue point ever further into the log. A step back misleads every search by time or offset.",
    "the queue can be built again from the log.",
    "apache/rocketmq#495",
    command=BUILD,
    needs=SEEN,
)
CQ13 = _rule(
    "CQ13",
    "warn",
    "Queue entries that point behind the end of the log",
    "The log lost its tail; or recovery cut both once, and only moved its positions. The next start truncates these "
    "entries and uses their offsets again.",
    "ask recover --plan which groups would stand beyond the new end.",
    "apache/rocketmq#678",
    command=PLAN,
    needs=LOG,
)
IX01 = _rule(
    "IX01",
    "error",
    "An index header that does not count what is there",
    "Numbers of entries and used slots, and the range of the file, stand in the header; queries go by them.",
    "the index can be built again from the log.",
    "apache/rocketmq#1987",
    command=BUILD,
    needs=INDEX,
)
IX02 = _rule(
    "IX02",
    "error",
    "An index link or slot past the count",
    "A broker ends the chain there: older entries of the slot are not found.",
    "the index can be built again from the log.",
    command=BUILD,
    needs=SEEN,
)
IX03 = _rule(
    "IX03",
    "error",
    "An index chain that loops",
    "A query by key may never come back from this slot.",
    "the index can be built again from the log.",
    "apache/rocketmq#8018",
    command=BUILD,
    needs=SEEN,
)
IX05 = _rule(
    "IX05",
    "note",
    "Keys that are not in the index",
    "The log has units whose keys no index file holds: queries by key miss them. Abnormal starts leave such spans.",
    "the index can be built again from the log.",
    "apache/rocketmq#4463",
    command=BUILD,
    needs=LOG | INDEX,
)
IX06 = _rule(
    "IX06",
    "error",
    "An index entry that leads to no unit with its key",
    "The unit at the entry's offset has no key and no tags of this hash, or there is no unit.",
    "the index can be built again from the log.",
    "apache/rocketmq#3613",
    command=BUILD,
    kinds={
        "foreign": Kind(
            None, "bring back the index of this store, or build it again from the log; no query tells the two apart."
        ),
        "unknown": Kind(
            "note",
            "no action needed: every key is in the index. A newer release may index more than is known here.",
            "",
        ),
    },
    needs=LOG,
)
IX07 = _rule(
    "IX07",
    "error",
    "Index entries that point behind the end of the log",
    "The log lost its tail after the index was written.",
    "the index can be built again from the log.",
    command=BUILD,
    needs=LOG,
)
IX08 = _rule(
    "IX08",
    "error",
    "A file that is no index file",
    "Its length fits no numbers of slots and entries; a broker maps it with its own numbers and misreads it.",
    "give the broker's configuration (--config) if the sizes are special; the index can be built again from the log.",
    command=BUILD,
    kinds={"cut": Kind(None, "copy the file again from where it came, or build the index again from the log.")},
    needs=INDEX,
)
IX09 = _rule(
    "IX09",
    "error",
    "An index chain that skips or misses entries",
    "The link of an entry, or a slot, is not the newest older entry of its chain: entries are not found.",
    "the index can be built again from the log.",
    command=BUILD,
    kinds={
        "overwritten": Kind(
            "note",
            "build the index again from the log where the keys that are gone are asked for; a larger maxIndexNum keeps "
            "it from happening again.",
        )
    },
    needs=INDEX,
)
CK01 = _rule(
    "CK01",
    "note",
    "A checkpoint time of zero",
    "An abnormal start would begin at the first file of the log, whatever its length.",
    "see recover --plan for the bytes that would be read.",
    "apache/rocketmq#7233",
    command=PLAN,
    needs=CHECKPOINT,
)
CK02 = _rule(
    "CK02",
    "error",
    "A checkpoint ahead of the data",
    "The checkpoint says that units of this time are on disk, and they are not: recovery may begin too late.",
    "ask recover --plan where recovery would begin.",
    "apache/rocketmq#678",
    command=PLAN,
    needs=LOG,
)
CK03 = _rule(
    "CK03",
    "note",
    "A checkpoint far behind the log",
    "An abnormal start would read all files from there on.",
    "see recover --plan for the bytes that would be read.",
    "apache/rocketmq#1456",
    command=PLAN,
    needs=LOG,
)
CK04 = _rule(
    "CK04",
    "warn",
    "A confirm offset behind the end of the log",
    "Controller and duplication mode dispatch up to this offset.",
    "ask recover --plan.",
    "apache/rocketmq#6703",
    command=PLAN,
    needs=LOG,
)
CK05 = _rule(
    "CK05",
    "error",
    "A checkpoint that is no checkpoint",
    "The file has 4,096 bytes: store times and offsets. A broker reads missing fields as zero and begins at the first "
    "file after a crash. It takes every other number as it stands: a time of the future makes a start begin at the "
    "last file, one of the past at the first one; 5.5 goes by logicsPhysicalOffset.",
    "nothing but time is lost by a missing checkpoint; restore it only from the same store.",
    kinds={
        "numbers": Kind(
            "warn",
            "move the checkpoint out of the store while the broker is stopped: a start of a store that was closed "
            "needs none, and writes a new one. After a crash a start would go by these numbers.",
        ),
        "numbersCrashed": Kind(
            step="start no broker: ask recover --plan where it would begin, and ask again on a copy without the "
            "checkpoint: such a start begins at the first file (from 5.4 on ten files before the end), dispatches all "
            "units from there on again, and makes the index again from there.",
            command=PLAN,
        ),
    },
    needs=LOG | CHECKPOINT,
)
CF01 = _rule(
    "CF01",
    "error",
    "A configuration table that cannot be parsed",
    "A broker takes the .bak instead, or does not start if that is bad too.",
    "compare the file with its .bak and mend it in a copy.",
    "apache/rocketmq#9328",
    "apache/rocketmq#3401",
    "apache/rocketmq#6096",
    kinds={
        "both": Kind(step="bring the table back from a replica or a backup: its .bak cannot be read either."),
    },
    needs=CONFIG,
)
CF02 = _rule(
    "CF02",
    "warn",
    "A consumer offset beyond its queue",
    "A broker answers such a request with OFFSET_OVERFLOW_BADLY and the queue's end: a push consumer is moved back to "
    "it and sees messages again. Where the queue passes the offset first, the messages up to it are skipped.",
    "find out why the queue is shorter (a lost tail, a topic deleted and made again) before any offset is reset: where "
    "the queue is short, the group is right.",
    "apache/rocketmq#1852",
    "apache/rocketmq#4774",
    "apache/rocketmq#2181",
    kinds={
        "answers": Kind(
            step="no message is lost, but producers are asked again for transactions that they have answered: set the "
            "group's offset in this queue to 0 in a copy of consumerOffset.json while the broker is stopped, then the "
            "answers are read."
        ),
        "impossible": Kind(
            step="no queue of this log was ever that long: a client wrote a wrong number, or it is of another log. Set "
            "the group's offset back while the broker runs (mqadmin resetOffsetByTime), before new messages are passed "
            "over."
        ),
    },
    needs=BOTH,
)
CF04 = _rule(
    "CF04",
    "error",
    "Text behind the end of a configuration table",
    "Written over a longer file without cutting it. A broker takes the .bak instead, which is one version older.",
    "cut the text behind the closing brace in a copy and compare with the .bak.",
    "apache/rocketmq#9328",
    "apache/rocketmq#10258",
    needs=SEEN,
)
CF05 = _rule(
    "CF05",
    "warn",
    "A configuration that does not fit the files",
    "Lengths or paths in the broker's configuration are not those of this store: a broker with it does not start, or "
    "misreads the index.",
    "correct the configuration, not the files.",
    "apache/rocketmq#1560",
    kinds={
        "bounds": Kind("warn", "write a value that a broker takes as it stands."),
        "outside": Kind(
            "warn",
            "no command writes into this store with this configuration. Give --ignore-config-paths to work on the "
            "named folder alone, or --paths-from-config where the log really lies there.",
        ),
    },
    needs=BOTH | INDEX,
)
TM04 = _rule(
    "TM04",
    "error",
    "A timer wheel of another length",
    "The wheel has 604,800 slots twice. A 5.x broker does not start with a wheel of another length.",
    "compare with a replica's; the wheel cannot be built from the log alone.",
    "apache/rocketmq#9735",
    needs=TIMER,
)
AB01 = _rule(
    "AB01",
    "warn",
    "The abort file is there",
    "The store was not closed: the next start recovers it as after a crash.",
    "ask recover --plan what the next start would keep and drop.",
    command=PLAN,
    needs=STATE,
)
DK02 = _rule(
    "DK02",
    "chat",
    "A part of the store that is not decoded",
    "RocksDB queues and DLedger logs are recognised; what is in them is not checked and not planned.",
    "ask a broker, or the library's own tools.",
    needs=SEEN,
)
DK04 = _rule(
    "DK04",
    "error",
    "Files that are not as they were copied",
    "Many files have no byte, as a copy leaves them whose disk was full or that was ended; or each line feed has a "
    "carriage return in front of it, as after a transfer in text mode (FTP ASCII). What else is wrong in them has no "
    "cause of its own.",
    "start no broker on this copy: copy the store again from where it came, with room for all of it.",
    kinds={
        "text": Kind(
            step="start no broker on this copy: copy the files again in binary mode. Without the original, taking the "
            "byte 0D out in front of every 0A gives them back as they were."
        )
    },
    needs=SEEN,
)
DK01 = _rule(
    "DK01",
    "warn",
    "Something in a store folder that RocketMQ did not put there",
    "A broker refuses some of these when it starts, see recover --plan.",
    "move it out of the store's folders.",
    needs=SEEN,
)


def may_speak(rule: str, unread: Parts) -> bool:
    """Return True if every part that the rule draws on was read; a rule that is not listed needs all parts."""
    return not ((RULES[rule].needs if rule in RULES else ALL) & unread)
