"""Half messages: how they are kept, how they end, and who is refused."""

from __future__ import annotations

from pathlib import Path

from brokers import asking, half, run, units

from engine.broker.transactions import immunity_ms, is_half
from engine.codec.message import COMMIT, ROLLBACK, TRANSACTION_MASK
from engine.system_names import HALF_TOPIC, OP_TOPIC


def test_a_commit_puts_the_message_into_its_topic(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            asked = await half(client)
            assert units(client, "Orders", 2) == []
            (kept,) = units(client, HALF_TOPIC)
            assert kept.sys_flag & TRANSACTION_MASK == 0
            assert (kept.properties["REAL_TOPIC"], kept.properties["__transactionId__"]) == ("Orders", "U0")
            assert (await client.ask(37, commitOrRollback=COMMIT, **asked)).code == 0
            (unit,) = units(client, "Orders", 2)
            assert (unit.body, unit.sys_flag & TRANSACTION_MASK) == (b"0", COMMIT)
            assert unit.prepared_transaction_offset == asked["commitLogOffset"]
            assert unit.properties_raw == kept.properties_raw

    run(told)


def test_what_is_decided_stands_in_one_op_message(tmp_path: Path) -> None:
    """Also where the broker ends before it was time for one."""

    async def first() -> None:
        async with asking(tmp_path) as client:
            for number in range(3):
                asked = await half(client, number)
                assert (await client.ask(37, commitOrRollback=ROLLBACK, **asked)).code == 0
            assert units(client, "Orders", 2) == []
            assert units(client, OP_TOPIC) == []

    async def second() -> None:
        async with asking(tmp_path) as client:
            (op,) = units(client, OP_TOPIC)
            assert (op.body, op.tags) == (b"0,1,2,", "d")

    run(first)
    run(second)


def test_what_fits_no_half_message_is_refused(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            asked = await half(client)
            for wrong, words in {
                "producerGroup": "The producer group wrong",
                "tranStateTableOffset": "The transaction state table offset wrong",
                "commitLogOffset": "Find prepared transaction message failed",
            }.items():
                answer = await client.ask(37, commitOrRollback=COMMIT, **{**asked, wrong: 17})
                assert (answer.code, answer.remark) == (1, words)

    run(told)


def test_who_set_a_time_of_its_own_decides_in_that_time(tmp_path: Path) -> None:
    async def told() -> None:
        async with asking(tmp_path) as client:
            asked = await half(client, 0, "CHECK_IMMUNITY_TIME_IN_SECONDS\x0130\x02")
            broker = client.server.broker
            began = broker.now()
            broker.now = lambda: began + 31_000
            assert (await client.ask(37, commitOrRollback=COMMIT, **asked)).code == 604
            told = await client.ask(37, commitOrRollback=COMMIT, fromTransactionCheck=True, **asked)
            assert told.code == 0

    run(told)


def test_times_and_kinds() -> None:
    assert [immunity_ms(text, 6_000) for text in ("30", "1", "x", "-5")] == [30_000, 6_000, 6_000, 6_000]
    assert is_half({"TRAN_MSG": "TRUE"}, 0)
    assert is_half({"TRAN_MSG": "true", "DELAY": "3"}, 0)
    assert not is_half({"TRAN_MSG": "true", "DELAY": "3"}, 1)
    assert not is_half({}, 0)
