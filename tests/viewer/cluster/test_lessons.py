"""The scripts of the lessons, and the conditions that their steps wait for."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import sample_clusters as made

from engine.client.events import Committed, Delivered, Sent
from engine.client.routes import MessageQueue
from engine.cluster.state import Client, ClusterState, Group, Queue, QueueEnds
from viewer.cluster.clients_process import DEFAULT_OPTIONS, ClientSpec
from viewer.cluster.cluster_model import ClusterModel, Reading
from viewer.cluster.deliveries import Delivery
from viewer.cluster.lessons import ACTION_TIMEOUT_MS, LESSONS, Action, Lesson, LessonRun, _any_received, _each_received
from viewer.cluster.markdown import lessons_markdown
from viewer.cluster.own_clients import OwnClientRow
from viewer.cluster.rebalance import timeline
from viewer.cluster.rebalance_words import end_of_step_ms, impacts


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.key)
def test_only_a_consumer_that_was_started_is_stopped_or_killed(lesson):
    consumers = 0
    for action in lesson.actions:
        if action.verb == "consumer":
            consumers += 1
        if action.verb in {"stop", "kill"}:
            assert action.amount < consumers
    assert lesson.title
    assert lesson.description


def delivered(*client_ids):
    return SimpleNamespace(deliveries=[SimpleNamespace(client_id=client_id) for client_id in client_ids])


def test_each_consumer_must_have_received_its_messages():
    condition = _each_received(2, 2).condition
    assert not condition(delivered("a", "a", "b"))
    assert condition(delivered("a", "a", "b", "b"))


def test_one_consumer_is_enough_if_one_is_required():
    condition = _any_received(2).condition
    assert not condition(delivered("a", "b"))
    assert condition(delivered("a", "b", "b"))


KILL = LESSONS[2]


class FakeOwnClients:
    """The clients that a lesson controls; ``rows`` give their states."""

    def __init__(self) -> None:
        self.done: list[tuple[object, ...]] = []
        self.last = 0
        self.rows: dict[int, OwnClientRow] = {}

    def add(self, kind, addresses, group, topic, amount, options=DEFAULT_OPTIONS):
        self.last += 1
        self.done.append((kind, group, topic, amount))
        spec = ClientSpec(self.last, kind, addresses, group, topic, options=options)
        self.rows[self.last] = OwnClientRow(spec, "starting", f"{kind}@{self.last}")

    def row(self, number):
        return self.rows[number]

    def tell(self, number, status, words=""):
        self.rows[number] = replace(self.rows[number], status=status, error=words)

    def stop(self, number):
        self.done.append(("stop", number))

    def forget(self, addresses, topics, groups):
        self.done.append(("forget", topics, groups))

    def kill(self, number):
        self.done.append(("kill", number))


def state(run: LessonRun, second: int, owners: str) -> ClusterState:
    """Return a state with four queues of the lesson's topic, with owners given by the letters."""
    queues = [Queue(run.topic, "broker-a", n) for n in range(4)]
    position = made.BEGUN + second * 1000
    clients = tuple(Client(owner, f"{owner}:1", "PYTHON", 479) for owner in sorted(set(owners)))
    owned = {
        client.client_id: frozenset(q for q, owner in zip(queues, owners, strict=True) if owner == client.client_id)
        for client in clients
    }
    group = Group(run.group, made.PUSH, "CLUSTERING", "", clients, {run.topic: "*"}, owned)
    part = replace(
        made.small(second).brokers[0],
        time_ms=position,
        queues={queue: QueueEnds(0, 100 * second, position) for queue in queues},
        offsets={run.group: dict.fromkeys(queues, 100 * second)},
        groups={run.group: group},
        producers={},
    )
    return ClusterState(position, {made.NAMES: ""}, (part,))


@pytest.fixture
def model() -> ClusterModel:
    cluster_model = ClusterModel()
    cluster_model.begin((made.NAMES,))
    return cluster_model


def test_the_kill_waits_for_its_time_and_is_reported_in_one_line(model):
    run, own_clients = LessonRun(KILL, 7), FakeOwnClients()
    queue = Queue(run.topic, "broker-a", 1)
    run.go_on(model, own_clients)
    assert [item[0] for item in own_clients.done] == ["producer", "consumer", "consumer", "consumer"]
    assert own_clients.done[1][1:] == ("kill-lesson-7", "kill-Lesson-7", 20)
    for second in range(3):
        model.take(Reading(state(run, second, "aabb")))
        run.go_on(model, own_clients)
    assert run.lesson.actions[run.done] == Action("all queues owned", 3), "two of three share them"
    model.deliveries.add(Delivery(made.BEGUN + n * 10, "b", run.group, queue, n) for n in range(1_000))
    place = MessageQueue(run.topic, "broker-a", 1)
    run.record.take([Delivered(n, "consumer@3", run.group, place, n, f"m{n}", f"1-{n}", 0, 0) for n in range(1_000)])
    run.record.take([Committed(1_000, "consumer@3", run.group, place, 995)])
    for second in range(3, 12):
        model.take(Reading(state(run, second, "abbc")))
        run.go_on(model, own_clients)
    assert ("kill", 3) not in own_clients.done, "all but five are committed: on a busy machine the kill showed nothing"
    extra = [Delivered(n, "consumer@3", run.group, place, n, f"m{n}", f"1-{n}", 0, 0) for n in range(1_000, 1_005)]
    run.record.take(extra)
    run.go_on(model, own_clients)
    assert ("kill", 3) in own_clients.done
    model.deliveries.add(Delivery(made.BEGUN + 13_000 + n * 10, "a", run.group, queue, 990 + n) for n in range(200))
    for second in range(12, 40):
        model.take(Reading(state(run, second, "aacc")))
        run.go_on(model, own_clients)
    assert run.status == "done"
    assert run.result.startswith("pause ")
    assert "twice 10" in run.result
    assert own_clients.done[-4:] == [
        ("stop", 1),
        ("stop", 2),
        ("stop", 4),
        ("forget", ("kill-Lesson-7", "%RETRY%kill-lesson-7"), ("kill-lesson-7",)),
    ]
    # Deliveries while the clients stop do not count for the lesson: its line showed 1, the panel beside it 2.
    model.deliveries.add(Delivery(made.BEGUN + 15_500 + n * 10, "a", run.group, queue, 1_150 + n) for n in range(60))
    line = timeline(run.group, tuple(model.moments[run.group]))
    step = line.steps[-1]
    shown = impacts(step, model.interval_s, model.deliveries, run.group, end_of_step_ms(model, line, step))
    assert shown[1] == run.figures[1]


def test_a_missing_condition_ends_the_run(model):
    run, own_clients = LessonRun(LESSONS[0], 1), FakeOwnClients()
    model.take(Reading(state(run, 0, "aabb")))
    run.go_on(model, own_clients)
    model.take(Reading(state(run, ACTION_TIMEOUT_MS // 1000 + 5, "aabb")))
    run.go_on(model, own_clients)
    assert (run.status, run.result) == ("failed", "timed out")
    assert ("stop", 1) in own_clients.done


def test_a_run_can_be_stopped_and_one_without_steps_reports_it(model):
    run, own_clients = LessonRun(LESSONS[1], 1), FakeOwnClients()
    run.go_on(model, own_clients)
    run.cancel(own_clients)
    run.cancel(own_clients)
    assert (run.status, run.result) == ("failed", "stopped")
    assert len([item for item in own_clients.done if item[0] == "stop"]) == 5
    stepless_run = LessonRun(Lesson("x", "X", "", (Action("producer", 1),)), 1)
    stepless_run.go_on(model, own_clients)
    assert (stepless_run.status, stepless_run.result) == ("done", "no step was seen")


def test_the_clients_events_decide_and_are_kept(model):
    by_key = {lesson.key: lesson for lesson in LESSONS}
    run, own_clients = LessonRun(by_key["retry"], 3), FakeOwnClients()
    run.go_on(model, own_clients)
    assert own_clients.done == [("broker", "retry-3", "retry-Lesson-3", 0)]
    run.go_on(model, own_clients)
    assert len(own_clients.done) == 1, "clients are started when the broker runs"
    own_clients.tell(1, "running")
    run.go_on(model, own_clients)
    assert [call_[:3] for call_ in own_clients.done[1:]] == [
        ("consumer", "retry-lesson-3", "retry-Lesson-3"),
        ("producer", "retry-lesson-3", "retry-Lesson-3"),
        ("consumer", "retry-lesson-3-dead", "%DLQ%retry-lesson-3"),
    ]
    assert own_clients.rows[2].spec.options.reject_every == 5
    assert all(row.spec.options.reports_events for row in own_clients.rows.values())
    position = MessageQueue(run.topic, "retry-3", 0)
    sent = [Sent(n, "p", run.group, position, n, f"m{n}", f"3-{n}", "SEND_OK", 1, 1, 9, 1.0) for n in range(4)]
    strange = replace(sent[0], group="another")
    dead = MessageQueue("%DLQ%retry-lesson-3", "retry-3", 0)
    run.record.take([*sent, strange])
    run.record.take(
        [Delivered(9_000 + n, "d", "retry-lesson-3-dead", dead, n, f"m{n}", f"3-{n}", 3, 8_000) for n in range(4)]
    )
    assert strange not in run.record.events
    run.go_on(model, own_clients)
    assert run.status == "done"
    assert "Dead letters 4" in run.result
    written = lessons_markdown([run])
    assert "## Retry to the dead letters" in written
    assert "- Dead letters: 4, read from %DLQ%retry-lesson-3" in written
    assert lessons_markdown([LessonRun(by_key["slow"], 1)]) == ""
    assert [call for call in own_clients.done if call[0] == "stop"] == [
        ("stop", 3),
        ("stop", 2),
        ("stop", 4),
        ("stop", 1),
    ]
    assert own_clients.done[-1] == ("stop", 1), "everything else is removed with its broker"


def test_a_client_that_fails_to_start_ends_the_run_with_its_message(model):
    by_key = {lesson.key: lesson for lesson in LESSONS}
    run, own_clients = LessonRun(by_key["slow"], 3), FakeOwnClients()
    run.go_on(model, own_clients)
    own_clients.tell(1, "running")
    own_clients.tell(2, "failed", "no space left")
    run.go_on(model, own_clients)
    assert (run.status, run.result) == ("failed", "no space left")


def test_a_broadcast_consumer_restarts_with_its_name_and_mode(model):
    by_key = {lesson.key: lesson for lesson in LESSONS}
    run, own_clients = LessonRun(by_key["broadcast"], 3), FakeOwnClients()
    queue = MessageQueue(run.topic, "broker-a", 0)

    def send_and_deliver(count: int, first_number: int, *clients: str) -> None:
        run.record.take(
            [
                Sent(n, "p", run.group, queue, n, f"m{n}", f"1-{n}", "SEND_OK", 1, 1, 9, 1.0)
                for n in range(first_number, first_number + count)
            ]
        )
        run.record.take(
            [
                Delivered(n, client, run.group, queue, n, f"m{n}", f"1-{n}", 0, 0)
                for client in clients
                for n in range(first_number, first_number + count)
            ]
        )

    model.take(Reading(made.small(0)))
    run.go_on(model, own_clients)
    send_and_deliver(60, 0, "consumer@2", "consumer@3")
    run.go_on(model, own_clients)
    model.take(Reading(made.small(3)))
    run.go_on(model, own_clients)
    assert ("stop", 3) in own_clients.done
    send_and_deliver(40, 60, "consumer@2")
    run.go_on(model, own_clients)
    assert own_clients.rows[5].spec.options == own_clients.rows[3].spec.options
    assert own_clients.rows[5].spec.options.client_id == "broadcast-lesson-3-2"
    send_and_deliver(0, 0)
    run.record.take([Delivered(n, "consumer@3", run.group, queue, n, f"m{n}", f"1-{n}", 0, 0) for n in range(60, 100)])
    run.go_on(model, own_clients)
    assert run.status == "done"
    assert run.result.count("100 of 100") == 2
