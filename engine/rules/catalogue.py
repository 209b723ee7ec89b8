"""Every rule by its id. Ids are stable: reports and other programs name them."""

from __future__ import annotations

from engine.rules import catalogue_tables
from engine.rules.findings import (
    ALL,
    BOTH,
    BUILD,
    BUILD_ROCKSDB,
    CHECKPOINT,
    CONFIG,
    INDEX,
    LOG,
    PLAN,
    PUT_IN_WORDS,
    QUEUE,
    ROCKSDB_STEP,
    SEEN,
    STATE,
    STORE,
    TIMER,
    Kind,
    Parts,
    Register,
)

RULES = Register(catalogue_tables.RULES)
NO_FOLDER = (
    "move it out of this folder; if the file system creates it (lost+found), put the store into a folder of its "
    "own on that disk."
)
SHORT_NAMES = (
    "give the files their names of 20 digits back while the broker is stopped: brokers sort files by their names as "
    "text, and the next file that a broker makes has 20 digits and comes in front of these. What is written into it is "
    "lost at the start after that."
)
BOTH_AGAIN = (
    "To have the RocksDB written again: stop the broker, move the folder of the RocksDB and the checkpoint out of the "
    "store, create an empty file abort, and start once with rocksdbCQDoubleWriteEnable=true and commitLogRecoverMaxNum "
    "at the number of log files or more."
)
_rule = RULES.add

CL01 = _rule(
    "CL01",
    "error",
    "Invalid bytes in the commit log",
    "A broker that reads the log stops here: recovery cuts everything after it, dispatch skips to the next file.",
    "compare the bytes with those of a replica at the same offset; the messages after the damage can still be "
    "copied out.",
    "apache/rocketmq#6767",
    "apache/rocketmq#289",
    kinds={
        "foreign": Kind(
            step="find out what these files are (another program's log, a compressed or encrypted copy) before "
            "you start a broker: it would cut the log at its first byte. Restore this store's own log from a "
            "backup."
        ),
        "overflow": Kind(
            step="copy the store: the copy has the message without its longest properties, and brokers can read "
            "it. In this store no broker dispatches the message, and a recovery that starts before it cuts "
            "the log here."
        ),
    },
    needs=SEEN,
)
CL02 = _rule(
    "CL02",
    "error",
    "A blank that does not reach the end of its file",
    "The blank at the end of a file contains the number of bytes left in the file. RocketMQ 5 refuses a larger number.",
    "look at these 8 bytes; the number must be the distance to the end of the file.",
    needs=SEEN,
)
CL03 = _rule(
    "CL03",
    "error",
    "Wrong body CRC",
    "The body differs from what was stored. A recovery that starts before this message cuts the log here; "
    "consumers get a damaged body.",
    "check which flipped bits explain the difference, and compare with a replica.",
    "apache/rocketmq#9121",
    "mxsm/rocketmq-rust#10758",
    needs=SEEN,
)
CL04 = _rule(
    "CL04",
    "error",
    "Properties that differ from what was stored",
    "The CRC covers only the body: a message that was half written, or whose properties were overwritten, can have a "
    "valid body. Zeros show it, or an index file whose chains are intact: it has keys that the message lacks. Recovery "
    "does not notice: it keeps the message, and consumers get it without these properties.",
    "compare the properties with those of a replica.",
    "apache/rocketmq#7437",
    kinds={
        "index": Kind(
            step="take the properties from a replica (storescope repair STORE --from REPLICA --plan). Do not build the "
            "index again: it is what remembers the lost keys."
        ),
    },
    needs=SEEN,
)
CL05 = _rule(
    "CL05",
    "error",
    "A message that belongs to another place",
    "The message's PHYSICALOFFSET is not its place in the log: the bytes come from another place or from an "
    "earlier use of the file. No broker compares the two, so recovery would dispatch the message.",
    "find out where the bytes come from (reused file, copy, restore) before you start a broker on this store.",
    "apache/rocketmq#10017",
    "apache/rocketmq#10038",
    kinds={
        "file": Kind(
            step="restore this log's own file from a backup or a replica; or move this file away if the log ended "
            "before it. Do not rebuild the queues: they show which messages are lost."
        ),
        "renamed": Kind(
            step="while the broker is stopped, rename each such file to the offset in its first unit, with 20 digits; "
            "begin with the last file, so that none is overwritten. Then nothing is lost."
        ),
    },
    needs=SEEN,
)
CL06 = _rule(
    "CL06",
    "warn",
    "Bytes after the end of the log",
    "The next recovery drops what follows the last valid message. Or an earlier recovery dropped it already: "
    "RocketMQ moves its positions back and does not erase the bytes.",
    "run recover --plan to see what the next start would keep and drop.",
    "apache/rocketmq#10666",
    command=PLAN,
    kinds={
        "page": Kind(
            "note",
            "no action needed: a broker with writeWithoutMmap=true writes its buffer up to the end of a page, and the "
            "next message overwrites these bytes.",
            "",
        ),
    },
    needs=BOTH,
)
CL07 = _rule(
    "CL07",
    "error",
    "Commit log files that are not contiguous",
    "Every file must have the same length and start where the previous file ends. A broker refuses other lengths "
    "and names, but reads over a gap without any warning.",
    "find the missing or original file; never rename files to close a gap.",
    "apache/rocketmq#2141",
    "apache/rocketmq#6904",
    kinds={
        "gap": Kind(),
        "older": Kind(
            "warn",
            "move these files out of the log folders while the broker is stopped. RocketMQ 4.9, 5.3 and 5.5 start with "
            "them, lose nothing and lead consumers past them, because no queue has their messages. But queues that are "
            "built again get those messages back.",
        ),
        "overlap": Kind(
            step="find out which of the two files belongs to this store; rename a file only if CL05 says so."
        ),
        "next": Kind(),
        "zeros": Kind(
            step="do not start a broker. Move the file that is all zeros out of the log folders, not the file "
            "with the messages. While both are there, a broker writes to one file and reads zeros from the "
            "other."
        ),
        "double": Kind(
            step="do not start a broker. Compare the messages in the two files to find out which file belongs to "
            "this store, and move the other file out of the log folders."
        ),
        "empty": Kind("warn", "delete the empty file: RocketMQ 5.3 does so itself, 4.9 does not start with it."),
        "short": Kind(
            step="restore the complete file from a replica or a backup; what is left in this file can be copied out."
        ),
        "unmade": Kind(
            step="move the file out of the log folders: it contains no message, and a start creates a new one."
        ),
        "unfilled": Kind(
            step="fill the file with zeros to its full length: only zeros are missing, no message that a queue knows."
        ),
        "long": Kind(
            step="start the broker with the mappedFileSizeCommitLog that the other files have: it cannot be "
            "changed while a store has files. Copy the messages out of the longer file; never cut it."
        ),
        "folder": Kind(step=NO_FOLDER),
        "name": Kind(step=SHORT_NAMES),
        "misnamed": Kind(
            step="rename the file to the offset in its first unit, with 20 digits; then nothing in it is lost."
        ),
        "spare": Kind(
            step="move this file out of the log folders: the log has a file of its own for this place. Compare the two "
            "before you delete one."
        ),
        "stray": Kind(
            step="move this file out of the log folders: the files of the log follow each other without it, and no "
            "message of the log is in it."
        ),
        "packed": Kind(
            step="unpack the file in its place, and move the packed file out of the folder: it is a part of this log. "
            "Without it, its messages are lost."
        ),
    },
    needs=LOG,
)
CL08 = _rule(
    "CL08",
    "warn",
    "Wrong store times: the broker's clock jumped",
    "The broker's clock was ahead or was set back. Searches by time, index queries, the choice of the recovery "
    "start file and the deletion of files use these times.",
    "compare the history of the clock with this place; searches by time near it can miss messages.",
    "apache/rocketmq#9455",
    kinds={
        "ahead": Kind(
            None,
            "correct the broker's clock; to find messages of this time, search by offset or key, not by time.",
        ),
        "behind": Kind(None, "to find messages of this time, search by offset or key, not by time."),
        "overwritten": Kind(None, "compare the head of the message with a replica's."),
    },
    needs=SEEN,
)
CL09 = _rule(
    "CL09",
    "error",
    "A message whose address fields differ from its queue",
    "The topic, queue id or queue offset in the message is not the one under which its queue knows it. No CRC "
    "covers these fields.",
    "compare the head of the message with a replica's.",
    "apache/rocketmq#467",
    needs=BOTH,
)
CL10 = _rule(
    "CL10",
    "note",
    "A blank although the next message would have fitted",
    "On a healthy store this happens when a batch did not fit; nothing shows later that its messages were a batch.",
    "no action needed.",
    needs=SEEN,
)
CL11 = _rule(
    "CL11",
    "error",
    "The log ends before messages that other files know",
    "Queues, index or checkpoint refer to messages after the end of the log: the last part of the log is lost. "
    "The next start truncates the queues and uses their offsets again.",
    "look for the lost bytes on a replica before you start a broker; recover --plan shows which groups would be "
    "beyond the new end.",
    "apache/rocketmq#405",
    "apache/rocketmq#6767",
    command=PLAN,
    needs=LOG,
)
CL12 = _rule(
    "CL12",
    "error",
    "The log is empty, but other files know its messages",
    "Queues, index, consumer offsets or checkpoint refer to messages, but the log has none: usually its disk is "
    "not mounted. A start now deletes every queue.",
    "mount the disk of the log, or restore its files, before you start a broker on this store.",
    kinds={
        "deeper": Kind(
            step="move the files of the log one folder up before any broker starts on the store: they were copied into "
            "a folder below their own."
        ),
    },
    needs=LOG,
)
CL15 = _rule(
    "CL15",
    "note",
    "Placeholders of lost messages",
    "storescope repair put a unit without content where the bytes of a message were destroyed. The messages behind it "
    "keep their physical offsets and their queue offsets. A Java client from 5.0 on skips a placeholder; other clients "
    "hand an empty body to the application, with the property STORESCOPE_LOST.",
    "no action needed. If a replica or a producer still has these messages, send them again.",
    needs=SEEN,
)
CL14 = _rule(
    "CL14",
    "error",
    "Queue entries that do not match the commit log",
    "Each queue entry points to a message of its topic, queue and offset in the log. Here almost none does: the log "
    "or the queues belong to another store, or to another time of this store. A broker starts on them without a "
    "warning. Consumers then get wrong messages or none, and new entries are appended after the old ones.",
    "start no broker, and do not rebuild queues from this log. First find out which of the two belongs to this "
    "store, by the topics and store times of its messages. Then replace the other one.",
    kinds={
        "": Kind(),
        "log": Kind(
            step="start no broker, and do not rebuild queues from this log. Find the commit log that matches the "
            "queues and the index, and use it instead of this one. Until then keep queues and index: they may be all "
            "that is left of it."
        ),
        "queues": Kind(
            step="start no broker. Restore the queues that belong to this log, or rebuild them from it. Keep the "
            "present queues elsewhere: they may be all that is left of another log.",
            command=BUILD,
        ),
        "some": Kind(
            step="move these folders out of consumequeue and keep them: a broker serves each of them as a queue of its "
            "topic, with the messages that their entries point to."
        ),
        "case": Kind(
            step="start no broker. Rename these folders to the exact names of their topics: a broker takes them for "
            "other topics, and treats the topics' own queues as lost."
        ),
    },
    needs=BOTH,
)
CQ01 = _rule(
    "CQ01",
    "error",
    "Queue files that are not contiguous",
    "Every file of a queue must have the same length and start where the previous file ends. A broker refuses "
    "other lengths.",
    "rebuild the queue from the log; this works as long as the log still has its messages.",
    "apache/rocketmq#1560",
    command=BUILD,
    kinds={
        "folder": Kind(None, NO_FOLDER, ""),
        "empty": Kind(
            None,
            "remove the empty file: RocketMQ 5 does so itself, 4.9 refuses to start with it. It holds no entry.",
            "",
        ),
        "unmade": Kind(
            None, "move the file out of the folder: it contains no entry, and a broker creates it again.", ""
        ),
        "name": Kind(None, SHORT_NAMES, ""),
    },
    needs=QUEUE,
)
CQ03 = _rule(
    "CQ03",
    "error",
    "A missing queue entry",
    "The log has the message, but the queue has no entry at its offset: consumers never get the message.",
    "rebuild the queue from the log.",
    "apache/rocketmq#467",
    command=BUILD,
    kinds={
        "again": Kind(
            step="do not change consumer offsets: the next start dispatches these messages again.", command=PLAN
        )
    },
    needs=BOTH,
)
CQ04 = _rule(
    "CQ04",
    "error",
    "A queue entry that does not point to its message",
    "The offset or size in the entry does not lead to the message that belongs there. After a message that was "
    "never dispatched, all entries are one place too early; the broker then logs: logic queue order maybe wrong … "
    "Diff 20.",
    "rebuild the queue from the log.",
    "apache/rocketmq#495",
    command=BUILD,
    needs=BOTH,
)
CQ05 = _rule(
    "CQ05",
    "error",
    "Two queue entries for one message",
    "Two entries of a queue point to the same message: consumers get it twice, and another message may be hidden.",
    "rebuild the queue from the log.",
    "apache/rocketmq#495",
    command=BUILD,
    needs=BOTH,
)
CQ06 = _rule(
    "CQ06",
    "error",
    "The last file of a queue is empty",
    "A 5.x broker crashes when it corrects the queue's minimum offset, unless recovery fills the file first.",
    "run recover --plan to see whether a broker would start.",
    "apache/rocketmq#9728",
    "apache/rocketmq#10108",
    command=PLAN,
    kinds={
        "filled": Kind("note", "no action needed: a start continues in this file.", ""),
        "counted": Kind(
            "error",
            "take the file away before a broker starts: consumers would wait for an answer at this entry, and get no "
            "later message of the queue.",
            f"storescope repair {STORE} --plan",
        ),
    },
    needs=QUEUE,
)
CQ08 = _rule(
    "CQ08",
    "chat",
    "Messages of a topic that has no queues",
    "The topic was deleted: its queues are gone, and its messages stay in the log until their file expires.",
    "no action needed.",
    "apache/rocketmq#1852",
    needs=QUEUE | CONFIG,
)
CQ09 = _rule(
    "CQ09",
    "error",
    "A queue entry with a wrong tag code",
    "Tag filters use this number: the message is hidden from its consumers, or other consumers get it.",
    "rebuild the queue from the log.",
    command=BUILD,
    needs=SEEN,
)
CQ10 = _rule(
    "CQ10",
    "error",
    "Messages that are missing in their queues",
    "The log has these messages, but nobody can consume them. A start dispatches only messages from its recovery "
    "start file on; after a clean shutdown, only messages after the last one that any queue knows (RocketMQ 5.3.2 "
    "and later). RocketMQ 5.4 and later go back at most ten log files (commitLogRecoverMaxNum).",
    "rebuild the queues from the log before you start a broker: this keeps every message and every group's offset. "
    f"Then, {PUT_IN_WORDS}",
    "apache/rocketmq#405",
    "apache/rocketmq#1434",
    command=BUILD,
    kinds={
        "again": Kind(
            step="do not change consumer offsets: the next start dispatches these messages again.", command=PLAN
        ),
        "gone": Kind(
            None,
            "rebuild the queues from the log; add --config broker.conf if the broker's file sizes are not the "
            f"defaults, because no queue is left that shows them. Then, {PUT_IN_WORDS}",
        ),
    },
    needs=BOTH | STATE,
)
CQ11 = _rule(
    "CQ11",
    "error",
    "A topic with queues of the wrong kind",
    "The topics table defines which kind of queue a topic has. A broker that finds a folder of the other kind "
    "does not start.",
    "move the wrong folder out of the store's folders.",
    needs=QUEUE | CONFIG,
)
CQ12 = _rule(
    "CQ12",
    "error",
    "Queue entries that are out of order",
    "Each entry of a queue must point further into the log than the entry before it. A step back misleads every "
    "search by time or offset.",
    "rebuild the queue from the log.",
    "apache/rocketmq#495",
    command=BUILD,
    needs=SEEN,
)
CQ13 = _rule(
    "CQ13",
    "warn",
    "Queue entries that point after the end of the log",
    "The log lost its last part. Or an earlier recovery cut log and queues, and only moved its positions. The "
    "next start truncates these entries and uses their offsets again.",
    "run recover --plan to see which groups would be beyond the new end.",
    "apache/rocketmq#678",
    command=PLAN,
    needs=LOG,
)
CQ16 = _rule(
    "CQ16",
    "error",
    "Bounds of a RocksDB queue that do not match its entries",
    "A RocksDB has two rows with the bounds of each queue. Brokers take a queue's end from the row max, and its first "
    "entry from the row min while the log still has that message. A clean start does not correct them.",
    ROCKSDB_STEP,
    command=BUILD_ROCKSDB,
    kinds={"max": Kind(), "min": Kind(), "first": Kind(), "rows": Kind()},
    needs=QUEUE,
)
CQ19 = _rule(
    "CQ19",
    "warn",
    "Queues in files and in a RocksDB that differ",
    "With rocksdbCQDoubleWriteEnable a broker writes each entry into files and into a RocksDB. Consumers get what "
    "combineCQPreferCQType names: the files, or the RocksDB. New messages are numbered by what "
    "combineAssignOffsetCQType names. A start compares only the ends of the queues. combineCQEnableCheckSelf only "
    "logs what differs.",
    "nothing, while brokers read the files. " + BOTH_AGAIN,
    kinds={
        "late": Kind(
            "note",
            "start the broker with rocksdbCQDoubleWriteEnable=true, and compare again: storescope queue --both. "
            + BOTH_AGAIN,
        ),
        "read": Kind(
            "error",
            "take the line combineCQPreferCQType=defaultRocksDB out: consumers then read the files. " + BOTH_AGAIN,
        ),
        "refused": Kind(
            "error",
            "take the line combineCQPreferCQType=defaultRocksDB out: the broker then starts, and consumers read the "
            "files. " + BOTH_AGAIN,
        ),
        "files": Kind(
            "warn",
            "nothing, while consumers read the RocksDB. Do not take the line combineCQPreferCQType=defaultRocksDB out: "
            "an entry in the files leads to no message of its queue.",
        ),
        "unused": Kind(
            "note",
            "nothing, while the broker keeps to this configuration. Do not switch to the other queues: they are old. "
            + BOTH_AGAIN,
        ),
    },
    needs=BOTH,
)
IX01 = _rule(
    "IX01",
    "error",
    "An index header that does not match its entries",
    "The header contains the numbers of entries and used slots and the range of the file. Queries use these numbers.",
    "rebuild the index from the log.",
    "apache/rocketmq#1987",
    command=BUILD,
    needs=INDEX,
)
IX02 = _rule(
    "IX02",
    "error",
    "An index link or slot beyond the entry count",
    "A broker ends the chain there: it does not find the older entries of this slot.",
    "rebuild the index from the log.",
    command=BUILD,
    needs=SEEN,
)
IX03 = _rule(
    "IX03",
    "error",
    "An index chain with a loop",
    "A query by key may never return from this slot.",
    "rebuild the index from the log.",
    "apache/rocketmq#8018",
    command=BUILD,
    needs=SEEN,
)
IX05 = _rule(
    "IX05",
    "note",
    "Keys that are missing in the index",
    "No index file has the keys of these messages: queries by key miss them. Starts after a crash leave such gaps.",
    "rebuild the index from the log.",
    "apache/rocketmq#4463",
    command=BUILD,
    needs=LOG | INDEX,
)
IX06 = _rule(
    "IX06",
    "error",
    "An index entry without a message for its key",
    "The message at the entry's offset has no key or tag with this hash, or there is no message.",
    "rebuild the index from the log.",
    "apache/rocketmq#3613",
    command=BUILD,
    kinds={
        "foreign": Kind(
            None,
            "restore the index of this store, or rebuild it from the log; queries cannot tell the two stores apart.",
        ),
        "unknown": Kind(
            "note",
            "no action needed: every key is in the index. A newer release may index more than Storescope knows.",
            "",
        ),
    },
    needs=LOG,
)
IX07 = _rule(
    "IX07",
    "error",
    "Index entries that point after the end of the log",
    "The log lost its last part after the index was written.",
    "rebuild the index from the log.",
    command=BUILD,
    needs=LOG,
)
IX08 = _rule(
    "IX08",
    "error",
    "A file that is not an index file",
    "Its length matches no numbers of slots and entries. A broker maps it with its own numbers and misreads it.",
    "give the broker's configuration (--config) if the index sizes are not the defaults; else rebuild the index "
    "from the log.",
    command=BUILD,
    kinds={"cut": Kind(None, "copy the file again from its source, or rebuild the index from the log.")},
    needs=INDEX,
)
IX09 = _rule(
    "IX09",
    "error",
    "An index chain that skips entries",
    "The link of an entry or a slot does not point to the next older entry of its chain: queries miss entries.",
    "rebuild the index from the log.",
    command=BUILD,
    kinds={
        "overwritten": Kind(
            "note",
            "if you need the overwritten keys, rebuild the index from the log; a larger maxIndexNum prevents this.",
        )
    },
    needs=INDEX,
)
CK01 = _rule(
    "CK01",
    "note",
    "A checkpoint time of zero",
    "After a crash, a start reads the log from its first file, however long it is.",
    "run recover --plan to see how many bytes would be read.",
    "apache/rocketmq#7233",
    command=PLAN,
    needs=CHECKPOINT,
)
CK02 = _rule(
    "CK02",
    "error",
    "A checkpoint ahead of the data",
    "According to the checkpoint, messages of this time are on disk, but they are not: recovery may start too late.",
    "run recover --plan to see where recovery would start.",
    "apache/rocketmq#678",
    command=PLAN,
    needs=LOG,
)
CK03 = _rule(
    "CK03",
    "note",
    "A checkpoint far behind the log",
    "After a crash, a start reads all log files from there on.",
    "run recover --plan to see how many bytes would be read.",
    "apache/rocketmq#1456",
    command=PLAN,
    needs=LOG,
)
CK04 = _rule(
    "CK04",
    "warn",
    "A confirm offset after the end of the log",
    "Controller mode and duplication mode dispatch only up to this offset.",
    "run recover --plan to see what the next start would keep and drop.",
    "apache/rocketmq#6703",
    command=PLAN,
    needs=LOG,
)
CK06 = _rule(
    "CK06",
    "error",
    "An epoch table that disagrees with itself or with the log",
    "epochFileCheckpoint has the term of each master and the offset at which it began (controller mode). A slave and "
    "its master compare the tables to find up to where their logs are the same; a wrong row makes a slave cut or keep "
    "the wrong messages.",
    "start no broker in controller mode on this store; restore the file from its .bak or let a replica replace this "
    "store.",
    kinds={
        "backup": Kind("warn", "replace the file with its .bak before a broker writes both again."),
        "rows": Kind("error", "restore the file from a backup, or let a replica replace this store."),
        "behind": Kind(
            "warn",
            "no action needed if the log ends where you expect it: a broker that becomes master or slave takes the row "
            "out.",
        ),
    },
    needs=LOG,
)
CK05 = _rule(
    "CK05",
    "error",
    "An invalid checkpoint file",
    "The file has 4,096 bytes: store times and offsets. A broker reads missing fields as zero: after a crash it then "
    "begins at the first file. It uses every other number without a check: with a time in the future a start begins at "
    "the last file, with a time in the past at the first one. RocketMQ 5.5 uses logicsPhysicalOffset.",
    "restore the checkpoint from a copy of the same store, or start without it: a missing checkpoint costs only time.",
    kinds={
        "numbers": Kind(
            "warn",
            "move the checkpoint out of the store while the broker is stopped. A start after a clean stop needs no "
            "checkpoint and writes a new one. After a crash, a start would use these numbers.",
        ),
        "numbersCrashed": Kind(
            step="start no broker. Run recover --plan to see where a start would begin, and run it again on a copy "
            "without the checkpoint: then a start begins at the first file (since 5.4 ten files before the end), "
            "dispatches all units from there again, and rebuilds the index from there.",
            command=PLAN,
        ),
    },
    needs=LOG | CHECKPOINT,
)
CF01 = _rule(
    "CF01",
    "error",
    "A configuration table that cannot be parsed",
    "A broker uses the .bak file instead. If that cannot be parsed either, it does not start; if there is none, or if "
    "it is empty, the broker begins without the table.",
    "compare the file with its .bak. If the .bak is complete, copy it over the file while the broker is stopped.",
    "apache/rocketmq#9328",
    "apache/rocketmq#3401",
    "apache/rocketmq#6096",
    kinds={
        "both": Kind(step="restore the table from a replica or a backup: its .bak cannot be read either."),
        "alone": Kind(
            step="restore the table from a replica or a backup, or repair it in a copy: it has no .bak that can be "
            "read, and a broker that starts now begins without its rows."
        ),
    },
    needs=CONFIG,
)
CF02 = _rule(
    "CF02",
    "warn",
    "A consumer offset beyond the end of its queue",
    "A broker answers such a pull with OFFSET_OVERFLOW_BADLY and the end of the queue: a push consumer goes back "
    "there and gets messages again. If the queue grows past the offset first, the messages up to it are skipped.",
    "find out why the queue is shorter (lost end of the log, topic deleted and created again) before you reset "
    "any offset: if the queue is too short, the group is right.",
    "apache/rocketmq#1852",
    "apache/rocketmq#4774",
    "apache/rocketmq#2181",
    kinds={
        "answers": Kind(
            step="no message is lost, but producers are asked again about transactions that they already "
            "answered. While the broker is stopped, set the group's offset in this queue to 0 (storescope "
            "set-offset); then the broker reads the answers."
        ),
        "impossible": Kind(
            step="no queue of this log was ever that long: a client wrote a wrong number, or the offset belongs "
            "to another log. Set the group's offset back while the broker runs (mqadmin resetOffsetByTime), "
            "before new messages are skipped."
        ),
    },
    needs=BOTH,
)
CF04 = _rule(
    "CF04",
    "error",
    "Text after the end of a configuration table",
    "The table was written over a longer file without cutting it. A broker uses the .bak file instead, which is "
    "one version older.",
    "in a copy, cut the text after the closing brace, and compare with the .bak.",
    "apache/rocketmq#9328",
    "apache/rocketmq#10258",
    needs=SEEN,
)
DL01 = _rule(
    "DL01",
    "error",
    "An entry of a DLedger log that a start refuses",
    "A start reads the headers of the newest three data files. At the first entry with a wrong position, size, index "
    "or term it ends the log, and every message behind it is lost. A wrong entry in an older file is not read by a "
    "start; the member cannot send it to others.",
    "start no broker on this member. Copy its messages into a new store, or let another member of the group replace "
    "it.",
    kinds={"older": Kind("warn", "let another member of the group replace this one.")},
    needs=SEEN,
)
DL02 = _rule(
    "DL02",
    "warn",
    "A DLedger index that disagrees with its log",
    "The index has a row of 32 bytes for each entry. A start writes rows again that do not fit, of the newest three "
    "data files; until then the broker cannot read the entry by its number.",
    "start the broker: the start writes the rows of the newest three data files again. Rows of older files stay wrong.",
    needs=SEEN,
)
DL03 = _rule(
    "DL03",
    "error",
    "A DLedger log that ends before its committed index",
    "The checkpoint of the DLedger log calls an entry committed that the log does not hold any more: acknowledged "
    "messages are lost on this member.",
    "do not let this member become leader: start it while another member of its group leads, which sends it the "
    "entries again.",
    needs=LOG,
)
DL04 = _rule(
    "DL04",
    "warn",
    "A DLedger term that goes backwards",
    "The file currterm holds the newest term that the member knows. It must not be older than the term of the newest "
    "entry: the member would vote twice in one term.",
    "restore currterm from a backup, or let another member of the group replace this one.",
    needs=SEEN,
)
DL05 = _rule(
    "DL05",
    "note",
    "Entries of a DLedger log that are not committed",
    "An entry counts when most members of the group have it. The checkpoint of this member, which may be some seconds "
    "old, does not say so of these entries. The next leader keeps them, or writes its own in their place; producers "
    "were told of no message that it replaces. A broker of 5.5 that was killed may put them into its queues before "
    "that.",
    "start the other members of the group first. The member then gets what their leader has.",
    kinds={
        "unknown": Kind(
            "chat",
            "no action needed in a group of one member: it commits these entries. With --config the check knows the "
            "group.",
        )
    },
    needs=SEEN,
)
DL06 = _rule(
    "DL06",
    "error",
    "Queue entries of messages that a leader replaced",
    "The member led an earlier term, and put these messages into its queues before most members had them. A later "
    "leader wrote other messages in their place, but the queue and index entries stayed. They lead to other messages "
    "or to none, and new messages with the same queue offsets get no entry on this member.",
    "let another member lead. Stop this broker, move its store away and start it empty: the leader sends it all "
    "entries.",
    needs=SEEN,
)
CF05 = _rule(
    "CF05",
    "warn",
    "A configuration that does not fit the files",
    "Lengths or paths in the broker's configuration differ from this store: with it a broker does not start, or "
    "misreads the index.",
    "correct the configuration, not the files.",
    "apache/rocketmq#1560",
    kinds={
        "bounds": Kind("warn", "write a value that a broker accepts unchanged."),
        "outside": Kind(
            "warn",
            "no command writes into this store with this configuration. Use --ignore-config-paths to work only on "
            "the named folder, or --paths-from-config if the log really is there.",
        ),
    },
    needs=BOTH | INDEX,
)
TM04 = _rule(
    "TM04",
    "error",
    "A timer wheel with a wrong length",
    "The wheel must have 2 × 604,800 slots. A 5.x broker does not start with a wheel of another length.",
    "compare it with a replica's; the wheel cannot be rebuilt from the log alone.",
    "apache/rocketmq#9735",
    needs=TIMER,
)
AB01 = _rule(
    "AB01",
    "warn",
    "The abort file exists",
    "The store was not closed: the next start recovers it as after a crash.",
    "run recover --plan to see what the next start would keep and drop.",
    command=PLAN,
    needs=STATE,
)
AB02 = _rule(
    "AB02",
    "error",
    "A change of the store was interrupted",
    "A command that changes files was stopped before its end, or its undo was: some of its changes are made, others "
    "are not. The backup folder beside the store has everything as it was, except after --no-backup.",
    "restore the backup with this command before a broker starts on the store, then repeat the change. To keep the "
    "store as it is, remove the backup folder.",
    needs=SEEN,
    kinds={
        "unsaved": Kind(
            step="run repair again before a broker starts on the store: it plans anew from what it reads. To keep the "
            "store as it is, remove this file.",
            command=f"storescope repair {STORE} --apply",
        )
    },
)
DK02 = _rule(
    "DK02",
    "chat",
    "A part of the store that was not decoded",
    "Storescope recognises this part, but its contents are not checked and not included in plans.",
    "ask a running broker, or use the tools of the software that wrote it.",
    kinds={
        "tables": Kind(
            step="read these tables with config; groups and where use them, too.", command=f"storescope config {STORE}"
        ),
        "beside": Kind(
            step="no action needed if the broker reads the file queues. If not, set storeType in the configuration "
            "(--config): then queue, where and check read the RocksDB."
        ),
        "extra": Kind(
            step="install the extra that reads it; then info, queue, get, where and check do.",
            command="pip install 'storescope[rocksdb]'",
        ),
        "unreadable": Kind(
            "error",
            step="restore this folder from a backup of the same broker. A start without it fails, or begins with "
            "empty queues or tables.",
        ),
    },
    needs=SEEN,
)
DK04 = _rule(
    "DK04",
    "error",
    "Files damaged by a copy",
    "Many files are empty, as after a copy that was cut off or ran out of disk space. Or every line feed has a "
    "carriage return before it, as after a transfer in text mode (FTP ASCII). Other damage in these files has the "
    "same cause.",
    "start no broker on this copy. Copy the store again from its source, with enough disk space.",
    kinds={
        "text": Kind(
            step="start no broker on this copy. Copy the files again in binary mode. Without the original, delete the "
            "byte 0D before every 0A to restore them."
        )
    },
    needs=SEEN,
)
DK01 = _rule(
    "DK01",
    "warn",
    "A file or folder that does not belong to RocketMQ",
    "Some of these keep a broker from starting; recover --plan shows it.",
    "move it out of the store's folders.",
    needs=SEEN,
)


def may_speak(rule: str, unread: Parts) -> bool:
    """Return True if every part that the rule draws on was read; a rule that is not listed needs all parts."""
    return not ((RULES[rule].needs if rule in RULES else ALL) & unread)
