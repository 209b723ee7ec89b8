"""A recording of a cluster: JSON lines, a head and then a line a reading, so that a file that was cut off still opens.

``{"type": "clusterRecording", "version": 1, "address": …}`` first; then ``{"at": ms, "names": {address: words},
"brokers": [[name, cluster, id, address, at, release, words]], "queues": [[topic, broker, id, min, max, stored]],
"offsets": {group: [[topic, broker, id, next]]}, "groups": {…}, "producers": {…}, "held": [null or [[topic, broker, id,
group, pulls]]] of each broker, "refusals": […]}``; what stands under brokers, groups, producers, held and refusals only
where it changed (an older recording has no ``held_pulls``). Times are ms since 1970. No Qt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.cluster.state import BrokerPart, Client, ClusterState, Group, Queue, QueueEnds, Refusal
from engine.errors import StoreError
from engine.sentences import sentence
from viewer.runtime.recorded_lines import RecordedLines, object_of

VERSION = 1
PARTS = ("brokers", "groups", "producers", "held", "refusals")
"""Parts that a line contains only if they differ from the line before."""


class NoRecording(StoreError):
    """The file is not a recording of a cluster, or cannot be read by this version."""


def head_line(address: str) -> str:
    """Return the first line."""
    return json.dumps({"type": "clusterRecording", "version": VERSION, "address": address}) + "\n"


def state_record(state: ClusterState) -> dict[str, Any]:
    """Return a reading as a complete record. Reports of several brokers on one group are kept by broker."""
    masters = list(state.masters)
    return {
        "at": state.time_ms,
        "names": dict(state.name_servers),
        "brokers": [
            [item.name, item.cluster, item.broker_id, item.address, item.release, item.words] for item in state.brokers
        ],
        "read": [item.time_ms for item in state.brokers],
        "queues": [
            [*queue, ends.min_offset, ends.max_offset, ends.last_stored]
            for part in masters
            for queue, ends in part.queues.items()
        ],
        "offsets": {
            part.name: {
                name: [[*queue, next_offset] for queue, next_offset in offsets.items()]
                for name, offsets in part.offsets.items()
            }
            for part in masters
        },
        "groups": {part.name: [_group(item) for item in part.groups.values()] for part in masters},
        "producers": {
            part.name: {name: [_client(item) for item in clients] for name, clients in part.producers.items()}
            for part in masters
        },
        "held": [
            None
            if part.held_pulls is None
            else [[*queue, name, n] for queue, groups in part.held_pulls.items() for name, n in groups.items()]
            for part in state.brokers
        ],
        "refusals": [[item.address, item.request, item.about, item.code, item.words] for item in state.refusals],
    }


def _group(group: Group) -> list[Any]:
    owned = {name: sorted(list(queue) for queue in queues) for name, queues in group.owned.items()}
    clients = [_client(client) for client in group.clients]
    return [group.name, group.kind, group.model, group.start, clients, dict(group.subscriptions), owned]


def _client(client: Client) -> list[Any]:
    return [client.client_id, client.address, client.language, client.version]


def state_of(record: Mapping[str, Any]) -> ClusterState:
    """Parse the reading of a record. Raises ``KeyError``, ``TypeError``, ``ValueError`` for a wrong form."""
    ends: dict[str, dict[Queue, QueueEnds]] = {}
    for topic, broker, queue_id, min_offset, max_offset, stored in record["queues"]:
        queue = Queue(str(topic), str(broker), int(queue_id))
        ends.setdefault(queue.broker, {})[queue] = QueueEnds(int(min_offset), int(max_offset), int(stored))
    parts = []
    held_by_broker = record.get("held") or [None] * len(record["brokers"])
    for row, read_ms, waiting in zip(record["brokers"], record["read"], held_by_broker, strict=True):
        name, cluster, broker_id, address, release, words = row
        broker_part = BrokerPart(
            str(name),
            str(cluster),
            int(broker_id),
            str(address),
            int(read_ms),
            str(release),
            str(words),
            held_pulls=_held_pulls(waiting),
        )
        parts.append(
            broker_part if broker_part.broker_id else _master(broker_part, ends.get(broker_part.name, {}), record)
        )
    refusals = tuple(
        Refusal(str(address_), str(request), str(about), int(code), str(fault))
        for address_, request, about, code, fault in record["refusals"]
    )
    return ClusterState(
        int(record["at"]),
        {str(address_): str(fault) for address_, fault in record["names"].items()},
        tuple(parts),
        refusals,
    )


def _master(part: BrokerPart, ends: Mapping[Queue, QueueEnds], record: Mapping[str, Any]) -> BrokerPart:
    offsets = {
        str(name): {
            Queue(str(topic), str(broker), int(queue_id)): int(next_offset)
            for topic, broker, queue_id, next_offset in rows
        }
        for name, rows in record["offsets"].get(part.name, {}).items()
    }
    groups = {}
    for name, kind, model, start, clients, subscriptions, owned in record["groups"].get(part.name, []):
        owned_queues = {
            str(client_id): frozenset(
                Queue(str(topic), str(broker), int(queue_id)) for topic, broker, queue_id in client_queues
            )
            for client_id, client_queues in owned.items()
        }
        groups[str(name)] = Group(
            str(name),
            str(kind),
            str(model),
            str(start),
            _clients(clients),
            {str(topic): str(expression) for topic, expression in subscriptions.items()},
            owned_queues,
        )
    producers = {str(name): _clients(rows) for name, rows in record["producers"].get(part.name, {}).items()}
    return BrokerPart(
        part.name,
        part.cluster,
        part.broker_id,
        part.address,
        part.time_ms,
        part.release,
        part.words,
        ends,
        offsets,
        groups,
        producers,
        part.held_pulls,
    )


def _held_pulls(rows: Iterable[Any] | None) -> dict[Queue, dict[str, int]] | None:
    if rows is None:
        return None
    held_pulls: dict[Queue, dict[str, int]] = {}
    for topic, broker, queue_id, name, count in rows:
        held_pulls.setdefault(Queue(str(topic), str(broker), int(queue_id)), {})[str(name)] = int(count)
    return held_pulls


def _clients(rows: Iterable[Any]) -> tuple[Client, ...]:
    return tuple(
        Client(str(name), str(address), str(language), int(version)) for name, address, language, version in rows
    )


def read_recording(path: Path) -> tuple[str, list[ClusterState]]:
    """Read address and readings of a recording; a last line that was cut off is left out.

    Raises :class:`NoRecording` with the reason, ``OSError`` as it comes.

    Raises :class:`NoRecording` with what was found instead, ``OSError`` as it comes.
    """
    with path.open(encoding="utf-8", errors="replace") as lines:
        head = object_of(lines.readline())
        if head.get("type") != "clusterRecording":
            raise NoRecording(sentence("expected a recording of a cluster, found something else"), file=str(path))
        if head.get("version") != VERSION:
            raise NoRecording(
                sentence(
                    "this recording is of version {found}, known is {known}", found=head.get("version"), known=VERSION
                ),
                file=str(path),
            )
        states = list(_states(lines))
    if not states:
        raise NoRecording(sentence("the recording holds no reading"), file=str(path))
    return str(head.get("address", "")), states


def _states(lines: Iterable[str]) -> Iterator[ClusterState]:
    full_record: dict[str, Any] = {}
    for text in lines:
        record = object_of(text)
        full_record = {**full_record, **record}
        if "at" not in record:
            return  # cut off while it was written
        try:
            yield state_of(full_record)
        except (KeyError, ValueError, TypeError, AttributeError):
            return


class Recorder(RecordedLines):
    """Writes readings to a file as they come; lines are buffered until :meth:`write`."""

    def __init__(self, path: Path, address: str) -> None:
        super().__init__(path)
        self._previous: dict[str, Any] = {}
        self.keep(head_line(address))

    def add(self, state: ClusterState) -> None:
        """Add a reading."""
        record = state_record(state)
        unchanged = [part for part in PARTS if self._previous.get(part) == record[part]]
        self._previous = record
        self.keep(
            json.dumps({key: value for key, value in record.items() if key not in unchanged}, ensure_ascii=False) + "\n"
        )
        self.count += 1
