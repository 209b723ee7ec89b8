"""Every request of the page has a processor."""

from __future__ import annotations

from pathlib import Path

import pytest
from brokers import Asking, run

from engine.broker.processors import ANSWERS, MODULES
from engine.broker.server import ListeningBroker
from engine.message_store import MessageStore
from engine.remoting.codes import BROKER, SINCE_5, UNTIL_4_9
from engine.remoting.connection import bind


def test_every_request_is_answered() -> None:
    assert set(ANSWERS) == {one.code for one in BROKER}


def test_no_request_has_two_processors() -> None:
    assert sum(len(module.ANSWERS) for module in MODULES) == len(ANSWERS)


def test_a_processor_is_told_by_its_number() -> None:
    """Whoever looks for a request by its code finds it in the first words of what answers it."""
    for code, answer in ANSWERS.items():
        assert str(code) in (answer.__doc__ or "").partition(":")[0].replace(",", " ").split(), answer


@pytest.mark.parametrize(
    ("like", "codes"), [("4.9", [one.code for one in SINCE_5]), ("5.3", [one.code for one in UNTIL_4_9])]
)
def test_a_release_does_not_know_the_other_s_requests(like: str, codes: list[int], tmp_path: Path) -> None:
    async def told() -> None:
        with MessageStore(tmp_path, like=like) as store, bind("127.0.0.1", 0) as at:  # type: ignore[arg-type]
            async with ListeningBroker(store, at=at) as server:
                client = Asking(server)
                await client.open()
                for code in codes:
                    answer = await client.ask(code)
                    assert (answer.code, answer.remark) == (3, f" request type {code} not supported")
                known = "rmq_sys_REVIVE_LOG_DefaultCluster" in store.tables.topics()
                client.close()
        assert known == (like == "5.3")
        assert (tmp_path / "config" / "consumerOrderInfo.json").exists() == (like == "5.3")

    run(told)
