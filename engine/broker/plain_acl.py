"""``plain_acl.yml``: accounts, what each may do, and addresses that need none; requests 50 to 54 rewrite the file
(docs/protocol/access.md#plain-acl).

Comments in it are lost when an administrator of 4.9 changes it, as in RocketMQ. Java: ``PlainPermissionManager``,
``PlainAccessConfig``, ``RemoteAddressStrategyFactory``; the requests: ``AdminBrokerProcessor``.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.broker.json_bodies import write
from engine.errors import StoreError, UsageError
from engine.files.atomic_file import PRIVATE, write_atomically
from engine.files.yaml_file import read_yaml
from engine.remoting.codes import Refused, RequestCode, ResponseCode
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to
from engine.sentences import sentence

if TYPE_CHECKING:
    from engine.broker.access import Access
    from engine.broker.broker import Broker, Header, Processor


PERMISSIONS = ("PUB", "SUB", "PUB|SUB", "SUB|PUB", "DENY")
MIN_KEY_LENGTH = 6
"""Access keys and secrets are longer than that."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Account:
    """An account whose requests are signed with ``secret_key``. Permissions as they stand in the file (``PUB``,
    ``SUB``, ``PUB|SUB``, ``DENY``) by topic and by group, and the defaults for all others.
    """

    access_key: str
    secret_key: str
    is_white: Callable[[str], bool]
    admin: bool = False
    default_topic: str | None = None
    default_group: str | None = None
    topics: tuple[tuple[str, str], ...] = ()
    groups: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PlainAcl:
    """The parsed file. ``is_white`` tests whether an address may send unsigned requests."""

    accounts: Mapping[str, Account]
    is_white: Callable[[str], bool]
    white_listed: bool
    """True if there is any such address."""


def read_acl(path: Path) -> PlainAcl:
    """Read and parse the file. Raises :class:`CannotRead`, or :class:`UsageError` with file, line and what was
    expected.
    """
    tree = read_tree(path)
    try:
        return acl_of(tree)
    except UsageError as error:
        raise UsageError(str(error), file=str(path)) from error


def read_tree(path: Path) -> dict[str, Any]:
    """Return the members of the file. Raises as :func:`read_acl`."""
    tree = read_yaml(path)
    if not isinstance(tree, dict):
        raise UsageError(sentence("expected accounts: and a list of them"), file=str(path))
    return tree


def acl_of(tree: Any) -> PlainAcl:
    """Parse the accounts of a file's tree. Raises :class:`UsageError`."""
    if not isinstance(tree, Mapping):
        raise UsageError(sentence("expected accounts: and a list of them"))
    white = [str(pattern) for pattern in _list(tree.get("globalWhiteRemoteAddresses"), "globalWhiteRemoteAddresses")]
    tests = [address_test(pattern) for pattern in white]
    accounts: dict[str, Account] = {}
    for number, row in enumerate(_list(tree.get("accounts"), "accounts"), 1):
        account = _account(row, number)
        if account.access_key in accounts:
            raise UsageError(
                sentence(
                    "account {number}: accessKey {access_key} appears twice",
                    number=number,
                    access_key=account.access_key,
                )
            )
        accounts[account.access_key] = account
    if not accounts and not white:
        raise UsageError(sentence("expected accounts: and a list of them"))
    any_white = any(pattern.strip() for pattern in white)
    return PlainAcl(accounts, lambda address: any(test(address) for test in tests), any_white)


def _list(value: Any, name: str) -> list[Any]:
    if value in (None, ""):
        return []
    if not isinstance(value, list):
        raise UsageError(sentence("{name}: expected a list", name=name))
    return value


def _account(row: Any, number: int) -> Account:
    if not isinstance(row, Mapping):
        raise UsageError(sentence("account {number}: expected accessKey, secretKey and what it may do", number=number))
    access_key, secret_key = _text(row, "accessKey") or "", _text(row, "secretKey") or ""
    if len(access_key) <= MIN_KEY_LENGTH or len(secret_key) <= MIN_KEY_LENGTH:
        raise UsageError(
            sentence(
                "account {number}: accessKey and secretKey are longer than {shortest_key} characters each",
                number=number,
                shortest_key=MIN_KEY_LENGTH,
            )
        )
    admin = (_text(row, "admin") or "false").lower()
    if admin not in {"true", "false"}:
        raise UsageError(
            sentence("account {number}: admin: expected true or false, found {admin}", number=number, admin=repr(admin))
        )
    return Account(
        access_key,
        secret_key,
        address_test(_text(row, "whiteRemoteAddress") or ""),
        admin == "true",
        _default(row, "defaultTopicPerm", number),
        _default(row, "defaultGroupPerm", number),
        _permissions(row, "topicPerms", number),
        _permissions(row, "groupPerms", number),
    )


def _default(row: Mapping[Any, Any], name: str, number: int) -> str | None:
    permission = _text(row, name)
    if permission is not None:
        _warn_of_unknown(permission.strip(), f"account {number}: {name}")
    return permission


def _text(row: Mapping[Any, Any], name: str) -> str | None:
    value = row.get(name)
    if value is not None and not isinstance(value, str):
        raise UsageError(sentence("{name}: expected one value", name=name))
    return value or None


def _permissions(row: Mapping[Any, Any], name: str, number: int) -> tuple[tuple[str, str], ...]:
    permissions = []
    for item in _list(row.get(name), name):
        resource, equals, permission = str(item).partition("=")
        if not equals or not resource.strip() or not permission.strip():
            raise UsageError(
                sentence(
                    "account {number}: {name}: expected NAME=PUB, SUB, PUB|SUB or DENY, found {value}",
                    number=number,
                    name=name,
                    value=repr(item),
                )
            )
        _warn_of_unknown(permission.strip(), f"account {number}: {name}: {resource.strip()}")
        permissions.append((resource.strip(), permission.strip()))
    return tuple(permissions)


def _warn_of_unknown(permission: str, where: str) -> None:
    """Warn about a word that is no permission: RocketMQ silently treats it as DENY."""
    if permission not in PERMISSIONS:
        expected = ", ".join(PERMISSIONS)
        _log.warning("%s: %r is no permission and counts as DENY; expected %s", where, permission, expected)


def address_test(pattern: str) -> Callable[[str], bool]:
    """Return a test for addresses: none, all (``*``), one, ``a.b.c.{1,2}``, a comma list, ranges and stars in the
    parts behind the first (``192.168.0-5.*``). Raises :class:`UsageError`.
    """
    text = pattern.strip()
    if not text:
        return lambda _: False
    if text in {"*", "*.*.*.*", "*:*:*:*:*:*:*:*"}:
        return lambda _: True
    if "{" in text:
        head, _, tail = text.partition("{")
        if not tail.endswith("}"):
            raise UsageError(
                sentence("expected {{1,2,3}} at the end of an address, found {pattern}", pattern=repr(pattern))
            )
        text = ",".join(head + part.strip() for part in tail[:-1].split(","))
    if "," in text:
        tests = [address_test(part) for part in text.split(",")]
        return lambda address: any(test(address) for test in tests)
    separator = ":" if ":" in text else "."
    if "*" in text or "-" in text:
        parts = [_part_test(part, pattern, 16 if separator == ":" else 10) for part in text.split(separator)]
        return lambda address: _all_parts(address, separator, parts)
    try:
        expected = ipaddress.ip_address(text)
    except ValueError:
        raise UsageError(
            sentence("expected an address or a pattern of addresses, found {pattern}", pattern=repr(pattern))
        ) from None
    return lambda address: _same(address, expected)


def _same(address: str, expected: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    try:
        return ipaddress.ip_address(address) == expected
    except ValueError:
        return False


def _part_test(part: str, pattern: str, base: int) -> Callable[[int], bool]:
    if part == "*":
        return lambda _: True
    lower_text, dash, upper_text = part.partition("-")
    try:
        minimum, maximum = int(lower_text, base), int(upper_text if dash else lower_text, base)
    except ValueError:
        raise UsageError(
            sentence("expected an address or a pattern of addresses, found {pattern}", pattern=repr(pattern))
        ) from None
    return lambda value: minimum <= value <= maximum


def _all_parts(address: str, separator: str, tests: list[Callable[[int], bool]]) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if (separator == ":") != isinstance(parsed, ipaddress.IPv6Address):
        return False
    values = [int(part, 16 if separator == ":" else 10) for part in parsed.exploded.split(separator)]
    return len(values) >= len(tests) and all(test(value) for test, value in zip(tests, values, strict=False))


def keep_secret(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path``, completely or not at all. Permissions do not widen, and only its owner can read a
    new file. Raises ``OSError``.
    """
    try:
        mode = path.stat().st_mode & 0o777
    except FileNotFoundError:
        mode = PRIVATE
    write_atomically(path, data, mode)


_ACCOUNTS, _WHITE, _VERSION = "accounts", "globalWhiteRemoteAddresses", "dataVersion"
_OWN_WHITE = "whiteRemoteAddress"
_TEXTS = ("secretKey", _OWN_WHITE, "defaultTopicPerm", "defaultGroupPerm")
_LISTS = ("topicPerms", "groupPerms")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.|=@/+-]*")
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off"})
_ACL_IS_OFF = "no file of accounts: the broker was started without one"
"""``UPDATE_AND_CREATE_ACL_CONFIG_FAILED`` and its neighbours; to pops the first two mean something else."""


def _access(broker: Broker, code: int) -> Access:
    """Return the access control. Raises :class:`Refused` if the broker has none."""
    if broker.access is None:
        raise Refused(code, _ACL_IS_OFF)
    return broker.access


def _changed(broker: Broker, access: Access, code: int, change: Callable[[dict[str, Any]], None]) -> None:
    """Apply ``change`` to the tree of the file, and write it. Raises :class:`Refused`."""
    try:
        tree = read_tree(access.path)
        acl_of(tree)
        change(tree)
        old_version = _version_of(tree)
        tree[_VERSION] = [{"counter": str(old_version["counter"] + 1), "timestamp": str(broker.now())}]
        acl_of(tree)
        keep_secret(access.path, rendered(tree).encode())
    except StoreError as error:
        raise Refused(code, str(error)) from error
    except OSError as error:
        raise Refused(code, f"{access.path.name} cannot be written: {error.strerror}") from error
    access.step()


def _version_of(tree: Mapping[str, Any]) -> dict[str, int]:
    rows = tree.get(_VERSION)
    row = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], Mapping) else {}
    fields = {name: str(row.get(name, "")) for name in ("counter", "timestamp")}
    return {name: int(text) if text.isdecimal() else 0 for name, text in fields.items()}


def rendered(tree: Mapping[str, Any]) -> str:
    """Return the text of a file with these members, as SnakeYAML and :func:`engine.broker.plain_acl.parse` read it.
    Raises :class:`UsageError` for a text that cannot be written.
    """
    return "".join(line + "\n" for name, value in tree.items() for line in _lines(name, value, ""))


def _lines(name: str, value: Any, indent: str) -> list[str]:
    if not isinstance(value, list):
        return [f"{indent}{name}: {_scalar(value)}"]
    lines = [f"{indent}{name}:"] if value else [f"{indent}{name}: []"]
    for item in value:
        if not isinstance(item, Mapping):
            lines.append(f"{indent}- {_scalar(item)}")
            continue
        inner = [line for key, member in item.items() for line in _lines(key, member, indent + "  ")]
        inner[0] = f"{indent}- {inner[0].lstrip()}"
        lines += inner
    return lines


def _scalar(value: object) -> str:
    text = str(value)
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    if text in {"true", "false"}:
        return text
    quote = "'" if "'" not in text else '"'
    if quote in text or not text.isprintable() or (quote == '"' and "\\" in text):
        raise UsageError(sentence("expected text that a line of YAML can hold, found {text}", text=repr(text)))
    return f"{quote}{text}{quote}"


def create_account(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """UPDATE_AND_CREATE_ACL_CONFIG: create or change an account; what the request leaves out stays as it was."""
    key, secret = header["accessKey"], header["secretKey"]
    if any(text is None or len(str(text)) <= MIN_KEY_LENGTH for text in (key, secret)):
        words = (
            f"The accessKey={_or_null(key)} and secretKey={_or_null(secret)} cannot be null and length should longer"
        )
        raise Refused(ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED, f"{words} than {MIN_KEY_LENGTH}")
    lists = {name: members for name in _LISTS if (members := str(header[name] or "").rstrip(",").split(",")) != [""]}
    for permission in (member for members in lists.values() for member in members):
        _permission(permission)
    try:
        address_test(str(header["whiteRemoteAddress"] or ""))
    except UsageError as error:
        words = f"Netaddress examine Exception netaddress is {header['whiteRemoteAddress']}"
        raise Refused(ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED, words) from error
    fields = {name: str(header[name]) for name in _TEXTS if header[name] or (name == _OWN_WHITE and header[name] == "")}
    fields["admin"] = "true" if header["admin"] else "false"

    def change(tree: dict[str, Any]) -> None:
        rows = tree.get(_ACCOUNTS) or []
        account = next((row for row in rows if row.get("accessKey") == key), {"accessKey": key})
        tree[_ACCOUNTS] = [*(row for row in rows if row is not account), account | fields | lists]

    _changed(
        broker,
        _access(broker, ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED),
        ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED,
        change,
    )
    return answer_to(request)


def _or_null(value: object) -> str:
    return "null" if value is None else str(value)


def _permission(text: str) -> None:
    """Check a permission. Raises :class:`Refused` if it is no ``NAME=PERMISSION``."""
    name, _, permission = (part.strip() for part in text.partition("="))
    if not name or not permission or text.count("=") > 1:
        words = f"Parse Resource format error for {text}.\nThe expected resource format is 'Res=Perm'. "
        raise Refused(ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED, words + "For example: topicA=SUB")
    if permission not in {"DENY", "PUB", "SUB", "PUB|SUB", "SUB|PUB"}:
        words = f"Parse resource permission error for {text}.\n"
        raise Refused(
            ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED,
            f"{words}The expected permissions are 'SUB' or 'PUB' or 'SUB|PUB' or 'PUB|SUB'.",
        )


def delete_account(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """DELETE_ACL_CONFIG: delete an account."""
    access, key = _access(broker, ResponseCode.DELETE_ACL_CONFIG_FAILED), header["accessKey"]
    if key not in access.acl.accounts:
        words = f"The accesskey[{_or_null(key)}] corresponding to accessConfig has been deleted failed."
        raise Refused(ResponseCode.DELETE_ACL_CONFIG_FAILED, words)

    def change(tree: dict[str, Any]) -> None:
        tree[_ACCOUNTS] = [row for row in tree.get(_ACCOUNTS) or [] if row.get("accessKey") != key]

    _changed(broker, access, ResponseCode.DELETE_ACL_CONFIG_FAILED, change)
    return answer_to(request)


def version(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_BROKER_CLUSTER_ACL_INFO: how often the file was changed, and when it changed last."""
    access = _access(broker, ResponseCode.SYSTEM_ERROR)
    version_fields = _version_of(_tree(access))
    version_fields["timestamp"] = version_fields["timestamp"] or broker.started
    fields = {
        "allAclFileVersion": json.dumps({str(access.path): version_fields}, separators=(",", ":")),
        "brokerAddr": broker.address,
        "brokerName": broker.config.broker_name,
        "clusterName": broker.config.cluster,
        "version": json.dumps(version_fields, separators=(",", ":")),
    }
    return answer_to(request, fields=fields)


def change_white(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: set the addresses that need no signature. RocketMQ also writes an invalid
    address, and then cannot read its file.
    """
    access, addresses = (
        _access(broker, ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED),
        header["globalWhiteAddrs"],
    )
    path = header["aclFileFullPath"]
    if addresses is None or (path and str(path) != str(access.path)):
        raise Refused(
            ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED,
            f"The globalWhiteAddresses[{_or_null(addresses)}] has been updated failed.",
        )

    def change(tree: dict[str, Any]) -> None:
        tree[_WHITE] = str(addresses).split(",")

    _changed(broker, access, ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED, change)
    return answer_to(request)


def configuration(broker: Broker, request: Command, _header: Header, _connection: Connection) -> Command:
    """GET_BROKER_CLUSTER_ACL_CONFIG: every account of the file, with its secret, as in RocketMQ."""
    tree = _tree(_access(broker, ResponseCode.SYSTEM_ERROR))
    rows = [_shown(row) for row in tree.get(_ACCOUNTS) or []]
    return answer_to(request, body=write({"globalWhiteAddrs": tree.get(_WHITE) or [], "plainAccessConfigs": rows}))


def _tree(access: Access) -> dict[str, Any]:
    try:
        tree = read_tree(access.path)
        acl_of(tree)
    except StoreError as error:
        raise Refused(ResponseCode.SYSTEM_ERROR, str(error)) from error
    return tree


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: row[name] for name in ("accessKey", *_TEXTS, *_LISTS) if row.get(name) or row.get(name) == ""}
    return {**fields, "admin": str(row.get("admin", "")).lower() == "true"}


HANDLERS: dict[int, Processor] = {
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: create_account,
    RequestCode.DELETE_ACL_CONFIG: delete_account,
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO: version,
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: change_white,
    RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: configuration,
}
