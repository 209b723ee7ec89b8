"""Serving the lab's store: clients send through it, requests are counted, and frames are kept while recording is on."""

from __future__ import annotations

import asyncio
import io
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from real_cluster import free_port
from served_stores import a_send, responses_of

from engine.client.messages import Message
from engine.client.producer import Producer
from engine.errors import CannotRead, UsageError
from engine.lab.presets import PRESETS
from engine.lab.samples import ServeSettings
from engine.lab.server import Lab
from engine.remoting.connection import connect
from engine.remoting.frame import Command
from engine.remoting.recording import decode_events, exchanges_of

FREE = ServeSettings(0, 0)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    actual_lab = Lab()
    actual_lab.start(tmp_path / "lab", PRESETS[3].config, "5.3", 1 << 34)
    yield actual_lab
    actual_lab.close()


def test_clients_send_through_it_and_everything_is_counted(lab: Lab) -> None:
    served = lab.serve(FREE)
    assert lab.serving() is not None
    answers = responses_of(
        served.broker, a_send(b"one"), a_send(b"two"), Command(30, {"topic": "None", "queueId": "0"})
    )
    assert [answer.code for answer in answers][:2] == [0, 0]
    state = lab.serving()
    assert state is not None
    counts = {code.name: code for code in state.codes}
    assert counts["SEND_MESSAGE_V2"].count == 2
    assert counts["SEND_MESSAGE_V2"].p50 is not None
    assert counts["REGISTER_BROKER"].count >= 1
    lab.stop_serving()
    lab.stop_serving()
    assert lab.serving() is None
    assert lab.requests(7) == (7, 7, b"")
    assert lab.sample().positions.wrote > 0  # the store stays open


def test_messages_of_clients_count_in_the_stores_rate(lab: Lab) -> None:
    """The lab showed "messages/s 0" and drew a flat line while clients sent 108 messages a second to its broker."""
    served = lab.serve(FREE)
    count_before = lab.sample().statuses.get("PUT_OK", 0)
    responses_of(served.broker, a_send(b"one"), a_send(b"two"))
    assert lab.sample().statuses["PUT_OK"] == count_before + 2
    lab.stop_serving()
    assert lab.sample().statuses["PUT_OK"] == count_before + 2, "the figure never falls"


def test_our_producer_is_a_client_with_its_group(lab: Lab) -> None:
    served = lab.serve(FREE)

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
    served = lab.serve(FREE)
    responses_of(served.broker, a_send(b"before"))
    assert lab.requests(0) == (0, 0, b"")
    lab.record_requests(True)
    responses_of(served.broker, a_send(b"during"))
    first_number, following, data = lab.requests(0)
    names = [exchange.name for exchange in exchanges_of(decode_events(io.BytesIO(data)))]
    assert names.count("SEND_MESSAGE_V2") == 1  # a registration request may be recorded too
    assert following > first_number
    lab.record_requests(False)
    lab.record_requests(True)
    responses_of(served.broker, a_send(b"again"))
    assert lab.requests(following)[0] >= following
    lab.record_requests(False)


def test_connections_are_cut_and_new_ones_accepted(lab: Lab) -> None:
    served = lab.serve(FREE)

    async def cut() -> None:
        host, _, port = served.broker.rpartition(":")
        connection = await connect(host, int(port))
        assert (await connection.ask(Command(26))).code == 0  # the broker has the connection now
        await asyncio.to_thread(lab.cut_connections)
        await asyncio.wait_for(connection.closed.wait(), 60)

    asyncio.run(cut())
    assert responses_of(served.broker, a_send(b"one"))[0].code == 0


def test_a_taken_port_and_a_second_serving_are_refused(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(CannotRead, match=f"cannot listen on 127.0.0.1:{port}"):
            lab.serve(ServeSettings(port, 0))
    lab.serve(FREE)
    with pytest.raises(UsageError, match="served already"):
        lab.serve(FREE)


def test_the_store_closes_cleanly_while_it_is_served(lab: Lab) -> None:
    served = lab.serve(FREE)
    responses_of(served.broker, a_send(b"one"))
    lab.close()
    with pytest.raises(OSError, match="Connect call failed"):
        responses_of(served.broker, a_send(b"two"))


def test_the_last_entry_of_sends_and_pulls_is_reported(lab: Lab) -> None:
    served = lab.serve(FREE)
    responses_of(served.broker, a_send(b"one"), a_send(b"two"))
    responses_of(served.broker, pull_of(lab, "Orders"))
    state = lab.serving()
    assert state is not None
    last_entries = {code.name: code.last_entry for code in state.codes}
    sent, pulled = last_entries["SEND_MESSAGE_V2"], last_entries["PULL_MESSAGE"]
    assert sent is not None
    assert pulled is not None
    assert (sent.queue_offset, pulled.queue_offset, pulled.physical_offset) == (1, 0, 0)
    assert lab._open.parts.files.find(sent.physical_offset) is not None
    assert last_entries["REGISTER_BROKER"] is None


def pull_of(lab: Lab, topic: str) -> Command:
    lab._open.wait_dispatched()
    fields = {
        "consumerGroup": "readers",
        "topic": topic,
        "queueId": "0",
        "queueOffset": "0",
        "maxMsgNums": "4",
        "sysFlag": "4",
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subscription": "*",
        "subVersion": "0",
    }
    return Command(11, fields)


def test_a_configuration_and_the_other_ports_are_served(lab: Lab, tmp_path: Path) -> None:
    """The lab opens the same ports as ``storescope serve --config``: listenPort, haListenPort, and the VIP port two
    below.
    """
    ha = free_port()
    conf = tmp_path / "broker.conf"
    conf.write_text(
        f"brokerName=broker-lab\nlistenPort=0\nhaListenPort={ha}\nbrokerIP1=10.0.0.1\nnamesrvAddr=h:1\n"
        "mappedFileSizeCommitLog=4096\nnoSuchKey=1\n"
    )
    state = lab.serve(ServeSettings(None, 0, config=conf))
    assert (state.name, state.ha, state.slaves) == ("broker-lab", f"127.0.0.1:{ha}", 0)
    port = int(state.broker.rpartition(":")[2])
    assert state.vip in {f"127.0.0.1:{port - 2}", ""}
    assert bool(state.vip) != bool(state.no_vip)
    assert set(state.without_effect) == {"noSuchKey", "mappedFileSizeCommitLog", "brokerIP1", "namesrvAddr"}
    assert state.broker.startswith("127.0.0.1:")
    with socket.create_connection(("127.0.0.1", ha), 60):
        pass
    if state.vip:
        assert responses_of(state.vip, a_send(b"one"))[0].code == 0
    lab.stop_serving()
    assert lab.serve(ServeSettings(0, 0, vip=False)).vip == ""


def test_impossible_settings_are_reported(lab: Lab, tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    for text, output in (
        ("brokerRole=SLAVE\nbrokerId=1\n", "brokerRole=SLAVE: the lab's broker is a master"),
        ("aclEnable=true\n", "aclEnable=true: the lab's broker does not check accounts"),
        ("listenPort=many\n", "listenPort"),
    ):
        conf.write_text(text)
        with pytest.raises(UsageError, match=output):
            lab.serve(ServeSettings(0, 0, config=conf))
    with pytest.raises(CannotRead, match="No such file"):
        lab.serve(ServeSettings(0, 0, config=tmp_path / "absent.conf"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        ha = server.getsockname()[1]
        with pytest.raises(CannotRead, match=f"cannot listen on 127.0.0.1:{ha}"):
            lab.serve(ServeSettings(0, 0, ha))
    assert lab.serving() is None
    lab.serve(FREE)


def test_a_further_broker_registers_stops_and_restarts(lab: Lab, tmp_path: Path) -> None:
    served = lab.serve(FREE)
    folder = tmp_path / "lab-broker-b"
    added = lab.add_broker("broker-b", folder)
    assert (added.name, added.folder, added.is_own_store) == ("broker-b", folder, False)
    state = lab.serving()
    assert state is not None
    assert [(broker.name, broker.is_own_store) for broker in state.brokers] == [("broker-a", True), ("broker-b", False)]
    assert state.brokers[0].address == served.broker
    assert responses_of(added.address, a_send(b"one"))[0].code == 0
    content = bytes(responses_of(served.namesrv, Command(106))[0].body)
    assert b'"broker-b"' in content
    for wrong in ("broker-b", "broker-a"):
        with pytest.raises(UsageError, match="already"):
            lab.add_broker(wrong, tmp_path / "other")
    with pytest.raises(UsageError, match="not a valid broker name"):
        lab.add_broker("../x", tmp_path / "other")
    lab.end_broker("broker-b")
    assert b'"broker-b"' not in bytes(responses_of(served.namesrv, Command(106))[0].body)
    for wrong in ("broker-b", "broker-a"):
        with pytest.raises(UsageError, match="not a broker that was added"):
            lab.end_broker(wrong)
    second_add_broker = lab.add_broker("broker-b", folder)
    assert (
        responses_of(second_add_broker.address, Command(30, {"topic": "Orders", "queueId": "0"}))[0].fields["offset"]
        == "1"
    )
    lab.close()
    with pytest.raises(OSError, match="Connect call failed"):
        responses_of(second_add_broker.address, a_send(b"two"))


def test_a_topic_gets_queues_and_loses_empty_ones(lab: Lab) -> None:
    served = lab.serve(FREE)
    assert lab.set_queues("broker-a", "Orders", 2) == 0
    assert responses_of(served.broker, a_send(b"one"))[0].code == 0
    assert lab.set_queues("broker-a", "Orders", 6) == 2
    assert lab.set_queues("broker-a", "Orders", 1) == 6
    with pytest.raises(UsageError, match="queue 0 of Orders at broker-a has messages"):
        lab.set_queues("broker-a", "Orders", 0)
    assert lab.set_queues("broker-a", "New", 3) == 0
    assert lab.set_queues("broker-a", "New", 0) == 3
    assert lab.set_queues("broker-a", "New", 1) == 0
    for name, topic, queues, output in (
        ("nobody", "Orders", 1, "no broker nobody"),
        ("broker-a", "Orders", 2000, "expected 0 to 1,024"),
        ("broker-a", "no topic!", 1, "illegal characters"),
        ("broker-a", "broker-a", 1, "of the broker's own"),
    ):
        with pytest.raises(UsageError, match=output):
            lab.set_queues(name, topic, queues)


def test_one_client_is_cut_by_id_and_broker(lab: Lab) -> None:
    served = lab.serve(FREE)

    async def cut() -> None:
        host, _, port = served.broker.rpartition(":")
        beat = b'{"clientID":"c@1","producerDataSet":[{"groupName":"payers"}],"consumerDataSet":[]}'
        connection, other_connection = await connect(host, int(port)), await connect(host, int(port))
        assert (await connection.ask(Command(34, {}, body=beat, version=479))).code == 0
        assert (await other_connection.ask(Command(26))).code == 0
        (client,) = (await asyncio.to_thread(lab.serving)).clients  # type: ignore[union-attr]
        assert (client.client_id, client.broker) == ("c@1", "broker-a")
        assert await asyncio.to_thread(lab.cut_client, "nobody", "") == 0
        assert await asyncio.to_thread(lab.cut_client, "c@1", "broker-b") == 0
        assert await asyncio.to_thread(lab.cut_client, "c@1", "broker-a") == 1
        await asyncio.wait_for(connection.closed.wait(), 60)
        assert not other_connection.closed.is_set()
        other_connection.close()

    asyncio.run(cut())


def test_actions_need_a_served_store(lab: Lab, tmp_path: Path) -> None:
    for deed in (
        lambda: lab.add_broker("b", tmp_path / "b"),
        lambda: lab.end_broker("b"),
        lambda: lab.set_queues("b", "T", 1),
        lambda: lab.cut_client("c", ""),
    ):
        with pytest.raises(UsageError, match="nothing is served"):
            deed()
