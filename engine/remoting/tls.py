"""TLS as RocketMQ's ``tls.properties`` configures it. For a server: who must use it, who may, and with which
certificate. For a client: whom it trusts, and which certificate it shows.

The first byte of a connection decides (docs/protocol/frames.md#frame). It is peeked before anything is read, so that
one port serves both. Java: ``TlsSystemConfig``, ``TlsHelper``, the handshake handler of ``NettyRemotingServer``.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

from engine.errors import CannotRead, UsageError
from engine.files.properties_file import read_text
from engine.remoting.frame import TLS_HELLO
from engine.remoting.own_certificate import own_context
from engine.remoting.settings import key, overlay
from engine.sentences import sentence

MODES = ("disabled", "permissive", "enforcing")
HANDSHAKE_TIMEOUT_S = 10.0
"""Seconds that a client may take to agree on a key."""
_CLIENTS = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "require": ssl.CERT_REQUIRED}


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """The keys of ``tls.properties`` that a server reads."""

    mode: str = key("tls.server.mode", "permissive")
    key_path: str = key("tls.server.keyPath", "")
    """PEM, PKCS#8."""
    key_password: str = key("tls.server.keyPassword", "")
    cert_path: str = key("tls.server.certPath", "")
    """PEM, the chain behind the server's own."""
    client_auth: str = key("tls.server.need.client.auth", "none")
    verifies_clients: bool = key("tls.server.authClient", default=False)
    trust_path: str = key("tls.server.trustCertPath", "")
    """Whose certificates clients may show."""
    asks_over_tls: bool = key("tls.enable", default=False)
    verifies_servers: bool = key("tls.client.authServer", default=False)
    servers_trust_path: str = key("tls.client.trustCertPath", "")
    """Whose certificates servers show."""
    client_key_path: str = key("tls.client.keyPath", "")
    client_key_password: str = key("tls.client.keyPassword", "")
    client_cert_path: str = key("tls.client.certPath", "")
    """What a client shows to servers that ask for a certificate."""
    test_mode: bool = key("tls.test.mode.enable", default=True)
    """RocketMQ makes a certificate of its own then; here a configured one is used, and only without one an own."""


@dataclass(frozen=True, slots=True)
class Tls:
    """A server's demands on its clients: one of :data:`MODES`, and the certificate; None if there is none."""

    mode: str
    context: ssl.SSLContext | None
    makes_own: bool = False
    """Without a configured certificate, TLS begins with one of the server's own making."""
    asking: ssl.SSLContext | None = None
    """With what the broker itself asks name servers; None: plainly. As RocketMQ's: TLS where its own clients must."""

    def server_context(self) -> ssl.SSLContext | None:
        """Return the context of a connection that begins with TLS; the first call may make the certificate."""
        return own_context() if self.context is None and self.makes_own else self.context

    def why_not(self, initial_byte: bytes) -> str:
        """Return why a connection that begins with this byte is refused, in RocketMQ's words; empty if it is
        accepted.
        """
        if initial_byte == TLS_HELLO:
            if self.mode == "disabled":
                return "the client intends to establish an SSL connection while this server runs in SSL disabled mode"
            return (
                "" if self.context or self.makes_own else "the client begins with TLS, and no certificate is configured"
            )
        if self.mode == "enforcing":
            return "the client intends to establish an insecure connection while this server runs in SSL enforcing mode"
        return ""


def read_tls(path: Path | str) -> tuple[Tls, list[str]]:
    """Read a ``tls.properties``; return its settings, and its keys that have no effect here.

    Raises :class:`CannotRead`, or :class:`UsageError` with the file, the key and what was expected.
    """
    file = str(path)
    settings, unknown = overlay(TlsSettings(), read_text(path), file)
    if settings.mode not in MODES:
        raise UsageError(
            sentence(
                "tls.server.mode: expected {modes}, found {mode}", modes=", ".join(MODES), mode=repr(settings.mode)
            ),
            file=file,
        )
    if settings.client_auth not in _CLIENTS:
        client_auth = settings.client_auth
        raise UsageError(
            sentence(
                "tls.server.need.client.auth: expected {clients}, found {client_auth}",
                clients=", ".join(_CLIENTS),
                client_auth=repr(client_auth),
            ),
            file=file,
        )
    makes_own = settings.test_mode and not settings.cert_path
    if not settings.cert_path and settings.mode == "enforcing" and not makes_own:
        raise UsageError(
            sentence("tls.server.certPath: expected a certificate where every client must use TLS"), file=file
        )
    without_effect = [key for key in unknown if not key.startswith("tls.client.")]
    context = _server_context(settings, file) if settings.cert_path and settings.mode != "disabled" else None
    asks = settings.asks_over_tls or settings.mode == "enforcing"
    return Tls(settings.mode, context, makes_own, _client_context(settings, file) if asks else None), without_effect


DEFAULT_TLS = Tls("permissive", None, makes_own=True)
"""Without a ``tls.properties``: plain or TLS, as the client begins."""


def read_client_tls(path: Path | str) -> tuple[ssl.SSLContext, list[str]]:
    """Read a ``tls.properties`` for a client; return how it uses TLS, and the unknown keys. As RocketMQ's clients it
    verifies servers only with ``tls.client.authServer``, and never their host names.

    Raises :class:`CannotRead` and :class:`UsageError`.
    """
    settings, unknown = overlay(TlsSettings(), read_text(path), str(path))
    return _client_context(settings, str(path)), unknown


def _client_context(settings: TlsSettings, file: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    if settings.client_cert_path:
        _load_certificate(
            context, settings.client_cert_path, settings.client_key_path, settings.client_key_password, file
        )
    if not settings.verifies_servers:
        context.verify_mode = ssl.CERT_NONE
        return context
    try:
        context.load_verify_locations(settings.servers_trust_path or None)
    except (OSError, TypeError) as error:
        path = settings.servers_trust_path or file
        raise CannotRead(
            sentence("tls.client.trustCertPath: no certificates ({error})", error=error), file=path
        ) from error
    return context


def _server_context(settings: TlsSettings, file: str) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    _load_certificate(
        context, settings.cert_path, settings.key_path, settings.key_password, file, trust_path=settings.trust_path
    )
    verify_mode = _CLIENTS[settings.client_auth]
    if verify_mode is ssl.CERT_NONE and settings.verifies_clients:
        verify_mode = ssl.CERT_REQUIRED
    if verify_mode is not ssl.CERT_NONE and not settings.trust_path:
        raise UsageError(sentence("tls.server.trustCertPath: expected whose certificates clients may show"), file=file)
    context.verify_mode = verify_mode
    return context


def _load_certificate(
    context: ssl.SSLContext, cert_path: str, key_path: str, password: str, file: str, *, trust_path: str = ""
) -> None:
    """Load a certificate with its key, and those that it trusts. Raises :class:`CannotRead`."""
    try:
        context.load_cert_chain(cert_path, key_path or None, lambda: password)
        if trust_path:
            context.load_verify_locations(trust_path)
    except ssl.SSLError as error:
        raise CannotRead(
            sentence("no certificate with its key: {why}", why=error.reason or error), file=cert_path
        ) from error
    except OSError as error:
        reason = f"{error.strerror or error} (named in {file})"
        raise CannotRead(reason, file=error.filename or cert_path) from error


async def first_byte(connection: socket.socket, timeout_s: float) -> bytes:
    """Return the first byte of a new connection without consuming it; empty if the connection ends first.

    Raises ``TimeoutError`` where nothing comes for ``timeout_s`` seconds.
    """
    loop = asyncio.get_running_loop()
    while True:
        try:
            return connection.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            pass
        readable = asyncio.Event()
        loop.add_reader(connection, readable.set)
        try:
            async with asyncio.timeout(timeout_s):
                await readable.wait()
        finally:
            loop.remove_reader(connection)
