"""Texts for a cluster: figures, software, faults, and the status as one sentence. No Qt."""

from __future__ import annotations

from engine.cluster.state import BrokerPart, Queue, Refusal
from engine.remoting.frame import release_of
from viewer.cluster.cluster_model import ClusterModel
from viewer.cluster.rows import ClientRow, GroupRow, QueueRow
from viewer.look.assets import tr, tr_plural
from viewer.look.engine_words import engine_words
from viewer.look.formats import clock, number

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
    if not part.time_ms:
        return UNKNOWN
    release_text = release(part) or UNKNOWN
    return (
        tr("ours, {release}", release=release_text)
        if part.held_pulls is not None
        else tr("real, {release}", release=release_text)
    )


def held_words(row: QueueRow) -> str:
    """Describe the held pulls of a queue, or that its broker cannot report them."""
    if row.held_pulls is None:
        return tr("held pulls: RocketMQ's own broker does not report them")
    return tr_plural("{n:,} pull held", "{n:,} pulls held", n=row.held_pulls)


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
    return tr("No name server answers: {words}. The figures are from {time}.", words=reason, time=clock(state.time_ms))


def status_sentence(model: ClusterModel) -> str:
    """Return the sentence of the status bar."""
    fault = fault_words(model)
    if fault:
        return fault
    state, picture = model.state, model.unfiltered
    if state is None:
        if model.status == "connecting":
            return tr("Asking {address} …", address=model.address)
        return tr("No cluster is connected.")
    senders = picture.senders
    words = [
        model.address,
        tr_plural(
            "{topics}, {queues} on {n:,} broker",
            "{topics}, {queues} on {n:,} brokers",
            n=len(picture.brokers),
            topics=tr_plural("{n:,} topic", "{n:,} topics", n=len(picture.topics)),
            queues=tr_plural("{n:,} queue", "{n:,} queues", n=picture.queues),
        ),
        tr_plural(
            "{consumers} in {n:,} group",
            "{consumers} in {n:,} groups",
            n=len(picture.groups),
            consumers=tr_plural("{n:,} consumer", "{n:,} consumers", n=picture.clients),
        ),
        tr_plural("{n:,} producer", "{n:,} producers", n=senders),
    ]
    late_groups = [group for group in picture.groups if group.lag]
    if late_groups:
        latest_group = max(late_groups, key=lambda group: group.lag or 0)
        words.append(tr("{group} is {n:,} behind", group=latest_group.name, n=latest_group.lag))
    held_counts = [row.held_pulls for topic in picture.topics for row in topic.queues if row.held_pulls]
    if held_counts:
        words.append(tr_plural("{n:,} pull held", "{n:,} pulls held", n=sum(held_counts)))
    if model.status == "live":
        words.append(
            tr_plural("{n:,} request in the last reading", "{n:,} requests in the last reading", n=model.in_last)
        )
    else:
        words.append(tr("as of {time}", time=clock(state.time_ms)))
    if state.refusals:
        words.append(tr_plural("{n:,} request was refused", "{n:,} requests were refused", n=len(state.refusals)))
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
            tr("{group} reads {offset} next", group=row.group, offset=count(row.next_offset)),
            tr("{n} behind", n=count(row.lag)),
            owner_words(model, row),
        ]
    return " · ".join([*parts, tr("in {rate}", rate=rate(row.in_rate)), held_words(row)])


def client_words(row: ClientRow) -> str:
    """Describe a consumer in a sentence."""
    owned = UNKNOWN if row.owned is None else tr_plural("{n:,} queue", "{n:,} queues", n=len(row.owned))
    parts = [
        f"{row.badge.name} {row.client.client_id}",
        row.group,
        software(row.client.language, row.client.version),
        owned,
        rate(row.out_rate),
    ]
    return " · ".join([*parts, *([tr("left")] if row.has_left else [])])
