"""Folders that belong to the named store, whatever paths a configuration contains."""

from __future__ import annotations

import os
import shutil
from dataclasses import fields, replace
from pathlib import Path

import golden_stores
import handmade_stores
import pytest

from engine.cli.main import main
from engine.codec.encode import Message
from engine.config import OLD_PATH_KEYS, PATH_KEYS, MessageStoreConfig, parse_properties
from engine.errors import StoreLocked
from engine.files.store_folders import OutsidePath, lock_files, settle_folders, tiered_folder
from engine.mapped.store_lock import StoreLock
from engine.message_store import MessageStore


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    (tmp_path / "copy" / "commitlog").mkdir(parents=True)
    return tmp_path / "copy"


@pytest.fixture
def live(tmp_path: Path) -> Path:
    (tmp_path / "live" / "commitlog").mkdir(parents=True)
    return tmp_path / "live"


def conf(**keys: object) -> MessageStoreConfig:
    config = parse_properties("".join(f"{key}={value}\n" for key, value in keys.items()))[0]
    return replace(config, file="broker.conf")


def refused(root: Path, config: MessageStoreConfig) -> str:
    with pytest.raises(OutsidePath) as error:
        settle_folders(root, config).refuse_outside()
    return str(error.value)


def test_without_paths_a_store_is_the_folder_that_was_named(copy: Path) -> None:
    for config in (None, MessageStoreConfig(), conf(mappedFileSizeCommitLog=1024)):
        folders = settle_folders(copy, config)
        assert (folders.log, folders.outside, folders.words) == ((copy / "commitlog",), (), ())
        folders.refuse_outside()


def test_paths_of_another_machine_below_its_root_mean_the_named_store(copy: Path) -> None:
    """``/data/rocketmq/store`` of a production machine does not exist here. Its commitlog means that of the copy."""
    root = "/data/no-such-machine/store"
    config = conf(
        storePathRootDir=root,
        storePathCommitLog=f"{root}/commitlog/",
        storePathConsumeQueue=f"{root}/consumequeue",
        storePathIndex=f"{root}/index",
        storeCheckpoint=f"{root}/checkpoint",
        abortFile=f"{root}/abort",
        storePathEpochFile=f"{root}/epochFileCheckpoint",
    )
    folders = settle_folders(copy, config)
    folders.refuse_outside()
    assert folders.log == (copy / "commitlog",)
    assert any(f"was read as {copy}/commitlog" in words for words in folders.words)


def test_several_log_folders_below_the_root_are_mapped_each(copy: Path) -> None:
    root = "/data/no-such-machine/store"
    for splitter in ",;":
        config = conf(storePathRootDir=root, storePathCommitLog=f"{root}/a{splitter}{root}/b")
        assert settle_folders(copy, config).log == (copy / "a", copy / "b")


@pytest.mark.parametrize(
    "keys",
    [
        {"storePathRootDir": "LIVE", "storePathCommitLog": "LIVE/commitlog"},
        {"storePathRootDir": "LIVE"},
        {"storePathCommitLog": "LIVE/commitlog"},
        {"storePathCommitLog": "COPY/commitlog,LIVE/commitlog"},
        {"storePathCommitLog": "COPY/commitlog;LIVE/commitlog"},
        {"storePathCommitLog": "COPY/../live/commitlog"},
        {"storePathRootDir": "COPY", "storePathCommitLog": "LIVE/commitlog"},
        {"readOnlyCommitLogStorePaths": "LIVE/commitlog"},
        {"storePathDLedgerCommitLog": "LIVE/dledger"},
        {"storePathEpochFile": "LIVE/epochFileCheckpoint"},
        {"storePathBrokerIdentity": "LIVE/brokerIdentity"},
        {"storePathConsumeQueue": "LIVE/consumequeue"},
        {"storePathIndex": "LIVE/index"},
        {"storeCheckpoint": "LIVE/checkpoint"},
        {"abortFile": "LIVE/abort"},
        {"storePathCommitLog": "/no/such/place/commitlog"},
    ],
)
def test_a_path_outside_the_store_is_refused_with_its_key_and_both_folders(
    copy: Path, live: Path, keys: dict[str, str]
) -> None:
    arguments = {key: text.replace("LIVE", str(live)).replace("COPY", str(copy)) for key, text in keys.items()}
    words = refused(copy, conf(**arguments))
    assert words.startswith("broker.conf: ")
    assert list(keys)[-1] in words
    assert str(copy) in words
    assert ("live" in words) == ("LIVE" in str(keys) or "../live" in str(keys))
    with pytest.raises(OutsidePath):
        MessageStore(copy, conf(**arguments))
    assert sorted(path.name for path in copy.iterdir()) == ["commitlog"], "not even a lock was made"


def test_every_key_that_names_a_path_is_checked() -> None:
    """A new key with a path that is not declared as one would lead out of the store unnoticed."""
    texts = {item.metadata["java"] for item in fields(MessageStoreConfig) if item.default == ""}  # type: ignore[comparison-overlap]
    only_read = {"tieredStoreFilePath"}  # tiered_folder decides about it
    assert {key for key in texts if "path" in key.lower()} == PATH_KEYS | only_read
    assert "storePathConsumeQueue" in OLD_PATH_KEYS


def test_tiered_storage_outside_is_followed_as_the_log_is(copy: Path, tmp_path: Path) -> None:
    outside = tmp_path / "tiered"
    assert tiered_folder(copy, conf(tieredStoreFilePath=copy / "tiered")) == copy / "tiered"
    assert tiered_folder(copy, conf(tieredStoreFilePath=outside)) is None
    assert tiered_folder(copy, conf(tieredStoreFilePath=outside, storePathRootDir=copy)) == outside
    other = conf(tieredStoreFilePath="/nowhere/store/tiered", storePathRootDir="/nowhere/store")
    assert tiered_folder(copy, other) == copy / "tiered"
    assert tiered_folder(copy, conf()) is None


def test_another_name_of_the_same_folder_is_the_same_store(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "name").symlink_to(copy)
    for root, log in ((tmp_path / "name", copy), (copy, tmp_path / "name"), (tmp_path / "name", tmp_path / "name")):
        folders = settle_folders(copy, conf(storePathRootDir=root, storePathCommitLog=log / "commitlog"))
        assert folders.log == (copy / "commitlog",)
        folders.refuse_outside()


def test_an_unreadable_root_counts_as_another_store(copy: Path, live: Path, monkeypatch) -> None:
    """Its permissions hide whether it is the same store, so it counts as another."""
    scandir = os.scandir

    def guarded(path):
        if Path(path) == live:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr("engine.files.store_folders.os.scandir", guarded)
    refused(copy, conf(storePathRootDir=live, storePathCommitLog=live / "commitlog"))


def test_readers_follow_the_log_path_only_if_the_configuration_is_this_stores(copy: Path, live: Path) -> None:
    other_log = live / "commitlog"
    own_folders = settle_folders(copy, conf(storePathRootDir=copy, storePathCommitLog=other_log), reading=True)
    assert own_folders.log == (other_log,)
    assert any(str(other_log) in note for note in own_folders.words)
    foreign_folders = settle_folders(copy, conf(storePathRootDir=live, storePathCommitLog=other_log), reading=True)
    assert foreign_folders.log == (copy / "commitlog",)
    assert any("another store" in note and str(copy / "commitlog") in note for note in foreign_folders.words)


def test_with_the_option_every_written_folder_is_locked(copy: Path, live: Path) -> None:
    """A broker of the live store holds ``live/lock``. The copy's lock alone does not allow writing into
    ``live/commitlog``.
    """
    config = conf(storePathCommitLog=live / "commitlog", mappedFileSizeCommitLog=4096)
    with StoreLock(live / "lock"), pytest.raises(StoreLocked, match="live"):
        MessageStore(copy, config, paths_from_config=True)
    StoreLock(copy / "lock").release()  # no lock file remains
    with MessageStore(copy, config, paths_from_config=True) as store:
        assert store.put_message(Message("Orders", b"tea")).ok
        with pytest.raises(StoreLocked):
            StoreLock(live / "lock")
    assert list((live / "commitlog").iterdir())
    assert not list((copy / "commitlog").iterdir())
    StoreLock(live / "lock").release()


def test_the_root_of_the_configuration_is_locked_too(copy: Path, live: Path, tmp_path: Path) -> None:
    (live / "lock").touch()
    (tmp_path / "disk2").mkdir()
    config = conf(storePathRootDir=live, storePathCommitLog=tmp_path / "disk2" / "log")
    actual_lock_files = lock_files(copy, replace(config, paths_from_config=True))
    assert actual_lock_files == [copy / "lock", tmp_path / "disk2" / "lock", live / "lock"]


@pytest.mark.parametrize("part", ["commitlog", "consumequeue", "index", "config", "checkpoint"])
@pytest.mark.parametrize("command", [["recover", "--apply"], ["dispatch"], ["put", "--topic", "Orders", "--body", "x"]])
def test_nothing_is_written_through_a_link_into_another_store(
    part: str, command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``cp -a`` of a store whose parts are links gives a copy that is the live store. While no broker held the live
    store, a command on the copy wrote its log.
    """
    live = handmade_stores.healthy().write(tmp_path / "live")
    (live / "config").mkdir()
    (live / "lock").touch()
    copy = shutil.copytree(live, tmp_path / "copy")
    (copy / "abort").touch()
    shutil.rmtree(copy / part) if (copy / part).is_dir() else (copy / part).unlink()
    (copy / part).symlink_to(live / part)
    fingerprints_before = [golden_stores.fingerprint(folder) for folder in (live, copy)]
    assert main([command[0], str(copy), *command[1:], "--yes"]) == 2
    assert [golden_stores.fingerprint(folder) for folder in (live, copy)] == fingerprints_before
    err = capsys.readouterr().err
    assert f"{copy / part} is a link into another store, {live}: nothing was changed" in err


@pytest.mark.parametrize("inner", ["commitlog/00000000000000008192", "consumequeue/Orders"])
def test_nothing_is_written_through_a_link_deeper_in_the_store(inner: str, tmp_path: Path) -> None:
    live = handmade_stores.healthy().write(tmp_path / "live")
    copy = shutil.copytree(live, tmp_path / "copy")
    shutil.rmtree(copy / inner) if (copy / inner).is_dir() else (copy / inner).unlink()
    (copy / inner).symlink_to(live / inner)
    with pytest.raises(OutsidePath, match="is a link into another store"):
        MessageStore(copy)


def test_a_part_on_a_separate_disk_is_written(tmp_path: Path) -> None:
    store = handmade_stores.healthy().write(tmp_path / "store")
    (tmp_path / "disk2").mkdir()
    shutil.move(store / "commitlog", tmp_path / "disk2" / "commitlog")
    (store / "commitlog").symlink_to(tmp_path / "disk2" / "commitlog")
    assert main(["put", str(store), "--topic", "Orders", "--body", "x", "--yes"]) == 0
