"""The lessons of a cluster, begun by clicks, against our broker; each figure is counted again from what was told."""

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
    """A broker and a name server."""
    with serving_beside(tmp_path / "served") as addresses:
        yield addresses


@pytest.fixture
def begin(walker: Walker, served: Addresses) -> Begin:
    """Connects, and clicks on lessons."""

    async def begun(keys: Sequence[str], walker: Walker = walker) -> ClusterPane:
        await walker.act("view.cluster")
        pane = walker.window.panes["cluster"]
        assert isinstance(pane, ClusterPane)
        field = walker.find(QLineEdit, "cluster.address")
        field.setText(served.namesrv)
        field.returnPressed.emit()
        await walker.until(lambda: pane.model.state is not None, "the cluster was read")
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
def ended(walker: Walker) -> Iterator[None]:
    """No cluster is asked, and no client runs, behind a walk."""
    yield
    watch = walker.window.workspace.cluster
    if watch is not None:
        watch.own.close()
        watch.end()
        watch.model.begin(("nobody",))
        watch.model.show("")
        watch.end()


async def until_told(walker: Walker, pane: ClusterPane) -> dict[str, dict[str, str]]:
    """All lessons have ended, and nobody is left behind; their figures."""
    runs = pane.lessons.runs
    await walker.until(lambda: all(one.status != "running" for one in runs.values()), "all end", 100)
    for item in runs.values():
        assert item.status == "done", (item.lesson.key, item.result)
        assert pane.lessons.entries[item.lesson.key].line.text() == item.result
    assert pane.watch is not None
    own = pane.watch.own
    await walker.until(lambda: own.running == 0, "all said goodbye")
    return {key: {figure.name: figure.figure for figure in run.figures} for key, run in runs.items()}


@pytest.mark.clients_full
def test_lessons_about_a_rebalance_in_two_windows_tell_what_they_showed(
    run: Run, walker: Walker, begin: Begin, served: Addresses, orders: Path
) -> None:
    """Beside each other, at one broker. One more consumer, and one too many: five consumers, four queues, one of them
    idle. A kill: what was not committed comes again.
    """

    async def walk() -> None:
        beside = open_beside(walker.window, orders, f"cluster:{served.namesrv}")
        assert beside is not None
        other = Walker(beside)  # type: ignore[arg-type]
        await other.until(lambda: beside.view == "cluster", "the other window looks at the cluster too")
        second = await begin(("more",), other)
        pane = await begin(("kill", "many"))
        runs = pane.lessons.runs
        reported = await until_told(walker, pane)
        extra = await until_told(other, second)
        for key, client in [*runs.items(), *second.lessons.runs.items()]:
            actual_second = second if key == "more" else pane
            counted = impacts_counted_again(client, actual_second)
            assert {name: (reported | extra)[key][name] for name in counted} == counted, key
            word = actual_second._markdown().split(f"## {client.lesson.title}\n")[1].split("\n## ")[0]
            assert [f"- {name}: {figure}, " in word for name, figure in counted.items()] == [True] * 4, key
        assert second.model.moments.keys() == pane.model.moments.keys(), "each sees the other's groups too"
        assert runs["many"].result.endswith("idle 0 → 1")
        assert pane.rebalance.line.group == runs["many"].group, "the last one is looked at"
        record = runs["kill"].record
        position = next(item.time_ms for item in record.of(Stopped))
        before = {one.keys for one in record.of(Delivered) if one.time_ms < position}
        since = Counter(one.keys for one in record.of(Delivered) if one.time_ms >= position)
        second_total = sum(count - (key not in before) for key, count in since.items())
        assert reported["kill"]["Again by key"] == f"{second_total:,}"
        assert len({one.client_id for one in record.of(Delivered)}) == 3
        target = pane._markdown()
        assert "## Async commit and a kill" in target
        assert f"- Again by key: {second_total:,}, " in target
        pane.tabs.choose("lines")

    run(walk())


def test_five_lessons_run_by_clicks_and_their_figures_are_what_clients_told(
    run: Run, walker: Walker, begin: Begin
) -> None:
    """All at once: each has topics, a group and where it needs one a broker of its own."""

    async def walk() -> None:
        pane = await begin(KEYS)
        runs = pane.lessons.runs
        reported = await until_told(walker, pane)
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


def impacts_counted_again(one: LessonRun, pane: ClusterPane) -> dict[str, str]:
    """The impacts of a run's last step, from what its consumers were handed and what readings saw while it ran."""
    moments = [moment for moment in pane.model.moments[one.group] if moment.time_ms <= one.action_started_ms]
    changed = [
        n
        for n in range(1, len(moments))
        if (moments[n].owners, moments[n].clients) != (moments[n - 1].owners, moments[n - 1].clients)
    ]
    first = last = changed.pop()
    while changed:  # changes that follow each other closely, or while a queue has no owner, are one step
        waits = moments[changed[-1]].is_complete and not all(moments[changed[-1]].owners)
        if moments[first].time_ms - moments[changed[-1]].time_ms > (45_000 if waits else 4_000):
            break
        first = changed.pop()
    begin, end, until = moments[first - 1].time_ms, moments[last].time_ms, moments[-1].time_ms + 1_000
    by_queue: dict[object, list[int]] = defaultdict(list)
    observed, repeated = set(), 0
    for got in one.record.of(Delivered):
        if got.group == one.group:
            by_queue[got.queue].append(got.time_ms)
            repeated += (got.queue, got.queue_offset) in observed and begin <= got.time_ms < until
            observed.add((got.queue, got.queue_offset))
    pauses, bursts = [], []
    for times in by_queue.values():
        gaps = [later - position for position, later in pairwise(times) if position <= end and later >= begin]
        pauses += [max(gaps)] if gaps and times[0] <= begin else []
        since = max(begin - 10_000, times[0])
        before = sum(since <= time < begin for time in times)
        after = [at for at in times if end <= at <= min(until, end + 60_000)]
        most = max((sum(current - 2_000 <= item <= current for item in after) for current in after), default=0)
        if before > 1 and begin - since >= 2_000 and most:
            bursts.append((most / 2_000) / (before / (begin - since)))
    idle = [
        sum(not any(name in owners for owners in moments[at].owners) for name in moments[at].clients)
        for at in (first - 1, last)
    ]
    burst = f"× {max(bursts):.1f}" if max(bursts) > 1 else "× 1"
    return {
        "Pause": f"{max(pauses):,} ms",
        "Delivered twice": f"{repeated:,}",
        "Burst": burst,
        "Idle consumers": f"{idle[0]} → {idle[1]}",
    }


def two_clients(record: Record, told: dict[str, str]) -> None:
    """Four queues, two of each client: one of two, one of nobody; who has two owners hands everything out twice."""
    last = {client.client_id: client.owned for client in record.of(Rebalanced) if client.topic == record.topic}
    owners = Counter(queue for owned in last.values() for queue in owned)
    assert len(last) == 2
    assert told["With two owners"] == str(sum(count == 2 for count in owners.values())) == "1"
    assert told["With no owner"] == str(4 - len(owners)) == "1"
    counts = Counter((item.queue, item.queue_offset) for item in record.of(Delivered))
    assert told["Delivered twice"] == f"{sum(count - 1 for count in counts.values()):,}" != "0"
    assert {q for q, n in owners.items() if n == 2} <= {queue for (queue, _), count in counts.items() if count > 1}
    keys = {one.keys for one in record.of(Delivered)}
    orphans = [one.keys for one in record.of(Sent) if one.queue not in owners and one.keys not in keys]
    assert told["Read by nobody"] == f"{len(orphans):,}" != "0"
    assert told["Lists of clients"] == "the same"


def slow_queue(record: Record, told: dict[str, str]) -> None:
    """16 sends each; who does not avoid goes to the slow broker with every second one."""
    sends = record.of(Sent)
    slow = [send for send in sends if send.queue.broker.startswith("slow-")]
    assert min(item.ms for item in slow) >= 600
    by_client = Counter(client.client_id for client in slow)
    avoiding = [who for who, options in record.clients.items() if options.avoids]
    plain = {one.client_id for one in sends} - set(avoiding)
    assert [by_client[who] for who in plain] == [8]
    assert by_client[avoiding[0]] < 8
    assert len(sends) == 32
    for name, figure in told.items():
        if name.startswith(("slow-", "quick-")):
            broker, queue = name.split(" q")
            present_sends = [one for one in sends if (one.queue.broker, one.queue.queue_id) == (broker, int(queue))]
            avoided = sum(one.client_id in avoiding for one in present_sends)
            assert figure == f"{len(present_sends) - avoided} → {avoided}"


def every_consumer(record: Record, told: dict[str, str]) -> None:
    """Each of two is handed all hundred, once; the one that was away the forty of that time."""
    by_client: dict[str, list[str]] = {}
    for client in record.of(Delivered):
        by_client.setdefault(client.client_id, []).append(client.keys)
    assert [len(keys) for keys in by_client.values()] == [len(set(keys)) for keys in by_client.values()] == [100, 100]
    assert list(told.values()).count("100 of 100") == 2
    assert (told["Sent"], told["After its return"], told["Kept by brokers"]) == ("100", "40", "0")


def refused(record: Record, told: dict[str, str]) -> None:
    """Four of twenty come three times, at reconsumeTimes 0, 1 and 2, and are dead letters."""
    dead = {item.keys for item in record.of(Delivered) if item.queue.topic == f"%DLQ%{record.group}"}
    assert {int(key.split("-")[1]) for key in dead} == {0, 5, 10, 15}
    for key in dead:
        arrived = [one for one in record.of(Delivered) if one.keys == key and one.group == record.group]
        assert [one.reconsume_times for one in arrived] == [0, 1, 2]
        assert {one.queue.topic for one in arrived[1:]} == {f"%RETRY%{record.group}"}
        assert arrived[1].time_ms - arrived[0].time_ms >= 900
        assert arrived[2].time_ms - arrived[1].time_ms >= 1_900
    assert (told["Taken at once"], told["Refused"], told["Dead letters"]) == ("16 of 20", "4", "4")


def nobody_finishes(record: Record, told: dict[str, str]) -> None:
    """Four of eight are handed out; the others are asked about three times each, and lie in a topic of their own."""
    checks = Counter(item.msg_id for item in record.of(TransactionEnded) if item.checked)
    assert sorted(checks.values()) == [3, 3, 3, 3]
    handed = {one.keys for one in record.of(Delivered) if one.group == record.group}
    given_up = {one.keys for one in record.of(Delivered) if one.group.endswith("-given-up")}
    assert {int(key.split("-")[1]) for key in handed} == {0, 2, 4, 6}
    assert {int(key.split("-")[1]) for key in given_up} == {1, 3, 5, 7}
    assert told == {"Half messages": "8", "Delivered": "4", "Checks": "12", "Given up": "4"}
