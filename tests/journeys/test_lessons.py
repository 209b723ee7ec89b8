"""Lessons about a cluster, started by clicks, with our broker; every figure is counted again from the clients'
events.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtWidgets import QLineEdit, QPushButton, QToolButton
from walker import Run, Walker

from engine.broker.serving import Addresses, serving_beside
from engine.client.events import Delivered, Rebalanced, Sent, Stopped, TransactionEnded
from viewer.cluster.lesson_figures import Record
from viewer.cluster.lessons import LessonRun
from viewer.cluster.pane import ClusterPane
from viewer.shell.windows import open_beside

pytestmark = pytest.mark.journey
Begin = Callable[..., Awaitable[ClusterPane]]
KEYS = ("disagree", "slow", "broadcast", "retry", "transaction")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Addresses]:
    """Start a broker and a name server."""
    with serving_beside(tmp_path / "served") as addresses:
        yield addresses


@pytest.fixture
def begin(walker: Walker, served: Addresses) -> Begin:
    """Return a function that connects and clicks on lessons."""

    async def begun(keys: Sequence[str], walker: Walker = walker) -> ClusterPane:
        await walker.act("view.cluster")
        pane = walker.window.panes["cluster"]
        assert isinstance(pane, ClusterPane)
        field = walker.find(QLineEdit, "cluster.address")
        field.setText(served.namesrv)
        field.returnPressed.emit()
        await walker.until(lambda: pane.model.state is not None, "the cluster was read")
        pane.clients.ask_declaration().agree.click()
        pane.tabs.choose("rebalance")
        for key in keys:
            about = walker.find(QToolButton, f"cluster.lesson.{key}.about")
            await walker.until(about.isVisible, "lessons are offered")
            button = walker.find(QPushButton, f"cluster.lesson.{key}")
            if not button.isVisible():
                about.click()
            button.click()
        return pane

    return begun


@pytest.fixture(autouse=True)
def no_client_is_left(walker: Walker) -> Iterator[None]:
    """Stop the clients and stop watching the cluster after each walk."""
    yield
    watch = walker.window.workspace.cluster
    if watch is not None:
        watch.own.close()
        watch.end()
        watch.model.begin(("nobody",))
        watch.model.show("")
        watch.end()


async def until_figures(walker: Walker, pane: ClusterPane) -> dict[str, dict[str, str]]:
    """Wait until all lessons have ended and no client is left; return their figures."""
    runs = pane.lessons.runs
    await walker.until(lambda: all(run.status != "running" for run in runs.values()), "all end", 100)
    for run in runs.values():
        assert run.status == "done", (run.lesson.key, run.result)
        assert pane.lessons.entries[run.lesson.key].line.text() == run.result
    assert pane.watch is not None
    own_clients = pane.watch.own
    await walker.until(lambda: own_clients.running == 0, "all said goodbye")
    return {key: {figure.name: figure.figure for figure in run.figures} for key, run in runs.items()}


@pytest.mark.clients_full
def test_lessons_about_a_rebalance_in_two_windows_tell_what_they_showed(
    run: Run, walker: Walker, begin: Begin, served: Addresses, orders: Path
) -> None:
    """Both windows use one broker. One lesson adds a consumer; another has five consumers for four queues, so that one
    is idle. In the third a consumer is killed, and uncommitted messages come again.
    """

    async def walk() -> None:
        beside = open_beside(walker.window, orders, f"cluster:{served.namesrv}")
        assert beside is not None
        other_walker = Walker(beside)  # type: ignore[arg-type]
        await other_walker.until(lambda: beside.view == "cluster", "the other window looks at the cluster too")
        second = await begin(("more",), other_walker)
        pane = await begin(("kill", "many"))
        runs = pane.lessons.runs
        reported = await until_figures(walker, pane)
        extra_figures = await until_figures(other_walker, second)
        for key, lesson_run in [*runs.items(), *second.lessons.runs.items()]:
            shown_in = second if key == "more" else pane
            counted = impacts_counted_again(lesson_run, shown_in)
            assert {name: (reported | extra_figures)[key][name] for name in counted} == counted, key
            word = shown_in._markdown().split(f"## {lesson_run.lesson.title}\n")[1].split("\n## ")[0]
            assert [f"- {name}: {figure}, " in word for name, figure in counted.items()] == [True] * 4, key
        assert second.model.moments.keys() == pane.model.moments.keys(), "each sees the other's groups too"
        assert runs["many"].result.endswith("idle 0 → 1")
        assert pane.rebalance.line.group == runs["many"].group, "the last one is looked at"
        record = runs["kill"].record
        position = next(event.time_ms for event in record.of(Stopped))
        keys_before = {event.keys for event in record.of(Delivered) if event.time_ms < position}
        keys_since = Counter(event.keys for event in record.of(Delivered) if event.time_ms >= position)
        repeated = sum(count - (key not in keys_before) for key, count in keys_since.items())
        assert reported["kill"]["Again by key"] == f"{repeated:,}"
        assert len({event.client_id for event in record.of(Delivered)}) == 3
        target = pane._markdown()
        assert "## Async commit and a kill" in target
        assert f"- Again by key: {repeated:,}, " in target
        pane.tabs.choose("lines")

    run(walk())


def test_five_lessons_run_by_clicks_and_their_figures_are_what_clients_told(
    run: Run, walker: Walker, begin: Begin
) -> None:
    """All run at once: each has topics and a group of its own, and a broker of its own if it needs one."""

    async def walk() -> None:
        pane = await begin(KEYS)
        runs = pane.lessons.runs
        reported = await until_figures(walker, pane)
        two_clients(runs["disagree"].record, reported["disagree"])
        slow_queue(runs["slow"].record, reported["slow"])
        every_consumer(runs["broadcast"].record, reported["broadcast"])
        refused(runs["retry"].record, reported["retry"])
        nobody_finishes(runs["transaction"].record, reported["transaction"])
        assert "Dead letters 4" in runs["retry"].result
        assert pane.watch is not None
        assert len(pane.watch.own.ended_brokers) == 4, "their brokers are gone too"

        def alone() -> bool:
            return pane.model.state is not None and [broker.name for broker in pane.model.state.brokers] == ["broker-a"]

        await walker.until(alone, "nobody waits for brokers of lessons")
        await walker.until(lambda: not pane.model.unfiltered.topics, "their topics are gone")
        pane.tabs.choose("lines")

    run(walk())


def impacts_counted_again(lesson_run: LessonRun, pane: ClusterPane) -> dict[str, str]:
    """Return the impacts of a run's last step, counted from the deliveries of its consumers and the readings
    meanwhile.
    """
    moments = [
        moment for moment in pane.model.moments[lesson_run.group] if moment.time_ms <= lesson_run.action_started_ms
    ]
    changed = [
        n
        for n in range(1, len(moments))
        if (moments[n].owners, moments[n].clients) != (moments[n - 1].owners, moments[n - 1].clients)
    ]
    first_change = last_change = changed.pop()
    while changed:  # changes that follow each other closely, or while a queue has no owner, are one step
        waits = moments[changed[-1]].is_complete and not all(moments[changed[-1]].owners)
        if moments[first_change].time_ms - moments[changed[-1]].time_ms > (45_000 if waits else 4_000):
            break
        first_change = changed.pop()
    begin, end, until = moments[first_change - 1].time_ms, moments[last_change].time_ms, moments[-1].time_ms + 1_000
    by_queue: dict[object, list[int]] = defaultdict(list)
    observed, repeated = set(), 0
    for delivered in lesson_run.record.of(Delivered):
        if delivered.group == lesson_run.group:
            by_queue[delivered.queue].append(delivered.time_ms)
            repeated += (delivered.queue, delivered.queue_offset) in observed and begin <= delivered.time_ms < until
            observed.add((delivered.queue, delivered.queue_offset))
    pauses, bursts = [], []
    for times in by_queue.values():
        gaps = [later - position for position, later in pairwise(times) if position <= end and later >= begin]
        pauses += [max(gaps)] if gaps and times[0] <= begin else []
        since = max(begin - 10_000, times[0])
        delivered_before = sum(since <= time < begin for time in times)
        delivered_after = [at for at in times if end <= at <= min(until, end + 60_000)]
        most_in_two_seconds = max(
            (sum(current - 2_000 <= at <= current for at in delivered_after) for current in delivered_after), default=0
        )
        if delivered_before > 1 and begin - since >= 2_000 and most_in_two_seconds:
            bursts.append((most_in_two_seconds / 2_000) / (delivered_before / (begin - since)))
    idle = [
        sum(not any(name in owners for owners in moments[at].owners) for name in moments[at].clients)
        for at in (first_change - 1, last_change)
    ]
    burst = f"× {max(bursts):.1f}" if max(bursts) > 1 else "× 1"
    return {
        "Pause": f"{max(pauses):,} ms",
        "Delivered twice": f"{repeated:,}",
        "Burst": burst,
        "Idle consumers": f"{idle[0]} → {idle[1]}",
    }


def two_clients(record: Record, figures: dict[str, str]) -> None:
    """Four queues, two clients: one queue has two owners and delivers everything twice, one has none."""
    owned_by_client = {
        client.client_id: client.owned for client in record.of(Rebalanced) if client.topic == record.topic
    }
    owners = Counter(queue for owned in owned_by_client.values() for queue in owned)
    assert len(owned_by_client) == 2
    assert figures["With two owners"] == str(sum(count == 2 for count in owners.values())) == "1"
    assert figures["With no owner"] == str(4 - len(owners)) == "1"
    counts = Counter((delivered.queue, delivered.queue_offset) for delivered in record.of(Delivered))
    assert figures["Delivered twice"] == f"{sum(count - 1 for count in counts.values()):,}" != "0"
    assert {q for q, n in owners.items() if n == 2} <= {queue for (queue, _), count in counts.items() if count > 1}
    keys = {event.keys for event in record.of(Delivered)}
    orphans = [event.keys for event in record.of(Sent) if event.queue not in owners and event.keys not in keys]
    assert figures["Read by nobody"] == f"{len(orphans):,}" != "0"
    assert figures["Lists of clients"] == "the same"


def slow_queue(record: Record, figures: dict[str, str]) -> None:
    """Each client sends 16; a client that does not avoid slow brokers sends every second one to the slow broker."""
    sends = record.of(Sent)
    slow = [send for send in sends if send.queue.broker.startswith("slow-")]
    assert min(send.ms for send in slow) >= 600
    by_client = Counter(client.client_id for client in slow)
    avoiding = [client_id for client_id, options in record.clients.items() if options.avoid_slow_brokers]
    plain = {send.client_id for send in sends} - set(avoiding)
    assert [by_client[client_id] for client_id in plain] == [8]
    assert by_client[avoiding[0]] < 8
    assert len(sends) == 32
    for name, figure in figures.items():
        if name.startswith(("slow-", "quick-")):
            broker, queue = name.split(" q")
            present_sends = [send for send in sends if (send.queue.broker, send.queue.queue_id) == (broker, int(queue))]
            avoided = sum(send.client_id in avoiding for send in present_sends)
            assert figure == f"{len(present_sends) - avoided} → {avoided}"


def every_consumer(record: Record, figures: dict[str, str]) -> None:
    """Each of two consumers is handed all hundred once, and the one that was away the forty of that time."""
    by_client: dict[str, list[str]] = {}
    for client in record.of(Delivered):
        by_client.setdefault(client.client_id, []).append(client.keys)
    assert [len(keys) for keys in by_client.values()] == [len(set(keys)) for keys in by_client.values()] == [100, 100]
    assert list(figures.values()).count("100 of 100") == 2
    assert (figures["Sent"], figures["After its return"], figures["Kept by brokers"]) == ("100", "40", "0")


def refused(record: Record, figures: dict[str, str]) -> None:
    """Four of twenty come three times, at reconsumeTimes 0, 1 and 2, and are dead letters."""
    dead = {delivered.keys for delivered in record.of(Delivered) if delivered.queue.topic == f"%DLQ%{record.group}"}
    assert {int(key.split("-")[1]) for key in dead} == {0, 5, 10, 15}
    for key in dead:
        arrived = [
            delivered for delivered in record.of(Delivered) if delivered.keys == key and delivered.group == record.group
        ]
        assert [delivered.reconsume_times for delivered in arrived] == [0, 1, 2]
        assert {delivered.queue.topic for delivered in arrived[1:]} == {f"%RETRY%{record.group}"}
        assert arrived[1].time_ms - arrived[0].time_ms >= 900
        assert arrived[2].time_ms - arrived[1].time_ms >= 1_900
    assert (figures["Taken at once"], figures["Refused"], figures["Dead letters"]) == ("16 of 20", "4", "4")


def nobody_finishes(record: Record, figures: dict[str, str]) -> None:
    """Four of eight are delivered; the others are checked three times each, and end in a topic of their own."""
    checks = Counter(event.msg_id for event in record.of(TransactionEnded) if event.checked)
    assert sorted(checks.values()) == [3, 3, 3, 3]
    handed = {event.keys for event in record.of(Delivered) if event.group == record.group}
    given_up = {event.keys for event in record.of(Delivered) if event.group.endswith("-given-up")}
    assert {int(key.split("-")[1]) for key in handed} == {0, 2, 4, 6}
    assert {int(key.split("-")[1]) for key in given_up} == {1, 3, 5, 7}
    assert figures == {"Half messages": "8", "Delivered": "4", "Checks": "12", "Given up": "4"}
