"""Self-signed certificates for servers of tests."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def self_signed(folder: Path, password: str = "") -> tuple[Path, Path]:
    """Make a certificate for 127.0.0.1 and its key (PKCS#8), both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    sign = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    encryption = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
    certificate, secret = folder / "server.pem", folder / "server.key"
    certificate.write_bytes(sign.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption))
    return certificate, secret


def tls_properties(folder: Path, mode: str, password: str = "") -> Path:
    """Write a ``tls.properties`` with a new certificate."""
    certificate, secret = self_signed(folder, password)
    lines = [
        f"tls.server.mode={mode}",
        "tls.test.mode.enable=false",
        f"tls.server.certPath={certificate}",
        f"tls.server.keyPath={secret}",
        *([f"tls.server.keyPassword={password}"] if password else []),
    ]
    file = folder / "tls.properties"
    file.write_text("\n".join(lines) + "\n")
    return file
