"""The headers of a DLedger log are mended from its index and its messages, then the messages as in any log. What a
start keeps afterwards is what a real broker of 5.5.1 kept of these very stores.
"""

from __future__ import annotations

import dledger_damage
import pytest

from engine.cli.main import main
from engine.codec import dledger
from engine.config import MessageStoreConfig
from engine.inspection.recovery import plan
from engine.inspection.snapshot import open_store
from engine.repair.repair_plan import lost_by, plan_repairs

pytestmark = pytest.mark.golden
END = 2_600_441
LOST_BY_ABORT = 55
"""Messages that a start of 5.5 after a crash cuts from the queues of the undamaged store as well."""


@pytest.fixture
def root(golden, tmp_path):
    return dledger_damage.copy_store(golden("dledger-crash-5.5.1"), tmp_path / "store")


def data_files(root):
    return {path.name: path.read_bytes() for path in (root / "dledger-n0" / "data").iterdir()}


@pytest.mark.parametrize("kind", ["gap", "term", "torn-header", "blank-lost"])
def test_headers_become_what_they_were(root, kind):
    before = data_files(root)
    dledger_damage.DAMAGE[kind](root)
    assert main(["repair", str(root), "--apply", "--yes", "--quiet"]) == 0
    assert data_files(root) == before


def test_a_header_without_its_index_row_follows_from_its_message(root):
    before = data_files(root)
    (entry,) = [entry for entry in dledger_damage.entries(root) if entry.index == 2700]
    dledger_damage.write(root, entry.position, bytes(48))
    with (root / "dledger-n0" / "index" / f"{0:020}").open("r+b") as file:
        file.seek(entry.index * dledger.INDEX_UNIT_SIZE)
        file.write(bytes(dledger.INDEX_UNIT_SIZE))
    assert main(["repair", str(root), "--apply", "--yes", "--quiet"]) == 0
    assert data_files(root) == before


@pytest.mark.parametrize("kind", ["midbody", "torn-body"])
def test_a_damaged_message_gets_a_placeholder_in_its_entry(root, kind):
    with open_store(root) as store:
        untouched = {(queue.topic, queue.queue_id): queue.max_offset for queue in plan(store, "5.5").queues}
    dledger_damage.DAMAGE[kind](root)
    repairs = plan_repairs(root, None, "5.5")
    start = repairs.mended.start
    assert (start.end_offset, lost_by(start)) == (END, LOST_BY_ABORT)
    assert {(queue.topic, queue.queue_id): queue.max_offset for queue in start.queues} == untouched
    assert "in a DLedger group of several members" in repairs.repairs[0].costs


def test_several_damages_at_once_are_undone_byte_by_byte(root, tmp_path):
    for kind in ("gap", "blank-lost", "torn-body"):
        dledger_damage.DAMAGE[kind](root)
    damaged = data_files(root)
    assert main(["repair", str(root), "--apply", "--yes", "--quiet"]) == 0
    with open_store(root) as store:
        assert plan(store, "5.5").end_offset == END
    (backup,) = tmp_path.glob("store.kept-*")
    assert main(["repair", str(root), "--undo", str(backup), "--yes", "--quiet"]) == 0
    assert data_files(root) == damaged


def test_a_member_of_a_group_is_left_to_the_others(root, capsys):
    dledger_damage.DAMAGE["midbody"](root)
    config = root.parent / "broker.conf"
    config.write_text("enableDLegerCommitLog=true\ndLegerSelfId=n0\ndLegerPeers=n0-a:1;n1-b:1;n2-c:1\n")
    assert main(["repair", str(root), "--config", str(config), "--quiet"]) == 0
    assert "CL01: the other members of the DLedger group have the right entries" in capsys.readouterr().out
    assert main(["repair", str(root), "--config", str(config), "--apply", "--yes", "--quiet"]) == 3
    assert "start it empty while another one leads" in capsys.readouterr().err


def test_a_valid_store_gets_no_offer(root):
    (root / "abort").unlink()
    assert plan_repairs(root, MessageStoreConfig(), "5.5").repairs == ()
