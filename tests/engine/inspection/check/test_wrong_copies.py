"""A wrong copy is one finding; defects in its files are not reported separately."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from broken_stores import BROKEN
from handmade_stores import HandmadeStore, healthy

from engine.inspection import open_store, recovery
from engine.inspection.findings import check
from engine.inspection.where.evidence import where
from engine.rules.findings import Finding, Summary, at_least


def checked(root: Path) -> tuple[list[Finding], Summary]:
    with open_store(root) as store:
        *results, summary = check(store)
    return results, summary


def grave(root: Path) -> list[str]:
    return [finding.id for finding in checked(root)[0] if at_least(finding.severity, "warn")]


def test_queue_files_without_a_byte_are_one_finding(tmp_path):
    """The check failed with a division by zero: the most common length of the queue files was 0."""
    new_store = healthy()
    root = new_store.write(tmp_path / "store")
    BROKEN["DK04"](root, new_store)
    results, summary = checked(root)
    assert grave(root) == ["DK04"]
    assert summary.incident["lostAlready"] is None
    assert [item.caused_by for item in results if item.id == "CQ01"] == ["DK04"] * 4
    with open_store(root) as store:
        assert not recovery.plan(store, "4.9").will_start


def test_a_single_empty_file_is_no_bad_copy(tmp_path):
    root = healthy().write(tmp_path / "store")
    (root / "consumequeue" / "Orders" / "0" / f"{400:020d}").write_bytes(b"")
    assert grave(root) == ["CQ01"]


@pytest.mark.parametrize(("source", "folder"), [("consumequeue/Orders/0", "consumequeue"), ("index", "index")])
def test_a_file_of_a_queue_or_of_the_index_among_the_logs_files_hides_no_message(tmp_path, source, folder):
    """Messages after its name were "lost already", ``where`` called them damaged, and the steps asked for a replica."""
    handmade = healthy()
    root = handmade.write(tmp_path / "store")
    file = max((root / source).iterdir())
    name = f"{400:020d}" if folder == "consumequeue" else file.name
    shutil.copyfile(file, root / "commitlog" / name)
    results, summary = checked(root)
    (finding,) = [item for item in results if at_least(item.severity, "warn")]
    assert finding.id == "CL07"
    assert f"{name} is no file of the log" in finding.message
    assert f"it has the length of the files in {folder}" in finding.message
    assert "ove this file out of the log folders" in finding.next_step
    assert summary.incident["lostAlready"]["messages"] == 0
    with open_store(root) as store:
        plan = recovery.plan(store, "5.3")
        assert not plan.will_start
        assert plan.end_offset == handmade.units[-1].offset + handmade.units[-1].size
        hidden = next(unit for unit in handmade.units if unit.offset > 400)
        assert next(iter(where(store, hidden.keys[0]))).verdict == "found"


def test_a_log_file_of_another_length_at_another_place_is_read(tmp_path):
    """A file that may contain log messages is not ignored, whatever its name and length are."""
    handmade = healthy()
    root = handmade.write(tmp_path / "store")
    (root / "commitlog" / f"{100_000:020d}").write_bytes((root / "commitlog" / f"{0:020d}").read_bytes()[:500])
    with open_store(root) as store:
        assert [file.start_offset for file in store.log.files][-1] == 100_000


@pytest.mark.parametrize("ending", [b"\r\n", b"\n"])
def test_lines_in_bodies_do_not_make_a_copy_in_text_mode(tmp_path, ending):
    store = HandmadeStore()
    for number in range(80):
        store.put(body=b"line" + ending + b"line %d" % number + ending)
    root = store.write(tmp_path / "store")
    sorted((root / "commitlog").iterdir())[1].unlink()
    assert "DK04" not in grave(root)


@pytest.mark.golden
def test_a_log_of_a_broker_in_text_mode(golden, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(golden("broker-orders"), root)
    for path in (root / "commitlog").iterdir():
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    results, _ = checked(root)
    assert grave(root) == ["DK04"]
    assert {item.caused_by for item in results if item.id in ("CL01", "CL07", "CF12")} == {"DK04"}


pytestmark = pytest.mark.golden
SIZE = 1_048_576


def name(start: int) -> str:
    return f"{start:020d}"


def findings_and_summary(root: Path) -> tuple[list[Finding], Summary]:
    with open_store(root) as store:
        *results, summary = check(store)
    return results, summary


def put_in(golden, target: Path, own_name: str, foreign_name: str, source: int, start: int) -> Path:
    """Copy the store ``own_name``, with the file ``source`` of the store ``foreign_name`` as its file ``start``."""
    shutil.copytree(golden(own_name), target)
    shutil.copyfile(golden(foreign_name) / "commitlog" / name(source), target / "commitlog" / name(start))
    return target


CASES = [
    pytest.param("broker-orders", "broker-transactions", 0, SIZE, 1200, id="of another place, in the middle"),
    pytest.param("broker-orders", "broker-orders-4.9.7", SIZE, 2 * SIZE, 412, id="of another place, at the end"),
    pytest.param("broker-orders-4.9.7", "clean-4.9.8", 0, SIZE, 1148, id="of another place, 4.9"),
    pytest.param("broker-orders", "multi-queue-ext-5.3.3", 0, 0, 1196, id="of the same place, the first"),
    pytest.param("broker-orders", "multi-queue-ext-5.3.3", SIZE, SIZE, 1200, id="of the same place, in the middle"),
    pytest.param("broker-orders", "multi-queue-ext-5.3.3", 2 * SIZE, 2 * SIZE, 412, id="of the same place, at the end"),
    pytest.param("broker-orders-4.9.7", "clean-4.9.8", SIZE, SIZE, 1148, id="of the same place, 4.9"),
    pytest.param("crash-5.3.3", "broker-orders", SIZE, SIZE, 1274, id="of the same place, crashed"),
]


@pytest.mark.full_form(keep=5)
@pytest.mark.parametrize(("own_name", "foreign_name", "source", "start", "lost"), CASES)
def test_it_is_one_finding_that_says_what_is_lost(golden, tmp_path, own_name, foreign_name, source, start, lost):
    """The check gave up to 21 errors, "lost already: nothing", and the advice to rebuild the queues from the wrong
    log.
    """
    findings, summary = findings_and_summary(put_in(golden, tmp_path / "store", own_name, foreign_name, source, start))
    serious = [finding for finding in findings if at_least(finding.severity, "warn") and finding.id != "AB01"]
    assert [(serious_finding.id, serious_finding.offset) for serious_finding in serious] == [("CL05", start)]
    assert f"The file {name(start)} does not belong to this log" in serious[0].message
    assert "Do not rebuild the queues" in serious[0].next_step
    assert serious[0].command is None
    assert all(finding.caused_by == "CL05" for finding in findings if finding.id in ("RP01", "CK02", "CL01"))
    assert summary.incident["lostAlready"]["messages"] == serious[0].evidence["queueEntries"] == lost
    assert f"the file {name(start)} of the commit log is not this log's" in summary.incident["whatHappened"].lower()


def test_a_copy_of_a_file_of_this_log_is_told_as_one(golden, tmp_path):
    results, _ = findings_and_summary(put_in(golden, tmp_path / "store", "broker-orders", "broker-orders", 0, SIZE))
    (finding,) = [item for item in results if at_least(item.severity, "warn")]
    assert finding.message.partition(" · ")[0].endswith(f"the file is a copy of {name(0)}")


def test_a_file_of_another_log_behind_the_end_explains_the_end(golden, tmp_path):
    results, summary = findings_and_summary(
        put_in(golden, tmp_path / "store", "broker-orders", "broker-orders-4.9.7", 0, 3 * SIZE)
    )
    assert [finding.id for finding in results if at_least(finding.severity, "warn")] == ["CL05"]
    assert [item.caused_by for item in results if item.id == "CL01"] == ["CL05"]
    assert summary.incident["lostAlready"]["messages"] == 0


@pytest.mark.parametrize("part", ["consumequeue", "index"])
def test_queues_or_an_index_of_another_store_do_not_accuse_the_log(golden, tmp_path, part):
    root = tmp_path / "store"
    shutil.copytree(golden("broker-orders"), root)
    shutil.rmtree(root / part)
    shutil.copytree(golden("multi-queue-ext-5.3.3") / part, root / part)
    results, _ = findings_and_summary(root)
    assert results
    assert not [finding for finding in results if finding.id == "CL05"]
