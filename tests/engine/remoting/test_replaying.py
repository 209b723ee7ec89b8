"""A talk sent again into another store leaves the same there."""

from __future__ import annotations

from pathlib import Path

import recorded_requests
from brokers import run

from engine.broker.serving import serving_store
from engine.message_store import MessageStore
from engine.remoting.replaying import Replay, Sent, exchanges_of


def entries(store: MessageStore, topic: str) -> list[bytes]:
    found = store.get_message("g", topic, 0 if topic == "Orders" else 2, 0)
    if found is None:
        return []
    with found:
        return [unit.body for unit in found.units()]


def test_the_second_store_holds_what_the_first_does(tmp_path: Path) -> None:
    exchanges = exchanges_of(recorded_requests.seen_in_a_talk(tmp_path / "first"))
    told: list[Sent] = []

    async def again() -> None:
        async with serving_store(tmp_path / "second", port=0) as server:
            await recorded_filler(server.broker.store)
            result = await Replay(exchanges, server.address, told.append).run()
            assert (result.sent, result.one_way, result.unanswered) == (11, 1, 0)
            assert result.same + result.differs + result.answered_now + result.one_way == result.sent
            assert (result.same, result.differs) == (10, 0), [one for one in told if not one.same]
            assert result.left_out == 1  # what the broker asked itself
            server.broker.store.wait_dispatched()
            assert entries(server.broker.store, "Orders") == [b"cup 0", b"cup 1", b"cup 2", b"cup 3"]

    run(again)
    with MessageStore(tmp_path / "second") as store:
        found = store.get_message("g", "Orders", 2, 0)
        assert found is not None
        with found:
            assert [unit.body for unit in found.units()] == [b"0"]  # the transaction, committed at its new place


async def recorded_filler(store: MessageStore) -> None:
    """Other places than in the first store: a message of another topic stands in front."""
    from engine.codec.encode import Message

    assert store.put_message(Message("Filler", b"x" * 1000)).ok


def test_only_some_requests_are_sent_again(tmp_path: Path) -> None:
    exchanges = exchanges_of(recorded_requests.seen_in_a_talk(tmp_path / "first"))

    async def again() -> None:
        async with serving_store(tmp_path / "second", port=0) as server:
            result = await Replay(exchanges, server.address, only=["SEND_MESSAGE"]).run()
            assert (result.sent, result.same, result.left_out) == (5, 5, 7)
            assert dict(result.by_name) == {"SEND_MESSAGE": 5}

    run(again)
