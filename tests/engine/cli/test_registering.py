"""``serve`` beyond this machine: which keys of a broker's file apply, and that no other broker's route is taken."""

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
from engine.cli.registering import effective_configs, registration_words
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


def test_a_copy_with_the_brokers_own_file_is_served_on_this_machine_only(production: Addresses, tmp_path: Path) -> None:
    """The file's `namesrvAddr` acted like `--namesrv`: production's clients were sent to the copy, and its stop removed
    production's route for half a minute.
    """
    brokers_before = brokers(production)
    with served(tmp_path / "copy", "--config", conf(tmp_path, production.namesrv, "SLAVE")) as (process, record):
        assert record["namesrv"] not in (None, production.namesrv)
        assert record["broker"].startswith("127.0.0.1:"), "brokerIP1 of production would lead clients there"
        assert brokers(production) == brokers_before
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
        assert process.stderr is not None
        output = process.stderr.read()
    line = next(line for line in output.splitlines() if "without effect here" in line)
    for key in ("namesrvAddr", "brokerIP1", "haMasterAddress", "brokerRole=SLAVE", "--register"):
        assert key in line
    assert brokers(production) == brokers_before


@pytest.mark.parametrize("words", [("--namesrv", "NAMESRV"), ("--register",), ("--register", "--yes")])
def test_a_route_that_another_address_holds_is_refused_by_both_addresses(
    production: Addresses, tmp_path: Path, words: tuple[str, ...]
) -> None:
    brokers_before = brokers(production)
    namesrvs = [production.namesrv if word == "NAMESRV" else word for word in words]
    file = conf(tmp_path, production.namesrv, brokerIP1="127.0.0.1")
    code, output = run_command("serve", str(tmp_path / "copy"), "--config", file, *namesrvs, "--port", "31999")
    assert code == 2
    line = output.strip().splitlines()[-1]
    assert production.broker in line
    assert "127.0.0.1:31999" in line
    assert not (tmp_path / "copy").exists()
    assert brokers(production) == brokers_before


def test_registering_elsewhere_needs_confirmation_and_lists_the_brokers_there(
    production: Addresses, tmp_path: Path
) -> None:
    file = conf(tmp_path, production.namesrv, brokerName="broker-copy", brokerIP1="127.0.0.1")
    brokers_before = brokers(production)
    code, output = run_command("serve", str(tmp_path / "copy"), "--config", file, "--register", "--port", "31999")
    assert code == 2
    assert f"broker-a at {production.broker}" in output
    assert "--yes" in output.splitlines()[-1]
    assert (brokers(production), (tmp_path / "copy").exists()) == (brokers_before, False)


def test_with_yes_it_registers_and_removes_only_its_own_route(production: Addresses, tmp_path: Path) -> None:
    file = conf(tmp_path, production.namesrv, brokerName="broker-copy", brokerIP1="127.0.0.1")
    brokers_before = brokers(production)
    with served(tmp_path / "copy", "--config", file, "--register", "--yes") as (process, record):
        assert record["registered"] == [production.namesrv]
        assert record["broker"] in brokers(production)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
    assert brokers(production) == brokers_before


def test_a_new_slave_is_written_in_the_release_of_its_master(tmp_path: Path) -> None:
    """Each new slave was written in the newest release, whatever its master's release was."""
    with MessageStore(tmp_path / "production", release="4.9") as store:
        store.put_message(Message("Orders", b"x", 0))
    with serving_beside(tmp_path / "production", BrokerConfig(broker_name="broker-a")) as production:
        words = ("--config", str(tmp_path / "broker.conf"), "--namesrv", production.namesrv)
        (tmp_path / "broker.conf").write_text("brokerName=broker-a\nbrokerId=1\nbrokerRole=SLAVE\n")
        with served(tmp_path / "slave", *words) as (_, record):
            (answer,) = responses_of(record["broker"], Command(RequestCode.GET_BROKER_RUNTIME_INFO))
    assert json.loads(bytes(answer.body))["table"]["storeRelease"] == "4.9"


def test_a_silent_name_server_is_named_until_it_answers(tmp_path: Path) -> None:
    """`serve --namesrv` printed "registered with" although no server answered."""
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


def test_only_some_keys_of_a_file_apply() -> None:
    store, _ = parse_properties("brokerRole=SLAVE\nhaMasterAddress=10.0.0.1:10912\n")
    broker = BrokerConfig(namesrv_addr="10.0.0.1:9876", broker_ip="10.20.30.40")
    keys = ("namesrvAddr", "brokerIP1", "haMasterAddress", "brokerRole=SLAVE")
    assert effective_configs(arguments(), broker, store).left_out == keys
    assert effective_configs(arguments(namesrv=["n:1"]), broker, store).left_out == keys[:3], (
        "the user named the cluster"
    )
    assert effective_configs(arguments(host="0.0.0.0"), broker, store).left_out == keys, "no address of this machine"
    assert effective_configs(arguments(register=True), broker, store) == (broker, store, ())
    assert effective_configs(arguments(), BrokerConfig(), None).left_out == ()
    assert effective_configs(arguments(host="0.0.0.0"), BrokerConfig(broker_ip="127.0.0.2"), None).left_out == ()
    with pytest.raises(UsageError, match="--config"):
        effective_configs(arguments(register=True, config=None), broker, store)
    assert json.dumps(keys)


def test_a_refusal_changes_no_existing_store(production: Addresses, tmp_path: Path) -> None:
    code, _ = run_command("serve", str(tmp_path / "store"), "--namesrv", production.namesrv, *FREE)
    assert code == 2, "broker-a is the default name, too"
    assert not (tmp_path / "store").exists()
    (tmp_path / "store").mkdir()
    files_before = bytes_of(tmp_path / "store")
    run_command("serve", str(tmp_path / "store"), "--namesrv", production.namesrv, *FREE)
    assert bytes_of(tmp_path / "store") == files_before
