"""The parts of a frame: each field's bytes have its value, and a truncated frame has the parts that are present."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.remoting.frame import BINARY, JSON, Command, encode
from engine.remoting.frame_parts import EXTRA, frame_parts

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@pytest.mark.parametrize("form", [JSON, BINARY])
def test_every_field_has_its_position(form: int) -> None:
    command = Command(310, {"a": "g", "b": 'To"p}ic', "i": "KEYS\x01K1\x02"}, b"body", 7, 2, "why: {not}", form=form)
    frame = b"".join(encode(command))
    parts = frame_parts(frame)
    names = [name for name, _, _ in parts]
    assert names[:3] == ["totalLength", "serializeType", "headerLength"]
    assert names[-1] == "body"
    assert {"code", "opaque", "flag", "remark", f"{EXTRA}a", f"{EXTRA}b", f"{EXTRA}i"} <= set(names)
    places = {name: frame[position : position + size] for name, position, size in parts}
    assert places["body"] == b"body"
    assert b"K1" in places[f"{EXTRA}i"]
    assert b"ic" in places[f"{EXTRA}b"]


@given(
    st.dictionaries(TEXTS, TEXTS, max_size=5),
    st.binary(max_size=20),
    st.sampled_from([JSON, BINARY]),
    st.one_of(st.none(), TEXTS),
)
def test_parts_lie_in_order_and_name_every_field(fields, body, form, remark):
    frame = b"".join(encode(Command(34, fields, body, 3, 0, remark, form=form)))
    parts = frame_parts(frame)
    assert [name.removeprefix(EXTRA) for name, _, _ in parts if name.startswith(EXTRA)] == list(fields)
    end = 0
    for _, position, size in parts:
        assert end <= position <= position + size <= len(frame)
        end = position + size


@given(st.binary(max_size=60))
def test_any_bytes_have_parts_within_them(data):
    for _, position, size in frame_parts(data):
        assert 0 <= position <= position + size <= len(data)


def test_a_truncated_frame_has_its_present_parts() -> None:
    for form in (JSON, BINARY):
        frame = b"".join(encode(Command(310, {"a": "g", "b": "T"}, b"body", form=form)))
        for length in range(len(frame)):
            assert all(position + size <= length for _, position, size in frame_parts(frame[:length]))
