"""Mutated frames and headers through a broker: an answer, nothing, or the end of the connection, no other exception.

``--fuzz-cases N`` sets the number of cases here too; a case is :data:`FRAMES` frames. Each frame is a valid request of
a code that the broker knows, in one of both spellings, with up to four faults in its bytes or its header's values. All
go through the connection and the processors of a broker with a store, in one process, in pieces of any length. A broker
refuses requests that it cannot do: no processor fails by accident.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import resource
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.broker.config import BrokerConfig
from engine.broker.server import ListeningBroker
from engine.broker.serving import serving_store
from engine.message_store import MessageStore
from engine.remoting.codes import BROKER
from engine.remoting.connection import Connection, Limits
from engine.remoting.frame import BINARY, JSON, Command, encode

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(0)]

FRAMES = 25
SECONDS = 5
GROWTH = 128 * 1024  # KiB
MAX_FRAME_BYTES = 1 << 20
LOGS = ("engine", "asyncio")
VALUES = (
    "",
    "0",
    "-1",
    "1",
    "3",
    "true",
    "false",
    "Orders",
    "%RETRY%readers",
    "readers",
    "99999999999999999999",
    "-9223372036854775808",
    "2147483648",
    "é\x00😀",
    "x" * 300,
    "KEYS\x01a\x02TAGS\x01b\x02",
    "\x01\x02\x01",
    "DELAY\x0199\x02",
    "TIMER_DELAY_MS\x011\x02",
    "TRAN_MSG\x01true\x02PGROUP\x01g\x02",
    "null",
    "SQL92",
    "a = 1",
    "0 1 2 3 4 5 6 7",
    "[]",
    "{}",
)
BODIES = (
    b"",
    b"{}",
    b"[]",
    b"null",
    b"\x00" * 40,
    b'{"consumerDataSet":[{}]}',
    b'{"producerDataSet":[null]}',
    b"12345",
    b'{"consumerDataSet":[{"groupName":"readers","subscriptionDataSet":[{"topic":5,"subString":"||"},7]}]}',
    b'{"clientID":3,"consumerDataSet":{"groupName":"readers"},"producerDataSet":"x"}',
    b'{"subscriptionData":{"topic":[]}}',
    b'{"mqSet":[{"topic":"Orders","queueId":"x"},null],"consumerGroup":1}',
    b'{"offsetTable":{"a":1}}',
    b"\xff\xfe{",
    b'{"topicConfigList":[null]}',
    b'{"groupName":"readers","retryQueueNums":"x"}',
    b"[1,2]",
    b'"text"',
    b"[[[[[[",
)
ENDING = frozenset({25, 206, 216, 227, 307})
"""Requests that change the configuration, or empty the store: what follows would be asked of another broker."""


class CountingTransport(asyncio.Transport):
    """A transport that counts written bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = 0
        self.closed = False

    def get_extra_info(self, name: str, default: object = None) -> object:
        return ("127.0.0.1", 40_000) if name == "peername" else default

    def writelines(self, pieces: object) -> None:
        self.written += sum(map(len, pieces))

    def get_write_buffer_size(self):
        return 0  # whatever is written is read at once

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class UnexpectedErrors(logging.Handler):
    """Exceptions of processors that are no refusals: the client would get their text."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        last_frame = traceback.extract_tb(error.__traceback__)[-1] if error is not None else None
        place = f"{Path(last_frame.filename).name}:{last_frame.lineno}" if last_frame else ""
        self.seen.append(f"{record.args[0] if record.args else ''} {type(error).__name__} {place}: {error}"[:160])


def a_request(pick: random.Random) -> bytes:
    row = pick.choice([item for item in BROKER if item.code not in ENDING])
    fields = {field.name: pick.choice(VALUES) for field in row.fields if pick.random() < 0.9}
    for name in ("topic", "b"):
        if name in fields and pick.random() < 0.6:
            fields[name] = "Orders"
    command = Command(
        row.code,
        fields,
        pick.choice(BODIES),
        opaque=pick.randrange(1 << 31),
        flag=pick.choice((0, 0, 0, 1, 2, 3)),
        form=pick.choice((JSON, BINARY)),
        version=pick.choice((0, 317, 479, 60_000)),
    )
    return b"".join(map(bytes, encode(command)))


def spoiled(pick: random.Random, frame: bytes, how: str) -> bytes:
    """``whole``: unchanged; ``inside``: faults after the lengths, which stay right; ``bytes``: faults anywhere."""
    if how == "whole" or pick.random() < 0.3:
        return frame
    data = bytearray(frame if how == "bytes" else frame[8:])
    for _ in range(pick.choice((1, 1, 2, 4))):
        position = pick.randrange(len(data))
        match pick.randrange(5 if how == "bytes" else 2):
            case 0:
                data[position] = pick.randrange(256)
            case 1:
                data[position : position + 4] = pick.randbytes(len(data[position : position + 4]))
            case 2:
                del data[position : position + pick.randrange(1, 9)]
            case 3:
                data[:4] = pick.choice((0, 1, -1, 4, 1 << 30, len(data))).to_bytes(4, "big", signed=True)
            case _:
                data[position:position] = pick.randbytes(pick.randrange(1, 9))
        if not data:
            return b"\0"
    return bytes(data) if how == "bytes" else frame[:8] + bytes(data)


async def send_random_frames(server: ListeningBroker, pick: random.Random, counts: dict[str, int]) -> None:
    """Send frames over one connection in pieces of any length, until it ends."""
    wire = CountingTransport()
    connection = Connection(server._answer, Limits(largest_frame=MAX_FRAME_BYTES))
    connection.connection_made(wire)
    how = pick.choice(("whole", "whole", "inside", "bytes"))
    stream = b"".join(spoiled(pick, a_request(pick), how) for _ in range(FRAMES))
    position = 0
    while position < len(stream) and not wire.closed:
        size = pick.choice((1, 7, 100, 1 << 16))
        connection.data_received(stream[position : position + size])
        position += size
    await asyncio.sleep(0)
    counts["ended"] += wire.closed
    counts["answered"] += wire.written > 0
    assert len(connection._reader._bytes) <= MAX_FRAME_BYTES + 4
    connection.connection_lost(None)


def test_frames_with_faults_end_in_answers_or_in_the_end_of_the_connection(
    tmp_path: Path, request: pytest.FixtureRequest, fuzz_account: Callable[[list[str]], None]
) -> None:
    cases = request.config.getoption("--fuzz-cases")
    counts = {"ended": 0, "answered": 0}
    slowest = 0.0

    async def campaign() -> None:
        nonlocal slowest
        config = BrokerConfig(auto_create_topic=False)
        async with serving_store(tmp_path / "store", config, port=0) as server:
            server.broker.topics.create_plain("Orders", 4)
            grown = 0
            for case in range(cases):
                pick, began = random.Random(f"frames {case}"), time.process_time()
                async with asyncio.timeout(20 * SECONDS):
                    await send_random_frames(server, pick, counts)
                elapsed = time.process_time() - began  # a machine that is busy elsewhere does not count
                slowest = max(slowest, elapsed)
                assert elapsed < SECONDS, f"case {case}"
                if case == cases // 4:
                    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - grown < GROWTH

    watch = UnexpectedErrors()
    for name in LOGS:
        logging.getLogger(name).addHandler(watch)
    try:
        asyncio.run(campaign())
    finally:
        for name in LOGS:
            logging.getLogger(name).removeHandler(watch)
    accidents = watch.seen
    ended = f"{counts['ended']:,} of {cases:,} connections ended"
    fuzz_account([f"{cases * FRAMES:,} frames: {ended}, slowest {slowest:.2f} s", *sorted(set(accidents))[:30]])
    assert accidents == []
    assert counts["ended"] > cases // 10
    assert counts["answered"] > cases // 10
    with contextlib.closing(MessageStore(tmp_path / "store")) as store:
        assert store.recovery_plan.exit == "normal"
