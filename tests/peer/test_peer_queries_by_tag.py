"""The real 5.5.1 finds each message by our index entries of tags (queryMsgByKey with type T)."""

from __future__ import annotations

import json
import shutil

import golden_stores
import peer
import pytest

from engine.cli.main import main
from engine.codec.encode import Message
from engine.codec.message import ROLLBACK, TRANSACTION_MASK, Unit
from engine.inspection.derived_config import derived_config
from engine.inspection.snapshot import open_store
from engine.message_store import MessageStore

pytestmark = [pytest.mark.peer, pytest.mark.golden, pytest.mark.timeout(600)]
NAME = "clean-5.5.1"
MAX_ANSWERED = 64
"""maxMsgsNumBatch: the newest that a query answers."""


def copy(store, target, _conf):
    assert main(["copy", str(store), str(target), "--quiet"]) == 0


def dispatch(store, target, conf):
    shutil.copytree(store, target)
    shutil.rmtree(target / "index")
    assert main(["dispatch", str(target), "--config", conf, "--yes", "--quiet"]) == 0


def put(store, target, _conf):
    shutil.copytree(store, target)
    with open_store(target) as opened:
        config = derived_config(opened)
    with MessageStore(target, config) as written:
        for number in range(20):
            assert written.put_message(Message("TopicA", b"%d" % number, 0, {"TAGS": "put by us"})).ok


def tagged(root):
    """Return a dictionary: (topic, tags) → offsets of the units that have an index entry of them."""
    results = {}
    with open_store(root) as store:
        for unit in store.units():
            if isinstance(unit, Unit) and unit.tags and unit.sys_flag & TRANSACTION_MASK != ROLLBACK:
                results.setdefault((unit.topic, unit.tags), set()).add(unit.offset)
    return results


@pytest.mark.parametrize("make", [copy, dispatch, put])
def test_the_real_query_by_tags_finds_what_we_indexed(golden, tmp_path, capsys, make):
    plan = json.loads((golden_stores.GOLDEN / NAME / "plan.json").read_text(encoding="utf-8"))
    conf = tmp_path / "broker.conf"
    conf.write_text("".join(f"{key}={value}\n" for key, value in plan["config"].items()))
    store = tmp_path / "store"
    make(golden(NAME), store, str(conf))
    account = peer.Peer("5.5.1", tmp_path).dump(plan | {"tags": True}, store)
    rows = [row for row in account if row["t"] == "key" and row["key"].startswith("T#")]
    answers = {(row["topic"], row["key"].removeprefix("T#")): set(row["phys"]) for row in rows}
    expected = {key: set(sorted(offsets)[-MAX_ANSWERED:]) for key, offsets in tagged(store).items()}
    assert answers == expected
    assert sum(map(len, expected.values())) > 200
    assert make is not put or len(answers["TopicA", "put by us"]) == 20
    capsys.readouterr()
