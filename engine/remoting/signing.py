"""Signatures of requests: an access key, and a signature over the fields and the body
(docs/protocol/access.md#signatures). Pure.

Java: ``AclUtils``, ``AclClientRPCHook``. A signature does not prevent replays: neither a time nor the opaque is signed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping

from engine.remoting.frame import Command

ACCESS_KEY, SIGNATURE, SECURITY_TOKEN = "AccessKey", "Signature", "SecurityToken"
_UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"


def signed_content(fields: Mapping[str, str], body: bytes | memoryview, without: str = "") -> bytes:
    """Return the bytes to sign: the values of all fields but the signature (and ``without``), in the order of their
    names.
    """
    names = sorted((name for name in fields if name not in {SIGNATURE, without}), key=_utf16)
    return "".join(fields[name] for name in names).encode("utf-8", "replace") + bytes(body)


def _utf16(name: str) -> bytes:
    """Return the sort key of a name: Java compares UTF-16 units."""
    return name.encode("utf-16-be", "surrogatepass")


def signature(secret_key: str, content: bytes) -> str:
    """Return the HMAC-SHA1 of ``content`` in Base64."""
    return base64.b64encode(hmac.new(secret_key.encode(), content, hashlib.sha1).digest()).decode()


def sign(command: Command, access_key: str, secret_key: str, security_token: str = "") -> None:
    """Add the fields of an account, as a client's hook does; the token of a temporary account is signed, too."""
    command.fields[ACCESS_KEY] = access_key
    if security_token:
        command.fields[SECURITY_TOKEN] = security_token
    command.fields[SIGNATURE] = signature(secret_key, signed_content(command.fields, command.body))


def is_signed(command: Command, secret_key: str) -> bool:
    """Return True if the request bears the signature of ``secret_key``. Clients of some releases do not sign one field
    of a query by unique key, others do; both are accepted.
    """
    sent_signature = command.fields.get(SIGNATURE, "").encode("utf-8", "replace")
    contents = [signed_content(command.fields, command.body)]
    if _UNIQUE_KEY_QUERY in command.fields:
        contents.append(signed_content(command.fields, command.body, _UNIQUE_KEY_QUERY))
    return any(hmac.compare_digest(signature(secret_key, text).encode(), sent_signature) for text in contents)
