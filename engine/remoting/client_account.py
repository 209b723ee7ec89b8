"""The account with which a client signs its requests, from a file as RocketMQ's ``tools.yml``
(docs/protocol/access.md#signatures). Java: ``AclUtils.getAclRPCHook``, ``SessionCredentials``.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from engine.errors import UsageError
from engine.files.yaml_file import read_yaml
from engine.sentences import sentence


class ClientAccount(NamedTuple):
    """An access key and its secret; a temporary account has a security token, too."""

    access_key: str
    secret_key: str
    security_token: str = ""

    def __repr__(self) -> str:
        """Name the account without its secrets, for logs."""
        return f"ClientAccount({self.access_key!r})"


def read_client_account(path: Path | str) -> ClientAccount:
    """Read ``accessKey``, ``secretKey`` and ``securityToken`` of a file.

    Raises :class:`CannotRead`, or :class:`UsageError` with what was expected; it never quotes the file, whose lines are
    secrets.
    """
    try:
        members = read_yaml(Path(path))
        account = ClientAccount(*(str(members.get(name) or "") for name in ("accessKey", "secretKey", "securityToken")))
        is_complete = bool(account.access_key and account.secret_key)
    except (UsageError, AttributeError):
        is_complete = False
    if not is_complete:
        raise UsageError(
            sentence("expected the lines accessKey: … and secretKey: …, as in RocketMQ's tools.yml"), file=str(path)
        ) from None
    return account
