"""Details of the selected item of a cluster, with exact figures. No Qt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from engine.cluster.state import Queue
from viewer.cluster.cluster_model import ClusterModel, Selection
from viewer.cluster.rows import QueueRow
from viewer.cluster.words import UNKNOWN, broker_origin, count, how_it_consumes, owner_words, queue_name, rate, software
from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.look.formats import clock, full_moment, number


@dataclass(frozen=True, slots=True)
class Detail:
    """A detail of the selection; ``target`` is the item that a click on it selects."""

    name: str
    value: str
    note: str = ""
    role: str = "text"
    target: Selection | None = None


def title_of(model: ClusterModel, chosen: Selection) -> tuple[str, str]:
    """Return name and note of the selection."""
    match chosen.kind:
        case "names":
            return tr("Name servers"), ""
        case "broker":
            return chosen.name, tr("broker")
        case "topic":
            return chosen.name, tr("topic")
        case "queue" if chosen.queue is not None:
            return queue_name(chosen.queue), tr("queue")
        case "group":
            return chosen.name, tr("consumer group")
        case "client":
            return model.badge(chosen.name).name, tr("consumer of {group}", group=chosen.group)
        case "producer":
            return model.badge(chosen.name).name, tr("producer")
    return tr("Nothing is chosen"), ""


def breadcrumb_words(model: ClusterModel, chosen: Selection) -> str:
    """Return the name of the selection for the breadcrumbs."""
    return title_of(model, chosen)[0] if chosen.kind else ""


def details_of(model: ClusterModel, chosen: Selection) -> list[Detail]:
    """Return the details of the selection, with exact figures."""
    match chosen.kind:
        case "names":
            return list(_names(model))
        case "broker":
            return list(_broker(model, chosen.name))
        case "topic":
            return list(_topic(model, chosen.name))
        case "queue":
            return list(_queue(model, chosen.queue))
        case "group":
            return list(_group(model, chosen.name))
        case "client":
            return list(_client(model, chosen))
        case "producer":
            return list(_producer(model, chosen.name))
    return list(_picture_details(model))


def _picture_details(model: ClusterModel) -> Iterator[Detail]:
    picture = model.unfiltered
    if model.state is None:
        return
    yield Detail(tr("Brokers"), number(len(picture.brokers)))
    yield Detail(tr("Topics"), number(len(picture.topics)), tr_plural("{n:,} queue", "{n:,} queues", n=picture.queues))
    yield Detail(
        tr("Groups"), number(len(picture.groups)), tr_plural("{n:,} consumer", "{n:,} consumers", n=picture.clients)
    )
    yield Detail(tr("Producers"), number(picture.senders))
    requests = tr_plural("{n:,} request", "{n:,} requests", n=model.in_last)
    duration = tr("took {ms:,} ms, {requests}", ms=round(model.took_ms), requests=requests)
    yield Detail(tr("Read"), clock(model.state.time_ms), duration)
    for refusal in model.state.refusals:
        yield Detail(
            tr("Unknown"),
            f"{refusal.request} {refusal.about}".strip(),
            f"{refusal.code} {engine_words(refusal.words)}",
            "warn",
        )


def _names(model: ClusterModel) -> Iterator[Detail]:
    state = model.state
    for address in model.addresses:
        fault = state.name_servers.get(address, "") if state is not None else ""
        yield Detail(address, fault or tr("answers"), "", "warn" if fault else "ok")
    for broker in model.unfiltered.brokers:
        for part in (broker.master, *broker.slaves):
            if part is not None:
                yield Detail(
                    broker.name, part.address, engine_words(part.words), target=Selection("broker", broker.name)
                )


def _broker(model: ClusterModel, name: str) -> Iterator[Detail]:
    row = next((broker_row for broker_row in model.unfiltered.brokers if broker_row.name == name), None)
    if row is None:
        return
    for part in (row.master, *row.slaves):
        if part is None:
            continue
        kind = tr("master") if part.is_master else tr("slave {n}", n=part.broker_id)
        yield Detail(kind, part.address, broker_origin(part), "warn" if part.words else "text")
        if part.words:
            yield Detail("", tr("As of {time}", time=clock(part.time_ms)), engine_words(part.words), "warn")
    yield Detail(tr("Cluster"), row.master.cluster if row.master is not None else UNKNOWN)
    yield Detail(tr("In"), rate(row.in_rate))
    for topic, queues in row.topics:
        yield Detail(
            tr("Topic"),
            topic,
            tr_plural("{n:,} queue", "{n:,} queues", n=len(queues)),
            target=Selection("topic", topic),
        )


def _topic(model: ClusterModel, name: str) -> Iterator[Detail]:
    row = model.find_topic(name)
    if row is None:
        return
    yield Detail(
        tr("Queues"), number(len(row.queues)), ", ".join(dict.fromkeys(queue.queue.broker for queue in row.queues))
    )
    yield Detail(tr("In"), rate(row.in_rate))
    yield Detail(tr("Out"), rate(row.out_rate), row.groups[0] if row.groups else "")
    yield Detail(tr("Largest lag"), count(row.worst))
    for group in row.groups:
        yield Detail(tr("Group"), group, target=Selection("group", group))
    for queue in row.queues:
        yield _queue_detail(queue, f"{queue.queue.broker} / {queue.queue.queue_id}")


def _queue_detail(row: QueueRow, name: str) -> Detail:
    """Return a queue within a list: next offset and lag."""
    notes = [count(row.next_offset if row.group else row.ends.max_offset)]
    if row.orphan:
        notes.append(tr("no owner"))
    if row.group:
        notes.append(tr("{n} behind", n=count(row.lag)))
    return Detail("", name, " · ".join(notes), target=Selection("queue", queue=row.queue, group=row.group))


def _queue(model: ClusterModel, queue: Queue | None) -> Iterator[Detail]:
    row = model.find_queue(queue)
    if row is None or queue is None:
        return
    yield Detail(tr("Topic"), queue.topic, target=Selection("topic", queue.topic))
    yield Detail(tr("Broker"), queue.broker, target=Selection("broker", queue.broker))
    yield Detail(tr("Min offset"), number(row.ends.min_offset))
    yield Detail(tr("Max offset"), number(row.ends.max_offset))
    stored = row.ends.last_stored
    yield Detail(tr("Last stored"), full_moment(stored) if stored > 0 else tr("never"))
    yield Detail(tr("In"), rate(row.in_rate))
    for group in model.unfiltered.groups:
        group_queue = next((queue_row for queue_row in group.queues if queue_row.queue == queue), None)
        if group_queue is None:
            continue
        yield Detail(tr("Group"), group.name, how_it_consumes(group), target=Selection("group", group.name))
        yield Detail(
            tr("Next offset"),
            count(group_queue.next_offset),
            tr("{n} behind", n=count(group_queue.lag)),
            "warn" if (group_queue.lag or 0) >= 1000 else "text",
        )
        if group_queue.held_pulls is not None:
            yield Detail(tr("Held pulls"), number(group_queue.held_pulls), tr("wait at the broker for a message"))
        else:
            yield Detail(tr("Held pulls"), UNKNOWN, tr("RocketMQ's own broker does not report it"), "text3")
        yield Detail(
            tr("Owner"),
            owner_words(model, group_queue),
            "",
            "error" if group_queue.orphan else "text",
            Selection("client", group_queue.owners[0], group.name) if group_queue.owners else None,
        )


def _group(model: ClusterModel, name: str) -> Iterator[Detail]:
    row = model.find_group(name)
    if row is None:
        return
    yield Detail(tr("Model"), how_it_consumes(row))
    if row.group.start:
        yield Detail(tr("Begins at"), row.group.start)
    for topic, expression in row.group.subscriptions.items():
        yield Detail(tr("Subscribes"), topic, expression, target=Selection("topic", topic))
    yield Detail(tr("Behind"), count(row.lag), "", "warn" if (row.lag or 0) >= 1000 else "text")
    yield Detail(tr("Consumes"), rate(row.out_rate))
    if row.idle and not row.broadcast:
        yield Detail(
            tr("Idle"),
            tr_plural("{n:,} consumer owns no queue", "{n:,} consumers own no queue", n=row.idle),
            "",
            "warn",
        )
    if row.orphans:
        yield Detail(tr("No owner"), tr_plural("{n:,} queue", "{n:,} queues", n=row.orphans), "", "error")
    for client in row.clients:
        owned = UNKNOWN if client.owned is None else tr_plural("{n:,} queue", "{n:,} queues", n=len(client.owned))
        yield Detail(
            client.badge.name,
            client.client.client_id,
            tr("left") if client.has_left else owned,
            target=Selection("client", client.client.client_id, name),
        )


def _client(model: ClusterModel, chosen: Selection) -> Iterator[Detail]:
    row, group = model.find_client(chosen.group, chosen.name), model.find_group(chosen.group)
    if row is None or group is None:
        return
    client = row.client
    yield Detail(tr("Client"), client.client_id)
    yield Detail(tr("Language"), software(client.language, client.version), tr("version {n}", n=client.version))
    yield Detail(tr("Address"), client.address)
    yield Detail(tr("Group"), group.name, how_it_consumes(group), target=Selection("group", group.name))
    if row.has_left:
        yield Detail("", tr("It has left."), "", "warn")
        return
    yield Detail(tr("Consumes"), rate(row.out_rate))
    yield Detail(tr("Behind"), count(row.lag), "", "warn" if (row.lag or 0) >= 1000 else "text")
    if row.owned is None:
        yield Detail(tr("Owns"), UNKNOWN, tr("not reported"), "warn")
        return
    yield Detail(
        tr("Owns"),
        tr_plural("{n:,} queue", "{n:,} queues", n=len(row.owned)),
        tr("of {n:,} of its group", n=len(group.queues)),
    )
    queues_of_group = {queue.queue: queue for queue in group.queues}
    for queue in row.owned:
        if queue in queues_of_group:
            yield _queue_detail(queues_of_group[queue], queue_name(queue))


def _producer(model: ClusterModel, client_id: str) -> Iterator[Detail]:
    row = model.find_producer(client_id)
    if row is None:
        return
    client = row.client
    yield Detail(tr("Client"), client.client_id, tr("left") if row.has_left else "")
    yield Detail(tr("Language"), software(client.language, client.version), tr("version {n}", n=client.version))
    yield Detail(tr("Address"), client.address)
    for name in row.groups:
        yield Detail(tr("Group"), name)
    for name in row.brokers:
        yield Detail(tr("Connected"), name, target=Selection("broker", name))
    yield Detail("", tr("No admin request shows to which topics it sends."), "", "text3")
