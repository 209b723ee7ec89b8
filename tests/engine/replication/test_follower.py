"""A store follows a master: it copies every byte over links that break, and refuses a log that is not its
continuation.
"""

from __future__ import annotations

import asyncio
import errno
from contextlib import suppress
from pathlib import Path

import pytest
from brokers import run_scenario
from ha_masters import CONFIG, log_of, master, put
from served_broker import wait_until

from engine.config import MessageStoreConfig
from engine.errors import CorruptUnit
from engine.message_store import MessageStore
from engine.replication import follower as module
from engine.replication.follower import Follower, NotAPrefix
from engine.replication.master import Master
from engine.store.put_raw_units import append_replicated


async def follow(copy: MessageStore, port: int, end: int, start: int | None = 0) -> Follower:
    """Follow until the copy ends at ``end``, or raise the error that ended it."""
    follower = Follower(copy, "127.0.0.1", port, start=start)
    going = asyncio.ensure_future(follower.run())
    while not going.done() and (copy.positions().wrote < end or not follower.progress.caught_up):
        await asyncio.sleep(0.01)
    if going.done():
        going.result()
    await asyncio.sleep(0.3)
    going.cancel()
    with suppress(asyncio.CancelledError):
        await going
    return follower


def test_the_copy_has_the_masters_bytes_and_its_queues(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with master(tmp_path / "a") as (real, port):
            with MessageStore(tmp_path / "b", CONFIG) as copy:
                end = real.store.positions().wrote
                follower = await follow(copy, port, end)
                assert log_of(copy) == log_of(real.store)
                assert follower.progress.flushed == end
                assert copy.wait_dispatched()
                for queue_id in range(2):
                    assert copy.max_offset_in_queue("Orders", queue_id) == 20

    run_scenario(scenario)


def test_a_broken_link_is_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MAX_PAUSE_S", 0.01)

    async def scenario() -> None:
        async with master(tmp_path / "a") as (real, port):
            with MessageStore(tmp_path / "b", CONFIG) as copy:
                going = asyncio.ensure_future(follow(copy, port, real.store.positions().wrote + 1000))
                for _ in range(5):
                    await wait_until(lambda: real.server._links)
                    real.cut()
                    put(real.store, 4)
                follower = await asyncio.wait_for(going, 60)
                assert follower.progress.links >= 1  # a link that is cut before its answer is not counted
                await follow(copy, port, real.store.positions().wrote)
                assert log_of(copy) == log_of(real.store)

    run_scenario(scenario)


def test_a_stop_works_while_a_broken_link_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slave that was stopped at the moment in which its master disappeared followed forever: it took its own
    cancellation for that of its flush task.
    """
    leaving, may_leave = asyncio.Event(), asyncio.Event()

    async def flush(_self: Follower, _writer: asyncio.StreamWriter) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            leaving.set()
            await may_leave.wait()

    monkeypatch.setattr(Follower, "_flush", flush)

    async def scenario() -> None:
        async with master(tmp_path / "a") as (master_server, port):
            with MessageStore(tmp_path / "b", CONFIG) as copy:
                follower = Follower(copy, "127.0.0.1", port, start=0)
                following = asyncio.ensure_future(follower.run())
                while not follower.progress.received:
                    await asyncio.sleep(0.01)
                master_server.cut()
                await leaving.wait()
                following.cancel()
                may_leave.set()
                await asyncio.wait({following}, timeout=10)
                assert following.cancelled()

    run_scenario(scenario)


def test_a_copy_continues_where_it_ended(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with master(tmp_path / "a") as (real, port):
            with MessageStore(tmp_path / "b", CONFIG) as copy:
                await follow(copy, port, real.store.positions().wrote)
            put(real.store, 30)
            with MessageStore(tmp_path / "b", CONFIG) as copy:
                end_before = copy.positions().wrote
                follower = await follow(copy, port, real.store.positions().wrote)
                assert follower.progress.received == real.store.positions().wrote - end_before
                assert log_of(copy) == log_of(real.store)

    run_scenario(scenario)


def test_an_empty_copy_begins_with_the_last_file_as_a_slave_does(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with master(tmp_path / "a") as (real, port):
            with MessageStore(tmp_path / "b", CONFIG) as copy:
                await follow(copy, port, real.store.positions().wrote, start=None)
                last_file = real.store.parts.files.last
                assert last_file is not None
                assert copy.positions().min == last_file.start_offset > 0
                assert log_of(copy) == last_file.read(0, last_file.wrote)

    run_scenario(scenario)


def test_a_store_with_another_log_is_refused_and_unchanged(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with master(tmp_path / "a", 4) as (real, port):
            for name, words in (("other", "they differ"), ("longer", "the master's log ends at")):
                with MessageStore(tmp_path / name, CONFIG) as copy:
                    if name == "other":
                        put(copy, 3)
                    else:
                        append_replicated(copy.parts.commit_log, 0, log_of(real.store), 0)
                        put(copy, 2)
                    log_before = log_of(copy)
                    with pytest.raises(NotAPrefix, match=words):
                        await follow(copy, port, 1 << 40)
                    assert log_of(copy) == log_before

    run_scenario(scenario)


def test_files_of_another_length_are_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with master(tmp_path / "a") as (_, port):
            with (
                MessageStore(tmp_path / "b", MessageStoreConfig(mapped_file_size_commit_log=8192)) as copy,
                pytest.raises(CorruptUnit, match="expected its mappedFileSizeCommitLog"),
            ):
                await follow(copy, port, 1 << 40)

    run_scenario(scenario)


def test_an_unreachable_master_is_reported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def tried() -> None:
        tries, output = [], []

        async def refused(*_address: object) -> None:
            tries.append(1)
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)")

        monkeypatch.setattr(module.asyncio, "open_connection", refused)
        monkeypatch.setattr(module, "_FIRST_PAUSE_S", 0.0)
        with MessageStore(tmp_path / "copy", CONFIG) as copy:
            follower = Follower(copy, "127.0.0.1", 1)
            follower.on_status = output.append
            going = asyncio.ensure_future(follower.run())
            await wait_until(lambda: len(tries) > 3)
            going.cancel()
            with suppress(asyncio.CancelledError):
                await going
        assert output == ["no link to 127.0.0.1:1: Connection refused; asked again until there is one"]

    run_scenario(tried)


@pytest.mark.parametrize("start", [None, 0])
def test_a_copy_waits_for_the_first_message_of_a_master(tmp_path: Path, start: int | None) -> None:
    """A new master and its slave were started together. The slave took the master's first heartbeat for a log without
    the requested offset, and ended. The messages of the next minute were never copied.
    """

    async def scenario() -> None:
        async with master(tmp_path / "a", 0) as (real, port):
            with MessageStore(tmp_path / "b", CONFIG) as copy:
                follower = Follower(copy, "127.0.0.1", port, start=start)
                going = asyncio.ensure_future(follower.run())
                await wait_until(lambda: follower.progress.caught_up or going.done())
                assert not going.done()
                put(real.store, 20)
                await wait_until(lambda: copy.positions().wrote == real.store.positions().wrote or going.done())
                going.cancel()
                with suppress(asyncio.CancelledError):
                    await going
                assert log_of(copy) == log_of(real.store)

    run_scenario(scenario)


def test_a_copy_waits_at_the_border_of_two_files(tmp_path: Path) -> None:
    """A master whose last file was just full sent a heartbeat of the next file, which was still empty. An empty slave
    that connected at that moment ended.
    """
    size = CONFIG.mapped_file_size_commit_log

    async def scenario() -> None:
        async with master(tmp_path / "a", 0) as (real, port):
            real.store.parts.commit_log.begin_at(size)  # the earlier files are deleted, and the last one is still empty
            with MessageStore(tmp_path / "b", CONFIG) as copy:
                follower = Follower(copy, "127.0.0.1", port)
                going = asyncio.ensure_future(follower.run())
                await wait_until(lambda: follower.progress.caught_up or going.done())
                assert not going.done()
                put(real.store, 20)
                await wait_until(lambda: copy.positions().wrote == real.store.positions().wrote or going.done())
                going.cancel()
                with suppress(asyncio.CancelledError):
                    await going
                assert copy.positions().min == size
                assert log_of(copy) == log_of(real.store)

    run_scenario(scenario)


def test_a_copy_with_an_empty_first_file_begins_with_the_first_byte(tmp_path: Path) -> None:
    """A slave was killed after its first file was made and before the first byte. It asked for the master's last file,
    got another offset than its own, and ended at every start.
    """

    async def scenario() -> None:
        async with master(tmp_path / "a") as (real, port):
            with MessageStore(tmp_path / "b", CONFIG) as copy:
                copy.parts.commit_log.begin_at(0)
                await follow(copy, port, real.store.positions().wrote, start=None)
                assert log_of(copy) == log_of(real.store)

    run_scenario(scenario)


async def answer_of(minimum: int, maximum: int) -> Master:
    return Master(minimum, maximum, CONFIG.mapped_file_size_commit_log)


def test_a_copy_begins_with_the_masters_first_remaining_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The master deleted its first file after it had reported where its log begins. The copy waited for bytes that
    never came, or ended.
    """
    monkeypatch.setattr(module, "_FIRST_PAUSE_S", 0.0)
    size = CONFIG.mapped_file_size_commit_log

    async def scenario() -> None:
        async with master(tmp_path / "a", 0) as (real, port):
            real.store.parts.commit_log.begin_at(size)
            put(real.store, 20)
            end = real.store.positions().wrote
            with MessageStore(tmp_path / "b", CONFIG) as copy:
                follower = Follower(copy, "127.0.0.1", port, start=0, ask_master=lambda: answer_of(size, end))
                going = asyncio.ensure_future(follower.run())
                await wait_until(lambda: copy.positions().wrote == end or going.done())
                going.cancel()
                with suppress(asyncio.CancelledError):
                    await going
                assert log_of(copy) == log_of(real.store)

    run_scenario(scenario)


def test_a_copy_that_ends_before_the_masters_log_gets_a_clear_error(tmp_path: Path) -> None:
    """A slave was away until its master had deleted the files that it needed next. The error said that the master's log
    ends before its own.
    """
    size = CONFIG.mapped_file_size_commit_log

    async def scenario() -> None:
        async with master(tmp_path / "a", 0) as (real, port):
            real.store.parts.commit_log.begin_at(3 * size)
            put(real.store, 20)
            with MessageStore(tmp_path / "b", CONFIG) as copy:
                put(copy, 5)
                follower = Follower(copy, "127.0.0.1", port, ask_master=lambda: answer_of(3 * size, 4 * size))
                with pytest.raises(NotAPrefix, match="the master's log begins at 12,288, the store's ends at"):
                    await asyncio.wait_for(follower.run(), 60)

    run_scenario(scenario)
