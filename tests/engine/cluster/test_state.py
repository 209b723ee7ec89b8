"""The state of a cluster: brokers joined, owners of queues, lag and rates."""

from __future__ import annotations

from dataclasses import replace

from engine.cluster.state import BrokerPart, Client, ClusterState, Group, Queue, QueueEnds

A0, A1, B0 = Queue("T", "a", 0), Queue("T", "a", 1), Queue("T", "b", 0)
CLIENT_1, CLIENT_2 = Client("c1", "127.0.0.1:1", "JAVA", 479), Client("c2", "127.0.0.1:2", "GO", 317)


def part(name: str, read_at_ms: int, ends: dict[Queue, int], **options: object) -> BrokerPart:
    queues = {queue: QueueEnds(0, end, 0) for queue, end in ends.items()}
    return replace(BrokerPart(name, "C", 0, f"{name}:1", time_ms=read_at_ms, queues=queues), **options)


def group(*clients: Client, **owned: frozenset[Queue]) -> Group:
    return Group("g", "CONSUME_PASSIVELY", "CLUSTERING", "", clients, {"T": "*"}, owned)


def cluster_of(*parts: BrokerPart) -> ClusterState:
    return ClusterState(max(item.time_ms for item in parts), {"127.0.0.1:9876": ""}, parts)


def test_brokers_are_joined_and_slaves_are_ignored():
    slave = replace(part("a", 5, {Queue("T", "a", 9): 4}), broker_id=1)
    parts = (
        part(
            "a", 5, {A1: 3, A0: 2}, groups={"g": group(CLIENT_1, c1=frozenset({A0, A1}))}, producers={"p": (CLIENT_1,)}
        ),
        slave,
        part(
            "b",
            5,
            {B0: 7},
            groups={"g": group(CLIENT_1, CLIENT_2, c2=frozenset({B0}))},
            producers={"p": (CLIENT_1, CLIENT_2)},
        ),
    )
    state = cluster_of(*parts)
    assert list(state.queues) == [A0, A1, B0]
    joined = state.groups["g"]
    assert joined.clients == (CLIENT_1, CLIENT_2)
    assert [joined.owners(queue) for queue in state.queues] == [("c1",), ("c1",), ("c2",)]
    assert joined.has_all_answers
    assert state.producers == {"p": (CLIENT_1, CLIENT_2)}


def test_a_client_without_an_answer_leaves_the_owners_unknown():
    incomplete_group = group(CLIENT_1, CLIENT_2, c1=frozenset({A0}))
    assert not incomplete_group.has_all_answers
    assert incomplete_group.owners(B0) == ()
    complete_group = group(CLIENT_1, CLIENT_2, c1=frozenset({A0}), c2=frozenset({A0}))
    assert complete_group.owners(A0) == ("c1", "c2")


def test_lag_is_reported_for_queues_with_a_known_end():
    state = cluster_of(part("a", 5, {A0: 10, A1: 3}, offsets={"g": {A0: 4, A1: 5, Queue("gone", "a", 0): 1}}))
    assert state.behind("g") == {A0: 6, A1: 0}
    assert state.behind("nobody") == {}


def test_rates_cover_only_brokers_that_were_read_again():
    first_state = cluster_of(part("a", 1_000, {A0: 10}), part("b", 1_000, {B0: 1}))
    second_state = cluster_of(part("a", 3_000, {A0: 30, A1: 5}), part("b", 1_000, {B0: 1}))
    assert second_state.rates(first_state) == {A0: 10.0}
    assert first_state.rates(first_state) == {}


def test_consumption_is_the_growth_of_a_groups_offsets():
    first_state = cluster_of(part("a", 1_000, {A0: 10, A1: 10}, offsets={"g": {A0: 4, A1: 8}}))
    second_state = cluster_of(part("a", 3_000, {A0: 30, A1: 10}, offsets={"g": {A0: 24, A1: 2}, "new": {A0: 3}}))
    assert second_state.consumed(first_state) == {"g": {A0: 10.0, A1: 0.0}, "new": {}}
    assert first_state.consumed(first_state) == {}


def test_held_pulls_are_those_that_masters_report():
    state = cluster_of(part("a", 5, {A0: 3, A1: 3}, held_pulls={A0: {"g": 1, "h": 2}}), part("b", 5, {B0: 1}))
    assert [state.held_at(A0), state.held_at(A0, "g"), state.held_at(A1), state.held_at(A0, "x")] == [3, 1, 0, 0]
    assert state.held_at(B0) is None
    assert state.held_at(Queue("T", "nobody", 0)) is None


def test_successive_readings_share_unchanged_parts():
    """Each reading arrived over a pipe as a separate copy. Half an hour of readings took some tens of MiB."""

    def read(read_at_ms: int, end: int) -> ClusterState:
        queues = {Queue("T", "a", 0): 5, Queue("T", "a", 1): end}
        group_state = group(Client("c1", "127.0.0.1:1", "JAVA", 479), c1=frozenset(queues))
        return cluster_of(
            part(
                "a",
                read_at_ms,
                queues,
                groups={"g": group_state},
                offsets={"g": {Queue("T", "a", 0): 4}, "h": {Queue("T", "a", 1): end}},
            )
        )

    first_state, second_state = read(1_000, 7), read(2_000, 9)
    sharing = second_state.sharing(first_state)
    assert sharing == second_state
    (old,), (new,) = first_state.brokers, sharing.brokers
    assert new.groups["g"] is old.groups["g"]
    assert new.offsets["g"] is old.offsets["g"]
    assert new.queues[A0] is old.queues[A0]
    keys = {id(queue) for queue in old.queues}
    assert {id(queue) for queue in new.queues} == keys
    assert {id(queue) for queue in new.offsets["h"]} <= keys
    assert sharing.name_servers is first_state.name_servers
    assert ClusterState(3, {}, ()).sharing(first_state).brokers == ()
    assert sharing.sharing(ClusterState(1, {}, ())) == sharing


def test_joined_values_are_dropped_and_computed_again():
    state = cluster_of(part("a", 5, {A0: 2}))
    assert list(state.queues) == [A0]
    state.forget()
    assert not {"queues", "groups"} & set(vars(state))
    assert list(state.queues) == [A0]
