"""Mutated golden stores through every reading command: no hang, no traceback, no growth, no changed byte.

``--fuzz-cases N`` sets the number of cases (each plants up to four faults and asks two questions); 100,000 are a full
campaign.
A failing case names its store and number: ``--fuzz-first NUMBER --fuzz-cases 1`` repeats it.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import resource
import shutil
import signal
from pathlib import Path

import agree
import golden_stores
import mutations
import pytest

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(0)]

STORES = (
    "propcrc-5.3.3",
    "crash-4.9.8",
    "batchcq-5.3.3",
    "multi-queue-ext-5.3.3",
    "ipv6-and-unicode-5.3.3",
    "broker-pop",
    "broker-transactions-4.9.7",
)
SECONDS = 30
GROWTH = 512 * 1024  # KiB

FILTERS = ("topic == 'TopicA' and size > 100", "body contains 'alpha'", "keys =~ '.*1'", "((", "no such field")


def questions(pick: random.Random, topics: list[tuple[str, int]], keys: list[str]) -> list[list[object]]:
    """Two questions out of every reading command, with arguments that mostly exist."""
    topic, queue_id = pick.choice([*topics, ("NoTopic", 0)])
    key = pick.choice([*keys, "absent"])
    number = pick.choice([0, 1, 7, 100_000, -1, 2**63 - 1, 2**31])
    asked: list[list[object]] = [
        ["info"],
        ["units", "--from", number],
        ["units", "--body", "--limit", 500],
        ["units", "--where", pick.choice(FILTERS)],
        ["queue", topic, queue_id, "--resolve"],
        ["queue", topic, queue_id, "--from", number],
        ["index", "--entries"],
        ["trace", topic, key, "--max", pick.choice([1, 32])],
        ["get", topic, queue_id, number, "--tag", pick.choice(["*", "TagA || TagB"])],
        ["message", pick.choice([key, str(number), "7F00000100002A9F0000000000000000"])],
        ["offset", topic, queue_id, "--time", number],
        ["where", pick.choice([key, "7F00000100002A9F0000000000000000", f"{topic}/{queue_id}/{number}"])],
        ["positions"],
        ["groups"],
        ["config"],
        ["check"],
        ["recover", "--plan", "--like", pick.choice(["4.9", "5.3"])],
        ["where", key, "--group", "billing"],
        ["where", f"{topic}/{queue_id}/{pick.randrange(40)}"],
        ["queryMsgByKey", "-t", topic, "-k", key],
        ["queryMsgByUniqueKey", "-t", topic, "-i", key],
        ["queryMsgByOffset", "-t", topic, "-i", queue_id, "-o", number],
        ["queryCq", "-t", topic, "-q", queue_id, "-i", number, "-c", 20],
        ["printMsg", "-t", topic],
        ["printMsgByQueue", "-t", topic, "-i", queue_id],
        ["consumerProgress", "-g", "billing"],
        ["topicStatus", "-t", topic],
    ]
    return [
        [*question, *pick.choice([["--json"], ["--json"], [], ["--markdown"]])] for question in pick.sample(asked, 2)
    ]


class Hang(Exception):
    """A command took longer than anybody waits."""


def ring(_signal, _frame):
    """What the alarm clock does."""
    raise Hang


def ask(store: Path, question: list[object]) -> str | None:
    """What is wrong with the answer, or None."""
    name, *more = question
    signal.alarm(SECONDS)
    faulthandler.dump_traceback_later(4 * SECONDS, exit=True)  # an endless loop below Python hears no alarm
    try:
        status, out, err = agree.command(name, *(["-s", store] if "-t" in more or "-g" in more else [store]), *more)
    except Hang:
        return f"no answer within {SECONDS} s"
    except BaseException as error:  # noqa: BLE001 - whatever escapes is what this test looks for
        return f"escaped: {error!r}"
    finally:
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()
    if status not in {0, 1, 2, 3}:
        return f"exit {status}"
    if "Traceback" in err:
        return err[-600:]
    if status == 3 and (not err.startswith("storescope: ") or err.count("\n") != 1):
        return f"exit 3 without its one line: {err[:300]!r}"
    if "--json" not in more:
        return None if all(line.isprintable() for line in out.split("\n")) else "something that steers a terminal"
    try:
        records = [json.loads(line) for line in out.splitlines()]
    except ValueError as error:
        return f"no JSON line: {error}"
    return None if all(next(iter(record)) == "type" for record in records) else "a record without its type"


def look(store: Path) -> dict[str, tuple[int, int, int]]:
    """Size, time and identity of everything in the store: quick enough to ask for every case."""
    seen = {}
    for folder, folders, files in os.walk(store):
        for name in (*folders, *files, "."):
            status = os.lstat(os.path.join(folder, name))  # noqa: PTH118 - thousands of times a second
            seen[f"{folder}/{name}"] = (status.st_size, status.st_mtime_ns, status.st_ino)
    return seen


def peak() -> int:
    """Most memory that this process ever held, KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("name", STORES)
def test_every_command_survives_what_is_planted(golden, tmp_path, request, name):
    store = tmp_path / "store"
    shutil.copytree(golden(name), store, symlinks=True)
    before = golden_stores.fingerprint(store)
    previous = signal.signal(signal.SIGALRM, ring)
    info = agree.ask("info", store)[0]
    topics = [(topic["topic"], queue["queueId"]) for topic in info["topics"] for queue in topic["queues"]]
    keys = [key for unit in agree.ask("units", store, "--limit", 300) for key in unit.get("keys") or ()]
    for command in ("check", "units"):
        agree.command(command, store)  # what is loaded once shall not count as growth
    first = request.config.getoption("--fuzz-first")
    count = -(-request.config.getoption("--fuzz-cases") // len(STORES))
    faults, held = mutations.Mutations(store), peak()
    wrong = []
    for case in range(first, first + count):
        pick = random.Random(f"{name} {case}")
        planted = faults.plant(pick)
        seen = look(store)
        for question in questions(pick, topics, keys):
            complaint = ask(store, question)
            if complaint:
                wrong.append(f"case {case} {question} on {planted}: {complaint}")
        if look(store) != seen:
            wrong.append(f"case {case} on {planted}: something in the store has changed")
        faults.undo()
    signal.signal(signal.SIGALRM, previous)
    assert not wrong, f"{len(wrong)} complaints:\n" + "\n".join(wrong[:12])
    assert peak() - held < GROWTH
    files = {key: value for key, value in golden_stores.fingerprint(store).items() if value[3] is not None}
    assert files == {key: value for key, value in before.items() if value[3] is not None}
