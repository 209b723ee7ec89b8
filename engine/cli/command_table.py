"""The commands of ``storescope``, each with its module and the line that explains it.

``storescope --help`` and shells complete from this table; a command's module is imported when the command is asked.
"""

from __future__ import annotations

COMMANDS: dict[str, dict[str, str]] = {
    "info": {
        "info": "Show what a store contains: files, topics, queues, index files and checkpoint",
    },
    "units": {
        "units": "List the units in the commit log: messages, blanks and damage",
    },
    "queue": {
        "queue": "List the entries of a consume queue",
    },
    "index": {
        "index": "List the index files with their headers, and their entries on request",
    },
    "trace": {
        "trace": "Follow a key or tag through the index files, step by step",
    },
    "get": {
        "get": "Read messages from a queue as a broker's getMessage returns them",
    },
    "message": {
        "message": "Show one message: by message id, key, or offset",
    },
    "offset": {
        "offset": "Find the queue offset of a store time, as a broker does",
    },
    "where": {
        "where": "Find a message, or explain why it is missing",
    },
    "conversation": {
        "conversation": (
            "Follow a key, a transaction or a retried message: all its units in order, and what happened between"
        ),
    },
    "positions": {
        "positions": "Show the positions of log, queues, index and checkpoint",
    },
    "groups": {
        "groups": "Show the progress of each consumer group: offset, lag, oldest unread message",
    },
    "space": {
        "space": "Show disk space by topic, queue, day, tag and producer, and what retention deletes next",
    },
    "diff": {
        "diff": "Compare two stores: units, queue entries, index, tables, checkpoint",
    },
    "check": {
        "check": "Check a store: what is wrong, what is lost, and what to do first",
    },
    "config": {
        "config": "Show the tables in config/: topics, consumer groups, offsets, delay levels and others",
    },
    "rows": {
        "rows": (
            "List the messages that a broker keeps in a RocksDB: waiting timers, open transactions, popped messages"
        ),
    },
    "waiting": {
        "waiting": (
            "List messages that wait: delayed, timed, half, popped, to be retried; and what their services have reached"
        ),
    },
    "timeline": {
        "timeline": (
            "List what happened to a store and when: crashes, starts, stalls, clock steps, duplicate sends, "
            "retry storms"
        ),
    },
    "histogram": {
        "histogram": (
            "Count messages and bytes over store time, by topic, with p50 and p99 of the time from born to stored"
        ),
    },
    "sql": {
        "sql": "Ask questions about a store in SQL: messages, queue entries, index entries, groups, findings",
    },
    "mcp": {
        "mcp": "Answer an agent's questions about a store (Model Context Protocol on standard input and output)",
    },
    "recover": {
        "recover": "Show what the next start of a broker keeps and loses; do it with --apply (writes)",
    },
    "compat": {
        "compat": (
            "Show whether other releases and storage modes would start on a store, what they lose and do not read"
        ),
    },
    "dispatch": {
        "dispatch": "Rebuild the consume queues and the index from the commit log (writes)",
    },
    "repair": {
        "repair": (
            "Show what can be mended in a damaged store; mend a copy (--to), or the store itself (--apply, writes)"
        ),
    },
    "salvage": {
        "salvage": "Find messages in damage, free space and disk images that the store does not have any more",
    },
    "set_values": {
        "set-offset": "Set the offset at which a consumer group goes on in a queue (writes)",
        "set-delay-offset": "Set the offset at which the broker goes on delivering a delay level (writes)",
        "set-checkpoint": "Set one number of the checkpoint, and show what the next start makes of it (writes)",
    },
    "bench": {
        "bench": "Measure the speed of reading, writing and checking on this machine",
    },
    "snapshot": {
        "snapshot": "Copy a store byte for byte, with a manifest of hashes (writes DST)",
    },
    "capsule": {
        "capsule": "Write everything of a store but the bodies into one file, to attach to a report (writes FILE)",
    },
    "put": {
        "put": "Put messages into a store, or into a new one (writes)",
    },
    "copy": {
        "copy": "Copy a store message by message; damage is left out (writes DST)",
    },
    "pipeline": {
        "pipeline": "Run a job over large stores or many stores, in this process or on Spark",
    },
    "mqadmin": {
        "queryMsgByKey": "Like mqadmin: find messages by topic and key",
        "queryMsgById": "Like mqadmin: find messages by offset message id",
        "queryMsgByUniqueKey": "Like mqadmin: find messages by topic and unique key",
        "queryMsgByOffset": "Like mqadmin: show the message at a queue offset",
        "queryCq": "Like mqadmin: list consume queue entries with their messages",
        "printMsg": "Like mqadmin: print the messages of a topic",
        "printMsgByQueue": "Like mqadmin: print the messages of one queue",
        "consumerProgress": "Like mqadmin: show the progress of consumer groups",
        "topicStatus": "Like mqadmin: show offsets and times of a topic's queues",
        "brokerStatus": "Like mqadmin: show the figures of running brokers",
        "statsAll": "Like mqadmin: show messages in and out of each topic and group",
        "topicList": "Like mqadmin: list topics",
        "getBrokerEpoch": "Like mqadmin: list the epochs of masters in controller mode",
        "consumeMessage": "Like mqadmin: print messages of a topic from the oldest on",
        "checkRocksdbCqWriteProgress": "Like mqadmin: check that a RocksDB has the entries of the file queues",
        "rocksDBConfigToJson": "Like mqadmin: print a table that a broker keeps in a RocksDB, as JSON",
        "exportMetadataInRocksDB": "Like mqadmin: list the topics or groups that a broker keeps in a RocksDB",
        "dumpCompactionLog": "Like mqadmin: list the messages in a log file of a compacted queue",
        "resetOffsetByTime": "Like mqadmin: set a group's offsets to a time, with a plan and an undo file (writes)",
        "skipAccumulatedMessage": (
            "Like mqadmin: set a group's offsets to the end, with a plan and an undo file (writes)"
        ),
        "cloneGroupOffset": (
            "Like mqadmin: set a group's offsets to those of another group, with a plan and an undo file (writes)"
        ),
        "restore-offsets": "Set a group's offsets back to those in an undo file (writes)",
    },
    "namesrv": {
        "namesrv": "Run a name server for brokers and clients",
    },
    "serve": {
        "serve": "Run a broker on a store, with a name server, for RocketMQ clients (writes)",
    },
    "replay": {
        "replay": "Send the requests of a recording (serve --record) again, to a store or a broker (writes)",
    },
    "resend": {
        "resend": "Send messages of a store to a running broker again, such as dead letters (sends)",
    },
    "replicate": {
        "replicate": "Copy a running broker's log through its HA port and build queues and index (writes DST)",
    },
    "cluster": {
        "cluster": "Show a running cluster: brokers, clients, queue owners and lag",
    },
    "completion": {
        "completion": "Print a script that completes storescope commands in a shell",
    },
    "doctor": {
        "doctor": "Show what this installation has and lacks: versions, window, Java, limits",
    },
}
"""Module in ``engine.cli.commands`` → its commands with their summaries."""

MODULES = {name: module for module, summaries in COMMANDS.items() for name in summaries}
SUMMARIES = {name: summary for summaries in COMMANDS.values() for name, summary in summaries.items()}
