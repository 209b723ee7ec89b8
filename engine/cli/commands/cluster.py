"""``cluster``: show brokers, groups and clients of a running cluster. It only reads from name servers and brokers."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from typing import Any

from engine.cli.connecting import Credentials, add_credentials, read_credentials
from engine.cli.options import add_command, common_options
from engine.cli.output import Column, Output
from engine.cli.serving import address_list
from engine.cluster.reader import ClusterReader
from engine.cluster.state import ClusterState, Group, Queue
from engine.errors import CannotRead
from engine.remoting.frame import release_of
from engine.sentences import sentence

_BROKERS = (
    Column("Broker", "brokerName"),
    Column("Id", "brokerId", "plain"),
    Column("Address", "address"),
    Column("Cluster", "cluster"),
    Column("Release", "release"),
    Column("", "words"),
)
_CLIENTS = (
    Column("Group", "group"),
    Column("Client", "clientId"),
    Column("Address", "address"),
    Column("Language", "language"),
    Column("Release", "release"),
    Column("Model", "model"),
    Column("Owns", "queues", "number"),
)
_PROGRESS = (
    Column("Group", "group"),
    Column("Topic", "topic"),
    Column("Broker", "brokerName"),
    Column("Queue", "queueId", "plain"),
    Column("Next offset", "offset", "number"),
    Column("Max offset", "maxOffset", "number"),
    Column("Behind", "behind", "number"),
    Column("Owner", "owners"),
)
_REFUSED = (
    Column("Unknown", "request"),
    Column("About", "about"),
    Column("By", "address"),
    Column("Code", "code", "plain"),
    Column("Words", "words"),
)


def register(commands: Any) -> None:
    parser = add_command(
        commands,
        "cluster",
        "cluster 127.0.0.1:9876",
        parents=[common_options(store=False)],
    )
    parser.add_argument("namesrv", metavar="ADDR[;ADDR]", type=address_list, help="the cluster's name servers")
    add_credentials(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    state = asyncio.run(_read(args.namesrv, read_credentials(args, out)))
    if all(state.name_servers.values()):
        words = "; ".join(f"{address}: {wrong}" for address, wrong in state.name_servers.items())
        raise CannotRead(sentence("no name server answers: {words}", words=words))
    parts = ((_brokers, _BROKERS), (_clients, _CLIENTS), (_progress, _PROGRESS), (_refused, _REFUSED))
    for records, columns in parts:
        for record in records(state):
            out.record(record, columns)
    return 1 if state.refusals or any(broker.words for broker in state.brokers) else 0


async def _read(name_servers: list[str], credentials: Credentials) -> ClusterState:
    async with ClusterReader(name_servers, account=credentials.account, tls=credentials.tls) as reader:
        return await reader.read()


def _brokers(state: ClusterState) -> Iterator[dict[str, Any]]:
    for broker in state.brokers:
        yield {
            "type": "clusterBroker",
            "brokerName": broker.name,
            "brokerId": broker.broker_id,
            "address": broker.address,
            "cluster": broker.cluster,
            "release": broker.release,
            "words": broker.words or None,
        }


def _clients(state: ClusterState) -> Iterator[dict[str, Any]]:
    sending = [Group(name, clients=clients) for name, clients in state.producers.items()]
    for group in [*sending, *state.groups.values()]:
        for client in group.clients:
            queues = group.owned.get(client.client_id)
            yield {
                "type": "clusterClient",
                "group": group.name,
                "clientId": client.client_id,
                "address": client.address,
                "language": client.language,
                "release": release_of(client.version),
                "model": group.model or None,
                "queues": None if queues is None else len(queues),
            }


def _progress(state: ClusterState) -> Iterator[dict[str, Any]]:
    for name in sorted({name for part in state.masters for name in part.offsets} | state.groups.keys()):
        group, offsets, lags = state.groups.get(name), state.offsets(name), state.behind(name)
        for queue in sorted(offsets):
            ends = state.queues.get(queue)
            yield {
                "type": "clusterProgress",
                "group": name,
                "topic": queue.topic,
                "brokerName": queue.broker,
                "queueId": queue.queue_id,
                "offset": offsets[queue],
                "maxOffset": None if ends is None else ends.max_offset,
                "behind": lags.get(queue),
                "owners": _owners(group, queue),
            }


def _owners(group: Group | None, queue: Queue) -> list[str] | None:
    """Return the owners of a queue. None: unknown, because the owner may be a client that did not answer."""
    if group is None:
        return []
    owners = list(group.owners(queue))
    return owners if owners or group.has_all_answers else None


def _refused(state: ClusterState) -> Iterator[dict[str, Any]]:
    for refusal in state.refusals:
        yield {
            "type": "refused",
            "address": refusal.address,
            "request": refusal.request,
            "about": refusal.about,
            "code": refusal.code,
            "words": refusal.words,
        }
