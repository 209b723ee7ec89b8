"""``bench append``: what putting costs, one message a call, 64 a call, and from columns beside plain C.

The shape is that of the real store's own benchmark: one topic, 8 queues, a body that does not compress, UNIQ_KEY, one
key and a tag; dispatch runs beside the puts. ``built`` says whether the message objects are made inside the time;
``text`` rows give the property text as bytes, as that benchmark does, ``map`` rows a dict. The C side is
``tests/bench/append.c``, compiled when it is asked for.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import statistics
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from engine.bench.reads import conditions
from engine.bench.yardstick import compiled
from engine.codec.encode import Message
from engine.codec.message_columns import MessageColumns
from engine.config import MessageStoreConfig, from_mapping
from engine.mapped.disk import RealDisk
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.message_store import MessageStore, system_clock
from engine.store.commit_log import CommitLog
from engine.store.queue_offsets import QueueOffsetTable

Row = dict[str, Any]
TOPIC, QUEUES, BORN = "bench", 8, 1_700_000_000_000
HOST = "127.0.0.1:10911"
PUTS = {200: 200_000, 1024: 120_000}
"""Messages of a run, by the bytes of their bodies."""
BATCH = 64
COLUMNS = 100_000
ROOM = 400
"""Bytes that a unit may take beside its body."""
SOURCE = Path(__file__).parents[2] / "tests" / "bench" / "append.c"
Make = Callable[[int, bytes], Message]


def run(name: str, folder: Path | None = None, repeats: int = 5, size: int = 1 << 30) -> Iterator[Row]:
    """Rows of the measurement ``name`` (``append``), as they come; stores are made in ``folder`` and deleted again.

    ``size`` is the bytes of a log file.
    """
    if name != "append":
        raise KeyError(name)
    for body in PUTS:
        for make in (by_text, by_map):
            yield _puts(folder, repeats, size, body, make, 1, built=True)
        for make in (by_text, by_map):
            for built in (False, True):
                yield _puts(folder, repeats, size, body, make, BATCH, built=built)
        yield _columns(folder, repeats, size, body)


def by_text(number: int, body: bytes) -> Message:
    """A message with its property text ready, as the real store's benchmark makes it."""
    text = b"UNIQ_KEY\x010A010203109218B4AAC26553%08X\x02KEYS\x01K%d\x02TAGS\x01TagA\x02" % (number, number)
    return Message(TOPIC, body, number & 7, None, text, born_timestamp=BORN + number, born_host=HOST)


def by_map(number: int, body: bytes) -> Message:
    """A message with a map of properties."""
    found = {"UNIQ_KEY": f"0A010203109218B4AAC26553{number:08X}", "KEYS": f"K{number}", "TAGS": "TagA"}
    return Message(TOPIC, body, number & 7, found, born_timestamp=BORN + number, born_host=HOST)


def puts_per_second(store: MessageStore, make: Make, body: bytes, first: int, count: int) -> tuple[float, float]:
    """Messages a second, and a second of the thread's processor time: one message a call, built inside the time."""
    put = store.put_message
    began, used = time.perf_counter(), time.thread_time()
    for number in range(first, first + count):
        put(make(number, body))
    return count / (time.perf_counter() - began), count / (time.thread_time() - used)


def batches_per_second(
    store: MessageStore, make: Make, body: bytes, first: int, count: int, *, built: bool
) -> tuple[float, float]:
    """Messages a second in calls of 64; with ``built`` the objects are made inside the time."""
    put = store.put_messages
    ready = [] if built else [make(number, body) for number in range(first, first + count)]
    began, used = time.perf_counter(), time.thread_time()
    for at in range(0, count, BATCH):
        put([make(first + at + n, body) for n in range(BATCH)] if built else ready[at : at + BATCH])
    return count / (time.perf_counter() - began), count / (time.thread_time() - used)


def _puts(folder: Path | None, repeats: int, size: int, body: int, make: Make, batch: int, *, built: bool) -> Row:
    payload, count = os.urandom(body), PUTS[body] // BATCH * BATCH
    rates, cpu = [], []
    with open_store(folder, size) as store:
        for turn in range(repeats + 1):
            if batch == 1:
                rate, used = puts_per_second(store, make, payload, turn * count, count)
            else:
                rate, used = batches_per_second(store, make, payload, turn * count, count, built=built)
            rates.append(rate)
            cpu.append(used)
            store.wait_dispatched()
    kind = "text" if make is by_text else "map"
    return {
        "type": "bench",
        "name": f"append, {'one message' if batch == 1 else f'{batch} messages'} a call",
        "log": f"{body}-byte bodies, properties as {kind}, {'built inside' if built else 'built before'}",
        "body": body,
        "batch": batch,
        "properties": kind,
        "built": built,
        "puts": count,
        "repeats": repeats,
        "seconds": count / statistics.median(rates[1:]),
        "messagesPerSecond": statistics.median(rates[1:]),
        "messagesPerCpuSecond": statistics.median(cpu[1:]),
        "target": "≥ 0.7 × (200 B), ≥ 1 × (1 KiB) the real store's" if batch == 1 else "≥ 4 × the real store's",
        "conditions": conditions(),
    }


def _columns(folder: Path | None, repeats: int, size: int, body: int) -> Row:
    """Columns into warm files, ours and C's in turns."""
    what = make_columns(body)
    seconds: dict[str, list[float]] = {"ours": [], "c": []}
    place = folder or Path(tempfile.gettempdir())
    library = compiled(SOURCE, place)
    with tempfile.TemporaryDirectory(prefix="storescope-bench-", dir=folder) as root:
        # Both write the same place again and again: one file has to hold all of it.
        files = MappedFileQueue(RealDisk(), [Path(root) / "commitlog"], max(size, COLUMNS * (body + ROOM)))
        log = CommitLog(MessageStoreConfig(), files, QueueOffsetTable(), system_clock, store_host=HOST)
        log.append_columns(what)
        file = log.files.files[0]
        if log.files.files[-1] is not file:
            raise RuntimeError(f"{COLUMNS:,} messages do not fit into one file of {file.size:,} bytes")
        used = file.wrote
        plain = bytearray(used)
        for _ in range(repeats + 1):
            file.set_positions(0)
            began = time.perf_counter()
            log.append_columns(what)
            seconds["ours"].append(time.perf_counter() - began)
            if library is not None:
                began = time.perf_counter()
                end = write_plainly(library, what, plain)
                seconds["c"].append(time.perf_counter() - began)
                if end != used:
                    raise RuntimeError(f"C wrote {end:,} bytes, ours {used:,}")
    ours = statistics.median(seconds["ours"][1:])
    other = statistics.median(seconds["c"][1:]) if library is not None else None
    return {
        "type": "bench",
        "name": "append, from columns, against plain C",
        "log": f"{body}-byte bodies",
        "body": body,
        "puts": COLUMNS,
        "repeats": repeats,
        "seconds": ours,
        "messagesPerSecond": COLUMNS / ours,
        "cSeconds": other,
        "ratio": None if other is None else ours / other,
        "target": 1.6,
        "conditions": conditions(),
    }


def make_columns(body: int) -> MessageColumns:
    """The benchmark's messages as columns."""
    import numpy as np

    texts = [by_text(number, b"").properties_raw or b"" for number in range(COLUMNS)]
    return MessageColumns(
        [TOPIC],
        os.urandom(body) * COLUMNS,
        np.full(COLUMNS, body, np.int32),
        b"".join(texts),
        np.array(list(map(len, texts)), np.int32),
        np.arange(COLUMNS, dtype=np.int32) & 7,
        born_timestamp=np.arange(BORN, BORN + COLUMNS),
        hosts=(HOST,),
    )


class _ToWrite(ctypes.Structure):
    _fields_ = [
        *[(name, ctypes.c_void_p) for name in ("bodies", "properties", "topic")],
        *[(name, ctypes.c_void_p) for name in ("body_length", "properties_length", "queue_id", "born_timestamp")],
        *[(name, ctypes.c_int64) for name in ("topic_length", "now", "rows")],
        *[(name, ctypes.c_void_p) for name in ("queue_offsets", "out_offset", "out_queue_offset", "out_size")],
    ]


def write_plainly(library: ctypes.CDLL, what: MessageColumns, target: bytearray) -> int:
    """All rows by the C loop into ``target``; gives the bytes written."""
    import numpy as np

    rows, topic = len(what), TOPIC.encode()
    outs = array("q", bytes(24 * rows + 8 * QUEUES))
    at = outs.buffer_info()[0]
    blobs = [np.frombuffer(blob, np.uint8) for blob in (what.bodies, what.properties, topic, target)]
    addresses = [blob.ctypes.data for blob in blobs]
    columns = [
        np.asarray(column).ctypes.data
        for column in (what.body_length, what.properties_length, what.queue_id, what.born_timestamp)
    ]
    sheet = _ToWrite(
        *addresses[:3], *columns, len(topic), BORN, rows, at + 24 * rows, at, at + 8 * rows, at + 16 * rows
    )
    library.yard_append.restype = ctypes.c_int64
    return int(library.yard_append(ctypes.c_void_p(addresses[3]), ctypes.c_int64(0), ctypes.byref(sheet)))


@contextmanager
def open_store(folder: Path | None, size: int) -> Iterator[MessageStore]:
    """A store of its own in ``folder``, deleted afterwards; log files of ``size`` bytes, other sizes as they are."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix="storescope-bench-", dir=folder))
    store = MessageStore(root / "store", from_mapping({"mappedFileSizeCommitLog": size})[0])
    try:
        yield store
    finally:
        store.abandon()
        shutil.rmtree(root)
