"""50 to 54: administrators of 4.9 create and delete accounts; ``plain_acl.yml`` is rewritten
(docs/protocol/access.md#plain-acl). Comments in it are lost, as in RocketMQ.

Comments in it are lost, as in RocketMQ. Java: ``AdminBrokerProcessor``, ``PlainPermissionManager``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from engine.broker.access import Access
from engine.broker.json_bodies import write
from engine.broker.plain_acl import SHORTEST_KEY, acl_of, address_test, keep_secret, read_tree
from engine.errors import StoreError, UsageError
from engine.remoting.codes import Refused, RequestCode, ResponseCode
from engine.remoting.connection import Connection
from engine.remoting.frame import Command, answer_to

if TYPE_CHECKING:
    from engine.broker.broker import Broker, Header, Processor


_ACCOUNTS, _WHITE, _VERSION = "accounts", "globalWhiteRemoteAddresses", "dataVersion"
_OWN_WHITE = "whiteRemoteAddress"
_TEXTS = ("secretKey", _OWN_WHITE, "defaultTopicPerm", "defaultGroupPerm")
_LISTS = ("topicPerms", "groupPerms")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.|=@/+-]*")
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off"})
_NOT_ON = "no file of accounts: the broker was started without one"
"""``UPDATE_AND_CREATE_ACL_CONFIG_FAILED`` and its neighbours; to pops the first two mean something else."""


def _access(broker: Broker, code: int) -> Access:
    """Return the access control. Raises :class:`Refused` if the broker has none."""
    if broker.access is None:
        raise Refused(code, _NOT_ON)
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
        raise UsageError(f"expected text that a line of YAML can hold, found {text!r}")
    return f"{quote}{text}{quote}"


def create_account(broker: Broker, request: Command, header: Header, _connection: Connection) -> Command:
    """UPDATE_AND_CREATE_ACL_CONFIG: create or change an account; what the request leaves out stays as it was."""
    key, secret = header["accessKey"], header["secretKey"]
    if any(text is None or len(str(text)) <= SHORTEST_KEY for text in (key, secret)):
        words = (
            f"The accessKey={_or_null(key)} and secretKey={_or_null(secret)} cannot be null and length should longer"
        )
        raise Refused(ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED, f"{words} than {SHORTEST_KEY}")
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


ANSWERS: dict[int, Processor] = {
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: create_account,
    RequestCode.DELETE_ACL_CONFIG: delete_account,
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO: version,
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: change_white,
    RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: configuration,
}
