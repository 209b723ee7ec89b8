"""``storescope replicate``: a copy that grows with the master's log, and one-line refusals."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import handmade_stores
import pytest
from failing_reads import FailingDisk
from ha_masters import CONFIG, log_of, master, put

from engine.cli.commands import replicate
from engine.cli.main import main
from engine.codec.encode import Message
from engine.mapped.reading import read_through
from engine.message_store import MessageStore
from engine.replication.master import Master

CONF = "mappedFileSizeCommitLog=4096\nmappedFileSizeConsumeQueue=6000\n"


@contextlib.contextmanager
def running_master(path: Path) -> Iterator[tuple[MessageStore, int]]:
    """Run a master with forty messages on its own thread; yield it and its HA port."""
    ready, output, ended = threading.Event(), [], asyncio.Event()

    async def serve() -> None:
        async with master(path) as (sample, port):
            output.extend([sample.store, port, asyncio.get_running_loop()])
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(60)
        yield output[0], output[1]
    finally:
        output[2].call_soon_threadsafe(ended.set)
        thread.join(60)


def run_replicate(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        return main(["replicate", *words]), out.getvalue(), err.getvalue()


@pytest.fixture
def conf(tmp_path: Path) -> str:
    path = tmp_path / "broker.conf"
    path.write_text(CONF)
    return str(path)


def test_a_copy_is_created_continued_and_can_be_opened(tmp_path: Path, conf: str) -> None:
    words = [str(tmp_path / "copy"), "--config", conf, "--until-caught-up"]
    with running_master(tmp_path / "real") as (real, port):
        code, out, err = run_replicate(f"127.0.0.1:{port}", *words, "--json")
        assert code == 0, err
        lines = [json.loads(line) for line in out.splitlines()]
        assert (lines[0]["type"], lines[-1]["type"], lines[-1]["caughtUp"]) == ("replicating", "replicated", True)
        assert "the broker's own port did not give them" in err
        put(real, 10)
        code, out, err = run_replicate(f"127.0.0.1:{port}", *words)
        assert code == 0, err
        assert out.splitlines()[-1].startswith(f"the log ends at {real.positions().wrote:,}")
        with MessageStore(tmp_path / "copy", CONFIG) as copy:
            assert log_of(real).endswith(log_of(copy))
            assert copy.positions().wrote == real.positions().wrote


def test_a_copy_killed_before_its_first_log_byte_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "copy"
    (copy / "config").mkdir(parents=True)
    for text in ("abort", "lock"):
        (copy / text).touch()
    (copy / "config" / "topics.json").write_text("{}")

    async def size_of(*_address: object) -> Master:
        return Master(0, 0, CONFIG.mapped_file_size_commit_log)

    monkeypatch.setattr(replicate, "ask_master", size_of)
    with running_master(tmp_path / "real") as (real, port):
        code, out, err = run_replicate(f"127.0.0.1:{port}", str(copy), "--until-caught-up")
        assert code == 0, err
        assert out.splitlines()[-1].startswith(f"the log ends at {real.positions().wrote:,}")
    for file in (copy / "commitlog").iterdir():
        assert file.read_bytes() == (tmp_path / "real" / "commitlog" / file.name).read_bytes()


def test_a_store_of_another_log_is_refused_and_keeps_its_messages(tmp_path: Path, conf: str) -> None:
    with MessageStore(tmp_path / "other", CONFIG) as other_store:
        put(other_store, 3)
        log_before = log_of(other_store)
    with running_master(tmp_path / "real") as (_, port):
        code, _, err = run_replicate(
            f"127.0.0.1:{port}", str(tmp_path / "other"), "--config", conf, "--until-caught-up"
        )
    assert code == 3
    assert "no beginning of the master's" in err.splitlines()[-1]
    assert "Traceback" not in err
    with MessageStore(tmp_path / "other", CONFIG) as other_store:
        assert log_of(other_store) == log_before


def test_an_invalid_address_and_a_locked_store_are_one_line_errors(tmp_path: Path) -> None:
    code, _, err = run_replicate("10912", str(tmp_path / "copy"))
    assert (code, len(err.strip().splitlines())) == (2, 1)
    with MessageStore(tmp_path / "held"):
        code, _, err = run_replicate("127.0.0.1:1", str(tmp_path / "held"))
    assert (code != 0, "Traceback" in err) == (True, False)


@pytest.mark.parametrize("folder", ["commitlog", "consumequeue"])
def test_a_store_with_a_file_that_cannot_be_read_is_not_written(tmp_path: Path, folder: str) -> None:
    store = handmade_stores.healthy().write(tmp_path / "store")
    files_before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file() and path.name != "lock"}
    with read_through(FailingDisk(store / folder, "open", 0, "EACCES")):
        code, _, err = run_replicate("127.0.0.1:1", str(store))
    assert (code, folder in err) == (3, True)
    assert {
        path: path.read_bytes() for path in store.rglob("*") if path.is_file() and path.name != "lock"
    } == files_before


def test_no_copy_is_created_without_an_answering_master(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]  # closed again, so the port refuses connections
    code, out, err = run_replicate(f"127.0.0.1:{port}", str(tmp_path / "copy"), "--until-caught-up")
    assert (code, out) == (3, "")
    assert err.strip() == f"storescope: no broker's HA port at 127.0.0.1:{port}: Connection refused"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("words", "entries"), [((), 0), (("--release", "5.5"), 1)])
def test_a_new_copy_is_written_in_the_release_of_its_master(
    tmp_path: Path, conf: str, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], entries: int
) -> None:
    """Each new copy was written like one of the newest release: it had tag entries in the index although the master had
    none.
    """

    async def of_5_3(*_address: object) -> Master:
        return Master(0, 0, CONFIG.mapped_file_size_commit_log, "5.3")

    monkeypatch.setattr(replicate, "ask_master", of_5_3)
    with running_master(tmp_path / "real") as (real, port):
        assert real.put_message(Message("Orders", b"x", 0, properties={"TAGS": "paid"})).ok
        code, _, err = run_replicate(
            f"127.0.0.1:{port}", str(tmp_path / "copy"), "--config", conf, "--until-caught-up", *words
        )
        assert code == 0, err
    with MessageStore(tmp_path / "copy", CONFIG) as copy, copy.query_message("Orders", "T#paid") as query_message:
        assert len(query_message) == entries
