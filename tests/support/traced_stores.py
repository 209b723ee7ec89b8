"""A store with messages and the traces that clients sent about them, as RocketMQ's clients write them."""

from __future__ import annotations

from pathlib import Path

from engine.message_store import Message, MessageStore
from engine.system_names import TRACE_TOPIC

TIME = 1_795_300_000_000
ID = [f"7F00000110CE5FFD2B27957C2C{n:02X}0000" for n in range(2)]
GONE = "0A0000010000000000000000000000AA"
"""Unique key of a message that was traced and is not in the store."""


def write_traced_store(folder: Path, *, with_traces: bool = True) -> None:
    """Write two messages of ``Orders``; the first was received twice, of the second nobody says how it ended."""
    with MessageStore(folder) as store:

        def put(topic: str, body: bytes, host: str, **properties: str) -> None:
            store.put_message(Message(topic, body, properties=properties, born_host=host))

        def trace(unique_key: str, *records: tuple[object, ...]) -> None:
            body = b"".join("\x01".join(map(str, record)).encode() + b"\x02" for record in records)
            put(TRACE_TOPIC, body, "10.0.0.9:5000", KEYS=unique_key)

        for number, unique_key in enumerate(ID):
            put("Orders", b"{}", "10.0.0.5:4000", UNIQ_KEY=unique_key, KEYS=f"K{number}")
        if not with_traces:
            return
        broker = "10.0.0.1:10911"
        trace(ID[0], ("Pub", TIME, "R", "shop", "Orders", ID[0], "T", "K0", broker, 6, 5, 0, "7F00", "true"))
        trace(GONE, ("Pub", TIME, "R", "shop", "Gone", GONE, "T", "", broker, 6, 5, 0, "7F00", "false"))
        trace(ID[0], ("SubBefore", TIME + 500, "R", "billing", "rq1", ID[0], 0, "K0"))
        trace(ID[0], ("SubAfter", "rq1", ID[0], 1200, "false", "K0", 2, TIME + 1700, "billing"))
        trace(
            ID[0],
            ("SubBefore", TIME + 11_500, "R", "billing", "rq2", ID[0], 1, "K0"),
            ("SubAfter", "rq2", ID[0], 12, "true", "K0", 0, TIME + 11_512, "billing"),
        )
        trace(ID[1], ("SubBefore", TIME + 500, "R", "audit", "rq3", ID[1], 0, "K1"))
