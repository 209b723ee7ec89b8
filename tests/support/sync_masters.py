"""Answers of a broker with ``brokerRole=SYNC_MASTER`` to a sender while a slave comes, is silent and leaves.

The slave is one of our own under the test's control; the broker is a real one or ours, and gets the same requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import struct
from typing import Any

from engine.remoting.connection import Connection, connect
from engine.remoting.frame import Command
from engine.replication.transfer import Receiver, report

SETTINGS = {
    "brokerRole": "SYNC_MASTER",
    "haSlaveFallbehindMax": "20000",
    "haMaxGapNotInSync": "20000",
}
"""Lines of a broker.conf; a slave is far behind soon."""
TIMEOUT = 600
"""ms that a send waits for slaves, where the machine has little else to do."""
SLOWLY = 4
"""Times as long for all that waits: where it was busy, a slave that follows may have spoken later than that."""
PATIENT = {"waitTimeMillsInSendQueue": "20000"}
"""For a real broker: it answers 2 where sends wait for a thread of its own, which ours has not."""
_PLACE = re.compile(r"\b(\d+|[0-9A-F]{32,56})\b")
_SEND = {
    "producerGroup": "senders",
    "topic": "Orders",
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": "4",
    "queueId": "0",
    "sysFlag": "0",
    "bornTimestamp": "1700000000000",
    "flag": "0",
    "properties": "",
    "reconsumeTimes": "0",
    "unitMode": "false",
    "batch": "false",
}


class ScriptedSlave:
    """A slave that follows a log through its HA port, and acknowledges it while ``says``."""

    def __init__(self) -> None:
        self.acknowledges = True
        self.end = 0
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None

    async def link(self, host: str, port: int, offset: int = 0) -> None:
        reader, self._writer = await asyncio.open_connection(host, port)
        self._writer.write(report(offset))
        self.end = offset
        self._task = asyncio.ensure_future(self._follow(reader, self._writer))

    async def _follow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        receiver = Receiver()
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                for transfer in receiver.feed(data):
                    self.end = transfer.offset + len(transfer.data)
                    if self.acknowledges:
                        writer.write(report(self.end))

    def acknowledge(self, offset: int | None = None) -> None:
        """Acknowledge its position, or ``offset``."""
        assert self._writer is not None
        self._writer.write(report(self.end if offset is None else offset))

    async def unlink(self) -> None:
        assert self._writer is not None
        assert self._task is not None
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


def batch_of(*bodies: bytes) -> bytes:
    """Return the body of a batch, as a client encodes it."""
    return b"".join(
        struct.pack(">iiiii", 22 + len(body), 0, 0, 0, len(body)) + body + struct.pack(">h", 0) for body in bodies
    )


class MessageSender:
    """A sender of each kind of message that notes the code and fields of the answers."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.lines: list[dict[str, Any]] = []
        self.step = ""

    async def ask(self, kind: str, body: bytes = b"x", code: int = 10, **fields: str) -> Command:
        answer = await self.connection.ask(Command(code, {**_SEND, **fields}, body=body, version=477), 60)
        spelled = {name: _PLACE.sub("N", value) for name, value in sorted(answer.fields.items())}
        reported = {"code": answer.code, "remark": answer.remark, "fields": spelled}
        self.lines.append({"step": self.step, "kind": kind, **reported})
        return answer

    async def every_kind(self, step: str) -> None:
        self.step = step
        await self.ask("send")
        await self.ask("wait not", properties="WAIT\x01false\x02")
        await self.ask("wait", properties="WAIT\x01true\x02")
        v2 = {letter: _SEND[name] for letter, name in zip("abcdefghijkm", _SEND, strict=True)}
        await self.ask("batch", batch_of(b"a", b"b"), 320, **{**v2, "m": "true", "l": "0"})
        await self.ask(
            "batch that does not wait", batch_of(b"a", b"b"), 320, **{**v2, "m": "true", "i": "WAIT\x01false\x02"}
        )
        await self.ask("half", sysFlag="4", properties="TRAN_MSG\x01true\x02PGROUP\x01payers\x02UNIQ_KEY\x01U1\x02")
        await self.ask("delayed", properties="DELAY\x013\x02WAIT\x01true\x02")
        await self.ask("to dead letters", topic="%RETRY%readers", properties="", reconsumeTimes="99")
        await self.ask("reply", code=324, properties="")


async def record(host: str, port: int, ha_port: int, slowly: int = 1) -> list[dict[str, Any]]:
    """Return all answers of one broker; pauses are ``slowly`` times as long."""
    connection = await connect(host, port)
    slave = ScriptedSlave()
    sender = MessageSender(connection)
    try:
        await sender.every_kind("no slave yet")
        await slave.link(host, ha_port)
        await asyncio.sleep(slowly)
        await sender.every_kind("it follows")
        slave.acknowledges = False
        await sender.every_kind("it says nothing")
        sender.step = "it speaks late"
        together = [sender.ask("send") for _ in range(3)]
        slow = asyncio.ensure_future(asyncio.gather(*together))
        await asyncio.sleep(0.2 * slowly)
        slave.acknowledge()
        await slow
        sender.step = "it is far behind"
        for _ in range(3):
            await sender.ask("wait not", bytes(9000), properties="WAIT\x01false\x02")
        await sender.ask("send")
        await sender.ask("send", bytes(1000))
        slave.acknowledges = True
        slave.acknowledge()
        await asyncio.sleep(0.3 * slowly)
        await sender.every_kind("it follows again")
        await slave.unlink()
        await asyncio.sleep(0.5 * slowly)
        await sender.every_kind("it is gone")
        slave = ScriptedSlave()
        await slave.link(host, ha_port, 0)
        await asyncio.sleep(slowly)
        await sender.every_kind("it is back, empty")
        second_slave = ScriptedSlave()
        await second_slave.link(host, ha_port, 0)
        second_slave.acknowledges = False
        await asyncio.sleep(0.5 * slowly)
        sender.step = "another says nothing"
        await sender.ask("send")
        await second_slave.unlink()
    finally:
        with contextlib.suppress(OSError):
            await slave.unlink()
        connection.close()
    return sender.lines
