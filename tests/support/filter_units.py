"""A unit for tests of filters, and its record."""

from __future__ import annotations

from typing import Any

from engine.codec.message import Unit
from engine.codec.properties import encode
from engine.inspection import records

STORED = 1_795_167_667_250  # 2026-11-20T09:41:07.250Z


def unit(body: bytes = b'{"order":"O-1042","note":"refunded \xe9\x87\x91"}', **changes: Any) -> Unit:
    properties = changes.pop(
        "properties", {"KEYS": "O-1042 AaAa", "TAGS": "Paid", "UNIQ_KEY": "7F0001", "region": "eu", "amount": "120"}
    )
    values: dict[str, Any] = {
        "offset": 4096,
        "size": 310,
        "version": 1,
        "body_crc": 77,
        "queue_id": 3,
        "flag": 0,
        "queue_offset": 12,
        "physical_offset": 4096,
        "sys_flag": 0,
        "born_timestamp": STORED - 3000,
        "born_host_raw": bytes([127, 0, 0, 1, 0, 0, 0, 80]),
        "store_timestamp": STORED,
        "store_host_raw": bytes([127, 0, 0, 1, 0, 0, 42, 159]),
        "reconsume_times": 0,
        "prepared_transaction_offset": 0,
        "topic": "OrderPaid",
        "crc": "ok",
    }
    return Unit(**values | {"body": body, "properties": properties, "properties_raw": encode(properties)} | changes)


def record(item: Unit) -> dict[str, Any]:
    """Return the record ``unit`` in JSON, with the body."""
    return records.unit(item, None, body=True)
