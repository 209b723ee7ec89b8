"""Members of an inner batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.batch import Member, MemberDamage, encode, members, spans, walk
from engine.codec.message import Unit
from engine.codec.unit_scan import walk as walk_units

CASES = [
    pytest.param(
        5, b"Hello", {"TAGS": "a"}, "000000220000000000000000000000050000000548656c6c6f00075441475301610 2", id="one"
    ),
    pytest.param(0, b"", {}, "0000001600000000000000000000000000000000 0000", id="empty"),
    pytest.param(-1, b"x", {}, "000000170000000000000000ffffffff00000001 78 0000", id="flag below zero"),
]


def _wire(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


@pytest.mark.parametrize(("flag", "body", "properties", "wire"), CASES)
def test_writes(flag, body, properties, wire):
    assert encode(flag, body, properties) == _wire(wire)


@pytest.mark.parametrize(("flag", "body", "properties", "wire"), CASES)
def test_reads(flag, body, properties, wire):
    raw = _wire(wire)
    (member,) = members(raw)
    assert (member.flag, member.body, member.properties, member.size) == (flag, body, properties, len(raw))


_NAMES = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1, max_size=8)
_MEMBERS = st.tuples(
    st.integers(-(1 << 31), (1 << 31) - 1), st.binary(max_size=40), st.dictionaries(_NAMES, _NAMES, max_size=3)
)


@given(st.lists(_MEMBERS, max_size=6))
def test_a_batch_round_trips(written):
    body = b"".join(encode(*member) for member in written)
    actual_members = members(body)
    assert [(member.flag, member.body, member.properties) for member in actual_members] == written
    assert [member.index for member in actual_members] == list(range(len(written)))
    assert sum(member.size for member in actual_members) == len(body)


@given(st.binary(max_size=300))
def test_any_bytes_give_members_and_at_most_one_damage(raw):
    actual_members = members(raw)
    covered = 0
    for number, member in enumerate(actual_members):
        assert member.position == covered
        assert isinstance(member, Member) or number == len(actual_members) - 1
        covered += member.size
    assert covered == len(raw)


@given(st.lists(_MEMBERS, min_size=1, max_size=3), st.integers(0, 500), st.integers(0, 7))
def test_flipped_bits_never_raise(written, position, bit):
    body = bytearray(b"".join(encode(*member) for member in written))
    body[position % len(body)] ^= 1 << bit
    assert sum(row.size for row in walk(bytes(body))) == len(body)


DAMAGE = [
    (b"\0" * 10, "10 bytes left, a member has at least 22"),
    (_wire("0000001500000000000000000000000000000000 0000"), "the length of a member is 21, expected 22 to 22"),
    (
        _wire("7fffffff00000000000000000000000000000000 0000"),
        "the length of a member is 2,147,483,647, expected 22 to 22",
    ),
    (_wire("00000016000000000000000000000000ffffffff 0000"), "bodyLength is -1 in a member of 22 bytes"),
    (_wire("0000001600000000000000000000000000000001 0000"), "bodyLength is 1 in a member of 22 bytes"),
    (_wire("0000001600000000000000000000000000000000 8000"), "propertiesLength is -32,768, 0 bytes are left"),
    (_wire("0000001700000000000000000000000000000000 000000"), "propertiesLength is 0, 1 byte is left"),
]


@pytest.mark.parametrize(("raw", "reason"), DAMAGE)
def test_damage_has_a_reason(raw, reason):
    assert members(raw) == [MemberDamage(0, 0, len(raw), reason)]
    good = encode(1, b"good", {})
    assert members(good + raw)[1] == MemberDamage(1, len(good), len(raw), reason)
    assert spans(good + raw) == MemberDamage(1, len(good), len(raw), reason)


@given(st.lists(_MEMBERS, max_size=4))
def test_the_spans_are_the_positions_of_the_members(written):
    """The put path takes flag, body and properties from the spans without building a member object each."""
    body = b"".join(encode(*member) for member in written)
    received = [
        (flag, body[position : position + size], body[text : text + length])
        for flag, position, size, text, length in spans(body)
    ]
    assert received == [(member.flag, member.body, member.properties_raw) for member in members(body)]


def test_a_member_has_its_own_tags_and_keys():
    (member,) = members(encode(0, b"", {"TAGS": "A", "KEYS": "k1 k2", "UNIQ_KEY": "U"}))
    assert (member.tags, member.keys, member.unique_key) == ("A", ["k1", "k2"], "U")
    (bare,) = members(encode(0, b"", {}))
    assert (bare.tags, bare.keys, bare.unique_key) == (None, [], None)


def test_a_list_of_members_is_bounded_and_reports_it():
    body = encode(0, b"", {}) * 10
    actual_members = members(body, max_count=3)
    assert len(actual_members) == 4
    assert actual_members[3] == MemberDamage(3, 66, 154, "more than 3 members")


@pytest.mark.golden
@pytest.mark.parametrize("name", ["broker-lmq", "batchcq-5.3.3"])
def test_inner_batches_of_a_real_store(golden, name):
    observed = 0
    for path in sorted((golden(name) / "commitlog").iterdir()):
        for unit in walk_units(path.read_bytes(), int(path.name)):
            if isinstance(unit, Unit) and unit.sys_flag & 0x80:
                actual_members = members(unit.body)
                assert all(isinstance(member, Member) for member in actual_members)
                assert len(actual_members) == unit.batch_size
                observed += len(actual_members) > 1
    assert observed
