"""A reply reaches the producer that waits for it, and is stored."""

from __future__ import annotations

from pathlib import Path

from brokers import BrokerClient, asking_broker, run_scenario, units

SENT = {
    "producerGroup": "repliers",
    "topic": "DefaultCluster_REPLY_TOPIC",
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": 4,
    "queueId": 0,
    "sysFlag": 0,
    "bornTimestamp": 1_700_000_000_000,
    "flag": 0,
    "reconsumeTimes": 0,
    "unitMode": False,
}


async def reply(client: BrokerClient, properties: str):
    return await client.ask(324, b"yes", **SENT, properties=properties)


def test_a_reply_is_pushed_to_the_producer_and_stored(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            asker = BrokerClient(client.server)
            await asker.open()
            asker.response_code = 0
            beat = b'{"clientID":"me@1","producerDataSet":[{"groupName":"askers"}],"consumerDataSet":[]}'
            assert (await asker.ask(34, beat)).code == 0
            answer = await reply(client, "CORRELATION_ID\x01c1\x02REPLY_TO_CLIENT\x01me@1\x02MSG_TYPE\x01reply\x02")
            assert (answer.code, answer.fields["queueOffset"]) == (0, "0")
            (pushed,) = [item for item in asker.requests if item.code == 326]
            assert (bytes(pushed.body), pushed.fields["topic"]) == (b"yes", SENT["topic"])
            assert "CORRELATION_ID\x01c1\x02" in str(pushed.fields["properties"])
            assert "PUSH_REPLY_TIME" in str(pushed.fields["properties"])
            (unit,) = units(client, str(SENT["topic"]))
            assert (unit.body, unit.properties["MSG_TYPE"]) == (b"yes", "reply")
            asker.response_code = 1
            refused = await reply(client, "REPLY_TO_CLIENT\x01me@1\x02")
            assert (refused.code, refused.remark) == (1, "push reply message to me@1 fail.")
            asker.close()

    run_scenario(scenario)


def test_a_reply_to_an_absent_producer_fails(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path) as client:
            answer = await reply(client, "REPLY_TO_CLIENT\x01gone@1\x02")
            assert (answer.code, answer.remark) == (1, "push reply message fail, channel of <gone@1> not found.")
            answer = await reply(client, "KEYS\x01k\x02")
            assert (answer.code, answer.remark) == (1, "reply message properties[REPLY_TO_CLIENT] is null")

    run_scenario(scenario)
