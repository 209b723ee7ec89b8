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
    PLAN,
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
    "A configuration table that is missing or empty",
    "A power cut or a full disk while it was written, or config/ was not copied with the store. A broker starts "
    "without any warning, uses defaults, and overwrites what is left.",
    "do not start a broker on this store; restore the table from a backup or from the config/ of a replica.",
    "apache/rocketmq#3401",
    "apache/rocketmq#6096",
    "apache/rocketmq#6881",
    "apache/rocketmq#9328",
    kinds={
        "case": Kind(step="start no broker: give the file its name back, letter by letter."),
        "backup": Kind("note", "replace the table with its .bak before anything writes there again."),
        "behind": Kind(
            "note",
            "if nobody reset these offsets, replace the table with its .bak while the broker is stopped; else the "
            "messages in between are consumed again.",
        ),
        "rows": Kind(
            "warn",
            "restore the group's offset of its retry queue from a backup, or let the group consume these "
            "messages again.",
        ),
        "group": Kind(
            "note",
            "no action needed if brokers create groups by themselves (autoCreateSubscriptionGroup); else create "
            "the groups again.",
        ),
    },
    needs=CONFIG,
)
CF06 = _rule(
    "CF06",
    "warn",
    "A group that lost messages before it read them",
    "The oldest log files were deleted (they expired, or the disk was full) before the group had read their "
    "messages. The group continues with the first message that is left.",
    "this store cannot bring the messages back; find out why the group did not consume, or keep the log longer "
    "(fileReservedTime).",
    "apache/rocketmq#8753",
    needs=BOTH,
)
CF07 = _rule(
    "CF07",
    "warn",
    "Queues that topics.json hides from clients",
    "Consumers see the first readQueueNums queues of a topic, producers the first writeQueueNums, and perm allows "
    "or forbids reading and writing. Nobody reads the messages in other queues.",
    "correct the topic's numbers of queues or its permission while the broker runs.",
    kinds={
        "beyond": Kind(),
        "wider": Kind(),
        "unreadable": Kind(),
        "unwritable": Kind(
            "note",
            "no action needed if this is intended: consumers read the topic to its end, and then it can be deleted.",
        ),
    },
    needs=BOTH | CONFIG,
)
CF08 = _rule(
    "CF08",
    "warn",
    "Consumer offsets of a topic that has no queues",
    "The store has neither queues nor units of the topic: it was deleted and the offsets stayed, or the table is of "
    "another store. A new topic of this name begins at queue offset 0, and these offsets are beyond that: the groups "
    "skip new messages, or get messages again.",
    "before you create a topic with this name again, remove its rows from a copy of the table while the broker is "
    "stopped.",
    "apache/rocketmq#4774",
    "apache/rocketmq#1852",
    needs=BOTH | CONFIG,
)
CF10 = _rule(
    "CF10",
    "note",
    "Filters that a broker discards when it starts",
    "A broker loads consumerFilter.json completely or not at all: if one filter has no bloom filter data, or data "
    "with other sizes than the broker's, the broker starts without any filter. RocketMQ 5.5.1 writes filters "
    "without this data unless enableCalcFilterBitMap is true. Connected clients register their filters again with "
    "their heartbeats, and every group still gets the messages that it asked for.",
    "no action needed. To keep the filters, set enableCalcFilterBitMap to true: the broker keeps them from the second "
    "start on. Or remove the filters that do not fit from a copy of the table while the broker is stopped; filters "
    "of groups without a client for 24 hours are removed in any case.",
    "apache/rocketmq#11102",
    needs=CONFIG,
)
CF11 = _rule(
    "CF11",
    "note",
    "Consumer offsets below zero",
    "A broker treats an offset below zero as no offset: the group starts where its clients say, or at the first "
    "message of the queue. JavaScript clients write -1 before they consume anything.",
    "no action needed for -1; for another number, find the client that wrote it.",
    "apache/rocketmq#1675",
    "apache/rocketmq#2225",
    kinds={"other": Kind("warn", "find the client that wrote the number; it starts as a new group in these queues.")},
    needs=CONFIG,
)
CF12 = _rule(
    "CF12",
    "warn",
    "Groups that have read more than the log ever held",
    "The log begins at byte 0 and holds fewer messages than its groups have read: somebody deleted the log's files, "
    "put an older copy of the log in their place, or tables of another store beside it. Groups ask for offsets that do "
    "not exist yet: they get nothing, and the messages up to their old offsets are skipped.",
    "restore the log to which these offsets belong. Or, if it was deleted on purpose, remove these groups from a "
    "copy of the table while the broker is stopped and before producers send again: they then start as new groups.",
    "alibaba/RocketMQ#512",
    "apache/rocketmq#2743",
    needs=BOTH | CONFIG,
)
CF13 = _rule(
    "CF13",
    "warn",
    "A broker service that makes no progress",
    "Its next task was due, and the broker stored other messages for a minute or more after that: the broker ran, "
    "but the service did not. Everything after the first message waits too. Times are compared with the newest "
    "message of the store, not with the current time.",
    "look for errors of the service in the broker's log, and restart the broker.",
    "apache/rocketmq#4226",
    "apache/rocketmq#8948",
    "apache/rocketmq#7641",
    "apache/rocketmq#9654",
    "apache/rocketmq#9956",
    kinds={
        "level": Kind(
            step="look at the first message of the level: if its body is longer than maxMessageSize (before 4.9.4: the "
            "whole message), the broker refuses it again and again when it delivers it. Raise maxMessageSize and "
            "restart the broker; then all messages are delivered."
        ),
        "timer": Kind(
            step="check that timerWheelEnable is on and that timerStopEnqueue is off, and restart the broker; then "
            "overdue messages are delivered. Run check again afterwards: a start may pass over the first of them "
            "(TM05)."
        ),
        "large": Kind(
            step="raise maxMessageSize to the size of this message or more, and restart the broker; then this message "
            "and all behind it are delivered. Run check again afterwards: a start may pass over the first of them "
            "(TM05)."
        ),
        "transactions": Kind(
            step="look for errors of the transaction check in the broker's log, and restart the broker; then open "
            "half messages are checked again."
        ),
        "refused half": Kind(
            step="raise maxMessageSize above the body of this half message, and restart the broker: the check stores "
            "each half message again before it asks the producer, and goes no further while that is refused."
        ),
        "revive": Kind(
            step="check that timerWheelEnable is on: without it the broker handles no checkpoints of pops. Look for "
            "errors of PopReviveService in the broker's log, and restart the broker; then popped messages that nobody "
            "acknowledged come back."
        ),
        "unreadable": Kind(
            step="while the broker is stopped, set the offset of CID_RMQ_SYS_REVIVE_GROUP for this queue to that entry "
            "(storescope set-offset). Popped messages of the checkpoints before it do not come back: send "
            "these again."
        ),
    },
    needs=BOTH | CONFIG,
)
CF09 = _rule(
    "CF09",
    "warn",
    "Delay level offsets that do not match their queues",
    "delayOffset.json contains, for each delay level, the offset of the next message to deliver.",
    "restore delayOffset.json from a backup before you start a broker on this store.",
    "apache/rocketmq#1869",
    "apache/rocketmq#7077",
    "apache/rocketmq#6881",
    kinds={
        "beyond": Kind(
            "error",
            "while the broker is stopped, set the level's offset to the first message that was not delivered, or to "
            "the end of its queue (storescope set-delay-offset). If the offset is beyond the end, releases before "
            "4.9.2 deliver nothing; later releases jump to the end.",
        ),
        "missing": Kind(
            "warn",
            "restore the levels from a backup of delayOffset.json; else their messages are delivered again.",
        ),
    },
    needs=BOTH | CONFIG,
)
CF14 = _rule(
    "CF14",
    "error",
    "Tables in config/ that do not fit this store",
    "topics.json lacks topics that have messages in this store, and groups have offsets in topics that are not in "
    "it. The tables belong to another broker, or to another time of this one. A broker starts with them without a "
    "warning: it refuses clients the missing topics, groups begin at wrong offsets, and it overwrites the tables "
    "with what clients ask for.",
    "start no broker on the store. Restore this store's own config/, from a backup of the same time or from a "
    "replica of the same broker. Until then declare no topic and reset no offset.",
    command=f"cp -r REPLICA/config/. {STORE}/config/",
    needs=BOTH | CONFIG,
)
CF15 = _rule(
    "CF15",
    "warn",
    "A group that may not consume although messages wait for it",
    "subscriptionGroup.json says consumeEnable=false: the broker answers every pull and pop of the group with "
    "NO_PERMISSION (subscription group no permission), so its messages wait. The group loses messages that "
    "retention deletes meanwhile.",
    "to let the group consume again, set consumeEnable to true while the broker runs. Its offsets are kept. Repeat "
    "its other settings in the same command: mqadmin resets those that are not named.",
    needs=BOTH | CONFIG,
)
CF16 = _rule(
    "CF16",
    "chat",
    "Transactions that the broker gave up",
    "The broker asked transactionCheckMax times whether to commit (by default 15 times), or until the half message was "
    "older than fileReservedTime, and no producer of the group answered. It moved the half messages to "
    "TRANS_CHECK_MAX_TIME_TOPIC. No consumer gets them.",
    "find out why no producer of the group answered, and whether these transactions were committed there: if so, send "
    "the messages again.",
    needs=BOTH,
)
CF17 = _rule(
    "CF17",
    "warn",
    "Open transactions in a RocksDB that are never checked",
    "With transRocksDBEnable and without transWriteOriginTransHalfEnable the broker asks producers about half "
    "messages with a row in rocksdbstore/ only. It deletes a row that leads to no half message without a word, and no "
    "start gives a row to a half message that dispatch has passed.",
    "ask the producers whether these transactions were committed; if so, send the messages again. Restore "
    "rocksdbstore/ and the log together only from the same moment.",
    kinds={
        "expired": Kind(
            "note",
            "ask the producers whether these transactions were committed: the log has deleted the half messages.",
        ),
        "unit": Kind(),
    },
    needs=BOTH,
)
CF18 = _rule(
    "CF18",
    "error",
    "Popped messages in a RocksDB that do not come again",
    "With popConsumerKVServiceEnable a popped message has a row in kvStore/ until it is acknowledged. The broker "
    "reads all rows whose time is over; at one that is not of its form it stops, and tries again forever. A row that "
    "leads to no message is deleted without a word.",
    "delete these rows (ldb of RocksDB, with the keys in the evidence) while the broker is stopped; until then groups "
    "that pop do not get again what they did not acknowledge.",
    kinds={
        "lost": Kind(
            "warn",
            "find out what happened to the queue or the log; a group that pops does not get these messages again.",
        ),
        "expired": Kind(
            "note", "no action needed: the log has deleted these messages before the group acknowledged them."
        ),
    },
    needs=BOTH,
)
CF19 = _rule(
    "CF19",
    "error",
    "A static topic whose mapping is wrong",
    "topicQueueMapping.json says which offsets of a logical queue lie in which queue. A broker translates all offsets "
    "of clients with it. If ranges overlap, clients get messages at the offsets of others.",
    "restore topicQueueMapping.json of this broker (its .bak, or a replica) while the broker is stopped.",
    kinds={
        "queues": Kind(
            None,
            "give the topic its queues again (mqadmin updateTopic) while the broker runs: until then the broker "
            "refuses sends to this logical queue and pulls from it.",
        ),
        "behind": Kind(
            "warn",
            "find out which producers sent to this broker after the queue had moved, and send these messages again.",
        ),
    },
    needs=BOTH | CONFIG,
)
CQ14 = _rule(
    "CQ14",
    "warn",
    "Queues of a topic that is missing in topics.json",
    "For clients this topic does not exist: nobody reads the messages in its queues. The table lost the topic, or "
    "the topic was deleted and its queues stayed.",
    "if the topic was not deleted on purpose, create it again with the same number of queues while the broker runs.",
    needs=BOTH | CONFIG,
)
TM01 = _rule(
    "TM01",
    "error",
    "A timercheck that does not match the timer queue",
    "config/timercheck says how many messages of rmq_sys_wheel_timer are in the timer log. A start without better "
    "information continues there: it does not read the messages before it again, and they are never delivered.",
    "before you start a broker, set the number to the end of the timer queue, or to the first message that is not "
    "in the timer log.",
    "apache/rocketmq#7480",
    kinds={
        "gone": Kind(
            "warn", "restore timercheck from a backup; else messages that were delivered are delivered again."
        ),
        "ahead": Kind(
            step="while the broker is stopped, set the time in timercheck to the time at which the first of these "
            "messages is due, and start the broker within seven days of that time. Else the timer delivers nothing "
            "until that time, and these messages never: read them from the log (storescope where shows each) and "
            "send them again."
        ),
    },
    needs=BOTH | CONFIG | TIMER,
)
TM02 = _rule(
    "TM02",
    "error",
    "Timer log entries that do not lead to a timer message",
    "The timer log has only the log offset of each waiting message. If something else is at that offset, the "
    "message is never delivered.",
    "check that timer log and commit log are from the same store and time; restore timerlog, timerwheel and "
    "config/timercheck together.",
    "apache/rocketmq#10668",
    kinds={
        "expired": Kind(
            None, "these messages cannot come back; keep the log longer than messages wait (fileReservedTime)."
        ),
        "last": Kind("warn"),
        "delivered": Kind("note", "no action needed: these were delivered."),
    },
    needs=LOG | CONFIG | TIMER,
)
TM03 = _rule(
    "TM03",
    "error",
    "A lost timer wheel or timer log",
    "The timer log lists the messages that wait for their time; the wheel points to them. A start reads only the "
    "timer queue after timercheck's place, and rebuilds the wheel from the last two files of the timer log.",
    "do not start a broker; restore timerlog, timerwheel and config/timercheck together from a backup.",
    "apache/rocketmq#9735",
    kinds={
        "log": Kind(
            None,
            "restore timerlog, timerwheel and config/timercheck together; or let a start read the timer queue "
            "again from the first message that is not due: messages after it that were due are delivered twice.",
        ),
        "wheel": Kind(None, "let a start rebuild the wheel from the first file of the timer log."),
        "again": Kind("note", "no action needed: the next start rebuilds the wheel."),
    },
    needs=BOTH | CONFIG | TIMER,
)
TM05 = _rule(
    "TM05",
    "warn",
    "Timer messages that were passed over",
    "They were due, the timer has already passed that time, and the log does not hold them a second time: no start "
    "delivers them. Causes: a timercheck of a later time or of another store; a broker that was stopped for seven "
    "days or more (604,800 times timerPrecisionMs), because a start leaves out what is older; a start that puts "
    "messages into the wheel that were due already; three refused deliveries; and, since RocketMQ 5.4, messages larger "
    "than the timer's buffer.",
    "read these messages from the log (storescope where shows each) and send them again.",
    "apache/rocketmq#7927",
    "apache/rocketmq#9654",
    kinds={
        "again": Kind(
            "error",
            "while the broker is stopped, set the time in timercheck to the time at which the first of these messages "
            "was due, and start the broker within seven days of that time: then it delivers them, and none twice. "
            "After these seven days, send them again.",
        ),
        "large": Kind(
            step="raise maxMessageSize before another such message is due, and restart the broker. Send these "
            "messages again: no start delivers them."
        ),
    },
    needs=BOTH | CONFIG | TIMER,
)
TM06 = _rule(
    "TM06",
    "error",
    "Timer messages in a RocksDB that are never delivered",
    "With timerRocksDBEnable the broker delivers timer messages with a row in rocksdbstore/ only, in the order of "
    "their due times. It passes over a row that leads to no timer message, and never looks again for a message "
    "without a row. Before the first delivery, timeline_checkpoint does not exist: a start then begins 10 seconds "
    "before its own time.",
    "restore rocksdbstore/ and the log from the same moment, or send these messages again.",
    kinds={
        "expired": Kind(
            None, "these messages cannot come back; keep the log longer than messages wait (fileReservedTime)."
        ),
        "unit": Kind(None, "read these messages from the log (storescope where shows each) and send them again."),
        "passed": Kind("warn", "read these messages from the log (storescope where shows each) and send them again."),
        "start": Kind(
            "note",
            "start the broker before that time; if it starts later, read the messages that were due from the log and "
            "send them again.",
        ),
    },
    needs=BOTH | TIMER,
)
CL13 = _rule(
    "CL13",
    "note",
    "Producers whose clock differs from the broker's",
    "A message has the time when its producer created it and the time when the broker stored it. Searches, index "
    "queries and retention use the store time; people usually remember the creation time.",
    "no action needed in the store; correct the producer's clock, and shift the time range of a search by the "
    "same amount.",
    "apache/rocketmq#681",
    needs=SEEN,
)
IX10 = _rule(
    "IX10",
    "warn",
    "Missing or empty index files",
    "Queries by key or id use only the index: they do not find messages that it lacks, although consumers get these "
    "messages. No start adds what is missing. A broker with messageIndexEnable=false builds no index.",
    "rebuild the index from the log; give the broker's configuration (--config) if the index sizes are not the "
    "defaults. With messageIndexEnable=false there is no index on purpose.",
    "apache/rocketmq#7477",
    "apache/rocketmq#4463",
    command=BUILD,
    kinds={
        "blank": Kind(),
        "unmade": Kind("note", "no action needed: a broker continues in this file.", ""),
        "name": Kind(
            step="give the file its old name, the time in its header as yyyyMMddHHmmssSSS in the broker's time "
            "zone; or rebuild the index from the log."
        ),
    },
    needs=LOG | INDEX,
)
IX11 = _rule(
    "IX11",
    "warn",
    "Index files whose names do not follow their content",
    "A broker sorts index files by their names and reads them from the newest name back. A query with a time range "
    "ends at the first file that is older than the range, and a start after a crash may index messages a second time. "
    "A query without a time range finds everything.",
    "nothing is lost. While the broker is stopped, give each file the time in its header as its name "
    "(yyyyMMddHHmmssSSS in the broker's time zone); or rebuild the index from the log.",
    command=BUILD,
    kinds={
        "single": Kind(
            step="nothing is lost. While the broker is stopped, give the file its name back: the time in its header as "
            "yyyyMMddHHmmssSSS in the broker's time zone."
        ),
        "clock": Kind(
            "note",
            "no action needed: the broker's clock was set back, or summer time ended, while it created these files. "
            "Retention deletes them in time.",
            "",
        ),
    },
    needs=INDEX,
)
CM01 = _rule(
    "CM01",
    "chat",
    "Compacted topics",
    "Consumers of a topic with cleanup.policy=COMPACTION read from compaction/ and not from the commit log. Compaction "
    "keeps the newest message of each key.",
    "no action needed. storescope where says of a message whether it lives on there.",
    needs=SEEN,
)
CM02 = _rule(
    "CM02",
    "error",
    "Damage in a compacted queue",
    "A broker does not check these files when it starts: it hands the damaged bytes to consumers, which cannot read "
    "them and stop there.",
    "while the broker is stopped, restore the folder of this queue in compaction/ from a replica or a backup. No start "
    "builds it again from the commit log.",
    needs=SEEN,
)
CM03 = _rule(
    "CM03",
    "error",
    "A compacted queue without its messages",
    "Consumers of a compacted topic read only from compaction/. If its files are lost, they find the queue empty, "
    "although log and queue still have the messages. No start builds it again.",
    "while the broker is stopped, restore compaction/ from a replica or a backup. Else send the newest message of each "
    "key again: storescope queue --resolve lists those that the log still has.",
    needs=BOTH | CONFIG,
)
CQ18 = _rule(
    "CQ18",
    "note",
    "Messages in a higher queue than that of their priority",
    "Since 5.4 a broker puts a message into the queue with the number of its priority, or into the last one if there "
    "are fewer. A pop of a topic of type PRIORITY reads the highest queue first, so these messages come too early. "
    "Looked for in stores with a topic of type PRIORITY, in topics of every type.",
    "nothing, if a broker before 5.4 stored them: it does not know priorities. Otherwise find out what put them into "
    "this queue.",
    needs=LOG | CONFIG,
)
LT01 = _rule(
    "LT01",
    "note",
    "Lite topics that a broker deletes",
    "A broker of 5.5 deletes a lite topic once nothing has come for lite.topic.expiration minutes, and not before 15 "
    "minutes, read or not. Its messages stay in their topic, but no lite consumer gets them.",
    "nothing, if these lite topics are no longer needed. To keep them, give the topic a greater lite.topic.expiration, "
    "or -1, within 15 minutes after the start: mqadmin updateTopic -a +lite.topic.expiration=-1.",
    kinds={
        "unread": Kind(
            "warn",
            "groups have not read them all. Give the topic a greater lite.topic.expiration, or -1, within 15 minutes "
            "after the start (mqadmin updateTopic -a +lite.topic.expiration=-1), and let the groups read.",
        ),
    },
    needs=BOTH | CONFIG,
)
TS01 = _rule(
    "TS01",
    "error",
    "Files of tiered storage that are missing or cut",
    "Tiered storage has the only copy of messages that retention has deleted from the log. Consumers do not get what "
    "its files lack.",
    "restore these files from a backup of the folder that tieredStoreFilePath names.",
    kinds={
        "elsewhere": Kind(
            "note",
            "name the broker's configuration with --config FILE.conf: its tieredStoreFilePath is the folder.",
        ),
        "table": Kind(
            step="restore config/tieredStoreMetadata.json from a backup of the same broker while it is stopped.",
        ),
    },
    needs=SEEN,
)
IX12 = _rule(
    "IX12",
    "warn",
    "Index rows in a RocksDB that do not fit the log",
    "With indexRocksDBEnable a broker finds messages by key, unique key and tags through rows of rocksdbstore/. A row "
    "that leads to another message, or a message without a row, is not found. No start makes rows for messages before "
    "lastOffsetPy again.",
    "let storescope repair write these rows again while the broker is stopped. Index files, if the broker writes them "
    "too, answer such queries with indexRocksDBEnable=false.",
    command=f"storescope repair {STORE} --plan",
    kinds={"key": Kind()},
    needs=LOG,
)
CQ17 = _rule(
    "CQ17",
    "error",
    "A message at which dispatch stopped",
    "A broker fails at a further queue of this message and dispatches it again and again. RocketMQ 5.5 fails at the "
    "light queue of a lite topic with a $ in its name; 5.3 and later fail at a name in "
    "INNER_MULTI_DISPATCH that has no %LMQ%, before a light queue. Messages behind it, of all topics, are in no "
    "queue, so consumers do not get them.",
    "do not restart the broker: set longPollingEnable to false while it runs (mqadmin updateBrokerConfig), and back "
    "to true when mqadmin brokerStatus has dispatchBehindBytes 0. No message is lost. Then let producers send no $ in "
    "the names of lite topics: the next such message stops dispatch again.",
    kinds={
        "stopped": Kind(
            "warn",
            "set commitLogRecoverMaxNum to the number of log files or more (the default is 10) before you start the "
            "broker: it then dispatches all messages behind this one. It stops at the next message like it: let "
            "producers send no $ in the names of lite topics.",
            PLAN,
        ),
        "unnumbered": Kind(
            None,
            "do not restart the broker, it would not start: set enableMultiDispatch and longPollingEnable to false "
            "while it runs (mqadmin updateBrokerConfig), and back when mqadmin brokerStatus has dispatchBehindBytes "
            "0. Light queues lack the messages of that time. Find the producer that sets INNER_MULTI_DISPATCH.",
        ),
        "unnumberedStopped": Kind(
            None,
            "start the broker with enableMultiDispatch=false, else it does not start, and with commitLogRecoverMaxNum "
            "at the number of log files or more. Light queues lack the messages of that time. Stop it in the ordinary "
            "way before you start it with your settings. Find the producer that sets INNER_MULTI_DISPATCH.",
        ),
        "rocksdb": Kind(
            None,
            "set enableLmq and longPollingEnable to false while the broker runs (mqadmin updateBrokerConfig), and back "
            "when mqadmin brokerStatus has dispatchBehindBytes 0; a restart changes nothing. Light queues lack the "
            "messages of that time. Find the producer that sets INNER_MULTI_DISPATCH.",
        ),
        "rocksdbStopped": Kind(
            None,
            "start the broker with enableLmq=false and longPollingEnable=false, else dispatch stops there again. Light "
            "queues lack the messages of that time. Stop it in the ordinary way before you start it with your "
            "settings. Find the producer that sets INNER_MULTI_DISPATCH.",
        ),
    },
    needs=BOTH,
)
CQ15 = _rule(
    "CQ15",
    "error",
    "Ext files of a queue that are missing, empty or short",
    "With enableConsumeQueueExt an entry has an address instead of its tag code. The next start writes new units "
    "where the lost ones were, and old entries then lead to those: tag and SQL filters hide messages or show "
    "wrong ones.",
    "do not start a broker with filters on this queue; restore consumequeue_ext, or rebuild the queue from the log.",
    "apache/rocketmq#10756",
    command=BUILD,
    kinds={"orphans": Kind("note", "no action needed: the next start cuts them.", "")},
    needs=QUEUE,
)
DK03 = _rule(
    "DK03",
    "chat",
    "Messages that releases before 5.0 cannot read",
    "Messages of topics with names longer than 127 bytes are stored as version 2 units. For a 4.9 broker such a "
    "unit is damage: this store cannot go back to that release.",
    "before a 4.9 broker starts on a copy of this store, see what it would keep.",
    command=f"storescope recover {STORE} --plan --release 4.9",
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
    "An index file that a start after a crash deletes",
    "After a crash a broker deletes every index file that ends later than the checkpoint's index time, and "
    "indexes messages again only from its recovery start file on.",
    "no action needed: the broker indexes these messages again.",
    "apache/rocketmq#3868",
    "apache/rocketmq#8007",
    kinds={
        "lost": Kind(
            "warn",
            "recover the store without a broker, rebuild its index from the log, and then start the broker; or "
            "start it, and rebuild the index when it is stopped.",
            CLOSE_THEN_BUILD,
        )
    },
    needs=INDEX | CHECKPOINT,
)
RP01 = _rule(
    "RP01",
    "error",
    "Messages that no start will dispatch",
    "They are in the log but in no queue, and before the place from which the next start dispatches: their queues "
    "lost pages, a file or a folder. Nobody can consume them, and new messages get their queue offsets.",
    f"do not start a broker on this store; rebuild the queues from the log. Then, {PUT_IN_WORDS}",
    "apache/rocketmq#405",
    "apache/rocketmq#467",
    "apache/rocketmq#678",
    "apache/rocketmq#1434",
    command=BUILD,
    kinds={
        "dledger": Kind(
            step="while no broker runs on it, move the file abort out of the store: then the start takes it for closed "
            "and cuts no queue. With --plan see first whether the queues reach the end of the log without it.",
            command=f"storescope recover {STORE} --plan",
        )
    },
    needs=BOTH | CONFIG | STATE | CHECKPOINT,
)
RP03 = _rule(
    "RP03",
    "error",
    "Messages that a start gives wrong queue offsets",
    "A queue ends, and its next message in the log has a later queue offset: the messages in between are gone, as "
    "on a slave that was away longer than its master keeps files. A start puts this message directly after the "
    "end, so queue offsets no longer match the messages, and groups are moved or skip messages.",
    "do not start a broker on this store. Recover it without a broker and rebuild its queues from the log; then "
    "every message keeps its queue offset and the groups stay right.",
    "apache/rocketmq#2784",
    "alibaba/RocketMQ#395",
    command=CLOSE_THEN_BUILD,
    needs=BOTH | STATE | CHECKPOINT,
)
RP02 = _rule(
    "RP02",
    "error",
    "A start that waits forever",
    "RocketMQ 4.9 waits during its start until dispatch has reached the end of the log. Dispatch stops at a byte "
    "that no file has, so the broker never comes up. RocketMQ 5.3 does.",
    "restore the missing log file; or build queues from the log that know the messages after the gap, and start "
    "with these (add --config broker.conf if the broker's file sizes are not the defaults).",
    command=BUILD,
    needs=BOTH,
)
