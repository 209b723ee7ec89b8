"""The table of requests: number, name and header fields, as a server reads them."""

from __future__ import annotations

import pytest

from engine.remoting import codes
from engine.remoting.codes import BROKER, NAME_SERVER, TO_CLIENTS, Refused, ResponseCode, WrongRequest, by_code
from engine.remoting.frame import Command


def request(name):
    return next(item for item in (*NAME_SERVER, *BROKER) if item.name == name)


def test_fields_have_their_types_and_absent_ones_are_none():
    pull = request("PULL_MESSAGE")
    kinds = {field.name: field.kind for field in pull.fields}
    assert (kinds["queueId"], kinds["topic"]) == ("int", "str")
    arguments = {field.name: "7" for field in pull.fields if field.mandatory}
    read = pull.read(Command(11, arguments))
    assert read["queueId"] == 7
    assert read["topic"] == "7"
    assert {name for name, value in read.items() if value is None} == {
        field.name for field in pull.fields if not field.mandatory
    }


def test_an_invalid_number_counts_as_absent():
    request_fields = {"namespace": "N", "key": "k"}
    assert request("GET_KV_CONFIG").read(Command(101, request_fields)) == request_fields
    with pytest.raises(WrongRequest, match="the request GET_KV_CONFIG needs the field key"):
        request("GET_KV_CONFIG").read(Command(101, {"namespace": "N"}))
    pull = request("PULL_MESSAGE")
    arguments = {field.name: "x" for field in pull.fields if field.mandatory}
    with pytest.raises(WrongRequest, match="needs the field"):
        pull.read(Command(11, arguments))


@pytest.mark.parametrize(
    ("text", "of_32_bits", "of_64_bits"),
    [
        ("7", 7, 7),
        ("+7", 7, 7),
        ("-0", 0, 0),
        ("007", 7, 7),
        ("७", 7, 7),
        ("2147483647", 2147483647, 2147483647),
        ("2147483648", None, 2147483648),
        ("-2147483648", -2147483648, -2147483648),
        ("9223372036854775807", None, 9223372036854775807),
        ("9223372036854775808", None, None),
        ("-9223372036854775809", None, None),
        *((item, None, None) for item in ("", " 7", "7 ", "1_0", "0x1", "1.0", "1e3", "+", "--1", "9" * 5000)),
    ],
)
def test_numbers_are_read_as_java_reads_them(text, of_32_bits, of_64_bits):
    """Python accepts `` 7``, ``1_0`` and any number of digits, so a queue id of 2³¹ was accepted."""
    row = codes._row(codes.RequestCode.SEND_MESSAGE, "", "short:int? wide:long?")
    assert row.read(Command(0, {"short": text, "wide": text})) == {"short": of_32_bits, "wide": of_64_bits}


@pytest.mark.parametrize("table", [NAME_SERVER, BROKER, TO_CLIENTS])
def test_numbers_and_names_are_unique(table):
    assert len(by_code(table)) == len(table)
    assert len({request.name for request in table}) == len(table)
    assert all(request.page for request in table)


def test_a_refusal_has_a_code_and_words():
    error = WrongRequest("no")
    assert isinstance(error, Refused)
    assert (error.code, str(error)) == (ResponseCode.SYSTEM_ERROR, "no")
    assert codes.ResponseCode(0).name == "SUCCESS"
