"""Every request of the page has a processor."""

from __future__ import annotations

from pathlib import Path

import pytest
from brokers import Asking, run

from engine.broker.processors import ANSWERS, MODULES
from engine.broker.server import ListeningBroker
from engine.message_store import MessageStore
from engine.remoting.codes import BROKER, POP_FAMILY
from engine.remoting.connection import bind


def test_every_request_is_answered() -> None:
    assert set(ANSWERS) == {one.code for one in BROKER}


def test_no_request_has_two_processors() -> None:
    assert sum(len(module.ANSWERS) for module in MODULES) == len(ANSWERS)


def test_a_processor_is_told_by_its_number() -> None:
    """Whoever looks for a request by its code finds it in the first words of what answers it."""
    for code, answer in ANSWERS.items():
        assert str(code) in (answer.__doc__ or "").partition(":")[0].replace(",", " ").split(), answer


@pytest.mark.parametrize("code", [one.code for one in POP_FAMILY])
def test_a_broker_of_4_9_knows_no_pop(code: int, tmp_path: Path) -> None:
    async def told() -> None:
        with MessageStore(tmp_path, like="4.9") as store, bind("127.0.0.1", 0) as at:
            async with ListeningBroker(store, at=at) as server:
                client = Asking(server)
                await client.open()
                answer = await client.ask(code)
                assert (answer.code, answer.remark) == (3, f" request type {code} not supported")
                assert "rmq_sys_REVIVE_LOG_DefaultCluster" not in store.tables.topics()
                client.close()
        assert not (tmp_path / "config" / "consumerOrderInfo.json").exists()

    run(told)
