"""Comparison of our command's answers about a store with those of RocketMQ itself.

An *account* is a sequence of lines: a dump of the peer harness (``expected.jsonl.xz``) or the answers that a broker's
clients got (``truth.jsonl.xz``). Each aspect asks the command the same questions and returns the differences. The
command runs in this process: a store is asked hundreds of questions.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import ipaddress
import json
import os
import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from engine.cli.main import main

Line = dict[str, Any]

# Messages that wait here answer with the topic they were meant for.
WAITING_ROOMS = ("rmq_sys_", "RMQ_SYS_", "SCHEDULE_")
# Topics whose queues go on growing after the broker was asked.
INTERNAL_TOPICS = (*WAITING_ROOMS, "%", "TRANS_")
MAGIC_VERSIONS = {-626843481: 1, -626843477: 2}
# Field of our unit record: field of the peer's line.
UNIT_FIELDS = {
    "size": "size",
    "queueId": "queue",
    "flag": "flag",
    "queueOffset": "queueOffset",
    "sysFlag": "sysFlag",
    "bornTimestamp": "bornTs",
    "storeTimestamp": "storeTs",
    "reconsumeTimes": "reconsume",
    "preparedTransactionOffset": "prepared",
    "bodyLength": "bodyLen",
    "topic": "topic",
    "properties": "props",
    "offsetMsgId": "msgId",
}
INDEX_FIELDS = {
    "beginTimestamp": "beginTs",
    "endTimestamp": "endTs",
    "beginPhyOffset": "beginPhy",
    "endPhyOffset": "endPhy",
    "hashSlotCount": "usedSlots",
    "indexCount": "count",
}

QUESTION_LIMIT = int(os.environ.get("STORESCOPE_QUESTIONS", "15"))
"""Maximum number of questions of each kind that a store is asked: each one opens the store anew."""


class Comparison:
    """Counter of comparisons that keeps the failed ones."""

    def __init__(self) -> None:
        self.compared = 0
        self.differences: list[str] = []

    def same(self, good: object, note: str) -> None:
        """Count one comparison; keep ``note`` if it failed."""
        self.compared += 1
        if not good:
            self.differences.append(note[:300])

    def __str__(self) -> str:
        shown = "".join(f"\n  {note}" for note in self.differences[:8])
        return f"{self.compared - len(self.differences)} of {self.compared} agree{shown}"


def command(*arguments: object) -> tuple[int, str, str]:
    """Return exit status, standard output and standard error of ``storescope`` with these arguments, run in this
    process.
    """
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
    out.seek(0)
    err.seek(0)
    return status or 0, out.read(), err.read()


def records_of(*arguments: object) -> list[Line]:
    """Return the records that ``storescope ARGUMENTS --json`` prints; fail unless it ends with 0 or 1."""
    status, out, err = command(*arguments, "--json")
    assert status in {0, 1}, f"{arguments}: exit {status}: {err[-500:]}"
    assert "Traceback" not in err, err[-2000:]
    return [json.loads(line) for line in out.splitlines() if line.strip()]


def same_host(ours: str, hexed: str) -> bool:
    """Return True if ``ip:port`` names the address whose bytes the account gives."""
    raw = bytes.fromhex(hexed)
    address, _, port = ours.rpartition(":")
    same_address = ipaddress.ip_address(address.strip("[]")) == ipaddress.ip_address(raw[:-4])
    return same_address and int(port) == int.from_bytes(raw[-4:], "big")


def sample(lines: Iterable[Line], limit: int) -> list[Line]:
    """Return at most ``limit`` of the questions, always the same ones."""
    chosen = list(lines)
    random.Random(7).shuffle(chosen)
    return chosen[:limit]


def units(store: Path, account: Iterable[Line]) -> Comparison:
    """Compare every unit between the first and the last that RocketMQ lists, field by field."""
    tally = Comparison()
    java = {line["phy"]: line for line in account if line["t"] == "msg"}
    ours = {unit["physicalOffset"]: unit for unit in records_of("units", store, "--body") if unit["type"] == "unit"}
    first, last = min(java, default=0), max(java, default=0)
    for position in sorted(set(java) | {offset for offset in ours if first <= offset <= last}):
        if position not in java or position not in ours:
            tally.same(False, f"{position}: only {'ours' if position in ours else 'java'}")
            continue
        differs = _unit_differences(java[position], ours[position])
        tally.same(not differs, f"{position}: {differs}")
    return tally


def _unit_differences(java: Line, ours: Line) -> Line:
    differs: Line = {
        field: (ours.get(field, "absent"), java[theirs])
        for field, theirs in UNIT_FIELDS.items()
        if ours.get(field, "absent") != java[theirs]
    }
    if ours["bodyCRC"] & 0x7FFFFFFF != java["bodyCrc"] & 0x7FFFFFFF:
        differs["bodyCRC"] = (ours["bodyCRC"], java["bodyCrc"])
    if ours["version"] != MAGIC_VERSIONS.get(java["magic"]):
        differs["version"] = (ours["version"], java["magic"])
    if "bodySha" in java and hashlib.sha1(base64.b64decode(ours["body"])).hexdigest()[:16] != java["bodySha"]:
        differs["body"] = java["bodySha"]
    for host in ("bornHost", "storeHost"):
        if not same_host(ours[host], java[host]):
            differs[host] = (ours[host], java[host])
    return differs


def queue(store: Path, account: Iterable[Line]) -> Comparison:
    """Compare every queue entry; pre-filled slots too, because RocketMQ lists them."""
    tally = Comparison()
    java: dict[tuple[str, int], dict[int, tuple[int, int, int]]] = {}
    for line in account:
        if line["t"] == "cq":
            entries = java.setdefault((line["topic"], line["queue"]), {})
            entries[line["n"]] = (line["phy"], line["size"], line["tags"])
    for (topic, queue_id), want in sorted(java.items()):
        listed = records_of("queue", store, topic, queue_id, "--from", min(want), "--to", max(want) + 1)
        got = {
            entry["queueOffset"]: (entry["physicalOffset"], entry["size"], entry["tagsCode"])
            for entry in listed
            if entry["type"] == "cq" and entry["state"] in {"entry", "prefilled"}
        }
        for n in sorted(set(want) | set(got)):
            tally.same(want.get(n) == got.get(n), f"{topic}/{queue_id}/{n}: java {want.get(n)} ours {got.get(n)}")
    return tally


def index(store: Path, account: Iterable[Line]) -> Comparison:
    """Compare every index header, and every entry if the account lists them."""
    tally = Comparison()
    heads: dict[str, Line] = {}
    java: dict[tuple[str, int], tuple[int, ...]] = {}
    for line in account:
        if line["t"] == "indexFile":
            heads[line["name"]] = line
        elif line["t"] == "indexEntry":
            java[line["name"], line["n"]] = (line["hash"], line["phy"], line["diff"], line["prev"])
    ours = records_of("index", store, "--entries")
    our_heads = {record["name"]: record for record in ours if record["type"] == "indexFile"}
    for name in sorted(set(heads) | set(our_heads)):
        head, our_head = heads.get(name), our_heads.get(name)
        agrees = head and our_head and all(our_head[ours] == head[theirs] for ours, theirs in INDEX_FIELDS.items())
        tally.same(agrees, f"{name}: java {head} ours {our_head}")
    if java:
        got = {
            (record["file"], record["entry"]): tuple(record[f] for f in ("keyHash", "phyOffset", "timeDiff", "prev"))
            for record in ours
            if record["type"] == "indexEntry"
        }
        for key in sorted(set(java) | set(got)):
            tally.same(java.get(key) == got.get(key), f"{key}: java {java.get(key)} ours {got.get(key)}")
    return tally


def trace(store: Path, account: Iterable[Line]) -> Comparison:
    """Compare queries by key: RocketMQ returns every unit with the same hash, ours names collisions separately."""
    tally = Comparison()
    for line in sample((line for line in account if line["t"] == "query"), QUESTION_LIMIT):
        begin, end = max(line["begin"], 0), min(line["end"], 2**63 - 1)
        out = records_of(
            "trace", store, line["topic"], line["key"], "--begin", begin, "--end", end, "--max", line["max"]
        )
        got = {record["physicalOffset"] for record in out if record["type"] == "match"}
        collisions = {
            record["phyOffset"] for record in out if record["type"] == "traceStep" and record["verdict"] == "collision"
        }
        want = set(line["phys"])
        # Cut at the limit, where collisions count for RocketMQ and not for us.
        cut = len(line["phys"]) >= min(line["max"], 64)
        good = want - collisions <= got and (cut or got <= want)
        only = f"only java {sorted(want - got - collisions)[:6]} only ours {sorted(got - want)[:6]}"
        tally.same(good, f"{line['topic']} {line['key']} {begin}..{end} max {line['max']}: {only}")
    return tally


def get(store: Path, account: Iterable[Line]) -> Comparison:
    """Compare answers of getMessage: status, offsets, and units."""
    tally = Comparison()
    for line in sample((line for line in account if line["t"] == "get" and line.get("status")), QUESTION_LIMIT):
        tag = ["--tag", line["tag"]] if line["tag"] else []
        out = records_of("get", store, line["topic"], line["queue"], line["offset"], "--max", line["max"], *tag)
        head = next(record for record in out if record["type"] == "getResult")
        physical_offsets = [record["physicalOffset"] for record in out if record["type"] == "unit"]
        got = (head["status"], head["nextBeginOffset"], head["minOffset"], head["maxOffset"], physical_offsets)
        want = (line["status"], line["next"], line["min"], line["maxOff"], line["phys"])
        text = f"{line['topic']}/{line['queue']}@{line['offset']} {line['tag']} max {line['max']}"
        tally.same(got == want, f"{text}: java {want} ours {got}")
    return tally


def time(store: Path, account: Iterable[Line]) -> Comparison:
    """Compare offsets by store time; 4.9 has no boundaries and uses the files' modification times, so it is left
    out.
    """
    tally = Comparison()
    lines = (
        line for line in account if line["t"] == "byTime" and line["offset"] is not None and line["boundary"] != "NONE"
    )
    for line in sample(lines, QUESTION_LIMIT):
        boundary = line["boundary"].lower()
        got = records_of("offset", store, line["topic"], line["queue"], "--time", line["ts"], "--boundary", boundary)
        tally.same(got and got[0]["queueOffset"] == line["offset"], f"{line}: ours {got[:1]}")
    return tally


def recover(store: Path, account: Iterable[Line], release: str = "5.3") -> Comparison:
    """Compare the plan for a store with the result of RocketMQ's recovery."""
    tally = Comparison()
    lines = list(account)
    state = [line for line in lines if line["t"] == "state"][-1]
    response = records_of("recover", store, "--plan", "--release", release)
    plan = next(record for record in response if record["type"] == "recoveryPlan")
    tally.same(plan["endOffset"] == state["maxPhy"], f"end of log: java {state['maxPhy']} ours {plan['endOffset']}")
    ours = {(q["topic"], q["queueId"]): (q["minOffset"], q["maxOffset"]) for q in plan["queues"]}
    for line in lines:
        if line["t"] == "queue" and line["when"] == state["when"]:
            # Queues without entries need not be named: RocketMQ makes one for every question.
            want, got = (line["min"], line["max"]), ours.get((line["topic"], line["queue"]), (0, 0))
            tally.same(got == want, f"{line['topic']}/{line['queue']}: java {want} ours {got}")
    return tally


def truth(store: Path, account: Iterable[Line]) -> Comparison:
    """Compare with the answers that clients and an administrator got from a running broker."""
    tally = Comparison()
    lines = list(account)
    for compare in (_sends, _ranges, _client_queries, _progress, _whereabouts, _searches, _pulls):
        compare(tally, store, lines, QUESTION_LIMIT)
    return tally


def _of_kind(lines: list[Line], *kinds: str) -> Iterator[Line]:
    return (line for line in lines if line["kind"] in kinds)


def _sends(tally: Comparison, store: Path, lines: list[Line], _limit: int) -> None:
    log = {unit["offsetMsgId"].upper(): unit for unit in records_of("units", store) if unit["type"] == "unit"}
    for line in _of_kind(lines, "send", "view"):
        if not line.get("offsetMsgId"):
            continue
        unit = log.get(line["offsetMsgId"].upper())
        note = f"{line['kind']} {line['offsetMsgId']}: {unit and (unit['topic'], unit['queueId'], unit['queueOffset'])}"
        # Delayed and retried messages are stored under another topic, batches answer with their first queue offset.
        present = unit is not None and (
            unit["topic"].startswith(WAITING_ROOMS)
            or (line["kind"] == "send" and unit["topic"] == line["topic"])
            or all(unit[field] == line[field] for field in ("topic", "queueId", "queueOffset"))
        )
        tally.same(present, note)


def _ranges(tally: Comparison, store: Path, lines: list[Line], _limit: int) -> None:
    topics = records_of("info", store)[0]["topics"]
    ours = {(t["topic"], q["queueId"]): (q["minOffset"], q["maxOffset"]) for t in topics for q in t["queues"]}
    for line in _of_kind(lines, "queue"):
        if not line["topic"].startswith(INTERNAL_TOPICS):
            want, got = (line["min"], line["max"]), ours.get((line["topic"], line["queueId"]))
            tally.same(want == got, f"{line['topic']}/{line['queueId']}: broker {want} ours {got}")


def _client_queries(tally: Comparison, store: Path, lines: list[Line], limit: int) -> None:
    for line in sample(_of_kind(lines, "query"), limit):
        window = ("--begin", line["begin"], "--end", line["end"], "--max", line["max"])
        out = records_of("trace", store, line["topic"], line["key"], *window)
        got = {record["physicalOffset"] for record in out if record["type"] == "match"}
        want = {int(result.rsplit("#", 1)[1]) for result in line["results"]}
        candidates = set(line.get("candidates") or ())
        cut = len(candidates) >= min(line["max"], 64)
        good = want <= got and (cut or got <= candidates | want)
        tally.same(good, f"query {line['topic']} {line['key']}: broker {sorted(want)[:4]} ours {sorted(got)[:4]}")


def _progress(tally: Comparison, store: Path, lines: list[Line], _limit: int) -> None:
    ours = {
        (record["group"], record["topic"], record["queueId"]): record["offset"]
        for record in records_of("groups", store)
        if record["type"] == "groupProgress"
    }
    for line in _of_kind(lines, "progress"):
        if line.get("consumerOffset", -1) >= 0:
            key = (line["group"], line["topic"], line["queueId"])
            want = line["consumerOffset"]
            tally.same(ours.get(key) == want, f"{key}: broker {want} ours {ours.get(key)}")


def _whereabouts(tally: Comparison, store: Path, lines: list[Line], limit: int) -> None:
    requested_lines = (line for line in _of_kind(lines, "send") if line.get("offsetMsgId"))
    for line in sample(requested_lines, limit):
        out = records_of("where", store, line["offsetMsgId"])
        got = next((record for record in out if record["type"] == "whereResult"), {})
        lost = got.get("verdict") in {"neverSeen", "unknown", "expired", "damaged", "truncated", None}
        is_at_place = got.get("physicalOffset") == int(line["offsetMsgId"][-16:], 16)
        tally.same(is_at_place and not lost, f"where {line['offsetMsgId']}: {got}")


def _searches(tally: Comparison, store: Path, lines: list[Line], limit: int) -> None:
    for line in sample((line for line in _of_kind(lines, "search") if "lower" in line), limit):
        for boundary in ("lower", "upper"):
            queue_at = (line["topic"], line["queueId"], "--time", line["time"])
            got = records_of("offset", store, *queue_at, "--boundary", boundary)
            good = got and got[0]["queueOffset"] == line[boundary]
            tally.same(good, f"search {queue_at} {boundary}: broker {line[boundary]} ours {got[:1]}")


def _pulls(tally: Comparison, store: Path, lines: list[Line], limit: int) -> None:
    texts = {"FOUND", "NO_NEW_MSG", "OFFSET_ILLEGAL"}
    for line in sample((line for line in _of_kind(lines, "pull") if line["status"] in texts), limit):
        by_tag = line["expression"] not in {"*", "", None} and line.get("type", "TAG") == "TAG"
        tag = ["--tag", line["expression"]] if by_tag else []
        out = records_of("get", store, line["topic"], line["queueId"], line["offset"], "--max", line["maxNums"], *tag)
        got = [offset for record in out if record["type"] == "unit" for offset in _members(record)]
        # With a tag the client compares once more: the broker may give it more.
        good = set(line["found"]) <= set(got) if tag else got == line["found"]
        text = f"{line['topic']}/{line['queueId']}@{line['offset']} {tag}"
        tally.same(good, f"pull {text}: broker {line['found'][:4]} ours {got[:4]}")


def _members(unit: Line) -> range:
    """Return the queue offsets of the messages that a client makes of one unit: several for an inner batch."""
    count = int(unit["properties"].get("INNER_NUM", 1))
    return range(unit["queueOffset"], unit["queueOffset"] + count)


ASPECTS: dict[str, Callable[..., Comparison]] = {
    "units": units,
    "queue": queue,
    "index": index,
    "trace": trace,
    "get": get,
    "time": time,
}
