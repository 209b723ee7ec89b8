"""A master's HA port, compared with the bytes of a real master (docs/formats/replication.md,
docs/protocol/check-vectors.md#ha).
"""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path

from brokers import run_scenario
from ha_masters import log_of, master, put

from engine.replication import source
from engine.replication.transfer import report


async def read_report(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    offset, size = struct.unpack(">qi", await reader.readexactly(12))
    return offset, await reader.readexactly(size)


def test_bytes_come_from_the_asked_offset_and_never_over_a_files_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with master(tmp_path) as (real, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(report(256))
            got, end = bytearray(), real.store.positions().wrote
            while 256 + len(got) < end:
                offset, data = await read_report(reader)
                assert offset == 256 + len(got)
                assert offset // 4096 == (offset + len(data) - 1) // 4096
                got += data
            assert bytes(got) == log_of(real.store)[256:]
            put(real.store, 1)
            assert (await read_report(reader))[0] == end
            writer.write(report(end))
            while real.server.slaves[0].acknowledged != end:
                await asyncio.sleep(0.01)
            writer.close()
            await writer.wait_closed()

    run_scenario(scenario)


def test_an_empty_slave_gets_the_last_file_and_then_heartbeats(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(source, "_HEARTBEAT_INTERVAL_S", 0.05)

    async def scenario() -> None:
        async with master(tmp_path) as (real, port):
            last_file = real.store.parts.files.last
            assert last_file is not None
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(report(0))
            assert (await read_report(reader))[0] == last_file.start_offset
            while (transfer := await read_report(reader))[1]:
                pass
            assert transfer == (real.store.positions().wrote, b"")
            writer.close()
            await writer.wait_closed()

    run_scenario(scenario)


def test_a_silent_slave_is_disconnected(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(source, "_SILENCE_TIMEOUT_S", 0.1)

    async def scenario() -> None:
        async with master(tmp_path) as (real, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()
            assert real.server.slaves == []

    run_scenario(scenario)
