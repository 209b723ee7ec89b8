"""Clusters as values, for the Cluster view: a small one at several times, and a large one in trouble."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from engine.cluster.state import BrokerPart, Client, ClusterState, Group, Queue, QueueEnds
from viewer.cluster.cluster_model import AdminRequest, ClusterModel, Reading

NAMES = "127.0.0.1:9876"
BEGUN = 1_795_000_000_000
PUSH = "CONSUME_PASSIVELY"
P1, P2 = Client("10.0.0.1@101#1", "10.0.0.1:50101", "JAVA", 479), Client("10.0.0.2@102#2", "10.0.0.2:50102", "GO", 317)
C1, C2, C3 = (Client(f"10.0.1.{n}@{20 + n}#{n}", f"10.0.1.{n}:5020{n}", "JAVA", 479) for n in (1, 2, 3))
C4 = Client("10.0.1.4@24#4", "10.0.1.4:50204", "DOTNET", 317)
A = [Queue("OrderPaid", "broker-a", n) for n in range(4)]
B = [Queue("OrderPaid", "broker-b", n) for n in range(2)]
S = [Queue("StockReserved", "broker-a", n) for n in range(2)]
ASKED = (
    (AdminRequest(NAMES, 106, "GET_BROKER_CLUSTER_INFO", 0), 1, 0.4),
    (AdminRequest("10.0.0.9:10911", 202, "GET_TOPIC_STATS_INFO", 0), 2, 1.2),
)
OWNS = {C1: (A[0], A[1]), C2: (A[2], A[3]), C3: tuple(B)}


def small(seconds: int = 0, owns: dict[Client, Sequence[Queue]] | None = None, **options: object) -> ClusterState:
    """Two brokers (ours, with a slave, and a real one), two topics, three groups: 100 messages a second into each
    queue; C3 stands still, the other members of its group are one behind. ``owns``: the queues of each member of
    "billing"; members that left are not in it.
    """
    owns = OWNS if owns is None else owns
    position = BEGUN + seconds * 1000
    ends = {queue: QueueEnds(0, 20_000 + 100 * seconds, position) for queue in (*A, *B)}
    ends |= {queue: QueueEnds(0, 5_000 + 50 * seconds, position) for queue in S}
    slow = set(owns.get(C3, ()))
    read = {queue: 20_000 - 4_000 if queue in slow else 20_000 + 100 * seconds - 1 for queue in (*A, *B)}
    billing = Group(
        "billing",
        PUSH,
        "CLUSTERING",
        "CONSUME_FROM_LAST_OFFSET",
        tuple(owns),
        {"OrderPaid": "*"},
        {client.client_id: frozenset(queues) for client, queues in owns.items()},
    )
    ledger = Group("ledger", PUSH, "CLUSTERING", "", (C4,), {"StockReserved": "TagA"}, {C4.client_id: frozenset(S)})
    audit = Group("audit", PUSH, "BROADCASTING", "", (C4,), {"OrderPaid": "*"}, {C4.client_id: frozenset((*A, *B))})

    def part(name: str, broker_id: int, port: int) -> BrokerPart:
        ours = {queue: end for queue, end in ends.items() if queue.broker == name}
        offsets = {"billing": {queue: n for queue, n in read.items() if queue.broker == name}}
        if name == "broker-a":
            offsets["ledger"] = dict.fromkeys(S, 5000 + 50 * seconds)
        waits = {queue: {"billing": 1} for queue in A} if not broker_id else {}
        held_pulls = waits if name == "broker-a" else None
        broker_part = BrokerPart(name, "Shop", broker_id, f"10.0.0.9:{port}", position, "V5_3_3", held_pulls=held_pulls)
        if broker_id:
            return broker_part
        return replace(
            broker_part,
            queues=ours,
            offsets=offsets,
            groups={item.name: item for item in (billing, ledger, audit)},
            producers={"order-service": (P1, P2)},
        )

    brokers = (part("broker-a", 0, 10911), part("broker-a", 1, 10921), part("broker-b", 0, 20911))
    return replace(ClusterState(position, {NAMES: ""}, brokers), **options)  # type: ignore[arg-type]


def large(seconds: int = 0, topics: int = 100, queues: int = 16, clients: int = 200) -> ClusterState:
    """Four brokers, a group for two topics each; topic 3 has queues without owners, topic 0 is behind."""
    position = BEGUN + seconds * 1000
    names = [f"broker-{letter}" for letter in "abcd"]
    queues_by_topic = {
        topic: [Queue(f"Topic{topic:03d}", names[n % 4], n // 4) for n in range(queues)] for topic in range(topics)
    }
    groups = max(topics // 2, 1)
    groups_by_name: dict[str, Group] = {}
    for number in range(groups):
        members = tuple(
            Client(f"10.1.{number}.{n}@{n}#1", f"10.1.{number}.{n}:40000", "JAVA", 479)
            for n in range(clients // groups + (number < clients % groups))
        )
        our_queues = [
            queue for topic in range(number * 2, min(number * 2 + 2, topics)) for queue in queues_by_topic[topic]
        ]
        owned_queues = [queue for n, queue in enumerate(our_queues) if not (number == 1 and 16 < n < 19)]
        owned = {
            client.client_id: frozenset(owned_queues[index :: len(members)]) for index, client in enumerate(members)
        }
        groups_by_name[f"group-{number:02d}"] = Group(
            f"group-{number:02d}",
            PUSH,
            "CLUSTERING",
            "",
            members,
            {f"Topic{topic:03d}": "*" for topic in range(number * 2, min(number * 2 + 2, topics))},
            owned,
        )
    parts = []
    for name in names:
        ends: dict[Queue, QueueEnds] = {}
        offsets: dict[str, dict[Queue, int]] = {}
        for topic, some in queues_by_topic.items():
            for queue in some:
                if queue.broker == name:
                    end = 100_000 + (1000 - 9 * topic) * seconds // 10
                    ends[queue] = QueueEnds(0, end, position)
                    late = 18_000 if topic == 0 and queue.queue_id == 1 else topic % 9
                    offsets.setdefault(f"group-{topic // 2:02d}", {})[queue] = end - late
        senders = {
            f"service-{n:02d}": (Client(f"10.2.0.{n}@{n}#1", f"10.2.0.{n}:4000", "JAVA", 479),) for n in range(20)
        }
        parts.append(
            BrokerPart(
                name,
                "Prod",
                0,
                f"10.3.0.1:{10911 + 10 * len(parts)}",
                position,
                "V5_3_3",
                "",
                ends,
                offsets,
                groups_by_name,
                senders,
            )
        )
    return ClusterState(position, {NAMES: ""}, tuple(parts))


def looked_at(*states: ClusterState) -> ClusterModel:
    """Return a model that has taken these readings of a cluster that the user declared to be theirs."""
    model = ClusterModel()
    model.begin((NAMES,))
    for state in states:
        model.take(Reading(state, ASKED, 12.0))
    model.declare()
    return model


class FakeReaderProcess:
    """A fake reader that hands over the test's values."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, tuple[object, ...]]] = []
        self.cancelled: list[int] = []
        self.items: Callable[[Reading], None] = lambda _look: None
        self.finished: Callable[[object, Exception | None], None] = lambda _value, _error: None

    def request(self, target: str, args: tuple[object, ...], items, report, finished) -> int:  # type: ignore[no-untyped-def]
        self.requests.append((target, args))
        self.items, self.finished = items, finished
        report(0.0, None, "")
        return len(self.requests)

    def cancel(self, number: int) -> None:
        self.cancelled.append(number)


def rebalanced() -> list[ClusterState]:
    """Half a minute in which C2 leaves, its queues have no owner for three readings, and then C1 has them; at last an
    idle member joins.
    """
    smalls = [small(second) for second in range(16)]
    smalls += [small(second, owns={C1: A[:2], C3: B}) for second in (16, 17, 18)]
    smalls += [small(second, owns={C1: A, C3: B}) for second in range(19, 40)]
    return [*smalls, *(small(second, owns={C1: A, C3: B, C2: ()}) for second in range(40, 60))]
