"""Every golden store, every aspect: our answers are RocketMQ's.

The units and the recovery plan of a crashed or damaged store are those of the store as it is; the other aspects use the
directory that RocketMQ left after recovering it, because the account describes that.
"""

from __future__ import annotations

import agree
import golden_stores
import pytest

pytestmark = pytest.mark.golden

DUMPED = golden_stores.names("expected.jsonl.xz")
CRASHED = golden_stores.names("recovered.tar.xz")
BROKERS = golden_stores.names("truth.jsonl.xz")


@pytest.mark.full_form(keep=14)
@pytest.mark.parametrize("aspect", agree.ASPECTS)
@pytest.mark.parametrize("name", DUMPED)
def test_answers_are_rocketmqs(golden, golden_account, unchanged, name, aspect):
    archive, account = "store", "expected.jsonl.xz"
    if aspect != "units" and name in CRASHED:
        archive, account = "recovered", "recovered.jsonl.xz"
    tally = agree.ASPECTS[aspect](unchanged(golden(name, archive)), golden_account(name, account))
    assert not tally.differences, str(tally)


@pytest.mark.parametrize("name", [*DUMPED, "combine-5.5.1"])
def test_the_recovery_plan_is_what_rocketmq_did(golden, golden_account, unchanged, name):
    release = golden_stores.release_of(name)
    tally = agree.recover(unchanged(golden(name)), golden_account(name, "expected.jsonl.xz"), release)
    assert not tally.differences, str(tally)


@pytest.mark.parametrize("name", CRASHED)
def test_a_recovered_store_reads_as_rocketmq_left_it(golden, golden_account, name):
    tally = agree.units(golden(name, "recovered"), golden_account(name, "recovered.jsonl.xz"))
    assert not tally.differences, str(tally)


@pytest.mark.full_form(keep=4)
@pytest.mark.parametrize(
    "name", [*(name for name in BROKERS if not name.startswith("broker-crash")), "broker-dledger-5.5.1"]
)
def test_clients_were_told_the_same(golden, golden_account, unchanged, name):
    tally = agree.truth(unchanged(golden(name)), golden_account(name, "truth.jsonl.xz"))
    assert tally.compared > 20
    assert not tally.differences, str(tally)


@pytest.mark.parametrize("name", ["broker-crash", "broker-crash-5.5.1"])
def test_clients_of_a_recovered_broker_were_told_the_same(golden, golden_account, name):
    store = golden(name, "store-recovered")
    tally = agree.truth(store, golden_account(name, "recovered.jsonl.xz"))
    assert tally.compared > 20
    assert not tally.differences, str(tally)


@pytest.mark.parametrize("name", ["broker-crash", "broker-crash-5.5.1"])
def test_messages_acknowledged_before_a_broker_died_are_in_the_log(golden, golden_account, name):
    log = {unit["offsetMsgId"] for unit in agree.records_of("units", golden(name)) if unit["type"] == "unit"}
    actual_golden_account = golden_account(name, "truth.jsonl.xz")
    sent = {line["offsetMsgId"] for line in actual_golden_account if line["kind"] == "send"}
    assert len(sent) > 100
    assert sent <= log


def test_every_kind_of_question_was_asked(golden_account):
    """An aspect without questions in any account would agree with everything."""
    kinds = {line["t"] for name in DUMPED for line in golden_account(name, "expected.jsonl.xz")}
    assert {"msg", "cq", "indexFile", "indexEntry", "query", "get", "byTime", "queue", "state"} <= kinds
