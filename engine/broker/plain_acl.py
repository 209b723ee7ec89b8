"""``plain_acl.yml``: accounts, what each may do, and addresses that need none (docs/protocol/access.md#plain-acl).

Read as far as RocketMQ writes and documents it: maps, lists and plain values by indentation, and ``[a, b]`` in a line.
Java: ``PlainPermissionManager``, ``PlainAccessConfig``, ``RemoteAddressStrategyFactory``.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import CannotRead, UsageError
from engine.files.whole_file import PRIVATE, put_whole

PERMISSIONS = ("PUB", "SUB", "PUB|SUB", "SUB|PUB", "DENY")
SHORTEST_KEY = 6
"""Access keys and secrets are longer than that."""
LARGEST_FILE = 1 << 20
_log = logging.getLogger(__name__)
_KEY = re.compile(r"""^("[^"]*"|'[^']*'|[^\s'"\[{#&*!|>%@`-][^:#]*?|-[^\s:#][^:#]*?)\s*:(?:\s+(.*))?$""")


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
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise CannotRead(error.strerror or str(error), file=str(path)) from error
    if len(raw) > LARGEST_FILE:
        raise UsageError(f"expected at most {LARGEST_FILE:,} bytes, found more", file=str(path))
    try:
        tree = parse(raw.decode("utf-8"))
    except (UnicodeDecodeError, UsageError) as error:
        raise UsageError(str(error), file=str(path)) from error
    if not isinstance(tree, dict):
        raise UsageError("expected accounts: and a list of them", file=str(path))
    return tree


def acl_of(tree: Any) -> PlainAcl:
    """Parse the accounts of a file's tree. Raises :class:`UsageError`."""
    if not isinstance(tree, Mapping):
        raise UsageError("expected accounts: and a list of them")
    white = [str(pattern) for pattern in _list(tree.get("globalWhiteRemoteAddresses"), "globalWhiteRemoteAddresses")]
    tests = [address_test(pattern) for pattern in white]
    accounts: dict[str, Account] = {}
    for number, row in enumerate(_list(tree.get("accounts"), "accounts"), 1):
        account = _account(row, number)
        if account.access_key in accounts:
            raise UsageError(f"account {number}: accessKey {account.access_key} appears twice")
        accounts[account.access_key] = account
    if not accounts and not white:
        raise UsageError("expected accounts: and a list of them")
    any_white = any(pattern.strip() for pattern in white)
    return PlainAcl(accounts, lambda address: any(test(address) for test in tests), any_white)


def _list(value: Any, name: str) -> list[Any]:
    if value in (None, ""):
        return []
    if not isinstance(value, list):
        raise UsageError(f"{name}: expected a list")
    return value


def _account(row: Any, number: int) -> Account:
    if not isinstance(row, Mapping):
        raise UsageError(f"account {number}: expected accessKey, secretKey and what it may do")
    access_key, secret_key = _text(row, "accessKey") or "", _text(row, "secretKey") or ""
    if len(access_key) <= SHORTEST_KEY or len(secret_key) <= SHORTEST_KEY:
        raise UsageError(f"account {number}: accessKey and secretKey are longer than {SHORTEST_KEY} characters each")
    admin = (_text(row, "admin") or "false").lower()
    if admin not in {"true", "false"}:
        raise UsageError(f"account {number}: admin: expected true or false, found {admin!r}")
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
        raise UsageError(f"{name}: expected one value")
    return value or None


def _permissions(row: Mapping[Any, Any], name: str, number: int) -> tuple[tuple[str, str], ...]:
    permissions = []
    for item in _list(row.get(name), name):
        resource, equals, permission = str(item).partition("=")
        if not equals or not resource.strip() or not permission.strip():
            raise UsageError(f"account {number}: {name}: expected NAME=PUB, SUB, PUB|SUB or DENY, found {item!r}")
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
            raise UsageError(f"expected {{1,2,3}} at the end of an address, found {pattern!r}")
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
        raise UsageError(f"expected an address or a pattern of addresses, found {pattern!r}") from None
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
        raise UsageError(f"expected an address or a pattern of addresses, found {pattern!r}") from None
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
    put_whole(path, data, mode)


# -- the part of YAML that is read


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    indent: int
    text: str


def parse(text: str) -> Any:
    """Parse a file into maps, lists and texts. Raises :class:`UsageError` with the line."""
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        bare = _without_comment(line.rstrip())
        if not bare.strip() or bare in {"---", "..."}:
            continue
        if "\t" in bare[: len(bare) - len(bare.lstrip())]:
            raise UsageError(f"line {number}: expected spaces for indentation, found a tab")
        lines.append(_Line(number, len(bare) - len(bare.lstrip()), bare.strip()))
    if not lines:
        return {}
    value, next_line = _block(lines, 0)
    if next_line < len(lines):
        raise UsageError(f"line {lines[next_line].number}: is indented less than its parent")
    return value


def _without_comment(line: str) -> str:
    quote = ""
    for index, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "#" and (index == 0 or line[index - 1] == " "):
            return line[:index].rstrip()
    return line


def _block(lines: list[_Line], index: int) -> tuple[Any, int]:
    line = lines[index]
    if line.text == "-" or line.text.startswith("- "):
        return _items(lines, index, line.indent)
    return _members(lines, index, line.indent)


def _items(lines: list[_Line], index: int, indent: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    while index < len(lines) and lines[index].indent == indent and (lines[index].text + " ").startswith("- "):
        line = lines[index]
        content = line.text[1:].lstrip()
        if not content:
            value, index = _nested(lines, index + 1, indent)
        elif _KEY.match(content):
            inner = indent + len(line.text) - len(content)
            lines[index] = _Line(line.number, inner, content)
            value, index = _members(lines, index, inner)
        else:
            value, index = _value(content, line.number), index + 1
        items.append(value)
    return items, index


def _members(lines: list[_Line], index: int, indent: int) -> tuple[dict[str, Any], int]:
    members: dict[str, Any] = {}
    while index < len(lines) and lines[index].indent == indent:
        line = lines[index]
        match = _KEY.match(line.text)
        if match is None:
            if line.text.startswith("-"):
                break
            raise UsageError(f"line {line.number}: expected NAME: VALUE, found {line.text[:60]!r}")
        name, content = match[1].strip("'\""), (match[2] or "").strip()
        if content:
            members[name], index = _value(content, line.number), index + 1
        else:
            members[name], index = _nested(lines, index + 1, indent, lists_may_stand_at=indent)
    if index < len(lines) and lines[index].indent > indent:
        raise UsageError(f"line {lines[index].number}: is indented more than its neighbours")
    return members, index


def _nested(lines: list[_Line], index: int, indent: int, lists_may_stand_at: int = -1) -> tuple[Any, int]:
    if index >= len(lines):
        return "", index
    line = lines[index]
    if line.indent > indent or (line.indent == lists_may_stand_at and (line.text + " ").startswith("- ")):
        return _block(lines, index)
    return "", index


def _value(text: str, number: int) -> Any:
    if text[0] in "'\"":
        if len(text) < 2 or text[-1] != text[0]:
            raise UsageError(f"line {number}: a quote is not closed")
        return text[1:-1]
    if text[0] == "[":
        if text[-1] != "]":
            raise UsageError(f"line {number}: expected ] at the end")
        return [_value(item.strip(), number) for item in text[1:-1].split(",") if item.strip()]
    if text[0] in "{&*!|>%@`":
        raise UsageError(f"line {number}: expected a plain value or a list, found {text[:60]!r}")
    return "" if text in {"~", "null"} else text
