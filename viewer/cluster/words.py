"""What is said of a cluster: how it stands, what is chosen, and the whole as Markdown. No Qt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from engine.cluster.state import BrokerPart, Queue, Refusal
from engine.remoting.frame import release_of
from viewer.cluster.cluster_model import Chosen, ClusterModel
from viewer.cluster.rows import ClientRow, GroupRow, Picture, QueueRow
from viewer.look.assets import tr
from viewer.look.engine_words import engine_words
from viewer.look.formats import clock, full_moment, number

UNTOLD = "…"
MODELS = {"CLUSTERING": "cluster", "BROADCASTING": "broadcast"}
KINDS = {"CONSUME_PASSIVELY": "push", "CONSUME_ACTIVELY": "pull", "CONSUME_POP": "pop"}


def rate(value: float | None) -> str:
    """``1,200 /s``; ``…`` where nobody measured."""
    if value is None:
        return UNTOLD
    return f"{value:,.0f} /s" if value >= 10 or value == 0 else f"{value:.1f} /s"


def count(value: int | None) -> str:
    """A number, ``…`` where nobody told."""
    return UNTOLD if value is None else number(value)


def software(language: str, version: int) -> str:
    """``JAVA 5.3.3``."""
    return f"{language} {release_of(version)}".strip()


def release(part: BrokerPart) -> str:
    """``V5_3_3`` as people write it."""
    return part.release.removeprefix("V").replace("_", ".")


def whose(part: BrokerPart) -> str:
    """``ours, 5.3.3`` or ``real, 5.3.3``: a broker of this program tells its held pulls, RocketMQ's own tells none."""
    if not part.at:
        return UNTOLD
    said = release(part) or UNTOLD
    return tr("ours, {release}", release=said) if part.held is not None else tr("real, {release}", release=said)


def held_words(row: QueueRow) -> str:
    """How many pulls wait at a queue, or that its broker cannot be asked."""
    if row.held is None:
        return tr("held pulls: nobody can ask a broker of RocketMQ's own")
    return tr("{n:,} pulls held", n=row.held)


def how_it_consumes(group: GroupRow) -> str:
    """``cluster · push``."""
    told = group.group
    parts = [tr(MODELS.get(told.model, told.model)), KINDS.get(told.kind, told.kind)]
    if group.broadcast:
        parts.append(tr("offsets in its own file"))
    return " · ".join(part for part in parts if part)


def queue_name(queue: Queue) -> str:
    """``Orders / broker-a / 2``."""
    return f"{queue.topic} / {queue.broker} / {queue.queue_id}"


def fault_words(model: ClusterModel) -> str:
    """Why nothing comes, and what was expected; "" where something does."""
    if not model.fault:
        return ""
    state = model.state
    if "not supported" in model.fault or "no processor" in model.fault:
        return tr("{words}. Expected a name server: HOST:PORT, its port is usually 9876.", words=model.fault)
    said = engine_words(model.fault).rstrip(".")
    if state is None or not state.brokers:
        return tr("{words}. Expected a name server that answers at HOST:PORT, usually 9876.", words=said)
    return tr("No name server answers: {words}. What stands here is from {time}.", words=said, time=clock(state.at))


def standing_words(model: ClusterModel) -> str:
    """One sentence for the status bar."""
    fault = fault_words(model)
    if fault:
        return fault
    state, picture = model.state, model.whole
    if state is None:
        if model.standing == "connecting":
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
    late = [group for group in picture.groups if group.behind]
    if late:
        worst = max(late, key=lambda group: group.behind or 0)
        words.append(tr("{group} is {n:,} behind", group=worst.name, n=worst.behind))
    held = [row.held for topic in picture.topics for row in topic.queues if row.held]
    if held:
        words.append(tr("{n:,} pulls held", n=sum(held)))
    if model.standing == "live":
        words.append(tr("{n:,} requests in the last look", n=model.in_last))
    else:
        words.append(tr("as of {time}", time=clock(state.at)))
    if state.refusals:
        words.append(tr("{n:,} requests were refused", n=len(state.refusals)))
    return " · ".join(words)


def refusal_words(one: Refusal) -> str:
    """``GET_CONSUMER_RUNNING_INFO billing c@1: code 3, request type 307 not supported``."""
    what = f"{one.request} {one.about}".strip()
    if one.code < 0:
        return tr(
            "{what}: no answer from {address}, {words}", what=what, address=one.address, words=engine_words(one.words)
        )
    return tr(
        "{what}: {address} answered code {code}, {words}",
        what=what,
        address=one.address,
        code=one.code,
        words=engine_words(one.words),
    )


def owner_words(model: ClusterModel, row: QueueRow) -> str:
    """Who owns a queue: names, "no owner", or that nobody told."""
    group = model.find_group(row.group)
    if group is None:
        return tr("no group consumes it")
    if group.broadcast:
        return tr("broadcast: every client")
    if row.owners:
        return " ".join(model.badge(one).name for one in row.owners)
    return tr("no owner") if row.orphan else UNTOLD


def queue_words(model: ClusterModel, row: QueueRow) -> str:
    """A queue in a sentence."""
    parts = [queue_name(row.queue), tr("max offset {n:,}", n=row.ends.max_offset)]
    if row.group:
        parts += [
            tr("{group} reads next {offset}", group=row.group, offset=count(row.next_offset)),
            tr("{n} behind", n=count(row.behind)),
            owner_words(model, row),
        ]
    return " · ".join([*parts, tr("in {rate}", rate=rate(row.came)), held_words(row)])


def client_words(row: ClientRow) -> str:
    """A consumer in a sentence."""
    owned = UNTOLD if row.owned is None else tr("{n:,} queues", n=len(row.owned))
    parts = [
        f"{row.badge.name} {row.client.client_id}",
        row.group,
        software(row.client.language, row.client.version),
        owned,
        rate(row.went),
    ]
    return " · ".join([*parts, *([tr("left")] if row.left else [])])


# ---- taken apart -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Told:
    """One figure of what is chosen: ``goes`` is what a click on it chooses, a queue, a group or a client."""

    name: str
    value: str
    note: str = ""
    role: str = "text"
    goes: Chosen | None = None


def title_of(model: ClusterModel, chosen: Chosen) -> tuple[str, str]:
    """Name and note of what is chosen."""
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


def thing_place_words(model: ClusterModel, chosen: Chosen) -> str:
    """The chosen thing as the crumbs say it."""
    return title_of(model, chosen)[0] if chosen.kind else ""


def told_of(model: ClusterModel, chosen: Chosen) -> list[Told]:
    """What is known of the chosen thing, with exact figures."""
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
    return list(_whole(model))


def _whole(model: ClusterModel) -> Iterator[Told]:
    picture = model.whole
    if model.state is None:
        return
    yield Told(tr("Brokers"), number(len(picture.brokers)))
    yield Told(tr("Topics"), number(len(picture.topics)), tr("{n:,} queues", n=picture.queues))
    yield Told(tr("Groups"), number(len(picture.groups)), tr("{n:,} consumers", n=picture.clients))
    yield Told(tr("Producers"), number(picture.senders))
    yield Told(
        tr("Read"), clock(model.state.at), tr("took {n:,} ms, {m:,} requests", n=round(model.took), m=model.in_last)
    )
    for one in model.state.refusals:
        yield Told(
            tr("Not told"), f"{one.request} {one.about}".strip(), f"{one.code} {engine_words(one.words)}", "warn"
        )


def _names(model: ClusterModel) -> Iterator[Told]:
    state = model.state
    for address in model.addresses:
        wrong = state.name_servers.get(address, "") if state is not None else ""
        yield Told(address, wrong or tr("answers"), "", "warn" if wrong else "ok")
    for broker in model.whole.brokers:
        for part in (broker.master, *broker.slaves):
            if part is not None:
                yield Told(broker.name, part.address, engine_words(part.words), goes=Chosen("broker", broker.name))


def _broker(model: ClusterModel, name: str) -> Iterator[Told]:
    row = next((one for one in model.whole.brokers if one.name == name), None)
    if row is None:
        return
    for part in (row.master, *row.slaves):
        if part is None:
            continue
        kind = tr("master") if part.is_master else tr("slave {n}", n=part.broker_id)
        yield Told(kind, part.address, whose(part), "warn" if part.words else "text")
        if part.words:
            yield Told("", tr("As of {time}", time=clock(part.at)), engine_words(part.words), "warn")
    yield Told(tr("Cluster"), row.master.cluster if row.master is not None else UNTOLD)
    yield Told(tr("In"), rate(row.came))
    for topic, queues in row.topics:
        yield Told(tr("Topic"), topic, tr("{n:,} queues", n=len(queues)), goes=Chosen("topic", topic))


def _topic(model: ClusterModel, name: str) -> Iterator[Told]:
    row = model.find_topic(name)
    if row is None:
        return
    yield Told(
        tr("Queues"), number(len(row.queues)), ", ".join(dict.fromkeys(queue.queue.broker for queue in row.queues))
    )
    yield Told(tr("In"), rate(row.came))
    yield Told(tr("Out"), rate(row.went), row.groups[0] if row.groups else "")
    yield Told(tr("Worst behind"), count(row.worst))
    for group in row.groups:
        yield Told(tr("Group"), group, goes=Chosen("group", group))
    for queue in row.queues:
        yield _line(queue, f"{queue.queue.broker} / {queue.queue.queue_id}")


def _line(row: QueueRow, name: str) -> Told:
    """A queue within a list: next offset and how far behind."""
    said = [count(row.next_offset if row.group else row.ends.max_offset)]
    if row.orphan:
        said.append(tr("no owner"))
    if row.group:
        said.append(tr("{n} behind", n=count(row.behind)))
    return Told("", name, " · ".join(said), goes=Chosen("queue", queue=row.queue, group=row.group))


def _queue(model: ClusterModel, queue: Queue | None) -> Iterator[Told]:
    row = model.find_queue(queue)
    if row is None or queue is None:
        return
    yield Told(tr("Topic"), queue.topic, goes=Chosen("topic", queue.topic))
    yield Told(tr("Broker"), queue.broker, goes=Chosen("broker", queue.broker))
    yield Told(tr("Min offset"), number(row.ends.min_offset))
    yield Told(tr("Max offset"), number(row.ends.max_offset))
    stored = row.ends.last_stored
    yield Told(tr("Last stored"), full_moment(stored) if stored > 0 else tr("never"))
    yield Told(tr("In"), rate(row.came))
    for group in model.whole.groups:
        mine = next((one for one in group.queues if one.queue == queue), None)
        if mine is None:
            continue
        yield Told(tr("Group"), group.name, how_it_consumes(group), goes=Chosen("group", group.name))
        yield Told(
            tr("Next offset"),
            count(mine.next_offset),
            tr("{n} behind", n=count(mine.behind)),
            "warn" if (mine.behind or 0) >= 1000 else "text",
        )
        if mine.held is not None:
            yield Told(tr("Held pulls"), number(mine.held), tr("wait at the broker for a message"))
        else:
            yield Told(tr("Held pulls"), UNTOLD, tr("nobody can ask a broker of RocketMQ's own"), "text3")
        yield Told(
            tr("Owner"),
            owner_words(model, mine),
            "",
            "error" if mine.orphan else "text",
            Chosen("client", mine.owners[0], group.name) if mine.owners else None,
        )


def _group(model: ClusterModel, name: str) -> Iterator[Told]:
    row = model.find_group(name)
    if row is None:
        return
    yield Told(tr("Model"), how_it_consumes(row))
    if row.group.start:
        yield Told(tr("Begins at"), row.group.start)
    for topic, expression in row.group.subscriptions.items():
        yield Told(tr("Subscribes"), topic, expression, goes=Chosen("topic", topic))
    yield Told(tr("Behind"), count(row.behind), "", "warn" if (row.behind or 0) >= 1000 else "text")
    yield Told(tr("Consumes"), rate(row.went))
    if row.idle and not row.broadcast:
        yield Told(tr("Idle"), tr("{n:,} consumers own no queue", n=row.idle), "", "warn")
    if row.orphans:
        yield Told(tr("No owner"), tr("{n:,} queues", n=row.orphans), "", "error")
    for client in row.clients:
        owned = UNTOLD if client.owned is None else tr("{n:,} queues", n=len(client.owned))
        yield Told(
            client.badge.name,
            client.client.client_id,
            tr("left") if client.left else owned,
            goes=Chosen("client", client.client.client_id, name),
        )


def _client(model: ClusterModel, chosen: Chosen) -> Iterator[Told]:
    row, group = model.find_client(chosen.group, chosen.name), model.find_group(chosen.group)
    if row is None or group is None:
        return
    one = row.client
    yield Told(tr("Client"), one.client_id)
    yield Told(tr("Language"), software(one.language, one.version), tr("version {n}", n=one.version))
    yield Told(tr("Address"), one.address)
    yield Told(tr("Group"), group.name, how_it_consumes(group), goes=Chosen("group", group.name))
    if row.left:
        yield Told("", tr("It has left."), "", "warn")
        return
    yield Told(tr("Consumes"), rate(row.went))
    yield Told(tr("Behind"), count(row.behind), "", "warn" if (row.behind or 0) >= 1000 else "text")
    if row.owned is None:
        yield Told(tr("Owns"), UNTOLD, tr("it did not tell"), "warn")
        return
    yield Told(tr("Owns"), tr("{n:,} queues", n=len(row.owned)), tr("of {n:,} of its group", n=len(group.queues)))
    mine = {queue.queue: queue for queue in group.queues}
    for queue in row.owned:
        if queue in mine:
            yield _line(mine[queue], queue_name(queue))


def _producer(model: ClusterModel, client_id: str) -> Iterator[Told]:
    row = model.find_producer(client_id)
    if row is None:
        return
    one = row.client
    yield Told(tr("Client"), one.client_id, tr("left") if row.left else "")
    yield Told(tr("Language"), software(one.language, one.version), tr("version {n}", n=one.version))
    yield Told(tr("Address"), one.address)
    for name in row.groups:
        yield Told(tr("Group"), name)
    for name in row.brokers:
        yield Told(tr("Connected"), name, goes=Chosen("broker", name))
    yield Told("", tr("To which topics it sends is told by no administrator's request."), "", "text3")


# ---- Markdown --------------------------------------------------------------------------------------------------------


def markdown(model: ClusterModel) -> str:
    """The whole picture with its figures, as it stands."""
    state, picture = model.state, model.picture
    if state is None:
        return ""
    lines = [f"# {tr('Cluster')} {model.address}", "", f"{full_moment(state.at)} · {standing_words(model)}", ""]
    lines += markdown_table(
        (tr("Broker"), tr("Role"), tr("Address"), tr("Release"), tr("In /s"), ""),
        (
            (
                row.name,
                tr("master") if part.is_master else tr("slave {n}", n=part.broker_id),
                part.address,
                release(part),
                rate(row.came) if part.is_master else "",
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
                UNTOLD if row.owned is None else number(len(row.owned)),
                rate(row.went),
                count(row.behind),
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
        lines += [f"- {refusal_words(one)}" for one in state.refusals]
    return "\n".join(lines).rstrip() + "\n"


def queue_lines(picture: Picture) -> list[QueueRow]:
    """Each queue once for each group that consumes it, and once where none does."""
    by_queue: dict[Queue, list[QueueRow]] = {}
    for group in picture.groups:
        for row in group.queues:
            by_queue.setdefault(row.queue, []).append(row)
    return [one for topic in picture.topics for row in topic.queues for one in by_queue.get(row.queue, [row])]


def _queue_cells(model: ClusterModel, row: QueueRow) -> tuple[str, ...]:
    queue = row.queue
    return (
        queue.topic,
        queue.broker,
        str(queue.queue_id),
        number(row.ends.max_offset),
        row.group,
        count(row.next_offset) if row.group else "",
        count(row.behind) if row.group else "",
        owner_words(model, row),
        rate(row.came),
        rate(row.went) if row.group else "",
    )


def markdown_table(heads: Sequence[str], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Lines of a Markdown table, with an empty one behind; none without rows."""
    made = [tuple(_cell(cell) for cell in row) for row in rows]
    if not made:
        return []
    lines = [f"| {' | '.join(heads)} |", f"|{'|'.join(' --- ' for _ in heads)}|"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in made), ""]


def _cell(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
