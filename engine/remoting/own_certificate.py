"""A certificate of a server's own making, for clients that ask for TLS and check nobody's name
(docs/protocol/frames.md#tls).

Without a configured certificate RocketMQ's servers take TLS with one that they make at their start. Such a connection
is encrypted, but a client cannot tell who answers. The key lives as long as the process. Key and signature are ECDSA
over the curve P-256 with SHA-256 (FIPS 186-4), the certificate is X.509 v3 (RFC 5280).

Java: ``TlsHelper.buildSslContext`` in test mode, Netty's ``SelfSignedCertificate``.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

_P = 2**256 - 2**224 + 2**192 + 2**96 - 1
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_BASE = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
_Point = tuple[int, int]
_VALID_DAYS = 3650
_PRIME256V1 = bytes.fromhex("06082a8648ce3d030107")
_EC_PUBLIC_KEY = bytes.fromhex("06072a8648ce3d0201")
_ECDSA_WITH_SHA256 = bytes.fromhex("06082a8648ce3d040302")
_COMMON_NAME = bytes.fromhex("0603550403")
_ALTERNATIVE_NAMES = bytes.fromhex("0603551d11")
_INTEGER, _BITS, _OCTETS, _TEXT, _TIME, _SEQUENCE, _SET = 0x02, 0x03, 0x04, 0x0C, 0x18, 0x30, 0x31


@cache
def own_context() -> ssl.SSLContext:
    """Return the context of a server with a certificate that was made for this process."""
    certificate, key = make_certificate()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.TemporaryDirectory(prefix="storescope-tls-") as folder:  # only its user reads it
        file = Path(folder) / "server.pem"
        file.write_text(key + certificate, encoding="ascii")
        context.load_cert_chain(file)
    return context


def make_certificate(name: str = "localhost") -> tuple[str, str]:
    """Return a self-signed certificate and its key, both PEM."""
    secret = secrets.randbelow(_ORDER - 1) + 1
    public = _spelled(_times(secret, _BASE))
    algorithm = _tagged(_SEQUENCE, _ECDSA_WITH_SHA256)
    subject = _tagged(_SEQUENCE, _tagged(_SET, _tagged(_SEQUENCE, _COMMON_NAME, _tagged(_TEXT, name.encode()))))
    start = datetime.now(UTC) - timedelta(days=1)
    dates = [_tagged(_TIME, f"{when:%Y%m%d%H%M%S}Z".encode()) for when in (start, start + timedelta(days=_VALID_DAYS))]
    key_info = _tagged(_SEQUENCE, _tagged(_SEQUENCE, _EC_PUBLIC_KEY, _PRIME256V1), _tagged(_BITS, b"\0", public))
    names = _tagged(_SEQUENCE, _tagged(0x82, name.encode()), _tagged(0x87, bytes([127, 0, 0, 1])))
    extensions = _tagged(0xA3, _tagged(_SEQUENCE, _tagged(_SEQUENCE, _ALTERNATIVE_NAMES, _tagged(_OCTETS, names))))
    signed = _tagged(
        _SEQUENCE,
        _tagged(0xA0, _integer(2)),
        _integer(secrets.randbits(127) | 1),
        algorithm,
        subject,
        _tagged(_SEQUENCE, *dates),
        subject,
        key_info,
        extensions,
    )
    certificate = _tagged(_SEQUENCE, signed, algorithm, _tagged(_BITS, b"\0", _sign(secret, signed)))
    key = _tagged(
        _SEQUENCE,
        _integer(1),
        _tagged(_OCTETS, secret.to_bytes(32)),
        _tagged(0xA0, _PRIME256V1),
        _tagged(0xA1, _tagged(_BITS, b"\0", public)),
    )
    return _pem("CERTIFICATE", certificate), _pem("EC PRIVATE KEY", key)


def _sign(secret: int, data: bytes) -> bytes:
    digest = int.from_bytes(hashlib.sha256(data).digest())
    while True:
        nonce = secrets.randbelow(_ORDER - 1) + 1
        r = _times(nonce, _BASE)[0] % _ORDER
        s = pow(nonce, -1, _ORDER) * (digest + r * secret) % _ORDER
        if r and s:
            return _tagged(_SEQUENCE, _integer(r), _integer(s))


def _times(factor: int, point: _Point) -> _Point:
    """Multiply a point of the curve by double and add."""
    result: _Point | None = None
    while factor:
        if factor & 1:
            result = point if result is None else _sum(result, point)
        point = _sum(point, point)
        factor >>= 1
    assert result is not None
    return result


def _sum(a: _Point, b: _Point) -> _Point:
    """Add two points that are not opposite to each other."""
    rise, run = (3 * a[0] * a[0] - 3, 2 * a[1]) if a == b else (b[1] - a[1], b[0] - a[0])
    slope = rise * pow(run, -1, _P)
    x = (slope * slope - a[0] - b[0]) % _P
    return x, (slope * (a[0] - x) - a[1]) % _P


def _spelled(point: _Point) -> bytes:
    return b"\x04" + point[0].to_bytes(32) + point[1].to_bytes(32)


def _tagged(tag: int, *parts: bytes) -> bytes:
    """Return a DER element."""
    content = b"".join(parts)
    length = len(content)
    if length < 0x80:
        return bytes([tag, length]) + content
    size = (length.bit_length() + 7) // 8
    return bytes([tag, 0x80 | size]) + length.to_bytes(size) + content


def _integer(value: int) -> bytes:
    return _tagged(_INTEGER, value.to_bytes(value.bit_length() // 8 + 1))


def _pem(label: str, der: bytes) -> str:
    text = base64.encodebytes(der).decode()
    return f"-----BEGIN {label}-----\n{text}-----END {label}-----\n"
