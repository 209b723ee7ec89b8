"""A recording of a cluster: JSON lines, a head and then a line a reading, so that a file that was cut off still opens.

``{"type": "clusterRecording", "version": 1, "address": …}`` first; then ``{"at": ms, "names": {address: words},
"brokers": [[name, cluster, id, address, at, release, words]], "queues": [[topic, broker, id, min, max, stored]],
"offsets": {group: [[topic, broker, id, next]]}, "groups": {…}, "producers": {…}, "held": [null or [[topic, broker, id,
group, pulls]]] of each broker, "refusals": […]}``; what stands under brokers, groups, producers, held and refusals only
where it changed (an older recording has no ``held``). Times are ms since 1970. No Qt.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.cluster.state import BrokerPart, Client, ClusterState, Group, Queue, QueueEnds, Refusal
from engine.errors import StoreError
from viewer.runtime.recorded_lines import RecordedLines, object_of

VERSION = 1
PARTS = ("brokers", "groups", "producers", "held", "refusals")
"""What a line has only where it is not as in the line before."""


class NoRecording(StoreError):
    """The file is no recording of a cluster, or one that cannot be read here."""


def head_line(address: str) -> str:
    """The first line."""
    return json.dumps({"type": "clusterRecording", "version": VERSION, "address": address}) + "\n"


def state_record(state: ClusterState) -> dict[str, Any]:
    """A reading as a record, whole. What two brokers tell of one group is kept by broker."""
    masters = list(state.masters)
    return {
        "at": state.at,
        "names": dict(state.name_servers),
        "brokers": [
            [one.name, one.cluster, one.broker_id, one.address, one.release, one.words] for one in state.brokers
        ],
        "read": [one.at for one in state.brokers],
        "queues": [
            [*queue, ends.min_offset, ends.max_offset, ends.last_stored]
            for part in masters
            for queue, ends in part.queues.items()
        ],
        "offsets": {
            part.name: {name: [[*queue, at] for queue, at in offsets.items()] for name, offsets in part.offsets.items()}
            for part in masters
        },
        "groups": {part.name: [_group(one) for one in part.groups.values()] for part in masters},
        "producers": {
            part.name: {name: [_client(one) for one in clients] for name, clients in part.producers.items()}
            for part in masters
        },
        "held": [
            None
            if part.held is None
            else [[*queue, name, n] for queue, groups in part.held.items() for name, n in groups.items()]
            for part in state.brokers
        ],
        "refusals": [[one.address, one.request, one.about, one.code, one.words] for one in state.refusals],
    }


def _group(one: Group) -> list[Any]:
    owned = {name: sorted(list(queue) for queue in queues) for name, queues in one.owned.items()}
    clients = [_client(client) for client in one.clients]
    return [one.name, one.kind, one.model, one.start, clients, dict(one.subscriptions), owned]


def _client(one: Client) -> list[Any]:
    return [one.client_id, one.address, one.language, one.version]


def state_of(record: Mapping[str, Any]) -> ClusterState:
    """The reading of a record. Raises ``KeyError``, ``TypeError``, ``ValueError`` where it has not its form."""
    ends: dict[str, dict[Queue, QueueEnds]] = {}
    for topic, broker, queue_id, low, high, stored in record["queues"]:
        queue = Queue(str(topic), str(broker), int(queue_id))
        ends.setdefault(queue.broker, {})[queue] = QueueEnds(int(low), int(high), int(stored))
    parts = []
    held = record.get("held") or [None] * len(record["brokers"])
    for row, at, waiting in zip(record["brokers"], record["read"], held, strict=True):
        name, cluster, broker_id, address, release, words = row
        made = BrokerPart(
            str(name),
            str(cluster),
            int(broker_id),
            str(address),
            int(at),
            str(release),
            str(words),
            held=_held(waiting),
        )
        parts.append(made if made.broker_id else _master(made, ends.get(made.name, {}), record))
    refusals = tuple(Refusal(str(a), str(r), str(about), int(c), str(w)) for a, r, about, c, w in record["refusals"])
    return ClusterState(int(record["at"]), {str(a): str(w) for a, w in record["names"].items()}, tuple(parts), refusals)


def _master(part: BrokerPart, ends: Mapping[Queue, QueueEnds], record: Mapping[str, Any]) -> BrokerPart:
    offsets = {
        str(name): {Queue(str(t), str(b), int(q)): int(at) for t, b, q, at in rows}
        for name, rows in record["offsets"].get(part.name, {}).items()
    }
    groups = {}
    for name, kind, model, start, clients, subscriptions, owned in record["groups"].get(part.name, []):
        held = {str(who): frozenset(Queue(str(t), str(b), int(q)) for t, b, q in mine) for who, mine in owned.items()}
        groups[str(name)] = Group(
            str(name),
            str(kind),
            str(model),
            str(start),
            _clients(clients),
            {str(t): str(s) for t, s in subscriptions.items()},
            held,
        )
    producers = {str(name): _clients(rows) for name, rows in record["producers"].get(part.name, {}).items()}
    return BrokerPart(
        part.name,
        part.cluster,
        part.broker_id,
        part.address,
        part.at,
        part.release,
        part.words,
        ends,
        offsets,
        groups,
        producers,
        part.held,
    )


def _held(rows: Iterable[Any] | None) -> dict[Queue, dict[str, int]] | None:
    if rows is None:
        return None
    found: dict[Queue, dict[str, int]] = {}
    for topic, broker, queue_id, name, count in rows:
        found.setdefault(Queue(str(topic), str(broker), int(queue_id)), {})[str(name)] = int(count)
    return found


def _clients(rows: Iterable[Any]) -> tuple[Client, ...]:
    return tuple(Client(str(name), str(at), str(language), int(version)) for name, at, language, version in rows)


def read_recording(path: Path) -> tuple[str, list[ClusterState]]:
    """(address, readings) of a recording; a last line that was cut off is left out.

    Raises :class:`NoRecording` with what was found instead, ``OSError`` as it comes.
    """
    with path.open(encoding="utf-8", errors="replace") as lines:
        head = object_of(lines.readline())
        if head.get("type") != "clusterRecording":
            raise NoRecording("expected a recording of a cluster, found something else", file=str(path))
        if head.get("version") != VERSION:
            raise NoRecording(f"this recording is of version {head.get('version')}, known is {VERSION}", file=str(path))
        states = list(_states(lines))
    if not states:
        raise NoRecording("the recording holds no reading", file=str(path))
    return str(head.get("address", "")), states


def _states(lines: Iterable[str]) -> Iterator[ClusterState]:
    held: dict[str, Any] = {}
    for text in lines:
        record = object_of(text)
        held = {**held, **record}
        if "at" not in record:
            return  # cut off while it was written
        try:
            yield state_of(held)
        except (KeyError, ValueError, TypeError, AttributeError):
            return


class Recorder(RecordedLines):
    """Writes readings to a file as they come; lines are kept until :meth:`write`."""

    def __init__(self, path: Path, address: str) -> None:
        super().__init__(path)
        self._before: dict[str, Any] = {}
        self.keep(head_line(address))

    def add(self, state: ClusterState) -> None:
        """One more reading."""
        record = state_record(state)
        same = [part for part in PARTS if self._before.get(part) == record[part]]
        self._before = record
        self.keep(
            json.dumps({key: value for key, value in record.items() if key not in same}, ensure_ascii=False) + "\n"
        )
        self.count += 1
