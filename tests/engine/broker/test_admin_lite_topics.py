"""Lite topics as an administrator looks at them. The expected figures are those of a real 5.5.1 broker."""

from __future__ import annotations

import json
from pathlib import Path

from brokers import run_scenario
from lite_brokers import lite_broker, of_message, pop, send, subscribe


def test_figures_of_lite_topics(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with lite_broker(tmp_path) as client:
            await send(client, b"a0", "a")
            await send(client, b"a1", "a")
            await subscribe(client, "PARTIAL_ADD", "one", "a")

            async def figures(code: int, **fields: object) -> dict[str, object]:
                answer = await client.ask(code, **fields)
                assert answer.code == 0, answer.remark
                return dict(json.loads(bytes(answer.body)))

            of_broker = await figures(200074)
            assert (of_broker["groupMeta"], of_broker["topicMeta"]) == (
                {"Parent": ["exclusive", "shared"]},
                {"Parent": 60},
            )
            assert (of_broker["currentLmqNum"], of_broker["liteSubscriptionCount"]) == (1, 1)
            parent = await figures(200075, topic="Parent")
            assert (parent["ttl"], parent["liteTopicCount"]) == (60, 1)
            lite_topic = await figures(200076, parentTopic="Parent", liteTopic="a")
            assert lite_topic["subscriber"] == [{"clientId": "one", "group": "shared"}]
            assert dict(lite_topic["topicOffset"])["maxOffset"] == 2  # type: ignore[call-overload]
            of_client = await figures(200077, parentTopic="Parent", group="shared", clientId="one", maxCount=10)
            assert of_client["liteTopicSet"] == ["%LMQ%$Parent$a"]
            answer = await pop(client, "one", maxMsgNum=1)
            await client.ask(200051, **of_message(answer, 0), liteTopic="a")
            of_group = await figures(200078, group="shared", liteTopic="a")
            assert of_group["totalLagCount"] == 1
            assert (await client.ask(200079, group="shared")).code == 0
            notice = await client.ask(
                200054,
                consumerGroup="shared",
                topic="Parent",
                queueId=-1,
                pollTime=0,
                bornTime=0,
                isLiteConsumer=True,
                clientId="one",
            )
            assert notice.fields["hasMsg"] == "true"

    run_scenario(scenario)
