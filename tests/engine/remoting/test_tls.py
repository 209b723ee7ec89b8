"""TLS modes: who must use TLS, who may, and how a server treats other clients."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from certificates import self_signed, tls_properties

from engine.errors import CannotRead, StoreError
from engine.remoting.connection import Connection, Limits, Server, bind, connect, port_of
from engine.remoting.frame import Command, answer_to
from engine.remoting.tls import DEFAULT_TLS, Tls, read_client_tls, read_tls

PLAIN, SECRET = False, True


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def run(tls: Tls, body: Callable[[int, Server], object], limits: Limits | None = None) -> None:
    async def scenario() -> None:
        with bind("127.0.0.1", 0) as bound:
            server = Server(lambda request, _: answer_to(request, body=bytes(request.body)), limits, tls)
            await server.listen(bound)
            try:
                await body(port_of(bound), server)
            finally:
                await server.close()

    asyncio.run(scenario())


async def answer_or_none(port: int, secret: bool, body: bytes = b"asked") -> bytes | None:
    """Return the server's answer; None if it closes the connection."""
    try:
        connection = await connect("127.0.0.1", port, tls=trusting() if secret else None)
        try:
            return bytes((await connection.ask(Command(105, body=body))).body)
        finally:
            connection.close()
    except (OSError, ConnectionError, ssl.SSLError):
        return None


@pytest.mark.parametrize(
    ("mode", "plain", "secret"),
    [("disabled", True, False), ("permissive", True, True), ("enforcing", False, True)],
)
def test_the_mode_decides_which_clients_are_answered(tmp_path: Path, mode: str, plain: bool, secret: bool) -> None:
    tls, without_effect = read_tls(tls_properties(tmp_path, mode))
    assert without_effect == []

    async def both(port: int, server: Server) -> None:
        for _ in range(2):
            assert (await answer_or_none(port, PLAIN) is not None) is plain
            assert (await answer_or_none(port, SECRET) is not None) is secret
        large = b"x" * 3_000_000
        if secret:
            assert await answer_or_none(port, SECRET, large) == large
        for _ in range(200):
            if not server.connections:
                break
            await asyncio.sleep(0.02)
        assert not server.connections

    run(tls, both)


def test_without_a_certificate_tls_is_refused_and_plain_requests_are_answered(tmp_path: Path) -> None:
    file = tmp_path / "tls.properties"
    text = "tls.server.mode=permissive\ntls.client.keyPath=x\ntls.server.nonsense=1\ntls.test.mode.enable=false\n"
    file.write_text(text)
    tls, without_effect = read_tls(file)
    assert without_effect == ["tls.server.nonsense"]
    assert tls.context is None

    async def both(port: int, _: Server) -> None:
        assert await answer_or_none(port, PLAIN) == b"asked"
        assert await answer_or_none(port, SECRET) is None

    run(tls, both)


@pytest.mark.parametrize("mode", ["", "permissive", "enforcing"])
def test_without_a_certificate_a_server_makes_its_own_as_rocketmqs_do(tmp_path: Path, mode: str) -> None:
    """RocketMQ's TlsIT and TlsMixIT failed: connections that began with TLS were closed."""
    file = tmp_path / "tls.properties"
    file.write_text(f"tls.server.mode={mode}\n")
    tls = read_tls(file)[0] if mode else DEFAULT_TLS

    async def both(port: int, _: Server) -> None:
        assert await answer_or_none(port, PLAIN) == (None if mode == "enforcing" else b"asked")
        assert await answer_or_none(port, SECRET) == b"asked"

    run(tls, both)


def test_silent_and_invalid_clients_block_no_others(tmp_path: Path) -> None:
    tls, _ = read_tls(tls_properties(tmp_path, "permissive", "pass word"))

    async def silent(port: int, server: Server) -> None:
        opened = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        try:
            opened[0].sendall(b"\x16\x03\x01nonsense, and no handshake follows" * 20)
            opened[1].close()
            assert await answer_or_none(port, SECRET) == b"asked"
            async with asyncio.timeout(60):
                while server._beginning:  # until they have been idle for too long
                    await asyncio.sleep(0.01)
            assert await answer_or_none(port, PLAIN) == b"asked"
        finally:
            for item in opened:
                item.close()

    run(tls, silent, Limits(idle=0.5))


def test_connections_over_the_limit_are_refused(tmp_path: Path) -> None:
    tls, _ = read_tls(tls_properties(tmp_path, "permissive"))

    async def many(port: int, _: Server) -> None:
        opened: list[Connection] = [await connect("127.0.0.1", port) for _ in range(3)]
        assert [bytes((await connection.ask(Command(105, body=b"a"))).body) for connection in opened] == [b"a"] * 3
        assert await answer_or_none(port, PLAIN) is None
        for connection in opened:
            connection.close()

    run(tls, many, Limits(connections=3))


def test_clients_show_a_certificate_where_they_must(tmp_path: Path) -> None:
    file = tls_properties(tmp_path, "enforcing")
    (tmp_path / "theirs").mkdir()
    certificate, secret = self_signed(tmp_path / "theirs")
    with file.open("a") as extra:
        extra.write(f"tls.server.need.client.auth=require\ntls.server.trustCertPath={certificate}\n")
    tls, _ = read_tls(file)

    async def check(port: int, _: Server) -> None:
        assert await answer_or_none(port, SECRET) is None
        context = trusting()
        context.load_cert_chain(certificate, secret)
        connection = await connect("127.0.0.1", port, tls=context)
        assert bytes((await connection.ask(Command(105, body=b"known"))).body) == b"known"
        connection.close()

    run(tls, check)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tls.server.mode=always", "tls.server.mode: expected disabled, permissive, enforcing, found 'always'"),
        ("tls.server.mode=enforcing\ntls.test.mode.enable=false", "tls.server.certPath: expected a certificate"),
        ("tls.server.need.client.auth=maybe", "tls.server.need.client.auth: expected none, optional, require"),
        ("tls.server.certPath=/nowhere/x.pem", "No such file"),
        ("tls.test.mode.enable=yes", "expected true or false"),
        ("tls.enable=true\ntls.client.authServer=true", "tls.client.trustCertPath: no certificates"),
    ],
)
def test_an_invalid_tls_configuration_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "tls.properties"
    file.write_text(text + "\n")
    with pytest.raises(StoreError, match=words):
        read_tls(file)


def test_a_key_of_another_certificate_is_reported(tmp_path: Path) -> None:
    file = tls_properties(tmp_path, "permissive")
    (tmp_path / "other").mkdir()
    _, other_key = self_signed(tmp_path / "other")
    file.write_text(file.read_text().replace(str(tmp_path / "server.key"), str(other_key)))
    with pytest.raises(CannotRead, match=r"KEY_VALUES_MISMATCH|no certificate with its key"):
        read_tls(file)
    other_key.write_bytes(b"nonsense")
    with pytest.raises(CannotRead, match="no certificate with its key"):
        read_tls(file)


def client_file(folder: Path, *lines: str) -> Path:
    file = folder / "client.properties"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_a_client_verifies_the_server_only_where_its_file_says_so(tmp_path: Path) -> None:
    tls, _ = read_tls(tls_properties(tmp_path, "enforcing"))
    (tmp_path / "foreign").mkdir()
    foreign, _ = self_signed(tmp_path / "foreign")
    verifying = "tls.client.authServer=true"

    async def ask(port: int, _server: Server) -> None:
        for lines, is_accepted in (
            ((), True),
            ((verifying, f"tls.client.trustCertPath={tmp_path / 'server.pem'}"), True),
            ((verifying, f"tls.client.trustCertPath={foreign}"), False),
        ):
            context, unknown = read_client_tls(client_file(tmp_path, *lines))
            assert unknown == []
            if not is_accepted:
                with pytest.raises(ssl.SSLError, match="self-signed certificate"):
                    await connect("127.0.0.1", port, tls=context)
                continue
            connection = await connect("127.0.0.1", port, tls=context)
            assert bytes((await connection.ask(Command(105, body=b"asked"))).body) == b"asked"
            connection.close()

    run(tls, ask)


def test_a_client_shows_its_certificate_to_a_server_that_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "client").mkdir()
    certificate, key = self_signed(tmp_path / "client", password="sesame")
    server_file = tls_properties(tmp_path, "enforcing")
    with server_file.open("a") as file:
        file.write(f"tls.server.need.client.auth=require\ntls.server.trustCertPath={certificate}\n")
    lines = (f"tls.client.certPath={certificate}", f"tls.client.keyPath={key}", "tls.client.keyPassword=sesame")
    context, _ = read_client_tls(client_file(tmp_path, *lines))

    async def ask(port: int, _server: Server) -> None:
        assert await answer_or_none(port, SECRET) is None  # no certificate
        connection = await connect("127.0.0.1", port, tls=context)
        assert bytes((await connection.ask(Command(105, body=b"asked"))).body) == b"asked"
        connection.close()

    run(read_tls(server_file)[0], ask)


def test_a_client_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path, password="sesame")
    lines = (f"tls.client.certPath={certificate}", f"tls.client.keyPath={key}", "tls.client.keyPassword=wrong")
    with pytest.raises(CannotRead, match="no certificate with its key") as raised:
        read_client_tls(client_file(tmp_path, *lines))
    assert "wrong" not in str(raised.value)
    with pytest.raises(CannotRead, match=r"named in .*client\.properties"):
        read_client_tls(client_file(tmp_path, f"tls.client.certPath={tmp_path / 'none.pem'}"))


def test_a_connection_ends_though_the_server_does_not_acknowledge_it(tmp_path: Path) -> None:
    """RocketMQ's brokers do not. Each command waited for its last connections until it gave up, and left them open."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*self_signed(tmp_path))
    ended = threading.Event()

    def serve(listener: socket.socket) -> None:
        accepted, _ = listener.accept()
        with accepted, context.wrap_socket(accepted, server_side=True) as secret:
            secret.recv(1)  # the client's end of TLS
            ended.wait(10)

    async def end(port: int) -> None:
        connection = await connect("127.0.0.1", port, tls=trusting())
        connection.close()
        async with asyncio.timeout(5):
            await connection.closed.wait()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            asyncio.run(end(listener.getsockname()[1]))
        finally:
            ended.set()
            thread.join()
