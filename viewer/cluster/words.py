"""Texts for a cluster: status, details of the selection, and the whole as Markdown. No Qt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from engine.cluster.state import BrokerPart, Queue, Refusal
from engine.remoting.frame import release_of
from viewer.cluster.cluster_model import ClusterModel, Selection
from viewer.cluster.rows import ClientRow, GroupRow, Picture, QueueRow
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.look.formats import clock, full_moment, number

UNKNOWN = "…"
MODELS = {"CLUSTERING": "cluster", "BROADCASTING": "broadcast"}
KINDS = {"CONSUME_PASSIVELY": "push", "CONSUME_ACTIVELY": "pull", "CONSUME_POP": "pop"}


def rate(value: float | None) -> str:
    """Return ``1,200 /s``; ``…`` if unknown."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f} /s" if value >= 10 or value == 0 else f"{value:.1f} /s"


def count(value: int | None) -> str:
    """Return a number; ``…`` if unknown."""
    return UNKNOWN if value is None else number(value)


def software(language: str, version: int) -> str:
    """Return ``JAVA 5.3.3``."""
    return f"{language} {release_of(version)}".strip()


def release(part: BrokerPart) -> str:
    """Return a release such as ``V5_3_3`` as ``5.3.3``."""
    return part.release.removeprefix("V").replace("_", ".")


def broker_origin(part: BrokerPart) -> str:
    """Return ``ours, 5.3.3`` or ``real, 5.3.3``: only brokers of this program report held pulls."""
    if not part.at:
        return UNKNOWN
    release_text = release(part) or UNKNOWN
    return (
        tr("ours, {release}", release=release_text)
        if part.held is not None
        else tr("real, {release}", release=release_text)
    )


def held_words(row: QueueRow) -> str:
    """Describe the held pulls of a queue, or that its broker cannot report them."""
    if row.held_pulls is None:
        return tr("held pulls: nobody can ask a broker of RocketMQ's own")
    return tr("{n:,} pulls held", n=row.held_pulls)


def how_it_consumes(group: GroupRow) -> str:
    """Return ``cluster · push``."""
    group_state = group.group
    parts = [tr(MODELS.get(group_state.model, group_state.model)), KINDS.get(group_state.kind, group_state.kind)]
    if group.broadcast:
        parts.append(tr("offsets in its own file"))
    return " · ".join(part for part in parts if part)


def queue_name(queue: Queue) -> str:
    """Return ``Orders / broker-a / 2``."""
    return f"{queue.topic} / {queue.broker} / {queue.queue_id}"


def fault_words(model: ClusterModel) -> str:
    """Describe why nothing can be read and what was expected; "" if there is no fault."""
    if not model.fault:
        return ""
    state = model.state
    if "not supported" in model.fault or "no processor" in model.fault:
        return tr("{words}. Expected a name server: HOST:PORT, its port is usually 9876.", words=model.fault)
    reason = engine_words(model.fault).rstrip(".")
    if state is None or not state.brokers:
        return tr("{words}. Expected a name server that answers at HOST:PORT, usually 9876.", words=reason)
    return tr("No name server answers: {words}. What stands here is from {time}.", words=reason, time=clock(state.at))


def status_sentence(model: ClusterModel) -> str:
    """Return the sentence of the status bar."""
    fault = fault_words(model)
    if fault:
        return fault
    state, picture = model.state, model.unfiltered
    if state is None:
        if model.status == "connecting":
            return tr("Asking {address} …", address=model.address)
        return tr("No cluster is looked at.")
    senders = picture.senders
    words = [
        model.address,
        tr(
            "{topics:,} topics, {queues:,} queues on {brokers:,} brokers",
            topics=len(picture.topics),
            queues=picture.queues,
            brokers=len(picture.brokers),
        ),
        tr("{clients:,} consumers in {groups:,} groups", clients=picture.clients, groups=len(picture.groups)),
        tr("{n:,} producers", n=senders),
    ]
    late_groups = [group for group in picture.groups if group.lag]
    if late_groups:
        latest_group = max(late_groups, key=lambda group: group.lag or 0)
        words.append(tr("{group} is {n:,} behind", group=latest_group.name, n=latest_group.lag))
    held_counts = [row.held_pulls for topic in picture.topics for row in topic.queues if row.held_pulls]
    if held_counts:
        words.append(tr("{n:,} pulls held", n=sum(held_counts)))
    if model.status == "live":
        words.append(tr("{n:,} requests in the last look", n=model.in_last))
    else:
        words.append(tr("as of {time}", time=clock(state.at)))
    if state.refusals:
        words.append(tr("{n:,} requests were refused", n=len(state.refusals)))
    return " · ".join(words)


def refusal_words(refusal: Refusal) -> str:
    """Return ``GET_CONSUMER_RUNNING_INFO billing c@1: code 3, request type 307 not supported``."""
    request = f"{refusal.request} {refusal.about}".strip()
    if refusal.code < 0:
        return tr(
            "{what}: no answer from {address}, {words}",
            what=request,
            address=refusal.address,
            words=engine_words(refusal.words),
        )
    return tr(
        "{what}: {address} answered code {code}, {words}",
        what=request,
        address=refusal.address,
        code=refusal.code,
        words=engine_words(refusal.words),
    )


def owner_words(model: ClusterModel, row: QueueRow) -> str:
    """Return the owner of a queue: names, "no owner", or unknown."""
    group = model.find_group(row.group)
    if group is None:
        return tr("no group consumes it")
    if group.broadcast:
        return tr("broadcast: every client")
    if row.owners:
        return " ".join(model.badge(client_id).name for client_id in row.owners)
    return tr("no owner") if row.orphan else UNKNOWN


def queue_words(model: ClusterModel, row: QueueRow) -> str:
    """Describe a queue in a sentence."""
    parts = [queue_name(row.queue), tr("max offset {n:,}", n=row.ends.max_offset)]
    if row.group:
        parts += [
            tr("{group} reads next {offset}", group=row.group, offset=count(row.next_offset)),
            tr("{n} behind", n=count(row.lag)),
            owner_words(model, row),
        ]
    return " · ".join([*parts, tr("in {rate}", rate=rate(row.in_rate)), held_words(row)])


def client_words(row: ClientRow) -> str:
    """Describe a consumer in a sentence."""
    owned = UNKNOWN if row.owned is None else tr("{n:,} queues", n=len(row.owned))
    parts = [
        f"{row.badge.name} {row.client.client_id}",
        row.group,
        software(row.client.language, row.client.version),
        owned,
        rate(row.out_rate),
    ]
    return " · ".join([*parts, *([tr("left")] if row.has_left else [])])


# ---- taken apart -----------------------------------------------------------------------------------------------------


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
    yield Detail(tr("Topics"), number(len(picture.topics)), tr("{n:,} queues", n=picture.queues))
    yield Detail(tr("Groups"), number(len(picture.groups)), tr("{n:,} consumers", n=picture.clients))
    yield Detail(tr("Producers"), number(picture.senders))
    yield Detail(
        tr("Read"), clock(model.state.at), tr("took {n:,} ms, {m:,} requests", n=round(model.took_ms), m=model.in_last)
    )
    for refusal in model.state.refusals:
        yield Detail(
            tr("Not told"),
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
            yield Detail("", tr("As of {time}", time=clock(part.at)), engine_words(part.words), "warn")
    yield Detail(tr("Cluster"), row.master.cluster if row.master is not None else UNKNOWN)
    yield Detail(tr("In"), rate(row.in_rate))
    for topic, queues in row.topics:
        yield Detail(tr("Topic"), topic, tr("{n:,} queues", n=len(queues)), target=Selection("topic", topic))


def _topic(model: ClusterModel, name: str) -> Iterator[Detail]:
    row = model.find_topic(name)
    if row is None:
        return
    yield Detail(
        tr("Queues"), number(len(row.queues)), ", ".join(dict.fromkeys(queue.queue.broker for queue in row.queues))
    )
    yield Detail(tr("In"), rate(row.in_rate))
    yield Detail(tr("Out"), rate(row.out_rate), row.groups[0] if row.groups else "")
    yield Detail(tr("Worst behind"), count(row.worst))
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
            yield Detail(tr("Held pulls"), UNKNOWN, tr("nobody can ask a broker of RocketMQ's own"), "text3")
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
        yield Detail(tr("Idle"), tr("{n:,} consumers own no queue", n=row.idle), "", "warn")
    if row.orphans:
        yield Detail(tr("No owner"), tr("{n:,} queues", n=row.orphans), "", "error")
    for client in row.clients:
        owned = UNKNOWN if client.owned is None else tr("{n:,} queues", n=len(client.owned))
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
        yield Detail(tr("Owns"), UNKNOWN, tr("it did not tell"), "warn")
        return
    yield Detail(tr("Owns"), tr("{n:,} queues", n=len(row.owned)), tr("of {n:,} of its group", n=len(group.queues)))
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
    yield Detail("", tr("To which topics it sends is told by no administrator's request."), "", "text3")


# ---- Markdown --------------------------------------------------------------------------------------------------------


def markdown(model: ClusterModel) -> str:
    """Return the whole picture with its figures as Markdown."""
    state, picture = model.state, model.picture
    if state is None:
        return ""
    lines = [f"# {tr('Cluster')} {model.address}", "", f"{full_moment(state.at)} · {status_sentence(model)}", ""]
    lines += markdown_table(
        (tr("Broker"), tr("Role"), tr("Address"), tr("Release"), tr("In /s"), ""),
        (
            (
                row.name,
                tr("master") if part.is_master else tr("slave {n}", n=part.broker_id),
                part.address,
                release(part),
                rate(row.in_rate) if part.is_master else "",
                engine_words(part.words),
            )
            for row in picture.brokers
            for part in (row.master, *row.slaves)
            if part is not None
        ),
    )
    lines += markdown_table(
        (tr("Producer"), tr("Client"), tr("Group"), tr("Language"), tr("Brokers")),
        (
            (
                row.badge.name,
                row.client.client_id,
                ", ".join(row.groups),
                software(row.client.language, row.client.version),
                ", ".join(row.brokers),
            )
            for row in picture.producers
        ),
    )
    lines += markdown_table(
        (
            tr("Group"),
            tr("Model"),
            tr("Consumer"),
            tr("Client"),
            tr("Language"),
            tr("Owns"),
            tr("Consumes"),
            tr("Behind"),
        ),
        (
            (
                group.name,
                how_it_consumes(group),
                row.badge.name,
                row.client.client_id,
                software(row.client.language, row.client.version),
                UNKNOWN if row.owned is None else number(len(row.owned)),
                rate(row.out_rate),
                count(row.lag),
            )
            for group in picture.groups
            for row in group.clients
        ),
    )
    lines += markdown_table(
        (
            tr("Topic"),
            tr("Broker"),
            tr("Queue"),
            tr("Max offset"),
            tr("Group"),
            tr("Next offset"),
            tr("Behind"),
            tr("Owner"),
            tr("In /s"),
            tr("Out /s"),
        ),
        (_queue_cells(model, row) for row in queue_lines(picture)),
    )
    if state.refusals:
        lines += [f"- {refusal_words(refusal)}" for refusal in state.refusals]
    return "\n".join(lines).rstrip() + "\n"


def queue_lines(picture: Picture) -> list[QueueRow]:
    """Return each queue once for each group that consumes it, and once if none does."""
    by_queue: dict[Queue, list[QueueRow]] = {}
    for group in picture.groups:
        for row in group.queues:
            by_queue.setdefault(row.queue, []).append(row)
    return [line for topic in picture.topics for row in topic.queues for line in by_queue.get(row.queue, [row])]


def _queue_cells(model: ClusterModel, row: QueueRow) -> tuple[str, ...]:
    queue = row.queue
    return (
        queue.topic,
        queue.broker,
        str(queue.queue_id),
        number(row.ends.max_offset),
        row.group,
        count(row.next_offset) if row.group else "",
        count(row.lag) if row.group else "",
        owner_words(model, row),
        rate(row.in_rate),
        rate(row.out_rate) if row.group else "",
    )


def markdown_table(heads: Sequence[str], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Return the lines of a Markdown table and an empty line; nothing without rows."""
    cells = [tuple(_cell(cell) for cell in row) for row in rows]
    if not cells:
        return []
    lines = [f"| {' | '.join(heads)} |", f"|{'|'.join(' --- ' for _ in heads)}|"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in cells), ""]


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
