"""Readings become a timeline: pauses and double owners are between two bounds, and steps merge until they are
stable.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.cluster.state import Queue
from viewer.cluster.rebalance import Burst, DurationBounds, GroupState, Timeline, moment_of, timeline

Q = tuple(Queue("T", "a", number) for number in range(4))
SECOND = 1_000


def moment(
    second: int, owners: Sequence[str], offsets: Sequence[int] = (), clients: str = "", is_complete: bool = True
):
    """Make a moment. Owners are written "AB" for two, "" for none; clients "ABC"."""
    present = tuple(clients or sorted({item for owner in owners for item in owner}))
    return GroupState(
        second * SECOND,
        present,
        Q[: len(owners)],
        tuple(tuple(our_owner) for our_owner in owners),
        np.array(offsets or [100 * second] * len(owners), np.int64),
        np.full(len(owners), 10**6, np.int64),
        is_complete,
    )


def test_nothing_was_read():
    assert timeline("g", []).steps == ()
    assert Timeline().begin == Timeline().end == 0


def test_an_allocation_that_stays_is_one_step_and_one_piece_a_queue():
    line = timeline("g", [moment(second, ("A", "A", "B", "B")) for second in range(10)])
    assert (line.begin, line.end) == (0, 9_000)
    assert [(piece.begin, piece.end, piece.owners) for piece in line.pieces[Q[0]]] == [(0, 9_000, ("A",))]
    assert [(interval.begin, interval.end, interval.queues) for interval in line.lanes["B"]] == [(0, 9_000, Q[2:])]
    (step,) = line.steps
    assert (step.number, step.moved, step.idle, step.pauses, step.bursts) == (1, 4, 0, {}, {})
    times, rates = line.rates["A"]
    assert times[-1] == 9_000
    assert rates[-1] == 200.0


def test_a_leaving_client_makes_a_step_with_a_pause_between_two_bounds():
    moments = [moment(second, ("A", "A", "B", "B"), clients="AB") for second in range(15)]
    moments += [
        moment(second, ("A", "A", "", ""), [100 * second, 100 * second, 1400, 1400], clients="A")
        for second in (15, 16, 17)
    ]
    moments += [
        moment(second, ("A", "A", "A", "A"), [100 * second] * 2 + [1400 + 300 * (second - 17)] * 2)
        for second in range(18, 40)
    ]
    line = timeline("g", moments)
    assert len(line.steps) == 2
    step = line.steps[1]
    assert (step.begin, step.end) == (14_000, 18_000)
    assert (step.joined, step.departed, step.moved) == ((), ("B",), 2)
    assert step.pauses == {Q[2]: DurationBounds(2_000, 4_000), Q[3]: DurationBounds(2_000, 4_000)}
    assert step.worst_pause == (Q[2], DurationBounds(2_000, 4_000))
    assert step.bursts[Q[2]] == Burst(100.0, 300.0)
    assert step.worst_burst is not None
    assert step.worst_burst[1].factor == 3.0
    assert step.went_back == 0
    assert [(piece.owners, piece.begin, piece.end) for piece in line.pieces[Q[2]]] == [
        (("B",), 0, 15_000),
        ((), 15_000, 18_000),
        (("A",), 18_000, 39_000),
    ]
    assert line.lanes["B"][-1].is_present is False


def test_two_owners_and_idle_consumers_are_counted():
    moments = [moment(second, ("A", "B"), clients="AB") for second in range(5)]
    moments += [moment(second, ("A", "BC"), clients="ABC") for second in (5, 6)]
    moments += [moment(second, ("A", "C"), clients="ABC") for second in range(7, 20)]
    step = timeline("g", moments).steps[1]
    assert step.doubles == {Q[1]: DurationBounds(1_000, 3_000)}
    assert (step.idle_before, step.idle, step.joined) == (0, 1, ("C",))
    assert step.pauses == {}


def test_changes_near_each_other_are_one_step_and_later_ones_another():
    owners = ["A"] * 5 + ["B"] * 2 + ["C"] * 20 + ["A"] * 5
    line = timeline("g", [moment(second, (owner,), clients="ABC") for second, owner in enumerate(owners)])
    assert [(step.begin, step.end) for step in line.steps] == [(0, 0), (4_000, 7_000), (26_000, 27_000)]


def test_a_client_that_joins_and_leaves_at_once_does_so_in_two_steps():
    """In a single step it neither joined nor left: the table of steps did not name a consumer that was killed at
    once.
    """
    moments = [moment(second, "AAAA") for second in range(5)]
    moments += [moment(second, "AABB", clients="AB") for second in (5, 6)]
    moments += [moment(second, "AA", clients="A") for second in (7, 8)]
    moments += [moment(second, "AAAA", clients="A") for second in range(9, 30)]
    _, joins, leaves = timeline("g", moments).steps
    assert (joins.joined, joins.departed, joins.end) == (("B",), (), 5_000)
    assert (leaves.joined, leaves.departed, leaves.begin, leaves.end) == ((), ("B",), 6_000, 9_000)
    assert set(leaves.owners_after.values()) == {("A",)}


def test_a_client_that_leaves_and_comes_back_at_once_does_so_in_two_steps():
    moments = [moment(second, "AABB") for second in range(5)]
    moments += [moment(second, "AAAA", clients="A") for second in (5, 6)]
    moments += [moment(second, "AABB") for second in range(7, 30)]
    _, leaves, joins = timeline("g", moments).steps
    assert (leaves.departed, joins.joined) == (("B",), ("B",))


def test_a_client_without_a_report_causes_no_pause():
    moments = [moment(0, ("A",)), moment(1, ("",), clients="A", is_complete=False), moment(2, ("A",))]
    line = timeline("g", moments)
    assert line.steps[1].pauses == {}
    assert [piece.is_known for piece in line.pieces[Q[0]]] == [True, False, True]
    assert line.lanes["A"][1].queues is None
    assert line.lanes["A"][1].is_present


def test_without_readings_there_are_no_pieces():
    moments = [moment(second, ("A",)) for second in (0, 1, 2, 30, 31)]
    line = timeline("g", moments)
    assert line.breaks == ((2_000, 30_000),)
    assert [(piece.begin, piece.end) for piece in line.pieces[Q[0]]] == [(0, 2_000), (30_000, 31_000)]


def test_offsets_that_fall_are_read_again():
    moments = [moment(0, ("A",), [100]), moment(1, ("A",), [160]), moment(2, ("B",), [120]), moment(3, ("B",), [150])]
    line = timeline("g", moments)
    assert [step.went_back for step in line.steps] == [0, 40]


def test_a_queue_that_stays_without_owner_is_paused_to_the_end():
    moments = [moment(0, ("A",)), moment(1, ("",), clients="B"), moment(9, ("",), clients="B")]
    step = timeline("g", moments).steps[1]
    assert step.pauses == {Q[0]: DurationBounds(8_000, 9_000)}


def test_a_state_gives_a_moment_that_shares_unchanged_parts():
    import sample_clusters as made

    moment = moment_of(made.small(0), "billing", (*made.A, *made.B), None)
    assert moment is not None
    assert moment.owners[0] == (made.C1.client_id,)
    assert moment.offsets[0] == 19_999
    assert moment.ends[0] == 20_000
    assert moment.is_complete
    next_moment = moment_of(made.small(1), "billing", (*made.A, *made.B), moment)
    assert next_moment is not None
    assert next_moment.owners is moment.owners
    assert moment_of(made.small(0), "nobody", (), None) is None
