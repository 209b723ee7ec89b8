"""``bench append``: the cost of putting: one message per call, 64 per call, and from columns beside plain C.

The load is that of the real store's own benchmark: one topic, 8 queues, an incompressible body, UNIQ_KEY, one key
and a tag; dispatch runs beside the puts. ``built`` says whether the time includes creating the message objects.
``text`` rows give the property text as bytes, as that benchmark does, ``map`` rows a dict. The C side is
``tests/bench/append.c``, compiled when it is needed.

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
from engine.bench.yardstick import compile_library
from engine.callbacks import system_clock
from engine.codec.encode import Message
from engine.codec.message_columns import MessageColumns
from engine.config import MessageStoreConfig, from_mapping
from engine.mapped.disk import RealDisk
from engine.mapped.mapped_file_queue import MappedFileQueue
from engine.message_store import MessageStore
from engine.store.commit_log import CommitLog
from engine.store.queue_offsets import QueueOffsetTable

Row = dict[str, Any]
TOPIC, QUEUES, BORN_MS = "bench", 8, 1_700_000_000_000
HOST = "127.0.0.1:10911"
PUTS_BY_BODY_BYTES = {200: 200_000, 1024: 120_000}
"""Messages per run for each body size in bytes."""
BATCH = 64
COLUMN_ROWS = 100_000
OVERHEAD_BYTES = 400
"""Maximum bytes of a unit apart from its body."""
SOURCE = Path(__file__).parents[2] / "tests" / "bench" / "append.c"
Make = Callable[[int, bytes], Message]


def run(name: str, folder: Path | None = None, repeats: int = 5, size: int = 1 << 30) -> Iterator[Row]:
    """Yield the rows of the measurement ``name`` (``append``); stores are created in ``folder`` and deleted again.

    ``size`` is the bytes of a log file.

    """
    if name != "append":
        raise KeyError(name)
    for body in PUTS_BY_BODY_BYTES:
        for make in (by_text, by_map):
            yield _puts(folder, repeats, size, body, make, 1, built=True)
        for make in (by_text, by_map):
            for built in (False, True):
                yield _puts(folder, repeats, size, body, make, BATCH, built=built)
        yield _columns(folder, repeats, size, body)


def by_text(number: int, body: bytes) -> Message:
    """Return a message with prepared property text, as the real store's benchmark makes it."""
    text = b"UNIQ_KEY\x010A010203109218B4AAC26553%08X\x02KEYS\x01K%d\x02TAGS\x01TagA\x02" % (number, number)
    return Message(TOPIC, body, number & 7, None, text, born_timestamp=BORN_MS + number, born_host=HOST)


def by_map(number: int, body: bytes) -> Message:
    """Return a message with a map of properties."""
    properties = {"UNIQ_KEY": f"0A010203109218B4AAC26553{number:08X}", "KEYS": f"K{number}", "TAGS": "TagA"}
    return Message(TOPIC, body, number & 7, properties, born_timestamp=BORN_MS + number, born_host=HOST)


def puts_per_second(store: MessageStore, make: Make, body: bytes, start_number: int, count: int) -> tuple[float, float]:
    """Return messages per second, and per CPU second of the thread: one message per call, created within the time."""
    put = store.put_message
    wall_start, cpu_start = time.perf_counter(), time.thread_time()
    for number in range(start_number, start_number + count):
        put(make(number, body))
    return count / (time.perf_counter() - wall_start), count / (time.thread_time() - cpu_start)


def batches_per_second(
    store: MessageStore, make: Make, body: bytes, start_number: int, count: int, *, built: bool
) -> tuple[float, float]:
    """Return messages per second in calls of 64; with ``built`` the time includes creating the objects."""
    put = store.put_messages
    ready = [] if built else [make(number, body) for number in range(start_number, start_number + count)]
    wall_start, cpu_start = time.perf_counter(), time.thread_time()
    for index in range(0, count, BATCH):
        put([make(start_number + index + n, body) for n in range(BATCH)] if built else ready[index : index + BATCH])
    return count / (time.perf_counter() - wall_start), count / (time.thread_time() - cpu_start)


def _puts(folder: Path | None, repeats: int, size: int, body: int, make: Make, batch: int, *, built: bool) -> Row:
    payload, count = os.urandom(body), PUTS_BY_BODY_BYTES[body] // BATCH * BATCH
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
    """Measure columns into warm files, our code and C in turns."""
    columns = make_columns(body)
    seconds: dict[str, list[float]] = {"ours": [], "c": []}
    place = folder or Path(tempfile.gettempdir())
    library = compile_library(SOURCE, place)
    with tempfile.TemporaryDirectory(prefix="storescope-bench-", dir=folder) as root:
        # Both sides overwrite the same range repeatedly: one file must hold all of it.
        files = MappedFileQueue(
            RealDisk(), [Path(root) / "commitlog"], max(size, COLUMN_ROWS * (body + OVERHEAD_BYTES))
        )
        log = CommitLog(MessageStoreConfig(), files, QueueOffsetTable(), system_clock, store_host=HOST)
        log.append_columns(columns)
        file = log.files.files[0]
        if log.files.files[-1] is not file:
            raise RuntimeError(f"{COLUMN_ROWS:,} messages do not fit into one file of {file.size:,} bytes")
        used_bytes = file.wrote
        plain = bytearray(used_bytes)
        for _ in range(repeats + 1):
            file.set_positions(0)
            wall_start = time.perf_counter()
            log.append_columns(columns)
            seconds["ours"].append(time.perf_counter() - wall_start)
            if library is not None:
                wall_start = time.perf_counter()
                end = write_plainly(library, columns, plain)
                seconds["c"].append(time.perf_counter() - wall_start)
                if end != used_bytes:
                    raise RuntimeError(f"C wrote {end:,} bytes, ours {used_bytes:,}")
    our_median = statistics.median(seconds["ours"][1:])
    c_median = statistics.median(seconds["c"][1:]) if library is not None else None
    return {
        "type": "bench",
        "name": "append, from columns, against plain C",
        "log": f"{body}-byte bodies",
        "body": body,
        "puts": COLUMN_ROWS,
        "repeats": repeats,
        "seconds": our_median,
        "messagesPerSecond": COLUMN_ROWS / our_median,
        "cSeconds": c_median,
        "ratio": None if c_median is None else our_median / c_median,
        "target": 1.6,
        "conditions": conditions(),
    }


def make_columns(body: int) -> MessageColumns:
    """Return the benchmark's messages as columns."""
    import numpy as np

    texts = [by_text(number, b"").properties_raw or b"" for number in range(COLUMN_ROWS)]
    return MessageColumns(
        [TOPIC],
        os.urandom(body) * COLUMN_ROWS,
        np.full(COLUMN_ROWS, body, np.int32),
        b"".join(texts),
        np.array(list(map(len, texts)), np.int32),
        np.arange(COLUMN_ROWS, dtype=np.int32) & 7,
        born_timestamp=np.arange(BORN_MS, BORN_MS + COLUMN_ROWS),
        hosts=(HOST,),
    )


class _ToWrite(ctypes.Structure):
    _fields_ = [
        *[(name, ctypes.c_void_p) for name in ("bodies", "properties", "topic")],
        *[(name, ctypes.c_void_p) for name in ("body_length", "properties_length", "queue_id", "born_timestamp")],
        *[(name, ctypes.c_int64) for name in ("topic_length", "now", "rows")],
        *[(name, ctypes.c_void_p) for name in ("queue_offsets", "out_offset", "out_queue_offset", "out_size")],
    ]


def write_plainly(library: ctypes.CDLL, columns: MessageColumns, target: bytearray) -> int:
    """Write all rows by the C loop into ``target``; returns the bytes written."""
    import numpy as np

    rows, topic = len(columns), TOPIC.encode()
    outs = array("q", bytes(24 * rows + 8 * QUEUES))
    outs_address = outs.buffer_info()[0]
    blobs = [np.frombuffer(blob, np.uint8) for blob in (columns.bodies, columns.properties, topic, target)]
    addresses = [blob.ctypes.data for blob in blobs]
    column_addresses = [
        np.asarray(column).ctypes.data
        for column in (columns.body_length, columns.properties_length, columns.queue_id, columns.born_timestamp)
    ]
    sheet = _ToWrite(
        *addresses[:3],
        *column_addresses,
        len(topic),
        BORN_MS,
        rows,
        outs_address + 24 * rows,
        outs_address,
        outs_address + 8 * rows,
        outs_address + 16 * rows,
    )
    library.yard_append.restype = ctypes.c_int64
    return int(library.yard_append(ctypes.c_void_p(addresses[3]), ctypes.c_int64(0), ctypes.byref(sheet)))


@contextmanager
def open_store(folder: Path | None, size: int) -> Iterator[MessageStore]:
    """Open a new store in ``folder`` with log files of ``size`` bytes; deleted afterwards."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix="storescope-bench-", dir=folder))
    store = MessageStore(root / "store", from_mapping({"mappedFileSizeCommitLog": size})[0])
    try:
        yield store
    finally:
        store.abandon()
        shutil.rmtree(root)
