"""What a consumer is asked through its broker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

from brokers import Asking, asking, run, units

from engine.codec.message import decode
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to

BEAT = {
    "clientID": "c@1",
    "producerDataSet": [],
    "consumerDataSet": [{"groupName": "readers", "subscriptionDataSet": [{"topic": "Orders", "subString": "*"}]}],
}
READS = b'{"messageQueueTable":{{"brokerName":"broker-a","queueId":0,"topic":"Orders"}:5}}'


class Consumer(Asking):
    """Answers what it is asked with the body that it has for it."""

    bodies: ClassVar = {221: READS, 307: b'{"jstack":"none"}', 309: b'{"consumeResult":"CR_SUCCESS"}'}

    def _hear(self, request: Command, connection: Connection) -> Command | None:
        self.told.append(request)
        return answer_to(request, self.says or 0, body=self.bodies.get(request.code, b""))


async def consumer(client: Asking) -> Consumer:
    one = Consumer(client.server)
    await one.open()
    assert (await one.ask(34, json.dumps(BEAT).encode())).code == 0
    return one


def test_it_tells_of_itself(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            one = await consumer(client)
            answer = await client.ask(307, consumerGroup="readers", clientId="c@1", jstackEnable=True)
            assert (answer.code, bytes(answer.body)) == (0, b'{"jstack":"none"}')
            assert one.told[-1].fields["jstackEnable"] == "true"
            one.says = 1
            assert (await client.ask(307, consumerGroup="readers", clientId="c@1")).code == 1
            gone = await client.ask(307, consumerGroup="readers", clientId="c@2")
            assert (gone.code, gone.remark) == (1, "The Consumer <readers> <c@2> not online")
            one.close()

    run(told)


def test_it_consumes_one_message_now(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            one = await consumer(client)
            await client.send("Orders", b"tea")
            (unit,) = units(client, "Orders")
            answer = await client.ask(309, consumerGroup="readers", clientId="c@1", msgId=unit.offset_msg_id)
            assert bytes(answer.body) == b'{"consumeResult":"CR_SUCCESS"}'
            asked = one.told[-1]
            assert decode(bytes(asked.body), 0, 0).body == b"tea"
            assert asked.fields["brokerName"] == client.server.broker.config.broker_name
            wrong = await client.ask(309, consumerGroup="readers", clientId="c@1", msgId="nonsense")
            assert (wrong.code, wrong.remark) == (1, "no message id: nonsense")
            one.close()

    run(told)


def test_where_its_members_read(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            one = await consumer(client)
            table = b'{{"brokerName":"broker-a","queueId":0,"topic":"Orders"}:5}'
            answer = await client.ask(223, topic="Orders", group="readers")
            assert bytes(answer.body) == b'{"consumerTable":{"c@1":' + table + b'},"messageQueueTable":{}}'
            other = await client.ask(223, topic="Orders", group="readers", clientAddr="c@2")
            assert bytes(other.body) == b'{"consumerTable":{},"messageQueueTable":{}}'
            nobody = await client.ask(223, topic="Orders", group="gone")
            assert (nobody.code, nobody.remark) == (1, "No Any Consumer online in the consumer group: [gone]")
            one.close()

    run(told)
