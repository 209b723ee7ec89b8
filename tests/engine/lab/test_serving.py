"""The lab's store served: clients send through it, everything is counted, frames are kept while they are recorded."""

from __future__ import annotations

import asyncio
import io
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_stores import a_send, asked

from engine.client.messages import Message
from engine.client.producer import Producer
from engine.errors import CannotRead, UsageError
from engine.lab.presets import PRESETS
from engine.lab.server import Lab
from engine.remoting.connection import connect
from engine.remoting.frame import Command
from engine.remoting.recording import unpacked
from engine.remoting.replaying import exchanges_of


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    found = Lab()
    found.start(tmp_path / "lab", PRESETS[3].config, "5.3", 1 << 34)
    yield found
    found.close()


def test_clients_send_through_it_and_everything_is_counted(lab: Lab) -> None:
    served = lab.serve(0, 0)
    assert lab.serving() is not None
    answers = asked(served.broker, a_send(b"one"), a_send(b"two"), Command(30, {"topic": "None", "queueId": "0"}))
    assert [answer.code for answer in answers][:2] == [0, 0]
    state = lab.serving()
    assert state is not None
    counts = {one.name: one for one in state.codes}
    assert counts["SEND_MESSAGE_V2"].count == 2
    assert counts["SEND_MESSAGE_V2"].p50 is not None
    assert counts["REGISTER_BROKER"].count >= 1
    lab.stop_serving()
    lab.stop_serving()
    assert lab.serving() is None
    assert lab.requests(7) == (7, 7, b"")
    assert lab.sample().positions.wrote > 0  # the store stays open


def test_our_producer_is_a_client_with_its_group(lab: Lab) -> None:
    served = lab.serve(0, 0)

    async def sent() -> None:
        async with Producer("payers", served.namesrv) as producer:
            await producer.send(Message("Orders", b"a cup of tea"))
            state = await asyncio.to_thread(lab.serving)
            assert state is not None
            (client,) = state.clients
            assert (client.producers, client.consumers) == (("payers",), ())
            assert client.language
            assert state.connections >= 1

    asyncio.run(asyncio.wait_for(sent(), 60))


def test_frames_are_kept_only_while_they_are_recorded(lab: Lab) -> None:
    served = lab.serve(0, 0)
    asked(served.broker, a_send(b"before"))
    assert lab.requests(0) == (0, 0, b"")
    lab.record_requests(True)
    asked(served.broker, a_send(b"during"))
    first, following, data = lab.requests(0)
    names = [one.name for one in exchanges_of(unpacked(io.BytesIO(data)))]
    assert names.count("SEND_MESSAGE_V2") == 1  # a round of the registration may lie beside it
    assert following > first
    lab.record_requests(False)
    lab.record_requests(True)
    asked(served.broker, a_send(b"again"))
    assert lab.requests(following)[0] >= following
    lab.record_requests(False)


def test_connections_are_cut_and_it_goes_on_accepting(lab: Lab) -> None:
    served = lab.serve(0, 0)

    async def cut() -> None:
        host, _, port = served.broker.rpartition(":")
        connection = await connect(host, int(port))
        assert (await connection.ask(Command(26))).code == 0  # the broker knows it now
        await asyncio.to_thread(lab.cut_connections)
        await asyncio.wait_for(connection.closed.wait(), 30)

    asyncio.run(cut())
    assert asked(served.broker, a_send(b"one"))[0].code == 0


def test_a_taken_port_and_a_second_serving_are_refused(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotRead, match=f"cannot listen on 127.0.0.1:{port}"):
            lab.serve(port, 0)
    lab.serve(0, 0)
    with pytest.raises(UsageError, match="served already"):
        lab.serve(0, 0)


def test_the_store_closes_cleanly_while_it_is_served(lab: Lab) -> None:
    served = lab.serve(0, 0)
    asked(served.broker, a_send(b"one"))
    lab.close()
    with pytest.raises(OSError, match="Connect call failed"):
        asked(served.broker, a_send(b"two"))
