"""A self-made certificate: signed by its own key, for the loopback."""

from __future__ import annotations

import hashlib
import ssl

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from engine.remoting.own_certificate import make_certificate, own_context


def test_the_certificate_is_signed_by_its_key_and_names_the_loopback():
    text, key = make_certificate()
    certificate = x509.load_pem_x509_certificate(text.encode())
    public = certificate.public_key()
    assert isinstance(public, ec.EllipticCurvePublicKey)
    public.verify(certificate.signature, certificate.tbs_certificate_bytes, ec.ECDSA(hashes.SHA256()))
    secret = load_pem_private_key(key.encode(), None)
    assert secret.public_key() == public
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]


def test_each_certificate_has_another_key_and_a_process_uses_one():
    assert len({hashlib.sha256(make_certificate()[1].encode()).digest() for _ in range(3)}) == 3
    assert isinstance(own_context(), ssl.SSLContext)
    assert own_context() is own_context()
