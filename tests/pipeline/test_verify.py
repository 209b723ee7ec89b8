"""Verification by splits has the same findings as the check that walks the whole log, for any fault."""

import contextlib
import json
import os
import random
import re
import shutil

import numpy as np
import planted_in_index
import planted_in_log
import planted_in_queues
import pytest
from broken_stores import BROKEN
from golden_stores import third_of_names
from handmade_stores import healthy
from mutations import Mutations
from planted_faults import NothingToSpoil, SpoiledStore
from rebuilt_stores import InProcessRunner

from engine.cli.pipeline_verify import verify
from engine.codec.columns import UnitColumns
from engine.codec.message import DEFAULT_DELAY_LEVELS
from engine.errors import StoreError
from engine.inspection import findings
from engine.inspection.check import index as check_index
from engine.inspection.check.queues import QueueCheck
from engine.inspection.findings import check
from engine.inspection.snapshot import open_store
from engine.pipeline import verify as proving
from engine.pipeline.files import find_stores
from engine.pipeline.splits import plan
from engine.rules import catalogue, log_rules
from engine.rules.findings import Summary

KINDS = {**planted_in_log.KINDS, **planted_in_queues.KINDS, **planted_in_index.KINDS}
ROUNDS = int(os.environ.get("STORESCOPE_FLIPS", "5"))
HEALTHY = (
    "clean-5.3.3",
    "broker-orders",
    "first-files-deleted-5.3.3",
    "multi-queue-ext-5.3.3",
    "clean-4.9.8",
    "batchcq-5.3.3",
)


def by_engine(store):
    with open_store(str(store)) as opened:
        results = list(check(opened))
    assert isinstance(results[-1], Summary)
    return [json.loads(json.dumps(item.record())) for item in results], results[-1].units


def by_splits(store, split_bytes):
    places = find_stores(str(store))
    return verify(InProcessRunner(), places, plan(places, split_bytes).splits)[0]


def assert_same(store, *sizes):
    try:
        records, units = by_engine(store)
    except StoreError as error:
        for size in sizes:
            with pytest.raises(type(error), match=re.escape(str(error))):
                by_splits(store, size)
        return
    for size in sizes:
        item = by_splits(store, size)
        assert item.records == records, size
        assert item.units == units


@pytest.mark.full_form(keep=6)
@pytest.mark.parametrize("name", third_of_names(2))
def test_every_golden_store_has_the_findings_of_its_check(golden, name):
    assert_same(golden(name), 60_000, 64 << 20)


@pytest.mark.parametrize("name", ["clean-5.3.3", "broker-orders", "clean-4.9.8"])
def test_most_of_an_orderly_log_is_not_walked_again(golden, name, monkeypatch):
    walked = []
    real = findings.scan_log

    def scan(log, *span, **how):
        for block in real(log, *span, **how):
            if isinstance(block, UnitColumns):
                walked.append(block.count)
            yield block

    monkeypatch.setattr(findings, "scan_log", scan)
    item = by_splits(golden(name), 30_000)
    assert item.proven > 0.85 * item.splits
    assert sum(walked) < 0.2 * item.units
    assert item.records == by_engine(golden(name))[0]


@pytest.mark.full_form(keep=5)
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_planted_fault_is_found_as_by_the_check(kind, golden, tmp_path):
    rng = random.Random(f"verify {kind}")
    for name in rng.sample(HEALTHY, len(HEALTHY)):
        copy = tmp_path / name
        shutil.copytree(golden(name), copy, ignore=shutil.ignore_patterns("timerwheel"))
        with contextlib.suppress(NothingToSpoil):
            KINDS[kind](rng, SpoiledStore(copy))
            assert_same(copy, 40_000)
            return
    raise AssertionError(f"no store has room for {kind}")


@pytest.mark.full_form(keep=12)
@pytest.mark.parametrize("rule", sorted(BROKEN))
def test_every_rule_speaks_to_both(rule, tmp_path):
    """The judgements of a proof were once a list of their own, so that a rule of the check could be missing there."""
    new_store = healthy()
    store = new_store.write(tmp_path / "store")
    BROKEN[rule](store, new_store)
    assert_same(store, 700, 4096)


def proofs_of(store, split_bytes):
    places = find_stores(str(store))
    facts = proving.VerifyFacts(places[0].path, DEFAULT_DELAY_LEVELS, index=False)
    return [(split, proving.prove(split, facts)) for split in plan(places, split_bytes).splits[:-1]]


@pytest.mark.parametrize("rule", [unit_rule.rule.id for unit_rule in log_rules.UNIT_RULES])
def test_a_split_with_a_unit_that_breaks_a_rule_is_not_proven(rule, tmp_path):
    new_store = healthy()
    store = new_store.write(tmp_path / "store")
    assert all(proof is not None for _, proof in proofs_of(store, 4096))
    BROKEN[rule](store, new_store)
    offset = new_store.units[20].offset
    for split, proof in proofs_of(store, 4096):
        assert (proof is None) == (split.file_start + split.start <= offset < split.file_start + split.stop)


def test_a_rule_that_is_added_to_the_table_is_told_by_both(tmp_path, monkeypatch):
    """A new line in the table was used by the check, and ignored by the proofs of stretches of the log."""
    new_store = healthy()
    store = new_store.write(tmp_path / "store")
    offset = new_store.units[20].offset
    assert [record["type"] for record in by_engine(store)[0]] == ["summary"]

    def broken(columns, rows, _):
        return np.flatnonzero(columns.offset[:rows] == offset)

    rule = log_rules.UnitRule(catalogue.CL10, broken, lambda *_: ("Not liked", {"found": "it"}))
    monkeypatch.setattr(log_rules, "UNIT_RULES", (*log_rules.UNIT_RULES, rule))
    *reported, _ = by_engine(store)[0]
    assert [(row["id"], row["offset"], row["message"]) for row in reported] == [("CL10", offset, "Not liked")]
    assert_same(store, 700, 4096)


@pytest.mark.full_form(keep=2)
@pytest.mark.parametrize("name", ["clean-5.3.3", "broker-orders", "broker-transactions", "lmq-5.3.3"])
def test_wherever_bytes_flip_nothing_is_hidden(golden, tmp_path, name, monkeypatch):
    monkeypatch.setattr(proving, "BUFFER_ROWS", 8192)
    monkeypatch.setattr(check_index, "CHUNK", 700)
    pick = random.Random(f"flips {name}")
    store = tmp_path / "store"
    shutil.copytree(golden(name), store, ignore=shutil.ignore_patterns("timerwheel"))
    files = [path for part in ("commitlog", "consumequeue", "index") for path in sorted((store / part).rglob("*"))]
    files = [path for path in files if path.is_file()]
    bytes_by_path = {path: path.read_bytes() for path in files}
    used = {path: max(len(data.rstrip(b"\0")), 64) for path, data in bytes_by_path.items()}
    for _ in range(ROUNDS):
        changed = [pick.choice(files) for _ in range(pick.randrange(1, 4))]
        for path in changed:
            data = bytearray(path.read_bytes())
            for _ in range(pick.randrange(1, 4)):
                data[pick.randrange(min(used[path], len(data)))] ^= 1 << pick.randrange(8)
            path.write_bytes(data)
        assert_same(store, pick.choice((20_000, 60_000, 300_000)))
        for path in changed:
            path.write_bytes(bytes_by_path[path])


@pytest.mark.full_form(keep=1)
@pytest.mark.parametrize("name", ["clean-5.3.3", "crash-5.3.3", "broker-retries-4.9.7"])
def test_stores_that_are_spoiled_in_any_way_give_the_same_findings(golden, tmp_path, name):
    pick = random.Random(f"mutations {name}")
    store = tmp_path / "store"
    shutil.copytree(golden(name), store, ignore=shutil.ignore_patterns("timerwheel"))
    spoiled = Mutations(store)
    for _ in range(ROUNDS):
        spoiled.plant(pick)
        assert_same(store, pick.choice((20_000, 100_000)))
        spoiled.undo()


@pytest.mark.parametrize(
    "kind", ["queue_offset_changed", "middle_log_file_deleted", "store_time_set_back", "page_zeroed"]
)
def test_the_check_is_the_same_for_any_size_of_its_buffers(kind, golden, tmp_path, monkeypatch):
    store = tmp_path / "store"
    shutil.copytree(golden("broker-orders"), store, ignore=shutil.ignore_patterns("timerwheel"))
    KINDS[kind](random.Random(kind), SpoiledStore(store))
    seldom = by_engine(store)
    real, scan = QueueCheck.block, findings.scan_log

    def block(self, columns, good):
        real(self, columns, good)
        self.drain()

    monkeypatch.setattr(QueueCheck, "block", block)
    monkeypatch.setattr(findings, "scan_log", lambda log, *span, **how: scan(log, *span, **how, rows=3))
    assert by_engine(store) == seldom


def test_a_proof_travels_as_it_is(golden):
    places = find_stores(str(golden("clean-5.3.3")))
    splits = plan(places, 100_000).splits
    facts = proving.VerifyFacts(places[0].path, DEFAULT_DELAY_LEVELS, index=True)
    proof = proving.prove(splits[1], facts)
    assert proof is not None
    assert proving.PackedProof.of(proof).unpacked() == proof
