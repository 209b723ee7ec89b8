"""Pages of the tables of topics and groups."""

from __future__ import annotations

import json
from pathlib import Path

from brokers import BrokerClient, asking_broker, run_scenario


def test_topics_are_answered_in_pages_where_a_request_asks_for_one(tmp_path: Path) -> None:
    """A client of 5.3.4 and later asks for pages of 2,000 topics. Ours answered every page with the whole table and
    without its size, so that a client that waited for the next one never ended.
    """

    async def page(client: BrokerClient, **fields: object) -> tuple[list[str], str]:
        answer = await client.ask(21, **fields)
        assert answer.code == 0, answer.remark
        return sorted(json.loads(bytes(answer.body))["topicConfigTable"]), answer.fields.get("totalTopicNum", "")

    async def scenario() -> None:
        async with asking_broker(tmp_path, release="5.5") as client:
            names, total = await page(client)
            assert total == str(len(names))
            version = json.dumps(json.loads(bytes((await client.ask(21)).body))["dataVersion"])
            pages = [
                await page(client, topicSeq=begin, maxTopicNum=5, dataVersion=version)
                for begin in range(0, len(names) + 5, 5)
            ]
            assert [name for rows, _ in pages for name in rows] == names
            assert {total for _, total in pages} == {str(len(names))}
            stale = version.replace('"counter": ', '"counter": 7')
            for wrong_version in ({}, {"dataVersion": stale}):
                assert (await page(client, topicSeq=5, maxTopicNum=5, **wrong_version))[0] == names[:5]
            for wrong in ({"maxTopicNum": 5}, {"topicSeq": -1, "dataVersion": version}):
                assert (await client.ask(21, **wrong)).code == 1
        async with asking_broker(tmp_path, release="5.3") as client:
            assert await page(client, topicSeq=0, maxTopicNum=5) == (names, "")

    run_scenario(scenario)


def test_groups_are_answered_in_pages_where_a_request_asks_for_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asking_broker(tmp_path, release="5.5") as client:
            whole = await client.ask(201)
            table = json.loads(bytes(whole.body))
            names = sorted(table["subscriptionGroupTable"])
            assert whole.fields["totalGroupNum"] == str(len(names))
            page = await client.ask(
                201, groupSeq=2, maxGroupNum=3, dataVersion=json.dumps(table["dataVersion"], separators=(",", ":"))
            )
            assert sorted(json.loads(bytes(page.body))["subscriptionGroupTable"]) == names[2:5]
            assert "forbiddenTable" in json.loads(bytes(page.body))

    run_scenario(scenario)
