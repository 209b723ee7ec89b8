"""Dead letters of a real broker's store are sent to a running real broker: RocketMQ's Java client consumes each once,
with its message id, and with the tags, keys and bodies that their producer gave them.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest
import real_cluster
from certificates import tls_properties
from engine_units import units_of
from handmade_stores import HandmadeStore
from other_clients import OtherClient

from engine.cli.main import main
from engine.client.admin import Admin
from engine.client.instance import ClientInstance
from engine.codec.compression import unpack
from engine.remoting.client_account import ClientAccount
from engine.remoting.codes import RequestCode
from engine.remoting.tls import read_client_tls

pytestmark = [pytest.mark.peer, pytest.mark.clients_full, pytest.mark.timeout(400)]


@pytest.mark.parametrize(
    ("name", "where", "release"),
    [
        ("broker-retries-5.5.1", 'topic startswith "%DLQ%"', "5.5.0"),
        ("broker-retries-4.9.7", 'topic startswith "%DLQ%" or topic startswith "%RETRY%"', "4.9.7"),
        ("broker-pop-5.5.1", 'topic startswith "%RETRY%"', "5.5.0"),
        ("broker-transactions-4.9.7", 'topic = "RMQ_SYS_TRANS_HALF_TOPIC"', "5.5.0"),
        ("broker-orders-5.5.1", "sysFlag & 1 != 0", "5.5.0"),
    ],
)
def test_a_java_consumer_gets_each_message_once(
    golden, monkeypatch, tmp_path: Path, capsys, name: str, where: str, release: str
) -> None:
    journal = tmp_path / "sent.jsonl"
    ports = ("--namesrv-port", real_cluster.free_port(), "--port", real_cluster.free_port())
    monkeypatch.setenv("CLIENT_RELEASE", release)
    with real_cluster.real(tmp_path / "cluster", *ports, "--small", release=release) as status:
        command = ["resend", str(golden(name)), "--where", where, "--to", status["broker"], "--journal", str(journal)]
        assert main([*command, "--plan", "--json"]) == 1  # the new broker does not have the topics
        plan = json.loads(capsys.readouterr().out)
        topics = {row.split(" has no topic ")[1].split()[0] for row in plan["cannotBeSent"] if " has no topic " in row}
        client = OtherClient("java", status["namesrv"], tmp_path / "client")
        try:
            asyncio.run(create(status["namesrv"], topics))
            subscriptions = {topic: {"type": "TAG", "expression": "*"} for topic in topics}
            client.run(do="consumer", id="reader", group="readsAgain", topics=subscriptions)
            main([*command, "--yes", "--json"])
            records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
            sent = {row["msgId"]: row for row in records if row.get("result") == "sent"}
            assert records[-1]["sent"] == len(sent) > 5
            assert (records[-1]["refused"], records[-1]["unknown"], records[-1]["remaining"]) == (0, 0, 0)
            client.wait_until(lambda lines: len(received(lines)) >= len(sent), "not every message came")
            assert main([*command, "--plan", "--json"]) in {0, 1}
            assert json.loads(capsys.readouterr().out)["toSend"] == 0
            handed = [line for line in client.lines if line["event"] == "received"]
        finally:
            client.end()
    assert received(handed) == Counter(sent.keys())
    originals = {unit.offset: unit for unit in units_of(golden(name))}
    stored = {unit.unique_key: unit for unit in units_of(tmp_path / "cluster") if unit.unique_key in sent}
    assert stored.keys() == sent.keys()
    for line in handed:
        row = sent[line["msgId"]]
        original, unit = originals[row["physicalOffset"]], stored[line["msgId"]]
        assert (unit.topic, unit.queue_id, unit.queue_offset) == (row["topic"], row["queueId"], row["queueOffset"])
        assert unit.offset_msg_id == row["offsetMsgId"]
        assert (unit.body, unit.tags, unit.keys, unit.flag) == (
            original.body,
            original.tags,
            original.keys,
            original.flag,
        )
        assert unpack(unit.body, unit.sys_flag).data == unpack(original.body, original.sys_flag).data
        assert "".join(line["keys"]) == original.properties.get("KEYS", "")
        assert line["body"].encode() == unpack(original.body, original.sys_flag).data


ACCOUNTS = """\
accounts:
- accessKey: adminuser
  secretKey: 87654321
  admin: true
- accessKey: producer
  secretKey: 12345678
  topicPerms:
  - Orders=PUB
"""


@pytest.mark.parametrize(("release", "rules"), [("5.5.0", "5.3"), ("4.9.7", "4.9")])
def test_a_broker_that_requires_tls_and_accounts(tmp_path: Path, capsys, release: str, rules: str) -> None:
    """The real broker refuses plain connections, unsigned requests and a wrong secret. The name server permits both:
    the program that starts the broker asks it without TLS. An account that may do nothing but send suffices.
    """
    (tmp_path / "real" / "home" / "conf").mkdir(parents=True)
    (tmp_path / "real" / "home" / "conf" / "plain_acl.yml").write_text(ACCOUNTS)
    tls_file = tls_properties(tmp_path, "enforcing")
    tls_file.write_text(
        f"{tls_file.read_text()}tls.client.authServer=true\ntls.client.trustCertPath={tmp_path / 'server.pem'}\n"
    )
    settings = real_cluster.ACCOUNT_SETTINGS[rules]
    options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    source = HandmadeStore()
    for key in "ABCDE":
        source.put("%DLQ%billing", unique=key, body=b"tea", more={"RETRY_TOPIC": "Orders"})
    source.write(tmp_path / "source")
    tls = ["--tls", str(tls_file)]
    administrator, producer, wrong = (
        [*tls, *account_file(tmp_path, *names)]
        for names in (("adminuser", "87654321"), ("producer", "12345678"), ("adminuser", "12345678"))
    )
    temporary = [*tls, *account_file(tmp_path, "producer", "12345678", "a-token")]
    names_options = ["-Dtls.test.mode.enable=false", f"-Dtls.config.file={tls_file}"]
    jvm_options = [*names_options, "-Dtls.enable=true", "-Dtls.server.mode=enforcing"]
    port, names_port = real_cluster.free_port(), real_cluster.free_port()
    namesrv = f"127.0.0.1:{names_port}"
    with (
        real_cluster.real(tmp_path / "names", "--namesrv-port", names_port, release=release, jvm_options=names_options),
        real_cluster.real(
            tmp_path / "real",
            *("--namesrv", namesrv, "--port", port, "--small", *options),
            release=release,
            jvm_options=jvm_options,
        ) as status,
    ):
        asyncio.run(prepare(namesrv, status["broker"], tls_file))
        command = ["resend", str(tmp_path / "source"), "--yes", "--json", "--journal"]

        def resend(key: str, to: str, *credentials: str) -> tuple[int, str, str]:
            where = ["--where", f'uniqueKey = "{key}"', "--to", to]
            code = main([*command, str(tmp_path / f"{key}.jsonl"), *where, *credentials])
            captured = capsys.readouterr()
            return code, captured.out, captured.err

        code, _, error = resend("A", status["broker"])
        assert (code, "has ended; does it require TLS?" in error) == (3, True), error
        code, _, error = resend("A", status["broker"], *tls)
        assert (code, "does it require an account?" in error) == (3, True), error
        code, _, error = resend("A", status["broker"], *wrong)
        assert (code, "refused by" in error) == (3, True), error
        for key, to, credentials in (
            ("A", status["broker"], administrator),
            ("B", namesrv, administrator),
            ("C", namesrv, producer),
            ("D", status["broker"], producer),
            ("E", namesrv, temporary),
        ):
            code, out, error = resend(key, to, *credentials)
            assert code == 0, out + error
        move = ["-n", namesrv, "-g", "billing", "-t", "Orders", "--yes", "--json"]
        undo_file = ["--undo-file", str(tmp_path / "undo.json")]
        assert main(["resetOffsetByTime", "-s", "0", *move, *undo_file, *administrator]) == 0
        assert main(["skipAccumulatedMessage", *move, "--undo-file", str(tmp_path / "undo2.json"), *administrator]) == 0
        moves = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert moves["never"] == 5
        assert main(["cluster", namesrv, "--json", *administrator]) in {0, 1}
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        progress = [row for row in rows if row["type"] == "clusterProgress" and row["group"] == "billing"]
        assert sum(row["offset"] for row in progress) == 5
    stored = [unit.unique_key for unit in units_of(tmp_path / "real") if unit.topic == "Orders"]
    assert sorted(map(str, stored)) == ["A", "B", "C", "D", "E"]


def account_file(folder: Path, access_key: str, secret_key: str, token: str = "") -> list[str]:
    file = folder / f"{access_key}-{secret_key}{token}.yml"
    file.write_text(f"accessKey: {access_key}\nsecretKey: {secret_key}\nsecurityToken: {token}\n")
    return ["--account", str(file)]


async def prepare(namesrv: str, broker: str, tls_file: Path) -> None:
    """Create a topic and a group as the administrator."""
    account, tls = ClientAccount("adminuser", "87654321"), read_client_tls(tls_file)[0]
    instance = ClientInstance(namesrv, account=account, tls=tls)
    try:
        async with Admin(instance=instance) as admin:
            await admin.create_topic("Orders", 4)
            group = json.dumps({"groupName": "billing"}).encode()
            await instance.call(broker, RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, group)
    finally:
        await instance.kill()


async def create(namesrv: str, topics: set[str]) -> None:
    async with Admin(namesrv) as admin:
        for topic in topics:
            await admin.create_topic(topic, 4)


def received(lines: list) -> Counter:
    """Return how often each message id came."""
    return Counter(line["msgId"] for line in lines if line["event"] == "received")
