"""What the window sends again: exactly the planned messages, once, with a result that can be shown."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from engine_units import units_of
from guarded_broker import SECRET, credential_files, guarded_beside
from handmade_stores import HandmadeStore

from engine.broker.serving import serving_beside
from engine.cli.main import main
from engine.errors import CannotRead, UsageError
from engine.message_store import MessageStore
from viewer.log.resend_work import ResendChoice, ResendResult, plan, send
from viewer.runtime.jobs import Cancelled, Control


@pytest.fixture
def source(tmp_path: Path) -> Path:
    store = HandmadeStore()
    for key in "ABC":
        store.put("%DLQ%billing", unique=key, more={"RETRY_TOPIC": "Orders"})
    store.put("%DLQ%billing", unique="D", more={"RETRY_TOPIC": "Payments"})
    return store.write(tmp_path / "source")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    with MessageStore(tmp_path / "target") as store:
        store.tables.create_topic("Orders", 1)
    return tmp_path / "target"


def control() -> Control:
    return Control(lambda *_: None)


def choice(address: str, tmp_path: Path, **options) -> ResendChoice:
    return ResendChoice(address, tmp_path / "sent.jsonl", **({"where": 'topic startswith "%DLQ%"'} | options))


def test_what_was_planned_is_sent_once(source: Path, target: Path, tmp_path: Path) -> None:
    with serving_beside(target) as addresses:
        chosen = choice(addresses.broker, tmp_path)
        planned = plan(control(), source, None, chosen, 0)
        assert [(share.topic, share.messages) for share in planned.topics()] == [("Orders", 3)]
        assert [count for reason, count in planned.reasons().items() if "Payments" in reason] == [1]
        messages = tuple(planned.to_send)
        assert send(control(), source, None, chosen, messages) == ResendResult(3, 0, 0, 0, "")
        assert send(control(), source, None, chosen, messages) == ResendResult(0, 0, 0, 0, "")
        assert plan(control(), source, None, chosen, 0).to_send == []
    assert [unit.unique_key for unit in units_of(target)] == ["A", "B", "C"]


def test_chosen_offsets_are_sent(source: Path, target: Path, tmp_path: Path) -> None:
    offsets = tuple(unit.offset for unit in units_of(source))
    with serving_beside(target) as addresses:
        chosen = choice(addresses.namesrv, tmp_path, offsets=offsets[1:2])
        planned = plan(control(), source, None, chosen, 0)
        assert send(control(), source, None, chosen, tuple(planned.to_send)).sent == 1
    assert [unit.unique_key for unit in units_of(target)] == ["B"]


def test_a_capsule_has_no_bodies_to_send(source: Path, tmp_path: Path) -> None:
    assert main(["capsule", str(source), "-o", str(tmp_path / "capsule"), "--quiet"]) == 0
    with pytest.raises(UsageError, match="a capsule has no bodies"):
        plan(control(), tmp_path / "capsule", None, choice("127.0.0.1:1", tmp_path), 0)


def test_a_stop_ends_the_sends_and_a_plan(source: Path, target: Path, tmp_path: Path) -> None:
    with serving_beside(target) as addresses:
        chosen = choice(addresses.broker, tmp_path, rate=4.0)
        planned = plan(control(), source, None, chosen, 0)
        stopping = control()
        timer = threading.Timer(0.1, stopping.stop.set)
        timer.start()
        result = send(stopping, source, None, chosen, tuple(planned.to_send))
        timer.join()
        assert (result.sent + result.remaining, result.refused, result.unknown) == (3, 0, 0)
        assert result.remaining > 0
        with pytest.raises(Cancelled):
            plan(stopping, source, None, choice(addresses.broker, tmp_path, where="size > 1", offsets=(0,)), 0)


def test_files_name_the_account_and_tls(source: Path, target: Path, tmp_path: Path) -> None:
    (_, account, _, tls), refused = credential_files(tmp_path), credential_files(tmp_path, "stranger", "wrong-wrong")[1]
    with guarded_beside(target, tmp_path, "5.5") as addresses:
        chosen = choice(addresses.broker, tmp_path, account_file=account, tls_file=tls)
        planned = plan(control(), source, None, chosen, 0)
        assert send(control(), source, None, chosen, tuple(planned.to_send)) == ResendResult(3, 0, 0, 0, "")
        for options in ({}, {"tls_file": tls}, {"account_file": refused, "tls_file": tls}):
            with pytest.raises(CannotRead):
                plan(control(), source, None, choice(addresses.broker, tmp_path / "new", **options), 0)
    assert SECRET not in (tmp_path / "sent.jsonl").read_text()


def test_a_broker_that_is_gone_is_named(source: Path, target: Path, tmp_path: Path) -> None:
    with serving_beside(target) as addresses:
        chosen = choice(addresses.broker, tmp_path)
        planned = plan(control(), source, None, chosen, 0)
    result = send(control(), source, None, chosen, tuple(planned.to_send))
    assert (result.sent, result.remaining) == (0, 3)
    assert "cannot be reached" in result.reason
    with pytest.raises(CannotRead, match="cannot be reached"):
        plan(control(), source, None, chosen, 0)
