"""The fields of every record with their JSON types: users' scripts depend on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Check = Any  # a type, a tuple of types, a set of words, a list of one check, a mapping of names to checks

NUMBER = int
OPTIONAL_NUMBER = (int, type(None))
OPTIONAL_TEXT = (str, type(None))
HEADER = {
    "name": str,
    "beginTimestamp": int,
    "endTimestamp": int,
    "beginPhyOffset": int,
    "endPhyOffset": int,
    "hashSlotCount": int,
    "indexCount": int,
}
UNIT = {
    "physicalOffset": int,
    "size": int,
    "version": {1, 2},
    "file": str,
    "topic": str,
    "queueId": int,
    "queueOffset": int,
    "flag": int,
    "sysFlag": int,
    "bornTimestamp": int,
    "bornHost": str,
    "storeTimestamp": int,
    "storeHost": str,
    "reconsumeTimes": int,
    "preparedTransactionOffset": int,
    "bodyCRC": int,
    "crc": {"ok", "bad", "unchecked"},
    "bodyLength": int,
    "properties": dict,
    "tags": OPTIONAL_TEXT,
    "keys": [str],
    "uniqueKey": OPTIONAL_TEXT,
    "tagsCode": int,
    "offsetMsgId": str,
    "bodySha256": str,
}
LOSS = {
    "messages": int,
    "lookedFrom": int,
    "firstUnit": OPTIONAL_NUMBER,
    "lastUnit": OPTIONAL_NUMBER,
    "queues": [{"topic": str, "queueId": int, "messages": int, "firstQueueOffset": int, "lastQueueOffset": int}],
}
POSITION = {"offset": OPTIONAL_NUMBER}
RECORDS: dict[str, Mapping[str, Check]] = {
    "store": {
        "path": str,
        "flavour": [str],
        "minOffset": int,
        "maxOffset": int,
        "files": {"commitlog": [{"name": str, "size": int}], "consumequeue": int, "index": int},
        "topics": [{"topic": str, "queues": [{"queueId": int, "minOffset": int, "maxOffset": int}]}],
        "index": [HEADER],
        "checkpoint": ({"physicMsgTimestamp": int, "logicsMsgTimestamp": int, "indexMsgTimestamp": int}, None),
        "abort": bool,
        "lock": {"free", "held", "absent"},
        "bytes": {"commitlog": int, "consumequeue": int, "index": int, "config": int, "other": int},
    },
    "unit": UNIT,
    "match": UNIT,
    "blank": {"physicalOffset": int, "size": int, "file": str},
    "damage": {"physicalOffset": int, "size": int, "reason": str},
    "end": {"physicalOffset": int, "reason": str, "units": int, "complete": bool},
    "cq": {
        "queueOffset": int,
        "physicalOffset": (int, None),
        "size": (int, None),
        "tagsCode": (int, None),
        "ext": (
            {"address": int, "size": int, "tagsCode": int, "storeTimestamp": int, "bitMap": str},
            None,
        ),
        "state": {"entry", "prefilled", "empty", "moved"},
    },
    "indexFile": HEADER,
    "indexEntry": {
        "file": str,
        "entry": int,
        "slot": int,
        "keyHash": int,
        "phyOffset": int,
        "timeDiff": int,
        "storeTimestamp": int,
        "prev": int,
    },
    "traceFile": {"file": str, "chosen": bool, "why": str, "damaged": bool},
    "traceStep": {
        "file": str,
        "kind": {"slot", "entry"},
        "slot": int,
        "entry": OPTIONAL_NUMBER,
        "keyHash": OPTIONAL_NUMBER,
        "phyOffset": OPTIONAL_NUMBER,
        "storeTimestamp": OPTIONAL_NUMBER,
        "prev": OPTIONAL_NUMBER,
        "verdict": {"match", "collision", "hashDiffers", "outOfTime", "gone", "loop", "beyondCount", "empty"},
    },
    "traceEnd": {"matches": int, "steps": int, "complete": bool},
    "getResult": {
        "status": {
            "FOUND",
            "NO_MATCHED_MESSAGE",
            "MESSAGE_WAS_REMOVING",
            "OFFSET_FOUND_NULL",
            "OFFSET_OVERFLOW_BADLY",
            "OFFSET_OVERFLOW_ONE",
            "OFFSET_TOO_SMALL",
            "NO_MATCHED_LOGIC_QUEUE",
            "NO_MESSAGE_IN_QUEUE",
        },
        "nextBeginOffset": int,
        "minOffset": int,
        "maxOffset": int,
        "count": int,
    },
    "offset": {"queueOffset": int},
    "finding": {
        "id": str,
        "severity": {"chat", "note", "warn", "error"},
        "group": str,
        "file": OPTIONAL_TEXT,
        "offset": OPTIONAL_NUMBER,
        "message": str,
        "evidence": dict,
        "knownIssues": list,
        "nextStep": OPTIONAL_TEXT,
        "title": str,
        "explanation": str,
        "command": OPTIONAL_TEXT,
        "causedBy": OPTIONAL_TEXT,
    },
    "summary": {
        "complete": bool,
        "incident": (
            {"whatHappened": str, "lostAlready": (dict, None), "lostByNextStart": dict, "firstSteps": list},
            None,
        ),
    },
    "recoveryPlan": {
        "willStart": bool,
        "blockers": [{"finding": OPTIONAL_TEXT, "message": str, "brokerLog": OPTIONAL_TEXT}],
        "exit": {"normal", "abnormal"},
        "startFile": OPTIONAL_TEXT,
        "why": str,
        "startOffset": int,
        "endOffset": int,
        "endReason": str,
        "unitsKept": int,
        "bytesDropped": int,
        "dispatchFrom": int,
        "units": int,
        "filesDeleted": [str],
        "queues": [{"topic": str, "queueId": int, "minOffset": int, "maxOffset": int}],
        "groupsBeyond": [{"group": str, "topic": str, "queueId": int, "offset": int, "maxOffset": int}],
        "index": dict,
        "bytesToRead": int,
        "queuesKnown": bool,
        "undispatched": (LOSS, None),
        "dropped": (LOSS, None),
        "releases": [{"release": {"5.3", "4.9"}, "willStart": bool, "blockers": list}],
        "writtenBy": ({"release": {"5.3", "4.9"}, "why": str, "guess": {True}}, None),
    },
    "difference": {
        "kind": {"onlyInA", "onlyInB", "differs"},
        "part": {"unit", "queue", "index", "config", "checkpoint", "state"},
        "subject": str,
        "count": int,
        "topic": OPTIONAL_TEXT,
        "queueId": OPTIONAL_NUMBER,
        "queueOffset": OPTIONAL_NUMBER,
        "physicalOffset": OPTIONAL_NUMBER,
        "fields": str,
        "a": str,
        "b": str,
    },
    "compared": {"equal": bool, "complete": bool, "differences": int, "bytes": int},
    "patch": {
        "n": int,
        "action": {"writeBytes", "createFile", "replaceFile", "removeFile", "moveFile"},
        "file": str,
        "why": str,
        "gains": str,
        "costs": str,
    },
    "patched": {"patches": int, "kept": ({"folder": str, "files": int, "bytes": int}, None)},
    "compatibility": {
        "release": {"4.9", "5.3", "5.4", "5.5"},
        "patch": str,
        "mode": {"files", "files-v2", "combined", "rocksdb", "rocksdb-v2"},
        "chosen": bool,
        "verdict": {"safe", "loses", "refused", "unknown"},
        "exitCode": int,
        "message": str,
        "starts": (bool, None),
        "refusals": [str],
        "exit": ({"normal", "abnormal"}, None),
        "startFile": OPTIONAL_TEXT,
        "endOffset": OPTIONAL_NUMBER,
        "fileLimit": OPTIONAL_NUMBER,
        "unitsDispatched": OPTIONAL_NUMBER,
        "messagesLost": OPTIONAL_NUMBER,
        "entriesCut": OPTIONAL_NUMBER,
        "entriesAdded": OPTIONAL_NUMBER,
        "wrongNumbers": OPTIONAL_NUMBER,
        "losesNewMessages": (bool, None),
        "dispatchStopsAt": (
            {"topic": str, "queueId": int, "queueOffset": int, "unit": int, "furtherQueue": str},
            None,
        ),
        "indexEntriesRemoved": OPTIONAL_NUMBER,
        "indexEntriesLost": OPTIONAL_NUMBER,
        "topics": [
            {"topic": str, "lost": int, "notDispatched": int, "dropped": int, "entriesCut": int, "entriesAdded": int}
        ],
        "queues": [{"topic": str, "queueId": int, "minOffset": int, "maxOffset": int}],
        "hidden": [{"kind": str, "count": OPTIONAL_NUMBER, "message": str}],
        "settings": [{"key": str, "value": str, "without": str, "neededToStart": bool}],
        "notes": [str],
        "unknown": [str],
    },
    "whereResult": {
        "verdict": {
            "found",
            "expired",
            "truncated",
            "damaged",
            "notInQueue",
            "notInIndex",
            "half",
            "rolledBack",
            "delayed",
            "passedOver",
            "replaced",
            "retried",
            "deadLetter",
            "hiddenByTag",
            "notYetDispatched",
            "consumed",
            "notConsumed",
            "beyondQueue",
            "neverSeen",
            "unknown",
        },
        "physicalOffset": OPTIONAL_NUMBER,
        "topic": OPTIONAL_TEXT,
        "queueId": OPTIONAL_NUMBER,
        "queueOffset": OPTIONAL_NUMBER,
        "routes": [
            {
                "by": {"offset", "queue", "key", "uniqueKey", "group"},
                "value": str,
                "verdict": str,
                "why": str,
                "barred": OPTIONAL_TEXT,
            }
        ],
        "evidence": [{"what": str, "file": OPTIONAL_TEXT, "offset": OPTIONAL_NUMBER, "holds": str}],
        "nextStep": str,
    },
    "bothSides": {"folder": str, "counting": {"files", "rocksdb"}, "why": str, "nextStart": str},
    "queueSides": {
        "topic": str,
        "queueId": int,
        "filesMinOffset": OPTIONAL_NUMBER,
        "filesMaxOffset": OPTIONAL_NUMBER,
        "rocksdbMinOffset": OPTIONAL_NUMBER,
        "rocksdbMaxOffset": OPTIONAL_NUMBER,
        "firstDifference": OPTIONAL_NUMBER,
    },
    "row": {
        "subject": {"timer", "transactions", "pop", "index"},
        "state": {"waiting", "delivered", "open", "popped", "indexed", "unreadable"},
        "verdict": {"match", "deleted", "missing", "other", "unknown"},
        "topic": OPTIONAL_TEXT,
        "queueId": OPTIONAL_NUMBER,
        "queueOffset": OPTIONAL_NUMBER,
        "consumerGroup": OPTIONAL_TEXT,
        "producerGroup": OPTIONAL_TEXT,
        "uniqueKey": OPTIONAL_TEXT,
        "key": OPTIONAL_TEXT,
        "time": OPTIONAL_NUMBER,
        "count": OPTIONAL_NUMBER,
        "physicalOffset": OPTIONAL_NUMBER,
        "size": OPTIONAL_NUMBER,
        "file": OPTIONAL_TEXT,
        "isInFiles": bool,
    },
    "positions": {
        **dict.fromkeys(
            ("min", "wrote", "committed", "flushed", "confirm", "dispatched", "queueMax", "indexEnd"), POSITION
        ),
        "checkpoint": dict,
    },
    "slave": {"peer": str, "wrote": NUMBER, "sent": NUMBER, "acknowledged": NUMBER, "behind": NUMBER},
    "groupProgress": {
        "group": str,
        "topic": str,
        "queueId": int,
        "offset": int,
        "maxOffset": OPTIONAL_NUMBER,
        "behind": OPTIONAL_NUMBER,
        "oldestUnreadTimestamp": OPTIONAL_NUMBER,
        "state": {"behind", "notBegun", "caughtUp", "beyondMax", "belowMin", "gone", "unknown"},
        "mode": {"cluster", "broadcast"},
        "barred": OPTIONAL_TEXT,
        "liteTopic": OPTIONAL_TEXT,
    },
    "space": {
        "topic": OPTIONAL_TEXT,
        "queueId": OPTIONAL_NUMBER,
        "kind": str,
        "part": str,
        "day": OPTIONAL_TEXT,
        "bytes": int,
        "allocated": int,
        "messages": OPTIONAL_NUMBER,
        "dead": bool,
    },
    "spaceTag": {"topic": OPTIONAL_TEXT, "tag": OPTIONAL_TEXT, "bytes": int, "messages": int},
    "spaceProducer": {"topic": OPTIONAL_TEXT, "host": OPTIONAL_TEXT, "bytes": int, "messages": int},
    "spaceSum": {
        "bytes": int,
        "counted": int,
        "equal": bool,
        "allocated": int,
        "files": int,
        "changed": int,
        "dead": int,
        "how": {"walked", "cut", "queues", "sampled"},
        "deletedTopics": [str],
        "kinds": [{"kind": str, "files": int, "bytes": int, "allocated": int}],
    },
    "retention": {
        "at": int,
        "rule": {"none", "max", "force", "warn", "share", "shareForce", "unknown"},
        "diskUsage": dict,
        "fileReservedTime": int,
        "deleteWhen": str,
        "configured": bool,
        "running": bool,
        "nextTime": OPTIONAL_NUMBER,
        "nextFiles": [str],
        "nextBytes": int,
        "readers": [{"name": str, "offset": int}],
        "files": [
            {
                "name": str,
                "startOffset": int,
                "size": int,
                "modified": int,
                "dueAt": int,
                "goesAt": OPTIONAL_NUMBER,
                "heldBy": {"goes", "age", "hour", "order", "newest", "off"},
                "readers": [str],
            }
        ],
    },
    "config": {"table": str, "file": OPTIONAL_TEXT, "value": (dict, None)},
    "logicalQueue": {
        "topic": str,
        "logicalQueueId": int,
        "generation": int,
        "broker": str,
        "isThisBroker": bool,
        "isLeader": bool,
        "queueId": int,
        "firstLogicalOffset": OPTIONAL_NUMBER,
        "minOffset": OPTIONAL_NUMBER,
        "maxOffset": OPTIONAL_NUMBER,
        "minLogicalOffset": OPTIONAL_NUMBER,
        "maxLogicalOffset": OPTIONAL_NUMBER,
    },
    "snapshot": {"source": str, "destination": str, "files": int, "bytes": int, "manifest": str},
    "request": {
        "time": int,
        "connection": str,
        "server": {"broker", "namesrv"},
        "direction": {"in", "out"},
        "opaque": int,
        "code": int,
        "name": str,
        "oneWay": bool,
        "held": bool,
        "topic": OPTIONAL_TEXT,
        "queueId": OPTIONAL_NUMBER,
        "offset": OPTIONAL_NUMBER,
        "answer": OPTIONAL_NUMBER,
        "answerName": OPTIONAL_TEXT,
        "remark": OPTIONAL_TEXT,
        "ms": (int, float, type(None)),
        "language": str,
        "version": int,
        "fields": dict,
        "answerFields": dict,
        "bytes": int,
        "answerBytes": int,
        "body": ({"length": int, "sha256": str}, None),
        "answerBody": ({"length": int, "sha256": str}, None),
        "broken": ({"reason": str, "bytes": str}, None),
    },
    "replayDifference": {
        "time": int,
        "name": str,
        "topic": OPTIONAL_TEXT,
        "queueId": OPTIONAL_NUMBER,
        "before": OPTIONAL_TEXT,
        "now": OPTIONAL_TEXT,
        "remark": OPTIONAL_TEXT,
    },
    "replayed": {
        "sent": int,
        "same": int,
        "differs": int,
        "oneWay": int,
        "unanswered": int,
        "answeredNow": int,
        "leftOut": int,
        "byName": dict,
    },
    "topicStatus": {"topic": str, "queueId": int, "minOffset": int, "maxOffset": int},
    "topicList": {"topic": str, "cluster": OPTIONAL_TEXT, "group": OPTIONAL_TEXT},
    "topicStatistics": {
        "topic": str,
        "group": OPTIONAL_TEXT,
        "accumulation": int,
        "inTps": float,
        "outTps": (float, type(None)),
        "inMessages": int,
        "outMessages": OPTIONAL_NUMBER,
    },
    "brokerStatus": {"address": str, "name": str, "value": str},
    "brokerEpoch": {
        "brokerName": OPTIONAL_TEXT,
        "brokerId": OPTIONAL_NUMBER,
        "address": OPTIONAL_TEXT,
        "epoch": int,
        "startOffset": int,
        "endOffset": int,
    },
    "cqWriteProgress": {
        "brokerName": OPTIONAL_TEXT,
        "address": OPTIONAL_TEXT,
        "checkStatus": {"ok", "notOk", "inProgress", "error"},
        "checkResult": str,
    },
    "cqDifference": {"topic": str, "queueId": int, "queueOffset": int},
    "liteGroup": {"group": str, "topic": str, "settings": dict},
    "liteTopic": {
        "topic": str,
        "liteTopic": str,
        "queue": str,
        "minOffset": int,
        "maxOffset": int,
        "lastUpdateTimestamp": OPTIONAL_NUMBER,
        "expirationTimestamp": OPTIONAL_NUMBER,
        "groups": [{"group": str, "behind": int}],
    },
}


def complaints(record: dict[str, Any]) -> list[str]:
    """Return the fields that ``record`` lacks, or that have another type."""
    if next(iter(record), None) != "type":
        return [f"type is not first: {record}"]
    kind = record["type"]
    if kind not in RECORDS:
        return [f"no record is called {kind}"]
    faults = list(_against(record, RECORDS[kind], kind))
    if kind == "positions":
        for name in RECORDS["positions"]:
            for row in record[name].values() if name == "checkpoint" else (record[name],):
                if not ("how" in row if row["offset"] is not None else row.get("why")):
                    faults.append(f"positions.{name}: neither how nor why")
    return faults


def _against(value: Any, check: Check, path: str) -> list[str]:
    if isinstance(check, tuple) and None in check:
        return [] if value is None else _against(value, check[0], path)
    if isinstance(check, Mapping):
        if not isinstance(value, dict):
            return [f"{path}: {value!r} is no object"]
        missing = [f"{path}.{name}: missing" for name in check if name not in value]
        return missing + [
            line
            for name, item in check.items()
            if name in value
            for line in _against(value[name], item, f"{path}.{name}")
        ]
    if isinstance(check, list):
        if not isinstance(value, list):
            return [f"{path}: {value!r} is no list"]
        return [line for number, one in enumerate(value) for line in _against(one, check[0], f"{path}[{number}]")]
    if isinstance(check, set):
        return [] if value in check else [f"{path}: {value!r} is none of {sorted(map(str, check))}"]
    kinds = check if isinstance(check, tuple) else (check,)
    if isinstance(value, bool) and bool not in kinds:
        return [f"{path}: {value!r} is a boolean"]
    return [] if isinstance(value, kinds) else [f"{path}: {value!r} is not {check}"]
