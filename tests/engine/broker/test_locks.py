"""Orderly consumers: a queue is read by one client of a group."""

from __future__ import annotations

import json
from pathlib import Path

from brokers import asking, run


def body(client_id: str, *queues: int) -> bytes:
    wanted = [{"brokerName": "broker-a", "queueId": number, "topic": "Orders"} for number in queues]
    return json.dumps({"clientId": client_id, "consumerGroup": "readers", "mqSet": wanted}).encode()


def test_a_client_holds_what_is_free_until_it_says_otherwise(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:

            async def locked(client_id: str, *queues: int) -> list[int]:
                answer = await client.ask(41, body(client_id, *queues))
                return [one["queueId"] for one in json.loads(bytes(answer.body))["lockOKMQSet"]]

            assert await locked("one", 0, 1) == [0, 1]
            assert await locked("two", 0, 1, 2) == [2]
            assert (await client.ask(42, body("one", 0))).code == 0
            assert await locked("two", 0, 1) == [0]
            assert await locked("one", 0, 1) == [1]

    run(told)


def test_what_is_no_list_of_queues_is_refused(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            for wrong in (b"", b"[]", b'{"mqSet":[1]}', b'{"mqSet":7}'):
                assert (await client.ask(41, wrong)).code == 1

    run(told)
