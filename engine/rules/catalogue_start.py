"""Rules about what the next start of a broker loses, or why it never comes up (spec 10); ``catalogue`` has them all."""

from __future__ import annotations

from engine.rules.findings import BOTH, BUILD, CHECKPOINT, CONFIG, INDEX, PUT_IN_WORDS, STATE, STORE, Kind, Register

RULES = Register()
_rule = RULES.add

CLOSE_THEN_BUILD = f"storescope recover {STORE} --apply && storescope dispatch {STORE}"
"""Recovers without a broker and builds the index anew afterwards, so that no start deletes it."""

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
    "They are in the log and in no queue, and lie before what a start dispatches: their queues lost pages, a file or "
    "a folder. Nobody consumes them, and their queue offsets are given to new messages.",
    f"start no broker on the store; build the queues again from the log. Then, {PUT_IN_WORDS}",
    "apache/rocketmq#405",
    "apache/rocketmq#467",
    "apache/rocketmq#678",
    "apache/rocketmq#1434",
    command=BUILD,
    needs=BOTH | CONFIG | STATE | CHECKPOINT,
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
