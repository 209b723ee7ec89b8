"""``serve`` beyond this machine: what of a broker's file counts, and that nobody's route is taken."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_stores import FREE, bytes_of, responses_of, served

from engine.broker.config import BrokerConfig
from engine.broker.serving import Addresses, serving_beside
from engine.cli.main import main
from engine.cli.registering import registration_words, within_reach
from engine.codec.encode import Message
from engine.config import parse_properties
from engine.errors import UsageError
from engine.message_store import MessageStore
from engine.remoting.codes import RequestCode
from engine.remoting.frame import Command

CONF = """\
brokerClusterName=PeerCluster
brokerName=broker-a
brokerId=0
namesrvAddr={namesrv}
brokerIP1=10.20.30.40
brokerRole={role}
haMasterAddress=10.20.30.41:10912
"""


@pytest.fixture
def production(tmp_path: Path) -> Iterator[Addresses]:
    with serving_beside(tmp_path / "production", BrokerConfig(broker_name="broker-a")) as addresses:
        yield addresses


def conf(folder: Path, namesrv: str, role: str = "ASYNC_MASTER", **options: str) -> str:
    file = folder / "broker.conf"
    file.write_text(
        CONF.format(namesrv=namesrv, role=role) + "".join(f"{key}={text}\n" for key, text in options.items())
    )
    return str(file)


def run_command(*words: str) -> tuple[int, str]:
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        return main(list(words)), err.getvalue()


def brokers(addresses: Addresses) -> str:
    (answer,) = responses_of(addresses.namesrv, Command(RequestCode.GET_BROKER_CLUSTER_INFO))
    return bytes(answer.body).decode()


def test_a_copy_with_the_broker_s_own_file_is_served_here_and_nowhere_else(
    production: Addresses, tmp_path: Path
) -> None:
    """`namesrvAddr` of the file counted like `--namesrv`: production's clients were sent to the copy, and its end took
    production's route out for half a minute.
    """
    before = brokers(production)
    with served(tmp_path / "copy", "--config", conf(tmp_path, production.namesrv, "SLAVE")) as (process, record):
        assert record["namesrv"] not in (None, production.namesrv)
        assert record["broker"].startswith("127.0.0.1:"), "brokerIP1 of production would lead clients there"
        assert brokers(production) == before
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
        assert process.stderr is not None
        output = process.stderr.read()
    line = next(line for line in output.splitlines() if "without effect here" in line)
    for key in ("namesrvAddr", "brokerIP1", "haMasterAddress", "brokerRole=SLAVE", "--register"):
        assert key in line
    assert brokers(production) == before


@pytest.mark.parametrize("words", [("--namesrv", "NAMESRV"), ("--register",), ("--register", "--yes")])
def test_a_route_that_another_address_holds_is_refused_by_both_addresses(
    production: Addresses, tmp_path: Path, words: tuple[str, ...]
) -> None:
    before = brokers(production)
    namesrvs = [production.namesrv if word == "NAMESRV" else word for word in words]
    file = conf(tmp_path, production.namesrv, brokerIP1="127.0.0.1")
    code, output = run_command("serve", str(tmp_path / "copy"), "--config", file, *namesrvs, "--port", "31999")
    assert code == 2
    line = output.strip().splitlines()[-1]
    assert production.broker in line
    assert "127.0.0.1:31999" in line
    assert not (tmp_path / "copy").exists()
    assert brokers(production) == before


def test_registering_elsewhere_is_asked_about_naming_what_stands_there(production: Addresses, tmp_path: Path) -> None:
    file = conf(tmp_path, production.namesrv, brokerName="broker-copy", brokerIP1="127.0.0.1")
    before = brokers(production)
    code, output = run_command("serve", str(tmp_path / "copy"), "--config", file, "--register", "--port", "31999")
    assert code == 2
    assert f"broker-a at {production.broker}" in output
    assert "--yes" in output.splitlines()[-1]
    assert (brokers(production), (tmp_path / "copy").exists()) == (before, False)


def test_with_the_word_it_registers_and_takes_only_its_own_route_out(production: Addresses, tmp_path: Path) -> None:
    file = conf(tmp_path, production.namesrv, brokerName="broker-copy", brokerIP1="127.0.0.1")
    before = brokers(production)
    with served(tmp_path / "copy", "--config", file, "--register", "--yes") as (process, record):
        assert record["registered"] == [production.namesrv]
        assert record["broker"] in brokers(production)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
    assert brokers(production) == before


def test_a_new_slave_is_written_as_the_release_of_its_master(tmp_path: Path) -> None:
    """Each new slave was written as one of the newest release, whatever its master was."""
    with MessageStore(tmp_path / "production", release="4.9") as store:
        store.put_message(Message("Orders", b"x", 0))
    with serving_beside(tmp_path / "production", BrokerConfig(broker_name="broker-a")) as production:
        words = ("--config", str(tmp_path / "broker.conf"), "--namesrv", production.namesrv)
        (tmp_path / "broker.conf").write_text("brokerName=broker-a\nbrokerId=1\nbrokerRole=SLAVE\n")
        with served(tmp_path / "slave", *words) as (_, record):
            (answer,) = responses_of(record["broker"], Command(RequestCode.GET_BROKER_RUNTIME_INFO))
    assert json.loads(bytes(answer.body))["table"]["storeRelease"] == "4.9"


def test_a_name_server_that_does_not_answer_yet_is_named_until_it_does(tmp_path: Path) -> None:
    """`serve --namesrv` said "registered with" though nobody answered there."""
    code_words = ("--namesrv", "127.0.0.1:1", "--config", str(tmp_path / "broker.conf"))
    (tmp_path / "broker.conf").write_text("brokerName=north\n")
    with served(tmp_path / "store", *code_words) as (process, record):
        assert record["registered"] == []
        assert "refused" in record["notRegistered"]["127.0.0.1:1"]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
    assert registration_words([], {"a:1": "Connection refused"}) == "not yet registered with a:1: Connection refused"
    assert registration_words(["b:1"], {}) == "registered with b:1"


def arguments(**options: object) -> argparse.Namespace:
    return argparse.Namespace(
        **{"register": False, "config": "c", "namesrv": None, "host": "127.0.0.1", **options}  # type: ignore[arg-type]
    )


def test_which_keys_of_a_file_count() -> None:
    store, _ = parse_properties("brokerRole=SLAVE\nhaMasterAddress=10.0.0.1:10912\n")
    broker = BrokerConfig(namesrv_addr="10.0.0.1:9876", broker_ip="10.20.30.40")
    keys = ("namesrvAddr", "brokerIP1", "haMasterAddress", "brokerRole=SLAVE")
    assert within_reach(arguments(), broker, store).left_out == keys
    assert within_reach(arguments(namesrv=["n:1"]), broker, store).left_out == keys[:3], "the user named the cluster"
    assert within_reach(arguments(host="0.0.0.0"), broker, store).left_out == keys, "no address of this machine"
    assert within_reach(arguments(register=True), broker, store) == (broker, store, ())
    assert within_reach(arguments(), BrokerConfig(), None).left_out == ()
    assert within_reach(arguments(host="0.0.0.0"), BrokerConfig(broker_ip="127.0.0.2"), None).left_out == ()
    with pytest.raises(UsageError, match="--config"):
        within_reach(arguments(register=True, config=None), broker, store)
    assert json.dumps(keys)


def test_a_store_that_is_there_is_not_touched_by_a_refusal(production: Addresses, tmp_path: Path) -> None:
    code, _ = run_command("serve", str(tmp_path / "store"), "--namesrv", production.namesrv, *FREE)
    assert code == 2, "broker-a is the default name, too"
    assert not (tmp_path / "store").exists()
    (tmp_path / "store").mkdir()
    before = bytes_of(tmp_path / "store")
    run_command("serve", str(tmp_path / "store"), "--namesrv", production.namesrv, *FREE)
    assert bytes_of(tmp_path / "store") == before
