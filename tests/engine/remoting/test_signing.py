"""Signatures: a check vector of a real client, and fields that are not signed."""

from __future__ import annotations

from engine.remoting.frame import Command
from engine.remoting.signing import SECURITY_TOKEN, SIGNATURE, is_signed, sign, signature, signed_content


def test_the_signature_of_a_real_client() -> None:
    command = Command(105, {"topic": "TopicTest"})
    sign(command, "RocketMQ", "12345678")
    assert signed_content(command.fields, b"") == b"RocketMQTopicTest"
    assert command.fields["Signature"] == "0jiwhsaYp5ObE5GObbZH1I8/FT4="
    assert is_signed(command, "12345678")
    assert not is_signed(command, "87654321")


def test_the_body_is_signed_too() -> None:
    command = Command(310, {"b": "Orders", "a": "senders"}, b"one")
    sign(command, "RocketMQ", "12345678")
    command.body = b"two"
    assert not is_signed(command, "12345678")


def test_capitals_come_before_small_letters() -> None:
    assert signed_content({"a": "3", "Signature": "-", "OnsChannel": "2", "AccessKey": "1"}, b"4") == b"1234"


def test_a_query_by_unique_key_may_leave_its_field_out() -> None:
    """4.9 and older clients leave it out, later ones do not."""
    fields = {"topic": "Orders", "key": "K", "_UNIQUE_KEY_QUERY": "true", "AccessKey": "RocketMQ"}
    for without in ("", "_UNIQUE_KEY_QUERY"):
        signed = {**fields, "Signature": signature("12345678", signed_content(fields, b"", without))}
        assert is_signed(Command(12, signed), "12345678")
    wrongly_signed = {**fields, "Signature": signature("12345678", signed_content(fields, b"", "topic"))}
    assert not is_signed(Command(12, wrongly_signed), "12345678")


def test_what_is_not_signed_is_not_signed() -> None:
    assert not is_signed(Command(105, {"topic": "TopicTest"}), "12345678")


def test_the_token_of_a_temporary_account_is_signed() -> None:
    """Java adds AccessKey and SecurityToken before it signs, so that nobody can take the token off."""
    command = Command(105, {"topic": "TopicTest"})
    sign(command, "RocketMQ", "12345678", "token")
    content = b"RocketMQ" + b"token" + b"TopicTest"
    assert command.fields[SECURITY_TOKEN] == "token"
    assert command.fields[SIGNATURE] == signature("12345678", content)
    assert is_signed(command, "12345678")
    del command.fields[SECURITY_TOKEN]
    assert not is_signed(command, "12345678")
