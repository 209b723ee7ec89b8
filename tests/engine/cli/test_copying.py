"""Units of one store are put into another."""

from __future__ import annotations

import json
import shutil

import handmade_stores
import pytest

from engine.cli import copying
from engine.cli.main import main


def copied(capsys, *arguments):
    assert main(["copy", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_an_empty_store_is_copied(tmp_path, capsys):
    (tmp_path / "source" / "commitlog").mkdir(parents=True)
    assert copied(capsys, tmp_path / "source", tmp_path / "copy")["units"] == 0
    assert copying.Copied(0, 0, 0, 0, 0, ()).units == 0


def test_a_store_whose_messages_are_in_a_dledger_log_is_refused_before_a_folder_is_made(tmp_path, capsys):
    """The command created a store, printed "0 units appended", and then ended with an error."""
    for member in ("dledger-n0", "dledger-n1"):  # it is unknown which of them a broker uses
        data = tmp_path / "source" / member / "data"
        data.mkdir(parents=True)
        (data / f"{0:020d}").write_bytes(bytes(100))
    (tmp_path / "source" / "commitlog").mkdir()
    assert main(["copy", str(tmp_path / "source"), str(tmp_path / "copy")]) == 3
    output = capsys.readouterr()
    assert output.out == ""
    assert "DLedger" in output.err
    assert not (tmp_path / "copy").exists()


@pytest.mark.golden
def test_the_messages_of_a_dledger_log_are_copied_into_a_store_with_a_commit_log(golden, tmp_path, capsys):
    """A store in DLedger mode could not be copied: its messages were not decoded."""
    assert copied(capsys, golden("broker-dledger-5.5.1"), tmp_path / "copy")["units"] == 2813
    assert main(["check", str(tmp_path / "copy")]) == 0


@pytest.mark.golden
def test_a_snapshot_has_the_dledger_log(golden, tmp_path, capsys):
    assert main(["snapshot", str(golden("broker-dledger-5.5.1")), str(tmp_path / "copy"), "--recovery-set"]) == 0
    assert main(["check", str(tmp_path / "copy")]) == 0
    assert (tmp_path / "copy" / "dledger-n0" / "index").exists()


PARTS = ["commitlog", "consumequeue", "index", "config", "checkpoint", "consumequeue/Orders"]


@pytest.mark.parametrize("words", [[], ["--recovery-set"]], ids=["whole", "recovery set"])
@pytest.mark.parametrize("part", PARTS)
def test_a_snapshot_contains_the_targets_of_links(part, words, tmp_path, capsys):
    """A store whose log was behind a link to another disk got a snapshot without the log, and without a warning."""
    store = handmade_stores.healthy().write(tmp_path / "store")
    (store / "config").mkdir()
    (store / "config" / "topics.json").write_text("{}")
    contents_before = contents(store)
    shutil.move(store / part, tmp_path / "elsewhere")
    (store / part).symlink_to(tmp_path / "elsewhere")
    assert main(["snapshot", str(store), str(tmp_path / "copy"), *words]) == 0
    assert contents(tmp_path / "copy") == contents_before
    assert not [path for path in (tmp_path / "copy").rglob("*") if path.is_symlink()]


def test_a_snapshot_reports_skipped_links(tmp_path, capsys):
    store = handmade_stores.healthy().write(tmp_path / "store")
    (store / "consumequeue" / "loop").symlink_to(store)
    assert main(["snapshot", str(store), str(tmp_path / "copy")]) == 0
    assert "consumequeue/loop links to a folder that contains it" in capsys.readouterr().err


def test_a_snapshot_is_refused_where_a_link_leads_to_nothing(tmp_path, capsys):
    """The link's disk may not be mounted. A copy without that part would be incomplete."""
    store = handmade_stores.healthy().write(tmp_path / "store")
    shutil.rmtree(store / "commitlog")
    (store / "commitlog").symlink_to(tmp_path / "not mounted")
    assert main(["snapshot", str(store), str(tmp_path / "copy")]) == 3
    assert not (tmp_path / "copy").exists()


def test_a_copy_has_tables_of_its_own_where_the_source_has_links(tmp_path, capsys):
    """The copy's table was a link to the source's table. A broker on the copy would have written the live table."""
    store = handmade_stores.healthy().write(tmp_path / "store")
    (store / "config").mkdir()
    (tmp_path / "topics.json").write_text("{}")
    (store / "config" / "topics.json").symlink_to(tmp_path / "topics.json")
    copied(capsys, store, tmp_path / "copy")
    assert (tmp_path / "copy" / "config" / "topics.json").is_file()
    assert not (tmp_path / "copy" / "config" / "topics.json").is_symlink()


def contents(root):
    files = (path for path in root.rglob("*") if path.is_file() and path.name != "storescope-manifest.json")
    return {str(path.relative_to(root)): path.read_bytes() for path in files}
