"""Rules about tables, groups, topics, timers and producers (docs/formats/delays.md, docs/formats/config-tables.md);
``catalogue`` has them with all others.

Rules about what the next start of a broker loses, or why it never comes up (docs/formats/recovery.md); ``catalogue``
has them all.
"""

from __future__ import annotations

from engine.rules.findings import (
    BOTH,
    BUILD,
    CHECKPOINT,
    CONFIG,
    INDEX,
    LOG,
    PUT_IN_WORDS,
    QUEUE,
    SEEN,
    STATE,
    STORE,
    TIMER,
    Kind,
    Register,
)

RULES = Register()
_rule = RULES.add

CF03 = _rule(
    "CF03",
    "error",
    "A configuration table that is gone or empty",
    "A power cut or a full disk while it was written, or config/ was not copied with the store. A broker starts "
    "without a word, with defaults, and writes these over what is left.",
    "start no broker on the store; bring the table back from a backup or from the config/ of a replica.",
    "apache/rocketmq#3401",
    "apache/rocketmq#6096",
    "apache/rocketmq#6881",
    "apache/rocketmq#9328",
    kinds={
        "case": Kind(step="start no broker: give the file its name back, letter by letter."),
        "backup": Kind("note", "put the .bak in the table's place before something writes there again."),
        "behind": Kind(
            "note",
            "if nobody reset these offsets, put the .bak in the table's place while the broker is stopped, or the "
            "messages in between are consumed again.",
        ),
        "rows": Kind(
            "warn", "put the group's offset of its retry queue back from a backup, or let it consume them again."
        ),
        "group": Kind(
            "note",
            "nothing needs to be done where brokers make groups by themselves (autoCreateSubscriptionGroup); "
            "else declare them again.",
        ),
    },
    needs=CONFIG,
)
CF06 = _rule(
    "CF06",
    "warn",
    "A group that lost messages before it read them",
    "The oldest files of the log were deleted, as they are when their time is over or the disk is full, and the group "
    "had not read what was in them. It goes on with the first message that is left.",
    "nothing brings the messages back in this store; look why the group did not consume, or keep the log for longer "
    "(fileReservedTime).",
    "apache/rocketmq#8753",
    needs=BOTH,
)
CF07 = _rule(
    "CF07",
    "warn",
    "Queues that topics.json hides from clients",
    "Consumers get the first readQueueNums queues of a topic, producers the first writeQueueNums, and perm says "
    "whether they may at all. What stands in other queues nobody reads.",
    "set the topic's numbers of queues or its permission as they should be, while the broker runs.",
    kinds={
        "beyond": Kind(),
        "wider": Kind(),
        "unreadable": Kind(),
        "unwritable": Kind(
            "note", "nothing needs to be done where it was meant: the topic is read to its end and then goes."
        ),
    },
    needs=BOTH | CONFIG,
)
CF08 = _rule(
    "CF08",
    "warn",
    "Offsets in a topic that has no queues",
    "The store has neither queues nor units of the topic: it was deleted and the offsets stayed, or the table is of "
    "another store. When a topic of this name is made again its queues begin at 0, and these groups stand further: new "
    "messages are passed over, or the groups are thrown back.",
    "before a topic of this name is made again, take its rows out of a copy of the table while the broker is stopped.",
    "apache/rocketmq#4774",
    "apache/rocketmq#1852",
    needs=BOTH | CONFIG,
)
CF10 = _rule(
    "CF10",
    "warn",
    "Filters that a broker throws away when it starts",
    "A broker takes consumerFilter.json whole or not at all: where one filter has no bloom filter data, or data of "
    "other sizes than its own, it starts without any. Until the clients of these groups register again "
    "their expressions are not known.",
    "let the clients of these groups register again behind each start (restart them), or take the filter out of a copy "
    "of the table while the broker is stopped.",
    "apache/rocketmq#11102",
    needs=CONFIG,
)
CF11 = _rule(
    "CF11",
    "note",
    "Offsets below zero",
    "A broker takes an offset below zero for none: the group begins where its clients say, or with the first message "
    "that the queue holds. JavaScript clients write -1 before they have consumed anything.",
    "nothing needs to be done for -1; where the number is another, look which client wrote it.",
    "apache/rocketmq#1675",
    "apache/rocketmq#2225",
    kinds={"other": Kind("warn", "look which client wrote the number; the group begins anew in these queues.")},
    needs=CONFIG,
)
CF12 = _rule(
    "CF12",
    "warn",
    "Groups that have read more than the log ever held",
    "The log begins at byte 0 and holds fewer messages than its groups have read: somebody deleted the log's files, "
    "put an older copy of the log in their place, or tables of another store beside it. Groups ask for offsets that do "
    "not exist yet: they get nothing, and the messages up to their old offsets are passed over.",
    "bring the log back that the offsets are of; or, if it was deleted on purpose, take these groups out of a copy of "
    "the table while the broker is stopped, before producers send on: the groups then begin anew.",
    "alibaba/RocketMQ#512",
    "apache/rocketmq#2743",
    needs=BOTH | CONFIG,
)
CF13 = _rule(
    "CF13",
    "warn",
    "A service of the broker that stands still",
    "What it should do next was due, and the broker stored other messages for a minute or more afterwards: it ran, and "
    "the service did not. All that waits behind the first message waits too. Times are compared with the newest "
    "message of the store, not with now.",
    "look into the broker's log for errors of the service, and restart the broker.",
    "apache/rocketmq#4226",
    "apache/rocketmq#8948",
    kinds={
        "level": Kind(
            step="look at the first message of the level: what is as long as maxMessageSize is refused when it is "
            "delivered, again and again; raise maxMessageSize and restart the broker, then all of them are delivered."
        ),
        "timer": Kind(
            step="see that timerWheelEnable is on and timerStopEnqueue and timerStopDequeue are off, and restart the "
            "broker: what is overdue is delivered then."
        ),
        "transactions": Kind(
            step="look into the broker's log for errors of the transaction check, and restart the broker: open halves "
            "are checked again then."
        ),
        "revive": Kind(
            step="look into the broker's log for errors of PopReviveService, and restart the broker: popped messages "
            "that nobody acknowledged come back then."
        ),
    },
    needs=BOTH | CONFIG,
)
CF09 = _rule(
    "CF09",
    "warn",
    "Delay levels whose offset is not that of their queue",
    "delayOffset.json says from where each level of delayed messages is delivered next.",
    "bring delayOffset.json back from a backup before any broker starts on the store.",
    "apache/rocketmq#1869",
    "apache/rocketmq#7077",
    "apache/rocketmq#6881",
    kinds={
        "beyond": Kind(
            "error",
            "set the level's offset in a copy of delayOffset.json to the first message that was not delivered, or to "
            "the end of its queue: a level that stands behind it delivers nothing before release 4.9.2, later ones "
            "jump to the end.",
        ),
        "missing": Kind(
            "warn",
            "bring the levels back from a backup of delayOffset.json, or their messages are delivered again.",
        ),
    },
    needs=BOTH | CONFIG,
)
CF14 = _rule(
    "CF14",
    "error",
    "Tables in config/ that do not fit this store",
    "topics.json lacks topics whose messages the store holds, and groups have offsets in topics of which it has "
    "nothing: the tables are of another broker, or of another time of this one. A broker starts with them without a "
    "word: it refuses clients the topics that are not named, groups begin where a foreign offset says, and it writes "
    "the tables again with what clients ask for.",
    "start no broker on the store; bring this store's own config/ back, from a backup of the same time or from a "
    "replica of the same broker. Declare no topic and reset no offset before that.",
    command=f"cp -r REPLICA/config/. {STORE}/config/",
    needs=BOTH | CONFIG,
)
CF15 = _rule(
    "CF15",
    "warn",
    "A group that may not consume, and messages wait for it",
    "subscriptionGroup.json says consumeEnable=false: the broker answers every pull and pop of the group with "
    "NO_PERMISSION (subscription group no permission), and its messages wait. They are lost to it where the log "
    "deletes them meanwhile.",
    "if the group is to consume again, set consumeEnable to true while the broker runs; its offsets stay as they are. "
    "Name its other settings in the same command: mqadmin gives those that are not named their defaults.",
    needs=BOTH | CONFIG,
)
CQ14 = _rule(
    "CQ14",
    "warn",
    "Queues of a topic that is not in topics.json",
    "Clients are told that there is no such topic: nobody reads what its queues hold. The table lost it, or the topic "
    "was deleted and its queues stayed.",
    "if the topic was not deleted on purpose, declare it again with as many queues, while the broker runs.",
    needs=BOTH | CONFIG,
)
TM01 = _rule(
    "TM01",
    "error",
    "A timercheck that is not of this timer queue",
    "config/timercheck says how many messages of rmq_sys_wheel_timer were taken into the timer log. A start that has "
    "nothing better goes on there: messages before it are not taken in again, and are never delivered.",
    "set the number to the end of the timer queue, or to the first message that was not taken in, before a broker "
    "starts.",
    "apache/rocketmq#7480",
    kinds={
        "gone": Kind(
            "warn", "bring timercheck back from a backup, or messages that were delivered are delivered again."
        ),
    },
    needs=BOTH | CONFIG | TIMER,
)
TM02 = _rule(
    "TM02",
    "error",
    "Timer log units that lead to no timer message",
    "The timer log keeps only where in the log each waiting message stands. Where something else stands there, the "
    "message is never delivered.",
    "find out whether timer log and log are of one store and one time; bring timerlog, timerwheel and "
    "config/timercheck back together.",
    "apache/rocketmq#10668",
    kinds={
        "expired": Kind(
            None, "nothing brings these messages back; keep the log for longer than messages wait (fileReservedTime)."
        ),
        "last": Kind("warn"),
        "delivered": Kind("note", "nothing needs to be done: these were delivered."),
    },
    needs=LOG | CONFIG | TIMER,
)
TM03 = _rule(
    "TM03",
    "error",
    "A timer wheel or timer log that was lost",
    "What waits for its time stands in the timer log, found by the wheel. A start takes in only what is behind "
    "timercheck's place in the timer queue, and makes the wheel again from the last two files of the timer log.",
    "start no broker; bring timerlog, timerwheel and config/timercheck back together from a backup.",
    "apache/rocketmq#9735",
    kinds={
        "log": Kind(
            None,
            "bring timerlog, timerwheel and config/timercheck back together; or let a start take the queue in again "
            "from the first message that is not due: what was due behind it is delivered twice.",
        ),
        "wheel": Kind(None, "let a start make the wheel again from the first file of the timer log."),
        "again": Kind("note", "nothing needs to be done: the next start makes the wheel again."),
    },
    needs=BOTH | CONFIG | TIMER,
)
CL13 = _rule(
    "CL13",
    "note",
    "Producers whose clock is not the broker's",
    "A message has the time at which its producer says it was born and the one at which the broker stored it. "
    "Searches, index queries and retention go by the second, what people remember is mostly the first.",
    "nothing needs to be done in the store; set the producer's clock, and shift the window of a search by as much.",
    "apache/rocketmq#681",
    needs=SEEN,
)
IX10 = _rule(
    "IX10",
    "warn",
    "No index, or files of it with nothing in them",
    "Queries by key or id go by the index alone: what stands in the log and not there is not found, though consumers "
    "get it. No start fills in what is missing. A broker with messageIndexEnable=false builds none.",
    "give the broker's configuration (--config) if it builds no index or the sizes are special; else the index can be "
    "built again from the log.",
    "apache/rocketmq#7477",
    "apache/rocketmq#4463",
    command=BUILD,
    kinds={
        "blank": Kind(),
        "name": Kind(
            step="give the file its name back, the time in its header as yyyyMMddHHmmssSSS in the broker's zone; or "
            "build the index again from the log."
        ),
    },
    needs=LOG | INDEX,
)
CQ15 = _rule(
    "CQ15",
    "error",
    "Ext files of a queue that are gone, empty or short",
    "With enableConsumeQueueExt an entry holds an address in place of its tag code. The next start writes new "
    "units where the lost ones were, and old entries then lead to those: filters by tag and SQL hide messages or show "
    "others.",
    "start no broker with filters on the queue; bring consumequeue_ext back, or build the queue again from the log.",
    "apache/rocketmq#10756",
    command=BUILD,
    kinds={"orphans": Kind("note", "nothing needs to be done: the next start cuts them.", "")},
    needs=QUEUE,
)
DK03 = _rule(
    "DK03",
    "chat",
    "Units that releases before 5 cannot read",
    "Topics with names of more than 127 bytes need version 2 units. A 4.9 broker takes such a unit for damage: it does "
    "not go back to that release with this store.",
    "before a broker of 4.9 starts on a copy of the store, see what it would keep.",
    command=f"storescope recover {STORE} --plan --like 4.9",
    kinds={
        "timers": Kind(
            "warn", "let a 5.x broker deliver them before the store goes back to 4.9, or send them again there.", ""
        )
    },
    needs=SEEN,
)


CLOSE_THEN_BUILD = f"storescope recover {STORE} --apply && storescope dispatch {STORE}"
"""Recovers without a broker and rebuilds the index afterwards, so that no start deletes it."""

IX04 = _rule(
    "IX04",
    "chat",
    "An index file that the next abnormal start deletes",
    "After a crash a broker deletes whole every index file that ends later than the checkpoint's index time, and "
    "indexes again only from its recovery start file on.",
    "nothing needs to be done: what is deleted is indexed again.",
    "apache/rocketmq#3868",
    "apache/rocketmq#8007",
    kinds={
        "lost": Kind(
            "warn",
            "recover the store without a broker, build its index again from the log, and start the broker then; or "
            "start it and build the index again when it is closed.",
            CLOSE_THEN_BUILD,
        )
    },
    needs=INDEX | CHECKPOINT,
)
RP01 = _rule(
    "RP01",
    "error",
    "Units that no start will dispatch",
    "They are in the log and in no queue, and lie before what the next start dispatches: their queues lost pages, a "
    "file or a folder. Nobody consumes them, and their queue offsets are given to new messages.",
    f"start no broker on the store; build the queues again from the log. Then, {PUT_IN_WORDS}",
    "apache/rocketmq#405",
    "apache/rocketmq#467",
    "apache/rocketmq#678",
    "apache/rocketmq#1434",
    command=BUILD,
    needs=BOTH | CONFIG | STATE | CHECKPOINT,
)
RP03 = _rule(
    "RP03",
    "error",
    "Units that a start gives wrong queue offsets",
    "A queue ends, and the next unit that the log has of it has a later number: the units in between are gone, as on a "
    "slave that was away for longer than its master keeps files. A start puts the next unit right behind the end, so "
    "queue offsets no longer say what their messages say, and groups are moved or pass messages over.",
    "start no broker on the store: recover it without one and build its queues again from the log, then every message "
    "has its own number and the groups stay right.",
    "apache/rocketmq#2784",
    "alibaba/RocketMQ#395",
    command=CLOSE_THEN_BUILD,
    needs=BOTH | STATE | CHECKPOINT,
)
RP02 = _rule(
    "RP02",
    "error",
    "A start that waits for ever",
    "RocketMQ 4.9 waits in its start until dispatch has reached the end of the log. Dispatch stands still at a byte "
    "that no file holds, so the broker never comes up; 5.3 does.",
    "bring the missing log file back; or build queues from the log that know what lies behind the gap, and start on "
    "these (with --config broker.conf where the broker's file sizes are its own).",
    command=BUILD,
    needs=BOTH,
)
