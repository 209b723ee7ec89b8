"""A missing log beside files that refer to it: nothing is written without an explicit option.

With the log's disk not mounted, ``recover --apply --yes`` exited with 0 and deleted every queue, as a broker's start
does.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import golden_stores
import pytest

from engine.cli.main import main
from engine.codec.encode import Message
from engine.config import from_mapping
from engine.inspection.findings import check
from engine.inspection.recovery import plan
from engine.inspection.snapshot import open_store
from engine.message_store import MessageStore
from engine.store.recovery.empty_log import LogIsEmpty

LOG = 1 << 14
SIZES = {
    "mappedFileSizeCommitLog": LOG,
    "mappedFileSizeConsumeQueue": 400,
    "maxHashSlotNum": 50,
    "maxIndexNum": 200,
    "timerWheelEnable": False,
}
UNITS = 300


def make(root: Path, **options: object) -> Path:
    config = from_mapping({**SIZES, **options})[0]
    with MessageStore(root, config, services=False, paths_from_config="storePathCommitLog" in options) as store:
        for number in range(UNITS):
            assert store.put_message(Message("Orders", b"tea" * 40, number % 3, keys=f"k{number}")).ok
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "consumerOffset.json").write_text('{"offsetTable":{"Orders@cups":{0:50,1:0}}}')
    return root


def conf(place: Path, **options: object) -> Path:
    values = {
        key: str(value).lower() if isinstance(value, bool) else value for key, value in {**SIZES, **options}.items()
    }
    text = "".join(f"{key}={value}\n" for key, value in values.items())
    (place / "broker.conf").write_text(text)
    return place / "broker.conf"


def remove_log(root: Path) -> None:
    shutil.rmtree(root / "commitlog")


def empty(root: Path) -> None:
    remove_log(root)
    (root / "commitlog").mkdir()


def foreign(root: Path) -> None:
    empty(root)
    (root / "commitlog" / "lost+found").mkdir()


def zeros(root: Path) -> None:
    for file in (root / "commitlog").iterdir():
        file.write_bytes(bytes(LOG))


def hole(root: Path) -> None:
    for file in (root / "commitlog").iterdir():
        with file.open("r+b") as data:
            data.truncate(0)
            data.truncate(LOG)


def no_length(root: Path) -> None:
    files = sorted((root / "commitlog").iterdir())
    for file in files[1:]:
        file.unlink()
    files[0].write_bytes(b"")


def crashed(root: Path) -> None:
    remove_log(root)
    (root / "abort").write_text("4711")


CASES = (remove_log, empty, foreign, zeros, hole, no_length, crashed)


@pytest.fixture
def healthy_path(tmp_path: Path) -> Path:
    return make(tmp_path / "store")


def refused(
    root: Path, arguments: list[str], capsys: pytest.CaptureFixture[str], expected_text: str = "entries refer to"
) -> None:
    files_before = golden_stores.fingerprint(root)
    assert main(arguments) == 3
    err = capsys.readouterr().err
    assert expected_text in err
    assert "is its disk mounted?" in err
    assert "--empty-log" in err
    assert golden_stores.changes(files_before, golden_stores.fingerprint(root)) == []


COMMANDS = {
    "recover": ["--apply", "--yes"],
    "dispatch": ["--yes"],
    "put": ["--topic", "Orders", "--body", "x", "--yes"],
}


@pytest.mark.full_form(keep=8)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_writes_without_the_option(healthy_path, tmp_path, capsys, case, command):
    case(healthy_path)
    settled = ["--config", str(conf(tmp_path))]
    refused(healthy_path, [command, str(healthy_path), *COMMANDS[command], *settled], capsys)
    assert main([command, str(healthy_path), *COMMANDS[command], *settled, "--empty-log"]) == 0
    if case not in (
        zeros,
        hole,
    ):  # here RocketMQ takes the last file's zeros as the end of the log, and the queues stay
        assert not list((healthy_path / "consumequeue" / "Orders" / "1").glob("*"))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("locked", [True, False])
def test_the_store_does_not_open_without_the_option(healthy_path, case, locked):
    case(healthy_path)
    if not locked:
        (healthy_path / "lock").unlink()
    files_before = golden_stores.fingerprint(healthy_path)
    config = from_mapping(SIZES)[0]
    with pytest.raises(LogIsEmpty, match=f"{UNITS} entries refer to it: is its disk mounted"):
        MessageStore(healthy_path, config)
    assert [
        line
        for line in golden_stores.changes(files_before, golden_stores.fingerprint(healthy_path))
        if "lock" not in line
    ] == []
    assert (healthy_path / "lock").exists() == locked
    with MessageStore(healthy_path, config, services=False, empty_log=True) as store:
        assert store.put_message(Message("Orders", b"x")).ok
    with MessageStore(healthy_path, config, services=False):
        pass  # there is a message again, so no log is missing


@pytest.mark.full_form(keep=8)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("by", ["recover", "a start", "dispatch"])
def test_the_option_is_required_once(healthy_path, tmp_path, case, by):
    """Recovery with the option deleted the queues. The checkpoint, the index and a consumer's offset still referred to
    the messages, so each later start without a put required the option again.
    """
    case(healthy_path)
    config = from_mapping(SIZES)[0]
    if by == "a start":
        MessageStore(healthy_path, config, services=False, empty_log=True).close()
    else:
        settled = ["--config", str(conf(tmp_path))]
        files_before = golden_stores.fingerprint(healthy_path)
        command = [by, str(healthy_path), *COMMANDS[by], *settled, "--empty-log"]
        assert main(command) == 0
        saved_path = next(path for path in tmp_path.iterdir() if path.name.startswith("store."))
        assert main(["recover", str(healthy_path), "--undo", str(saved_path), "--yes"]) == 0
        assert golden_stores.changes(files_before, golden_stores.fingerprint(healthy_path)) == []
        assert main(command) == 0
        for name, extra in COMMANDS.items():
            if name != "put":
                assert main([name, str(healthy_path), *extra, *settled]) == 0
    for _ in range(2):
        with open_store(healthy_path, config) as store:
            assert plan(store).empty_log is None
        with MessageStore(healthy_path, config, services=False) as store:
            assert store.recovery_plan.empty_log is None
    with MessageStore(healthy_path, config, services=False) as store:
        assert store.put_message(Message("Orders", b"x")).ok
    with MessageStore(healthy_path, config, services=False):
        assert not (healthy_path / "storescope-empty-log.json").exists(), "there is a message again"


@pytest.mark.parametrize("case", CASES)
def test_plan_and_check_report_the_missing_log_first(healthy_path, tmp_path, capsys, case):
    case(healthy_path)
    main(["recover", str(healthy_path), "--plan", "--json", "--config", str(conf(tmp_path))])
    empty_log = json.loads(capsys.readouterr().out)["emptyLog"]
    assert (empty_log["entries"], empty_log["part"], empty_log["folder"]) == (
        UNITS,
        False,
        str(healthy_path / "commitlog"),
    )
    assert empty_log["message"] == "the log is empty, but 300 entries refer to it: is its disk mounted?"
    main(["recover", str(healthy_path), "--plan"])
    assert capsys.readouterr().out.splitlines()[0].endswith(empty_log["message"])
    with open_store(healthy_path) as store:
        first_finding, *further_findings, _summary = check(store)
    assert (first_finding.id, first_finding.severity) == ("CL12", "error")
    assert first_finding.message == "The log is empty, but 300 entries refer to it: is its disk mounted?"
    assert not {finding.id for finding in further_findings} & {"CL11", "CQ13", "IX07", "CK02"}


def test_without_queues_index_groups_and_checkpoint_show_the_missing_log(healthy_path, capsys):
    remove_log(healthy_path)
    shutil.rmtree(healthy_path / "consumequeue")
    texts = (
        ("index entries refer", "index"),
        ("1 consumer offset refers", "config"),
        ("checkpoint refers", "checkpoint"),
    )
    for word, name in texts:
        if name != "checkpoint":  # without other parts it is not a store
            refused(healthy_path, ["recover", str(healthy_path), *COMMANDS["recover"]], capsys, word)
        refused(healthy_path, ["put", str(healthy_path), *COMMANDS["put"]], capsys, word)
        with pytest.raises(LogIsEmpty, match=word):
            MessageStore(healthy_path, from_mapping(SIZES)[0])
        place = healthy_path / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    with MessageStore(healthy_path, from_mapping(SIZES)[0], services=False) as store:
        assert store.put_message(Message("Orders", b"x")).ok


def test_a_new_store_and_one_that_never_had_a_message_open_as_before(tmp_path):
    config = from_mapping(SIZES)[0]
    for _ in range(2):
        with MessageStore(tmp_path / "new", config, services=False) as store:
            assert store.recovery_plan.empty_log is None
    with MessageStore(tmp_path / "new", config, services=False) as store:
        store.parts.commit_log.begin_at(0)
    with MessageStore(tmp_path / "new", config, services=False) as store:
        assert store.recovery_plan.empty_log is None


def spoil_first_unit(root: Path) -> None:
    with min((root / "commitlog").iterdir()).open("r+b") as file:
        file.seek(4)
        file.write(b"none")
    (root / "abort").write_text("4711")
    shutil.rmtree(root / "consumequeue")
    (root / "checkpoint").write_bytes((1).to_bytes(8, "big") + bytes(4088))


@pytest.mark.parametrize("start_offset", [0, 100])
def test_a_log_of_one_blank_needs_no_option(tmp_path, start_offset):
    """The first start cut the log to nothing and left a checkpoint that referred to it, so the second start refused."""
    config = from_mapping(SIZES)[0]
    with MessageStore(tmp_path / "new", config, services=False) as store:
        store.parts.commit_log.begin_at(start_offset)
        assert store.parts.commit_log.append_blank()
    for _ in range(3):
        with open_store(tmp_path / "new", config) as actual_store:
            assert plan(actual_store).empty_log is None
        with MessageStore(tmp_path / "new", config, services=False) as store:
            assert store.recovery_plan.end_offset == 0
    with MessageStore(tmp_path / "new", config, services=False) as store:
        assert store.put_message(Message("Orders", b"x")).append.physical_offset == 0


def test_a_log_that_a_start_cuts_to_nothing_needs_no_option_later(healthy_path):
    """Its first unit is damaged: a start drops the log, like RocketMQ, and reports it. No disk is missing."""
    spoil_first_unit(healthy_path)
    config = from_mapping(SIZES)[0]
    with MessageStore(healthy_path, config, services=False) as store:
        assert store.recovery_plan.empty_log is None
        assert store.recovery_plan.units_dropped
    for _ in range(2):
        MessageStore(healthy_path, config, services=False).close()
    with MessageStore(healthy_path, config, services=False) as store:
        assert store.put_message(Message("Orders", b"x")).append.physical_offset == 0
    remove_log(healthy_path)
    with pytest.raises(LogIsEmpty):
        MessageStore(healthy_path, config, services=False)


@pytest.mark.full_form(keep=4)
@pytest.mark.parametrize("put_back", ["gone", "bare"])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_one_folder_of_a_log_in_several(tmp_path, capsys, number, put_back):
    folders = [tmp_path / f"disk{n}" / "log" for n in range(3)]
    paths = {"storePathCommitLog": ",".join(map(str, folders))}
    config = replace(from_mapping({**SIZES, **paths})[0], paths_from_config=True)
    complete = make(tmp_path / "store", **paths)
    with open_store(complete, config) as store:
        assert plan(store).empty_log is None
    shutil.rmtree(folders[number])
    if put_back == "bare":
        folders[number].mkdir()
    settled = ["--config", str(conf(tmp_path, **paths)), "--paths-from-config"]
    for command, extra in COMMANDS.items():
        refused(complete, [command, str(complete), *extra, *settled], capsys)
    files_before = golden_stores.fingerprint(tmp_path)
    with pytest.raises(LogIsEmpty, match="a folder of the log has no file") as error:
        MessageStore(complete, config)
    assert error.value.file == str(folders[number])
    files_after = golden_stores.fingerprint(tmp_path)
    assert [line for line in golden_stores.changes(files_before, files_after) if "lock" not in line] == []
    assert main(["recover", str(complete), *COMMANDS["recover"], *settled, "--empty-log"]) == 0
    for _ in range(2):
        assert main(["recover", str(complete), *COMMANDS["recover"], *settled]) == 0
        with MessageStore(complete, config, services=False) as store:
            assert store.recovery_plan.empty_log is None
    other_folder = folders[number - 1]
    if number != 1 and any(other_folder.iterdir()):
        shutil.rmtree(other_folder)
        with pytest.raises(LogIsEmpty):
            MessageStore(complete, config)


def test_a_folder_that_has_no_file_yet_is_no_loss(tmp_path):
    """Files are assigned to the folders in turn. A log of one file in two folders leaves one folder empty."""
    folders = [tmp_path / f"disk{n}" for n in range(2)]
    config = from_mapping({**SIZES, "storePathCommitLog": ",".join(map(str, folders))})[0]
    for _ in range(2):
        with MessageStore(tmp_path / "store", config, services=False, paths_from_config=True) as store:
            assert store.put_message(Message("Orders", b"x")).ok


def test_a_lost_tail_is_reported_and_recovered(healthy_path):
    """A crash may lose unflushed bytes. The log still has its beginning, so it is not empty."""
    newest = max((healthy_path / "commitlog").iterdir())
    newest.unlink()
    (healthy_path / "abort").write_text("4711")
    with open_store(healthy_path) as store:
        actual_plan = plan(store)
    assert actual_plan.empty_log is None
    assert actual_plan.notes[0].startswith("The queues know the log up to")
    with MessageStore(healthy_path, from_mapping(SIZES)[0], services=False) as opened:
        assert opened.recovery_plan.end_offset == actual_plan.end_offset


def test_files_that_expired_are_no_loss(healthy_path):
    min((healthy_path / "commitlog").iterdir()).unlink()
    with MessageStore(healthy_path, from_mapping(SIZES)[0], services=False) as store:
        assert store.recovery_plan.empty_log is None


def test_a_first_page_of_zeros_is_damage_and_no_empty_log(healthy_path):
    files = sorted((healthy_path / "commitlog").iterdir())
    for file in files[1:]:
        file.unlink()
    files[0].write_bytes(bytes(4096) + files[0].read_bytes()[4096:])
    with open_store(healthy_path) as store:
        assert plan(store).empty_log is None


def test_a_completely_expired_log_is_not_missing(tmp_path):
    """All files but the newest were deleted, and the newest has no message yet. Its offset shows that the others are
    not missing.
    """
    root = make(tmp_path / "store")
    end = max(int(file.name) for file in (root / "commitlog").iterdir()) + LOG
    empty(root)
    (root / "commitlog" / f"{end:020d}").write_bytes(bytes(LOG))
    with open_store(root) as store:
        assert plan(store).empty_log is None
    with MessageStore(root, from_mapping(SIZES)[0], services=False) as store:
        assert store.put_message(Message("Orders", b"tea")).append.physical_offset == end


def test_a_log_whose_newest_file_should_hold_units_is_gone(tmp_path):
    root = make(tmp_path / "store")
    newest = max((root / "commitlog").iterdir())
    empty(root)
    newest.write_bytes(bytes(LOG))
    with open_store(root) as store:
        assert plan(store).empty_log is not None
