"""A cluster as values: joined over brokers, who owns what, what is behind, how fast it comes."""

from __future__ import annotations

from dataclasses import replace

from engine.cluster.state import BrokerPart, Client, ClusterState, Group, Queue, QueueEnds

A0, A1, B0 = Queue("T", "a", 0), Queue("T", "a", 1), Queue("T", "b", 0)
ONE, TWO = Client("c1", "127.0.0.1:1", "JAVA", 479), Client("c2", "127.0.0.1:2", "GO", 317)


def part(name: str, at: int, ends: dict[Queue, int], **options: object) -> BrokerPart:
    queues = {queue: QueueEnds(0, end, 0) for queue, end in ends.items()}
    return replace(BrokerPart(name, "C", 0, f"{name}:1", at=at, queues=queues), **options)


def group(*clients: Client, **owned: frozenset[Queue]) -> Group:
    return Group("g", "CONSUME_PASSIVELY", "CLUSTERING", "", clients, {"T": "*"}, owned)


def cluster_of(*parts: BrokerPart) -> ClusterState:
    return ClusterState(max(item.at for item in parts), {"127.0.0.1:9876": ""}, parts)


def test_brokers_are_joined_and_slaves_count_for_nothing():
    slave = replace(part("a", 5, {Queue("T", "a", 9): 4}), broker_id=1)
    parts = (
        part("a", 5, {A1: 3, A0: 2}, groups={"g": group(ONE, c1=frozenset({A0, A1}))}, producers={"p": (ONE,)}),
        slave,
        part("b", 5, {B0: 7}, groups={"g": group(ONE, TWO, c2=frozenset({B0}))}, producers={"p": (ONE, TWO)}),
    )
    state = cluster_of(*parts)
    assert list(state.queues) == [A0, A1, B0]
    joined = state.groups["g"]
    assert joined.clients == (ONE, TWO)
    assert [joined.owners(queue) for queue in state.queues] == [("c1",), ("c1",), ("c2",)]
    assert joined.asked_all
    assert state.producers == {"p": (ONE, TWO)}


def test_a_client_that_could_not_be_asked_leaves_the_owners_open():
    item = group(ONE, TWO, c1=frozenset({A0}))
    assert not item.asked_all
    assert item.owners(B0) == ()
    both = group(ONE, TWO, c1=frozenset({A0}), c2=frozenset({A0}))
    assert both.owners(A0) == ("c1", "c2")


def test_what_is_behind_is_told_of_queues_whose_end_is_known():
    state = cluster_of(part("a", 5, {A0: 10, A1: 3}, offsets={"g": {A0: 4, A1: 5, Queue("gone", "a", 0): 1}}))
    assert state.behind("g") == {A0: 6, A1: 0}
    assert state.behind("nobody") == {}


def test_rates_are_of_brokers_that_were_read_anew():
    before = cluster_of(part("a", 1_000, {A0: 10}), part("b", 1_000, {B0: 1}))
    after = cluster_of(part("a", 3_000, {A0: 30, A1: 5}), part("b", 1_000, {B0: 1}))
    assert after.rates(before) == {A0: 10.0}
    assert before.rates(before) == {}


def test_what_a_group_consumed_is_told_by_its_offsets_going_on():
    before = cluster_of(part("a", 1_000, {A0: 10, A1: 10}, offsets={"g": {A0: 4, A1: 8}}))
    after = cluster_of(part("a", 3_000, {A0: 30, A1: 10}, offsets={"g": {A0: 24, A1: 2}, "new": {A0: 3}}))
    assert after.consumed(before) == {"g": {A0: 10.0, A1: 0.0}, "new": {}}
    assert before.consumed(before) == {}


def test_held_pulls_are_of_masters_that_tell_them():
    state = cluster_of(part("a", 5, {A0: 3, A1: 3}, held={A0: {"g": 1, "h": 2}}), part("b", 5, {B0: 1}))
    assert [state.held_at(A0), state.held_at(A0, "g"), state.held_at(A1), state.held_at(A0, "x")] == [3, 1, 0, 0]
    assert state.held_at(B0) is None
    assert state.held_at(Queue("T", "nobody", 0)) is None


def test_readings_side_by_side_share_what_stayed_as_it_was():
    """Each reading came over a pipe as a copy of its own: half an hour of them was some tens of MiB."""

    def read(at: int, end: int) -> ClusterState:
        queues = {Queue("T", "a", 0): 5, Queue("T", "a", 1): end}
        held = group(Client("c1", "127.0.0.1:1", "JAVA", 479), c1=frozenset(queues))
        return cluster_of(
            part(
                "a",
                at,
                queues,
                groups={"g": held},
                offsets={"g": {Queue("T", "a", 0): 4}, "h": {Queue("T", "a", 1): end}},
            )
        )

    before, fresh = read(1_000, 7), read(2_000, 9)
    sharing = fresh.sharing(before)
    assert sharing == fresh
    (old,), (new,) = before.brokers, sharing.brokers
    assert new.groups["g"] is old.groups["g"]
    assert new.offsets["g"] is old.offsets["g"]
    assert new.queues[A0] is old.queues[A0]
    keys = {id(queue) for queue in old.queues}
    assert {id(queue) for queue in new.queues} == keys
    assert {id(queue) for queue in new.offsets["h"]} <= keys
    assert sharing.name_servers is before.name_servers
    assert ClusterState(3, {}, ()).sharing(before).brokers == ()
    assert sharing.sharing(ClusterState(1, {}, ())) == sharing


def test_what_was_joined_is_forgotten_and_joined_anew():
    state = cluster_of(part("a", 5, {A0: 2}))
    assert list(state.queues) == [A0]
    state.forget()
    assert not {"queues", "groups"} & set(vars(state))
    assert list(state.queues) == [A0]
