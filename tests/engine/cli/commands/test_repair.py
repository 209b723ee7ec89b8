"""repair: the offer in numbers, every patch, a mended copy, the mended store, and its undo."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import golden_stores
import pytest
from broken_stores import BROKEN
from handmade_stores import healthy
from undo_cases import kept_in, same

from engine.cli.main import COMMANDS, build_parser, main
from engine.inspection.snapshot import open_store
from engine.mapped.backup import begin_unsaved_change
from engine.mapped.store_lock import StoreLock


@pytest.fixture
def broken(tmp_path):
    """A store in whose log 36 bytes of a message are zero, and a queue of which points elsewhere."""
    store = healthy()
    root = store.write(tmp_path / "store of mine")
    BROKEN["CL01"](root, store)
    BROKEN["CQ09"](root, store)
    return root


def test_the_offer_says_what_is_gained(broken, capsys):
    before = golden_stores.fingerprint(broken)
    assert main(["repair", str(broken)]) == 0
    text = capsys.readouterr().out
    assert "1. Mend the damaged bytes of the commit log (log)" in text
    assert "Costs: nothing" in text
    assert "Findings of check: CL01, CQ09 → none" in text
    assert "lost: 39 messages → no message" in text
    assert golden_stores.changes(before, golden_stores.fingerprint(broken)) == []


def test_every_patch_is_shown(broken, capsys):
    assert main(["repair", str(broken), "--plan"]) == 0
    assert "consumequeue/Orders/0/" in capsys.readouterr().out
    assert main(["repair", str(broken), "--plan", "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["type"] for record in records] == ["repair", "repair", "patch", "patch", "repairPlan"]
    patches = [record for record in records if record["type"] == "patch"]
    assert [(patch["n"], patch["name"], patch["action"]) for patch in patches] == [
        (1, "log", "writeBytes"),
        (2, "queues", "writeBytes"),
    ]
    plan = records[-1]
    assert plan["before"]["findings"] == ["CL01", "CQ09"]
    assert plan["after"]["findings"] == []
    assert plan["after"]["starts"][0]["lostByNextStart"] == 0


def test_a_copy_is_mended_and_the_store_stays(broken, tmp_path, capsys):
    before = golden_stores.fingerprint(broken)
    assert main(["repair", str(broken), "--to", str(tmp_path / "new")]) == 0
    assert golden_stores.changes(before, golden_stores.fingerprint(broken)) == []
    assert main(["check", str(tmp_path / "new")]) == 0
    assert not list((tmp_path / "new").glob("*.json"))
    assert "the store stays as it is" in capsys.readouterr().out


def test_a_store_is_mended_and_undone(broken, tmp_path, capsys):
    before = golden_stores.fingerprint(broken)
    assert main(["repair", str(broken), "--apply", "--yes"]) == 0
    assert main(["check", str(broken)]) == 0
    (folder,) = kept_in(tmp_path)
    assert main(["repair", str(broken), "--undo", str(folder), "--yes"]) == 0
    assert same(broken, before) == []


KILLED_IN_THE_MIDDLE = """
import os, signal, sys
from engine.cli.main import main
from engine.patching import apply
make_change, count = apply._apply, 0

def kill_at_the_second(*arguments):
    global count
    count += 1
    if count == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    make_change(*arguments)

apply._apply = kill_at_the_second
main(sys.argv[1:])
"""


def test_a_kill_without_a_backup_is_named_until_the_store_is_mended(broken, tmp_path, capsys):
    """``repair --apply --no-backup`` was killed between two changes. Nothing said that the store was half mended."""
    command = ["repair", str(broken), "--apply", "--yes", "--no-backup"]
    assert subprocess.run([sys.executable, "-c", KILLED_IN_THE_MIDDLE, *command]).returncode == -signal.SIGKILL
    assert main(["check", str(broken), "--only", "AB02", "--json", "--quiet"]) == 1
    finding = json.loads(capsys.readouterr().out.splitlines()[0])
    assert finding["message"].startswith("The command repair --no-backup was interrupted")
    assert finding["command"] == f"storescope repair {shlex.quote(str(broken))} --apply"
    assert main(["set-checkpoint", str(broken), "physicMsgTimestamp", "5", "--yes"]) == 3
    assert "repair --no-backup was interrupted" in capsys.readouterr().err
    assert main(["capsule", str(broken), "-o", str(tmp_path / "broken.capsule"), "--quiet"]) == 0
    assert main(["check", str(tmp_path / "broken.capsule"), "--only", "AB02", "--quiet"]) == 1
    assert main(command) == 0
    assert main(["check", str(broken)]) == 0
    assert kept_in(tmp_path) == []


def test_a_kill_behind_the_last_change_is_named_until_nothing_is_left_to_mend(tmp_path, capsys):
    root = healthy().write(tmp_path / "store")
    begin_unsaved_change(root, "set-checkpoint")
    assert main(["check", str(root), "--quiet"]) == 1
    assert "AB02" in capsys.readouterr().out
    assert main(["put", str(root), "--topic", "Orders", "--queue", "0", "--body", "x", "--yes"]) == 3
    assert main(["repair", str(root), "--apply", "--yes"]) == 0
    assert main(["check", str(root), "--quiet"]) == 0


def test_a_backup_of_another_store_is_refused_also_if_it_was_restored_before(broken, tmp_path, capsys):
    """It said that this store was restored before, and exited with 0."""
    other = healthy().write(tmp_path / "other")
    assert main(["repair", str(broken), "--apply", "--yes"]) == 0
    (folder,) = kept_in(tmp_path)
    for _ in range(2):
        assert main(["repair", str(other), "--undo", str(folder), "--yes"]) == 3
        assert "belongs to" in capsys.readouterr().err
        assert main(["repair", str(broken), "--undo", str(folder), "--yes"]) == 0


def test_patches_are_saved_and_used_again(broken, tmp_path, capsys):
    patches = tmp_path / "patches.json"
    assert main(["repair", str(broken), "--save", str(patches), "--finding", "CQ09"]) == 0
    assert main(["repair", str(broken), "--patches", str(patches), "--to", str(tmp_path / "new")]) == 0
    assert "1 patch fits this store." in capsys.readouterr().out
    assert main(["repair", str(broken), "--patches", str(patches), "--apply", "--yes"]) == 0
    assert main(["repair", str(broken), "--patches", str(patches), "--apply", "--yes"]) == 3  # the old bytes are gone
    assert "the patch does not fit" in capsys.readouterr().err


def test_a_folder_that_is_not_empty_is_refused_before_the_store_is_read(broken, tmp_path, capsys):
    """The whole plan was made and printed first."""
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine").touch()
    for target in (tmp_path / "new", broken / "new"):
        assert main(["repair", str(broken), "--to", str(target)]) == 2
        output, error = capsys.readouterr()
        assert output == ""
        assert len(error.splitlines()) == 1


def test_a_held_store_is_refused(broken, capsys):
    before = golden_stores.fingerprint(broken)
    with StoreLock(broken / "lock"):
        assert main(["repair", str(broken), "--apply", "--yes"]) == 3
    assert "lock" in capsys.readouterr().err
    changes = golden_stores.changes(before, golden_stores.fingerprint(broken))
    assert [change for change in changes if not change.startswith(("lock", "."))] == []


def test_nothing_is_written_without_consent(broken, tmp_path, capsys):
    before = golden_stores.fingerprint(broken)
    assert main(["repair", str(broken), "--apply"]) == 2
    assert "use --yes" in capsys.readouterr().err
    assert golden_stores.changes(before, golden_stores.fingerprint(broken)) == []
    assert kept_in(tmp_path) == []


def test_a_sound_store_says_so(tmp_path, capsys):
    root = healthy().write(tmp_path / "store")
    assert main(["repair", str(root)]) == 0
    assert "Nothing to mend" in capsys.readouterr().out
    assert main(["repair", str(root), "--to", str(tmp_path / "new")]) == 0
    assert "No copy was written." in capsys.readouterr().out
    assert not (tmp_path / "new").exists()


def test_what_cannot_be_mended_is_named(tmp_path, capsys):
    store = healthy()
    root = store.write(tmp_path / "store")
    BROKEN["CF06"](root, store)
    assert main(["repair", str(root)]) == 0
    assert "can be mended by changing bytes:\n  CF06: the log has deleted these messages" in capsys.readouterr().out
    assert main(["repair", str(root), "--json"]) == 0
    plan = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [left["finding"] for left in plan["left"]] == ["CF06"]


@pytest.mark.parametrize("arguments", [["--plan", "--apply"], ["--finding", "XX99"], ["--to", "x", "--apply"]], ids=str)
def test_arguments_that_do_not_fit_are_refused(broken, arguments, capsys):
    assert main(["repair", str(broken), *arguments]) == 2


def test_check_names_the_placeholders_of_a_mended_store(tmp_path, capsys):
    store = healthy()
    root = store.write(tmp_path / "store")
    unit = store.units[20]
    name = unit.offset // 4096 * 4096
    with (root / "commitlog" / f"{name:020d}").open("r+b") as file:
        file.seek(unit.offset - name)
        file.write(bytes(unit.size))
    assert main(["repair", str(root), "--to", str(tmp_path / "new")]) == 0
    capsys.readouterr()
    assert main(["check", str(tmp_path / "new"), "--json"]) == 0
    findings = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (finding,) = [record for record in findings if record.get("id") == "CL15"]
    assert finding["message"] == f"1 unit from here on holds the place of a lost message: Orders/0/{unit.queue_offset}"
    with open_store(tmp_path / "new") as opened:
        assert opened.log.max_offset == store.end


READING = {
    "info": [],
    "units": [],
    "queue": ["Orders", "0", "--resolve"],
    "index": [],
    "trace": ["Orders", "K20"],
    "get": ["Orders", "0", "5"],
    "message": ["PLACE"],
    "offset": ["Orders", "0", "--time", "1700000000100"],
    "where": ["U00020"],
    "conversation": ["U00020"],
    "positions": [],
    "groups": [],
    "space": ["--quick"],
    "diff": ["OTHER"],
    "check": [],
    "config": [],
    "rows": [],
    "waiting": [],
    "timeline": [],
    "histogram": [],
    "sql": ["SELECT topic, count(*), sum(size) FROM units GROUP BY 1 ORDER BY 1"],
    "recover": ["--plan"],
    "compat": [],
}


def test_every_reading_command_answers_as_if_the_patches_were_made(broken, tmp_path, capsys):
    with_option = {
        name
        for name, commands in COMMANDS.items()
        for parser in build_parser(next(iter(commands)))._subparsers._group_actions[0].choices.values()
        if any("--patched" in action.option_strings for action in parser._actions)
    }
    assert with_option == READING.keys()
    patches, mended = tmp_path / "patches.json", tmp_path / "mended"
    assert main(["repair", str(broken), "--save", str(patches), "--to", str(mended), "--quiet"]) == 0
    before = golden_stores.fingerprint(broken)
    with open_store(mended) as store:
        place = next(unit.offset for unit in store.units() if unit.unique_key == "U00020")
    capsys.readouterr()
    for command, words in READING.items():
        arguments = [{"PLACE": str(place), "OTHER": str(mended)}.get(word, word) for word in words]
        answers = []
        for store, options in ((broken, ["--patched", str(patches)]), (mended, [])):
            code = main([command, str(store), *arguments, *options, "--json"])
            text = capsys.readouterr().out.replace(str(store), "STORE")
            records = [line for line in text.splitlines() if '"type":"retention"' not in line]  # by the files' times
            answers.append((code, [line for line in records if '"type":"spaceSum"' not in line]))
        assert answers[0] == answers[1], command
    assert golden_stores.changes(before, golden_stores.fingerprint(broken)) == []


def test_patches_that_do_not_fit_are_refused(broken, tmp_path, capsys):
    patches = tmp_path / "patches.json"
    assert main(["check", str(broken), "--patched", str(tmp_path / "none")]) == 3
    assert "No such file" in capsys.readouterr().err
    patches.write_text("{}")
    assert main(["check", str(broken), "--patched", str(patches)]) == 3
    assert "expected a list of patches" in capsys.readouterr().err
    assert main(["recover", str(broken), "--apply", "--patched", str(patches), "--yes"]) == 2


def test_a_foreign_file_is_moved_out_and_brought_back(tmp_path, capsys):
    root = healthy().write(tmp_path / "store")
    (root / "commitlog" / "readme.txt").write_text("note")
    before = golden_stores.fingerprint(root)
    assert main(["repair", str(root), "--apply", "--yes"]) == 0
    assert (root / "removed-by-repair" / "commitlog" / "readme.txt").read_text() == "note"
    (folder,) = kept_in(tmp_path)
    assert main(["repair", str(root), "--undo", str(folder), "--yes"]) == 0
    assert same(root, before) == []


@pytest.mark.parametrize("order", [(1, 0, 2), (1, 2, 0), (2, 0, 1)])
def test_log_files_with_each_others_names_get_their_own_back(tmp_path, capsys, order):
    """Somebody restored files of the log under each other's names. Their messages were replaced by placeholders, a
    thousand of them, because no file had the place that it says.
    """
    root = healthy(count=90).write(tmp_path / "store")
    whole = {file.name: file.read_bytes() for file in (root / "commitlog").iterdir()}
    names = sorted(whole)
    for name, other in zip(names, (names[number] for number in order), strict=False):
        (root / "commitlog" / name).write_bytes(whole[other])
    before = golden_stores.fingerprint(root)
    assert main(["repair", str(root), "--to", str(tmp_path / "new")]) == 0
    assert main(["repair", str(root), "--apply", "--yes"]) == 0
    for store in (root, tmp_path / "new"):
        assert {file.name: file.read_bytes() for file in (store / "commitlog").iterdir()} == whole
    (folder,) = kept_in(tmp_path)
    assert main(["repair", str(root), "--undo", str(folder), "--yes"]) == 0
    assert same(root, before) == []


@pytest.mark.parametrize("place", ["consumequeue/Orders/1", "consumequeue/Orders", "consumequeue"])
def test_a_file_in_the_place_of_a_queues_folder_makes_room_for_it(tmp_path, capsys, place):
    """A restore left files where folders of queues belong. `repair` ended with an error, and a real broker waited 30 s
    for each message of the queue.
    """
    root = healthy().write(tmp_path / "store")
    queue = root / "consumequeue" / "Orders" / "1"
    whole = {file.name: file.read_bytes() for file in queue.iterdir()}
    rows = {topic: {"topicName": topic, "readQueueNums": 2, "writeQueueNums": 2} for topic in ("Orders", "Payments")}
    (root / "config").mkdir()
    (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": rows}))
    shutil.rmtree(root / place)
    (root / place).write_text("note")
    before = golden_stores.fingerprint(root)
    assert main(["check", str(root)]) == 1
    assert "DK01" in capsys.readouterr().out
    assert main(["repair", str(root), "--to", str(tmp_path / "new")]) == 0
    assert main(["repair", str(root), "--apply", "--yes"]) == 0
    for store in (root, tmp_path / "new"):
        assert (store / "removed-by-repair" / place).read_text() == "note"
        if place != "consumequeue":  # else nothing shows the length of queue files, and the next start makes them
            assert {file.name: file.read_bytes() for file in (store / queue.relative_to(root)).iterdir()} == whole
    (folder,) = kept_in(tmp_path)
    assert main(["repair", str(root), "--undo", str(folder), "--yes"]) == 0
    assert same(root, before) == []


def test_files_of_another_user_stay_theirs(broken, tmp_path, capsys):
    """Root mended a store whose broker runs as another user. Changed and new files belonged to root, and this broker
    could not open them for writing.
    """
    queue_file = broken / "consumequeue" / "Payments" / "0" / f"{0:020d}"
    queue_file.unlink()
    user = 65534 if os.geteuid() == 0 else os.getuid()
    for folder, _, names in os.walk(broken):
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            os.chown(path, user, os.getgid())
            path.chmod(path.stat().st_mode & ~0o007)

    def owners():
        paths = [path for path in broken.rglob("*") if path.name != "lock"]
        return {path: (path.stat().st_uid, path.stat().st_mode) for path in paths}

    before = owners()
    assert main(["repair", str(broken), "--apply", "--yes"]) == 0
    assert queue_file.stat().st_uid == user
    assert {path: owners()[path] for path in before} == before
    (folder,) = kept_in(tmp_path)
    assert main(["repair", str(broken), "--undo", str(folder), "--yes"]) == 0
    assert owners() == before
