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
from engine.whole_file import PRIVATE, put_whole

PERMISSIONS = ("PUB", "SUB", "PUB|SUB", "SUB|PUB", "DENY")
SHORTEST_KEY = 6
"""Access keys and secrets are longer than that."""
LARGEST_FILE = 1 << 20
_log = logging.getLogger(__name__)
_KEY = re.compile(r"""^("[^"]*"|'[^']*'|[^\s'"\[{#&*!|>%@`-][^:#]*?|-[^\s:#][^:#]*?)\s*:(?:\s+(.*))?$""")


@dataclass(frozen=True, slots=True)
class Account:
    """Who may sign requests with ``secret_key``, and what he may do: permissions as they stand in the file (``PUB``,
    ``SUB``, ``PUB|SUB``, ``DENY``) by topic and by group, and those of all others.
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
    """The file. ``is_white`` says of an address whether its requests are not looked at."""

    accounts: Mapping[str, Account]
    is_white: Callable[[str], bool]
    white_listed: bool
    """Whether there is any such address."""


def read_acl(path: Path) -> PlainAcl:
    """Raises :class:`CannotRead`, or :class:`UsageError` with file, line and what was expected."""
    told = read_tree(path)
    try:
        return acl_of(told)
    except UsageError as error:
        raise UsageError(str(error), file=str(path)) from error


def read_tree(path: Path) -> dict[str, Any]:
    """The members of the file. Raises as :func:`read_acl`."""
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise CannotRead(error.strerror or str(error), file=str(path)) from error
    if len(raw) > LARGEST_FILE:
        raise UsageError(f"expected at most {LARGEST_FILE:,} bytes, found more", file=str(path))
    try:
        found = parse(raw.decode("utf-8"))
    except (UnicodeDecodeError, UsageError) as error:
        raise UsageError(str(error), file=str(path)) from error
    if not isinstance(found, dict):
        raise UsageError("expected accounts: and a list of them", file=str(path))
    return found


def acl_of(told: Any) -> PlainAcl:
    """The accounts of a parsed file. Raises :class:`UsageError`."""
    if not isinstance(told, Mapping):
        raise UsageError("expected accounts: and a list of them")
    white = [str(one) for one in _list(told.get("globalWhiteRemoteAddresses"), "globalWhiteRemoteAddresses")]
    tests = [address_test(one) for one in white]
    accounts: dict[str, Account] = {}
    for number, row in enumerate(_list(told.get("accounts"), "accounts"), 1):
        one = _account(row, number)
        if one.access_key in accounts:
            raise UsageError(f"account {number}: accessKey {one.access_key} stands twice")
        accounts[one.access_key] = one
    if not accounts and not white:
        raise UsageError("expected accounts: and a list of them")
    any_white = any(one.strip() for one in white)
    return PlainAcl(accounts, lambda address: any(test(address) for test in tests), any_white)


def _list(found: Any, name: str) -> list[Any]:
    if found in (None, ""):
        return []
    if not isinstance(found, list):
        raise UsageError(f"{name}: expected a list")
    return found


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
    found = row.get(name)
    if found is not None and not isinstance(found, str):
        raise UsageError(f"{name}: expected one value")
    return found or None


def _permissions(row: Mapping[Any, Any], name: str, number: int) -> tuple[tuple[str, str], ...]:
    found = []
    for one in _list(row.get(name), name):
        resource, equals, permission = str(one).partition("=")
        if not equals or not resource.strip() or not permission.strip():
            raise UsageError(f"account {number}: {name}: expected NAME=PUB, SUB, PUB|SUB or DENY, found {one!r}")
        _warn_of_unknown(permission.strip(), f"account {number}: {name}: {resource.strip()}")
        found.append((resource.strip(), permission.strip()))
    return tuple(found)


def _warn_of_unknown(permission: str, where: str) -> None:
    """Say that a word is no permission: RocketMQ takes it for DENY without a word."""
    if permission not in PERMISSIONS:
        expected = ", ".join(PERMISSIONS)
        _log.warning("%s: %r is no permission and counts as DENY; expected %s", where, permission, expected)


def address_test(pattern: str) -> Callable[[str], bool]:
    """Whether an address is meant: nobody, all (``*``), one, ``a.b.c.{1,2}``, a comma list, ranges and stars in the
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
        text = ",".join(head + one.strip() for one in tail[:-1].split(","))
    if "," in text:
        tests = [address_test(one) for one in text.split(",")]
        return lambda address: any(test(address) for test in tests)
    sign = ":" if ":" in text else "."
    if "*" in text or "-" in text:
        parts = [_part_test(one, pattern, 16 if sign == ":" else 10) for one in text.split(sign)]
        return lambda address: _all_parts(address, sign, parts)
    try:
        meant = ipaddress.ip_address(text)
    except ValueError:
        raise UsageError(f"expected an address or a pattern of addresses, found {pattern!r}") from None
    return lambda address: _same(address, meant)


def _same(address: str, meant: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    try:
        return ipaddress.ip_address(address) == meant
    except ValueError:
        return False


def _part_test(part: str, pattern: str, base: int) -> Callable[[int], bool]:
    if part == "*":
        return lambda _: True
    low, dash, high = part.partition("-")
    try:
        least, most = int(low, base), int(high if dash else low, base)
    except ValueError:
        raise UsageError(f"expected an address or a pattern of addresses, found {pattern!r}") from None
    return lambda value: least <= value <= most


def _all_parts(address: str, sign: str, tests: list[Callable[[int], bool]]) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if (sign == ":") != isinstance(found, ipaddress.IPv6Address):
        return False
    values = [int(one, 16 if sign == ":" else 10) for one in found.exploded.split(sign)]
    return len(values) >= len(tests) and all(test(value) for test, value in zip(tests, values, strict=False))


def keep_secret(path: Path, data: bytes) -> None:
    """Have ``data`` stand in ``path`` whole, or leave it as it was; nobody may read it who might not before, and of a
    new file nobody but its owner. Raises ``OSError``.
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
    """Maps, lists and texts of a file. Raises :class:`UsageError` with the line."""
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        bare = _without_comment(line.rstrip())
        if not bare.strip() or bare in {"---", "..."}:
            continue
        if "\t" in bare[: len(bare) - len(bare.lstrip())]:
            raise UsageError(f"line {number}: expected blanks in front, found a tab")
        lines.append(_Line(number, len(bare) - len(bare.lstrip()), bare.strip()))
    if not lines:
        return {}
    found, at = _block(lines, 0)
    if at < len(lines):
        raise UsageError(f"line {lines[at].number}: stands further left than what it belongs to")
    return found


def _without_comment(line: str) -> str:
    quote = ""
    for at, sign in enumerate(line):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign == "#" and (at == 0 or line[at - 1] == " "):
            return line[:at].rstrip()
    return line


def _block(lines: list[_Line], at: int) -> tuple[Any, int]:
    first = lines[at]
    if first.text == "-" or first.text.startswith("- "):
        return _items(lines, at, first.indent)
    return _members(lines, at, first.indent)


def _items(lines: list[_Line], at: int, indent: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    while at < len(lines) and lines[at].indent == indent and (lines[at].text + " ").startswith("- "):
        line = lines[at]
        rest = line.text[1:].lstrip()
        if not rest:
            value, at = _nested(lines, at + 1, indent)
        elif _KEY.match(rest):
            inner = indent + len(line.text) - len(rest)
            lines[at] = _Line(line.number, inner, rest)
            value, at = _members(lines, at, inner)
        else:
            value, at = _value(rest, line.number), at + 1
        found.append(value)
    return found, at


def _members(lines: list[_Line], at: int, indent: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    while at < len(lines) and lines[at].indent == indent:
        line = lines[at]
        match = _KEY.match(line.text)
        if match is None:
            if line.text.startswith("-"):
                break
            raise UsageError(f"line {line.number}: expected NAME: VALUE, found {line.text[:60]!r}")
        name, rest = match[1].strip("'\""), (match[2] or "").strip()
        if rest:
            found[name], at = _value(rest, line.number), at + 1
        else:
            found[name], at = _nested(lines, at + 1, indent, lists_may_stand_at=indent)
    if at < len(lines) and lines[at].indent > indent:
        raise UsageError(f"line {lines[at].number}: stands further right than its neighbours")
    return found, at


def _nested(lines: list[_Line], at: int, indent: int, lists_may_stand_at: int = -1) -> tuple[Any, int]:
    if at >= len(lines):
        return "", at
    line = lines[at]
    if line.indent > indent or (line.indent == lists_may_stand_at and (line.text + " ").startswith("- ")):
        return _block(lines, at)
    return "", at


def _value(text: str, number: int) -> Any:
    if text[0] in "'\"":
        if len(text) < 2 or text[-1] != text[0]:
            raise UsageError(f"line {number}: a quote is not closed")
        return text[1:-1]
    if text[0] == "[":
        if text[-1] != "]":
            raise UsageError(f"line {number}: expected ] at the end")
        return [_value(one.strip(), number) for one in text[1:-1].split(",") if one.strip()]
    if text[0] in "{&*!|>%@`":
        raise UsageError(f"line {number}: expected a plain value or a list, found {text[:60]!r}")
    return "" if text in {"~", "null"} else text
