"""Mutated bytes of golden stores straight through the codecs: values or the promised errors, no other exception.

``--fuzz-cases N`` sets the number of cases here too: N inputs divided among the codecs. A case is one piece of a file
with up to four faults through one family of codecs. A failing case names its store, codec and number.
"""

from __future__ import annotations

import faulthandler
import itertools
import random
import resource
import struct
import time
from collections.abc import Callable
from pathlib import Path

import mutations
import pytest

from engine.codec import (
    batch,
    batch_consume_queue,
    checkpoint,
    config_tables,
    consume_queue,
    cq_ext,
    dledger,
    flipped_bits,
    index,
    json_dialect,
    message,
    properties,
    timer,
    unit_scan,
    words,
)
from engine.codec.compression import unpack
from engine.errors import StoreError

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(0)]

PROMISED = (StoreError, struct.error)
SECONDS = 5
GROWTH = 256 * 1024  # KiB
MAX_RECORDS = 2000
CAP = 1 << 20
SCANNED = {
    "topics": config_tables.topics,
    "groups": config_tables.subscription_groups,
    "offsets": config_tables.consumer_offsets,
    "delays": config_tables.delay_offsets,
    "filters": config_tables.consumer_filters,
    "clients": config_tables.client_offsets,
    "metrics": config_tables.metrics,
}


def units(data: bytes) -> None:
    """Run the walk, the search, and all functions of a unit."""
    base = 1 << 20
    for unit in itertools.islice(unit_scan.walk(data, base), MAX_RECORDS):
        if isinstance(unit, message.Unit):
            position = unit.offset - base
            assert sum(part.length for part in message.list_fields(data, position)) == unit.size
            assert unit.offset_msg_id
            assert isinstance(unit.tags_code, int)
            words.words(unit)
            message.sys_flag_words(unit.sys_flag)
            assert len(unpack(unit.body, unit.sys_flag, CAP).data) <= CAP
            batch.members(unit.body, 100)
            properties.verify_crc(data[position : position + unit.size])
    position = 0
    for _ in range(50):
        position = unit_scan.find_unit(data, base, position, base + len(data))
        if position < 0:
            break
        position += 1


def flipped(data: bytes) -> None:
    """Run the explanation of a wrong CRC."""
    flipped_bits.explain(data[:3000], struct.unpack_from(">i", data.ljust(4, b"\0"))[0])


def queues(data: bytes) -> None:
    """Read entries of every kind of queue."""
    for position in range(0, len(data) - 46, 46):
        batch_consume_queue.decode(data, position)
        unit = consume_queue.decode(data, position)
        assert unit.state in {"entry", "prefilled", "empty"}
        if consume_queue.is_ext_address(unit.tags_code):
            assert consume_queue.ext_offset(unit.tags_code) >= 0
    list(itertools.islice(cq_ext.walk(data, 0), MAX_RECORDS))


def indexes(data: bytes) -> None:
    """Read a header, and entries by their links."""
    header = index.decode_header(data)
    for position in range(40, len(data) - 20, 20):
        entry = index.decode_entry(data, position)
        index.entry_time(header, entry)
        index.chain_continues(entry.prev, position, header.index_count)
    index.time_matched(header, 0, header.end_timestamp)


def states(data: bytes) -> None:
    """Read the small binary files."""
    checkpoint.decode(data[:4096])
    list(itertools.islice(timer.walk(data, 0), MAX_RECORDS))
    list(itertools.islice(timer.used_slots(data[: len(data) // 32 * 32]), MAX_RECORDS))
    if len(data) >= 56:
        timer.decode_check(data[:56])
    dledger.decode_header(data)


def tables(data: bytes) -> None:
    """Read a table's text in every way."""
    parsed = json_dialect.parse(data)
    if isinstance(parsed.value, dict):
        for read in SCANNED.values():
            read(parsed.value)


CODECS: dict[str, tuple[Callable[[bytes], None], str]] = {
    "units": (units, "commitlog/*"),
    "flips": (flipped, "commitlog/*"),
    "queues": (queues, "consumequeue*/*/*/*"),
    "indexes": (indexes, "index/*"),
    "states": (states, "*"),
    "tables": (tables, "config/*"),
}
STORES = ("broker-orders", "broker-retries", "broker-sqlfilter", "broker-lmq")


def mutated(pick: random.Random, file: Path) -> bytes:
    """Return a piece of the file with up to four faults."""
    with file.open("rb") as opened:
        opened.seek(pick.choice([0, 0, pick.randrange(max(file.stat().st_size, 1))]))
        data = bytearray(opened.read(pick.choice([100, 4000, 20_000])))
    for _ in range(pick.randrange(5)):
        position = pick.randrange(len(data) + 1)
        new = pick.choice(
            [
                pick.randbytes(pick.randrange(1, 20)),
                struct.pack(">q", pick.choice(mutations.INTEGERS) % 2**64 - 2**63),
                struct.pack(">i", pick.choice(mutations.INTEGERS) % 2**32 - 2**31),
                pick.choice(mutations.MAGICS),
                bytes(pick.randrange(1, 200)),
                pick.choice([b"{", b"}", b"[", b'"', b"\\u", b":", b",", b"e999", b"-"]) * pick.randrange(1, 50),
            ]
        )
        data[position : position + pick.choice([0, len(new)])] = new
    return bytes(data)


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_survives_planted_faults(golden, request, codec, fuzz_account):
    read, pattern = CODECS[codec]
    files = [file for name in STORES for file in sorted(golden(name).glob(pattern)) if file.is_file()]
    first_case = request.config.getoption("--fuzz-first")
    count = -(-request.config.getoption("--fuzz-cases") // len(CODECS))
    wrong, slowest = [], 0.0
    memory_after_warm_up = 0
    for case in range(first_case, first_case + count):
        pick = random.Random(f"{codec} {case}")
        file = pick.choice(files)
        data = mutated(pick, file)
        faulthandler.dump_traceback_later(20 * SECONDS, exit=True)  # an endless loop below Python has no other end
        began = time.process_time()  # a machine that is busy elsewhere does not count
        try:
            read(data)
        except PROMISED:
            pass
        except Exception as error:  # noqa: BLE001 - whatever else escapes is what this test looks for
            wrong.append(f"case {case} on {file.name}: {error!r}")
        finally:
            faulthandler.cancel_dump_traceback_later()
        slowest = max(slowest, time.process_time() - began)
        if case == first_case + count // 10:  # what is loaded once shall not count as growth
            memory_after_warm_up = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fuzz_account([f"{count:,} inputs of {codec}: slowest {slowest:.3f} s"])
    assert not wrong, f"{len(wrong)} complaints:\n" + "\n".join(wrong[:12])
    assert slowest < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory_after_warm_up < GROWTH
