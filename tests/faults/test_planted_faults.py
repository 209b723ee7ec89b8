"""One planted fault, one root finding: the check names it at its place, with at most three others beside it.

A run takes each kind once; ``STORESCOPE_FAULTS=200`` in the environment plants that many at other places.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil

import planted_in_index
import planted_in_log
import planted_in_queues
import pytest
from planted_faults import NothingToSpoil, SpoiledStore

from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.rules.findings import Summary, at_least

KINDS = {**planted_in_log.KINDS, **planted_in_queues.KINDS, **planted_in_index.KINDS}
HEALTHY = [
    "clean-5.3.3",
    "broker-orders",
    "first-files-deleted-5.3.3",
    "clean-4.9.8",
    "ipv6-and-unicode-5.3.3",
    "multi-queue-ext-5.3.3",
    "broker-orders-4.9.7",
    "broker-sqlfilter",
    "broker-lmq",
    "broker-transactions",
    "propcrc-5.3.3",
    "batchcq-5.3.3",
    "broker-pop",
]
MAX_FURTHER_FINDINGS = 3


def planned():
    names = sorted(KINDS)
    count = int(os.environ.get("STORESCOPE_FAULTS", len(names)))
    return [(names[number % len(names)], number) for number in range(count)]


def grave(path):
    with open_store(path) as store:
        results = list(check(store))
    assert isinstance(results[-1], Summary)
    return [f for f in results[:-1] if at_least(f.severity, "warn")]


def plant(kind, rng, golden, folder):
    """Plant the fault in a copy of the first healthy store that has room for it."""
    for name in rng.sample(HEALTHY, len(HEALTHY)):
        copy = folder / name
        shutil.copytree(golden(name), copy, ignore=shutil.ignore_patterns("timerwheel"))
        with contextlib.suppress(NothingToSpoil):
            return name, copy, KINDS[kind](rng, SpoiledStore(copy))
    raise AssertionError(f"no store has room for {kind}")


def is_root(finding, expected):
    return (
        finding.id in expected.ids
        and (expected.offset is None or finding.offset == expected.offset)
        and (expected.file is None or (finding.file or "").endswith(expected.file))
    )


@pytest.mark.full_form(keep=12)
@pytest.mark.golden
@pytest.mark.parametrize(("kind", "seed"), planned())
def test_one_fault_gives_one_root_finding(kind, seed, golden, tmp_path):
    rng = random.Random(f"{kind} {seed}")
    healthy, copy, expected = plant(kind, rng, golden, tmp_path)
    results = grave(copy)
    text = "\n".join(f"{f.severity} {f.id} {f.file} {f.offset} {f.message}" for f in results)
    assert any(is_root(f, expected) for f in results), f"{healthy} {expected}\n{text}"
    assert len(results) <= 1 + MAX_FURTHER_FINDINGS, text
    assert all(f.next_step.startswith("Take a snapshot first") for f in results)


def test_there_are_at_least_twenty_kinds():
    assert len(KINDS) >= 20
