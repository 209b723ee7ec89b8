"""Frames: those of RocketMQ's own classes, frames in pieces, and invalid frames."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.remoting.frame import ANSWER, BINARY, JSON, MAX_FRAME_BYTES, Command, Fault, FrameReader, encode, release_of

ROUTE_JSON = bytes.fromhex(
    "00000087000000837b22636f6465223a3130352c226578744669656c6473223a7b22746f706963223a22546f70696354657374227d2c22666c6167223a302c22"
    "6c616e6775616765223a224a415641222c226f7061717565223a372c2273657269616c697a655479706543757272656e74525043223a224a534f4e222c227665"
    "7273696f6e223a3437397d"
)
ROUTE_BINARY = bytes.fromhex(
    "0000002d0100002900690001df000000070000000000000000000000140005746f70696300000009546f70696354657374"
)
SEND_BINARY = bytes.fromhex(
    "000000b1010000a801360001df0000000800000000000000000000009300016100000002504700016200000009546f7069635465737400016300000006544257"
    "3130320001640000000134000165000000013300016600000001300001670000000d313730303030303030303030300001680000000130000169000000125441"
    "47530154616741024b455953016b310200016a000000013000016b0000000566616c736500016d0000000566616c736548656c6c6f"
)
SENT_BINARY = bytes.fromhex(
    "000000640100006000000001df0000000800000001000000000000004b00056d7367496400000020374630303030303130303030324139463030303030303030"
    "30303030303444320007717565756549640000000133000b71756575654f66667365740000000135"
)
ERROR_BINARY = bytes.fromhex(
    "000000320100002e00010001df0000000100000001000000196e6f742073657420616e7920726573706f6e736520636f646500000000"
)
VECTORS = {
    "route, JSON": (ROUTE_JSON, Command(105, {"topic": "TopicTest"}, opaque=7)),
    "route, binary": (ROUTE_BINARY, Command(105, {"topic": "TopicTest"}, opaque=7, form=BINARY)),
    "send, binary": (
        SEND_BINARY,
        Command(
            310,
            {
                "a": "PG",
                "b": "TopicTest",
                "c": "TBW102",
                "d": "4",
                "e": "3",
                "f": "0",
                "g": "1700000000000",
                "h": "0",
                "i": "TAGS\x01TagA\x02KEYS\x01k1\x02",
                "j": "0",
                "k": "false",
                "m": "false",
            },
            b"Hello",
            opaque=8,
            form=BINARY,
        ),
    ),
    "sent, binary": (
        SENT_BINARY,
        Command(
            0,
            {"msgId": "7F00000100002A9F00000000000004D2", "queueId": "3", "queueOffset": "5"},
            opaque=8,
            flag=ANSWER,
            form=BINARY,
        ),
    ),
    "error, binary": (ERROR_BINARY, Command(1, opaque=1, flag=ANSWER, remark="not set any response code", form=BINARY)),
}


def read(data: bytes, step: int | None = None) -> list[Command | Fault]:
    reader, results = FrameReader(), []
    for position in range(0, len(data), step or len(data) or 1):
        reader.feed(data[position : position + (step or len(data))])
        results += reader.commands()
    return results


@pytest.mark.parametrize("name", VECTORS)
def test_bytes_of_rocketmq_are_read_and_written(name):
    data, command = VECTORS[name]
    assert read(data) == [command]
    assert b"".join(encode(command)) == data


@pytest.mark.parametrize("step", [1, 3, 7, 64])
def test_frames_may_arrive_in_any_pieces(step):
    data = b"".join(data for data, _ in VECTORS.values())
    assert read(data, step) == [command for _, command in VECTORS.values()]


def framed(header: bytes, form: int = JSON, body: bytes = b"") -> bytes:
    total = 4 + len(header) + len(body)
    return total.to_bytes(4, "big") + bytes([form]) + len(header).to_bytes(3, "big") + header + body


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (None, {}),
        ({}, {}),
        ({"a": 3, "b": True, "c": 1.5, "d": None, "e": "x"}, {"a": "3", "b": "true", "c": "1.5", "e": "x"}),
    ],
)
def test_fields_may_be_absent_or_numbers(fields, expected):
    """The C++ client sends numbers, and other clients send no fields at all."""
    [command] = read(framed(json.dumps({"code": 34, "extFields": fields, "opaque": 1}).encode(), body=b"{}"))
    assert command == Command(34, expected, b"{}", opaque=1, version=0)


def test_an_empty_value_of_a_binary_header_is_absent():
    data = b"".join(encode(Command(35, {"consumerGroup": "", "producerGroup": "P"}, form=BINARY)))
    assert read(data) == [Command(35, {"producerGroup": "P"}, form=BINARY)]


def test_a_code_too_large_for_the_binary_form_is_sent_as_json():
    [command] = read(b"".join(encode(Command(200050, {"topic": "T"}, form=BINARY))))
    assert (command.code, command.form) == (200050, JSON)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x00\x00\x00\x03\x00\x00\x00", "length is 3"),
        (b"\xff\xff\xff\xff\x00", "length is -1"),
        ((MAX_FRAME_BYTES - 3).to_bytes(4, "big"), "more than 16,777,216"),
        (b"\x00\x00\x00\x08\x02\x00\x00\x04aaaa", "type is 2"),
        (b"\x00\x00\x00\x08\x00\x00\x00\x05aaaa", "header has 5 bytes in a frame of 8"),
        (framed(b"{nothing"), "cannot be read"),
        (framed(b"[1]"), "not an object"),
        (framed(b'{"code":"many"}'), "cannot be read"),
        (framed(b'{"code":1e999}'), "cannot be read"),
        (framed(b'{"code":1,"opaque":[]}'), "cannot be read"),
        (framed(b"[" * 100_000), "cannot be read"),
        (framed(b"\x00\x01", BINARY), "cannot be read"),
        (framed(ROUTE_BINARY[8:-1], BINARY), "cannot be read"),
        (b"\x16\x03\x01\x02\x00\x01\x00", "TLS"),
        (b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n", "PROXY"),
    ],
)
def test_an_invalid_frame_is_reported_and_ends_the_connection(data, words):
    valid_frame = b"" if words in {"TLS", "PROXY"} else ROUTE_JSON
    reader = FrameReader()
    reader.feed(valid_frame + data)
    *commands_before, fault = reader.commands()
    assert len(commands_before) == bool(valid_frame)
    assert isinstance(fault, Fault)
    assert words in fault.reason
    assert fault.offset == len(valid_frame)
    reader.feed(ROUTE_JSON)
    assert list(reader.commands()) == []
    assert reader.held == 0


def test_the_largest_frame_passes():
    body = bytes(MAX_FRAME_BYTES - len(framed(b'{"code":1}')))
    data = framed(b'{"code":1}', body=body)
    assert len(data) == MAX_FRAME_BYTES
    [command] = read(data)
    assert len(command.body) == len(body)
    assert isinstance(read((MAX_FRAME_BYTES - 3).to_bytes(4, "big") + bytes(4))[0], Fault)
    with pytest.raises(ValueError, match="more than 16,777,216"):
        encode(Command(1, body=bytes(MAX_FRAME_BYTES)))


TEXT = st.text(st.characters(blacklist_categories=("Cs",)), max_size=20)
NUMBER = st.integers(-(1 << 31), (1 << 31) - 1)


@st.composite
def commands(draw: st.DrawFn) -> Command:
    form = draw(st.sampled_from((JSON, BINARY)))
    some = TEXT.filter(bool)
    return Command(
        code=draw(st.integers(0, 0x7FFF)),
        fields=draw(st.dictionaries(some, some, max_size=5)),
        body=draw(st.binary(max_size=50)),
        opaque=draw(NUMBER),
        flag=draw(st.integers(0, 3)),
        remark=draw(st.none() | some),
        language=draw(st.sampled_from(("JAVA", "GO", "PYTHON"))),
        version=draw(st.integers(0, 0x7FFF)),
        form=form,
    )


@given(st.lists(commands(), max_size=4), st.integers(1, 60))
def test_what_is_written_is_read(sent, step):
    assert read(b"".join(piece for item in sent for piece in encode(item)), step) == sent


@given(st.sampled_from([data for data, _ in VECTORS.values()]), st.data())
def test_no_bytes_raise(data, draw):
    """Each result is a command or a fault, and the reader holds no more bytes than it received."""
    spoiled = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 4))):
        spoiled[draw.draw(st.integers(0, len(spoiled) - 1))] = draw.draw(st.integers(0, 255))
    reader = FrameReader()
    reader.feed(bytes(spoiled) + data)
    actual_commands = list(reader.commands())
    assert all(isinstance(item, Command | Fault) for item in actual_commands)
    assert [isinstance(fault, Fault) for fault in actual_commands[:-1]].count(True) == 0
    assert reader.held <= len(spoiled) + len(data)


@pytest.mark.parametrize(
    ("version", "name"),
    [
        (213, "4.0.0"),
        (233, "4.1.0"),
        (397, "4.9.2"),
        (409, "4.9.8"),
        (413, "5.0.0"),
        (479, "5.3.3"),
        (317, "4.5.2"),
        (480, "5.3.4-SNAPSHOT"),
        (121, "version 121"),
        (0, "version 0"),
        (9999, "version 9999"),
    ],
)
def test_releases_by_their_ordinals(version: int, name: str) -> None:
    assert release_of(version) == name
