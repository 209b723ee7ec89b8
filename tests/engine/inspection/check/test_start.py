"""What the next start would do, told from what the check has read already."""

from __future__ import annotations

import random
import shutil

import incident_states as states
import pytest

from engine.inspection import findings, left_behind, recovery
from engine.inspection.block_scan import scan_log
from engine.inspection.check import losses
from engine.inspection.check import start as check_start
from engine.inspection.check.start import Starts
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.findings import Finding

pytestmark = pytest.mark.golden


@pytest.fixture
def built(golden, tmp_path):
    """``built(state)``: the broker's store in the state of an incident."""
    return lambda state: states.build(golden("broker-orders"), tmp_path / "store", state)


def of_rule(found, rule):
    return [one for one in found if one.id == rule]


TOLD = [
    pytest.param({("OrderEvents", 0): 226}, ("note", "CQ10"), id="of this queue"),
    pytest.param({("OrderEvents", 0): 225, ("OrderEvents", 1): 500}, ("error", None), id="more of another one"),
]


@pytest.mark.parametrize(("left_out", "expected"), TOLD)
def test_what_was_told_of_another_queue_folds_nothing(built, left_out, expected):
    """The sums of both findings were compared: a queue's loss could hide behind another queue's."""
    with open_store(built(states.hole)) as store:
        starts = Starts(store)
        items = [one for one in check(store) if isinstance(one, Finding)]
        starts.left_out |= left_out
        (found,) = of_rule(losses.findings(store, starts, items), "RP01")
    assert (found.severity, found.caused_by) == expected


def handed_over(root, monkeypatch):
    """(losses of both plans by what the check hands over, the same by the whole log, offsets that were read from)."""
    begun, kept = [], []

    class Seen(check_start.Starts):
        def __init__(self, store):
            super().__init__(store)
            kept.append(self)

    def seen(log, start, *args, **options):
        begun.append(start)
        return scan_log(log, start, *args, **options)

    with monkeypatch.context() as patch, open_store(root) as store:
        patch.setattr(findings, "Starts", Seen)
        list(check(store))
        starts = kept[-1]
        patch.setattr(left_behind, "scan_log", seen)
        starts._losses = None
        mine = [starts.losses(like) for like in starts.releases]
        theirs = [recovery.plan(store, like) for like in starts.releases if starts.plan(like) is not None]
    return [plan for plan in mine if plan is not None], theirs, begun


STATES = [
    states.hole,
    states.tail_not_dispatched,
    states.tail_of_next_to_last_file,
    states.pages_of_queues_lost,
    states.pages_lost_and_closed,
    states.queue_folder_lost,
    states.index_behind_the_checkpoint,
    states.magic_code_lost,
    states.tail_of_log_zero,
    states.middle_file_lost,
]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_what_the_check_has_read_tells_the_plans_the_same_as_the_log(built, monkeypatch, state):
    mine, theirs, _ = handed_over(built(state), monkeypatch)
    assert len(mine) == 2
    assert mine == theirs


@pytest.mark.parametrize("seed", range(40))
def test_what_the_check_has_read_tells_the_same_of_any_damage(golden, tmp_path, monkeypatch, seed):
    """Pages of the queues and of the log zeroed or overwritten, tails cut, folders lost, with and without abort."""
    rng = random.Random(seed)
    root = tmp_path / "store"
    name = rng.choice(("broker-orders", "batchcq-5.3.3", "first-files-deleted-5.3.3", "crash-4.9.8"))
    shutil.copytree(golden(name), root)
    for _ in range(rng.randint(1, 4)):
        kind = rng.choice(("consumequeue", "consumequeue", "commitlog"))
        file = rng.choice(sorted(path for path in (root / kind).rglob("*") if path.is_file()))
        size = file.stat().st_size
        at, span = rng.randrange(max(size, 1)), rng.choice((20, 400, 4096))
        with file.open("r+b") as opened:
            opened.seek(at // 20 * 20)
            opened.write(bytes(min(span, size - at)) if rng.random() < 0.7 else rng.randbytes(min(span, size - at)))
        if kind == "consumequeue" and rng.random() < 0.2:
            shutil.rmtree(file.parent)
    if rng.random() < 0.5:
        (root / "abort").write_text("1")
    mine, theirs, _ = handed_over(root, monkeypatch)
    assert mine == theirs


def test_the_plans_of_a_check_read_the_log_once_and_from_the_first_unit_that_is_missing(built, monkeypatch):
    """Each release's plan read the log again after the check had read it, and the answers to an incident once more."""
    root = built(states.tail_of_next_to_last_file)
    mine, _, begun = handed_over(root, monkeypatch)
    first = mine[0].undispatched.first_unit
    assert len(begun) > 2
    ours = begun[: len(begun) // 3]
    assert ours
    assert min(ours) == first
