"""``plain_acl.yml``: as it is documented, as brokers write it, and what is refused."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.broker.plain_acl import acl_of, address_test, parse, read_acl
from engine.errors import CannotRead, UsageError

DOCUMENTED = """\
# comments stand in it
globalWhiteRemoteAddresses:
- 10.10.103.*
- 192.168.0.*

accounts:
  - accessKey: RocketMQ
    secretKey: 12345678
    whiteRemoteAddress:
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms:
      - topicA=DENY
      - topicB=PUB|SUB   # both
    groupPerms:
      # the group should convert to retry topic
      - groupA=DENY
      - groupB=PUB|SUB

  - accessKey: rocketmq2
    secretKey: '12345678'
    whiteRemoteAddress: 192.168.1.*
    # if it is admin, it could access all resources
    admin: true
"""
WRITTEN = """\
globalWhiteRemoteAddresses: []
accounts:
- accessKey: RocketMQ
  secretKey: "12345678"
  admin: false
  topicPerms: [topicA=DENY, topicB=PUB|SUB]
dataVersion:
- {counter: 1, timestamp: 2}
"""


def test_the_documented_file() -> None:
    acl = acl_of(parse(DOCUMENTED))
    first, second = acl.accounts.values()
    assert (first.access_key, first.secret_key, first.admin) == ("RocketMQ", "12345678", False)
    assert (first.default_topic, first.default_group) == ("DENY", "SUB")
    assert first.topics == (("topicA", "DENY"), ("topicB", "PUB|SUB"))
    assert first.groups == (("groupA", "DENY"), ("groupB", "PUB|SUB"))
    assert not first.is_white("192.168.1.9")
    assert (second.admin, second.is_white("192.168.1.9"), second.default_topic) == (True, True, None)
    assert [acl.is_white(one) for one in ("10.10.103.7", "10.10.104.7")] == [True, False]
    assert acl.white_listed


def test_a_file_as_a_broker_writes_it() -> None:
    """Lists in one line; what it says of itself is passed over, in whatever form."""
    acl = acl_of(parse(WRITTEN.replace("- {counter: 1, timestamp: 2}", "- counter: 1\n  timestamp: 2")))
    (account,) = acl.accounts.values()
    assert account.topics == (("topicA", "DENY"), ("topicB", "PUB|SUB"))
    assert not acl.white_listed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected accounts"),
        ("accounts: none", "expected a list"),
        ("accounts:\n- one", "account 1: expected accessKey"),
        ("accounts:\n- accessKey: short\n  secretKey: 12345678", "longer than 6 characters"),
        ("accounts:\n- accessKey: RocketMQ\n  secretKey: 12345678\n  admin: perhaps", "expected true or false"),
        ("accounts:\n- accessKey: RocketMQ\n  secretKey: 12345678\n  topicPerms:\n  - topicA", "expected NAME=PUB"),
        ("accounts:\n- accessKey: RocketMQ\n  secretKey:\n    - 1", "secretKey: expected one value"),
        ("accounts:\n- {accessKey: RocketMQ}", "line 2: expected a plain value or a list"),
        ("accounts:\n- accessKey: 'RocketMQ", "line 2: a quote is not closed"),
        ("accounts:\n\t- accessKey: RocketMQ", "line 2: expected spaces for indentation"),
        ("accounts:\n  - accessKey: RocketMQ\n      secretKey: 1", "line 3: is indented more"),
        ("  accounts:\nother: 1", "line 2: is indented less"),
        ("what is this", "line 1: expected NAME: VALUE"),
        ("globalWhiteRemoteAddresses:\n- 10.0.0.x", "expected an address"),
    ],
)
def test_what_is_no_such_file_is_refused_with_its_line(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words.replace("{", r"\{")):
        acl_of(parse(text))


def test_one_key_stands_once() -> None:
    row = "- accessKey: RocketMQ\n  secretKey: 12345678\n"
    with pytest.raises(UsageError, match="appears twice"):
        acl_of(parse(f"accounts:\n{row}{row}"))


@pytest.mark.parametrize(
    ("pattern", "meant", "others"),
    [
        ("", [], ["127.0.0.1"]),
        ("*", ["127.0.0.1", "::1"], []),
        ("*.*.*.*", ["127.0.0.1"], []),
        ("127.0.0.1", ["127.0.0.1"], ["127.0.0.2"]),
        ("10.0.0.{1,2}", ["10.0.0.1", "10.0.0.2"], ["10.0.0.3"]),
        ("10.0.0.1,10.0.0.9", ["10.0.0.9"], ["10.0.0.3"]),
        ("192.168.0-5.*", ["192.168.3.77"], ["192.168.6.1", "192.169.1.1", "not an address"]),
        ("fe80:0-f:*", ["fe80:9::1"], ["fe80:10::1", "10.0.0.1"]),
        ("::1", ["::1", "0:0:0:0:0:0:0:1"], ["::2", "?"]),
    ],
)
def test_patterns_of_addresses(pattern: str, meant: list[str], others: list[str]) -> None:
    test = address_test(pattern)
    assert all(test(one) for one in meant)
    assert not any(test(one) for one in others)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotRead, match="No such file"):
        read_acl(tmp_path / "plain_acl.yml")
    (tmp_path / "plain_acl.yml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError):
        read_acl(tmp_path / "plain_acl.yml")


@given(st.text(alphabet=" -:#'\"[]{}\nab=|,", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        parse(text)
