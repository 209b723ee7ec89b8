"""Java's properties syntax."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import CannotRead, UsageError
from engine.files.properties_file import MAX_FILE_BYTES, parse, read_text

CASES = [
    pytest.param("a=1", [("a", "1", 1)], id="equals"),
    pytest.param("a:1", [("a", "1", 1)], id="colon"),
    pytest.param("a 1", [("a", "1", 1)], id="blank"),
    pytest.param("  a \t = \f 1 ", [("a", "1 ", 1)], id="blanks around, the last one stays"),
    pytest.param("a", [("a", "", 1)], id="key alone"),
    pytest.param("a==b", [("a", "=b", 1)], id="second sign belongs to the value"),
    pytest.param("# x\n! y\n\n a = # b", [("a", "# b", 4)], id="comments"),
    pytest.param("a=1,\\\n   2,\\\r\n\t3\nb=4", [("a", "1,2,3", 1), ("b", "4", 4)], id="continued"),
    pytest.param("a=1\\\\\nb=2", [("a", "1\\", 1), ("b", "2", 2)], id="two backslashes end a line"),
    pytest.param("a=\\u4e2d\\t\\q\\ud83d\\ude00", [("a", "中\tq😀", 1)], id="escapes"),
    pytest.param("a\\ b\\=c=1", [("a b=c", "1", 1)], id="escaped signs in a key"),
    pytest.param("a=1\ra=2", [("a", "1", 1), ("a", "2", 2)], id="carriage returns, repeated key"),
    pytest.param("a=\\", [("a", "", 1)], id="backslash at the very end"),
    pytest.param("", [], id="nothing"),
]


@pytest.mark.parametrize(("text", "pairs"), CASES)
def test_reads(text, pairs):
    assert [(item.key, item.value, item.line) for item in parse(text)] == pairs


def test_broken_unicode_escape_is_refused_with_its_line():
    with pytest.raises(UsageError, match=r"broker.conf: line 2: expected four hex digits"):
        parse("a=1\nb=\\u12x4", "broker.conf")


def _quoted(text: str) -> str:
    return "".join(f"\\u{unit:04x}" for unit in memoryview(text.encode("utf-16-le")).cast("H"))


@given(st.lists(st.tuples(st.text(min_size=1), st.text())))
def test_escaped_pairs_round_trip(pairs):
    text = "\n".join(f"{_quoted(key)}={_quoted(value)}" for key, value in pairs)
    assert [(item.key, item.value) for item in parse(text)] == pairs


@given(st.text())
def test_any_text_gives_pairs_or_a_usage_error(text):
    refused = None
    try:
        pairs = parse(text, "broker.conf")
    except UsageError as error:
        refused = error
    if refused is not None:
        assert "\\u" in text
        assert str(refused).startswith("broker.conf: line ")
        return
    lines = [pair.line for pair in pairs]
    assert lines == sorted(set(lines)), "a pair a line, in order"
    assert all(1 <= line <= len(re.split("\r\n|\r|\n", text)) for line in lines)
    assert sum(len(pair.key) + len(pair.value) for pair in pairs) <= len(text)


def test_a_missing_or_too_long_file(tmp_path):
    file = tmp_path / "broker.conf"
    with pytest.raises(CannotRead):
        read_text(file)
    file.write_bytes("name=gr\xfcn".encode("latin-1"))
    assert read_text(file) == "name=gr\xfcn"
    file.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(UsageError, match="at most 1,048,576 bytes"):
        read_text(file)
