"""Reading answers of other servers: all content that RocketMQ would not write is one kind of error."""

from __future__ import annotations

import pytest

from engine.remoting.answers import UnexpectedAnswer, json_object, member_object, member_objects, reading


def test_a_failing_reader_raises_one_error_with_server_request_and_cause() -> None:
    words = r"^127\.0\.0\.1:10911: the answer to GET_MAX_OFFSET .* 'offset' is missing$"
    with pytest.raises(UnexpectedAnswer, match=words), reading(30, "127.0.0.1:10911"):
        {}["offset"]
    with pytest.raises(UnexpectedAnswer, match=r"^the answer to 9999 .* TypeError: "), reading(9999):
        len(None)  # type: ignore[arg-type]
    with pytest.raises(UnexpectedAnswer, match=r"the body is no object$"), reading(28):
        json_object(b"[]")


def test_an_error_of_the_disk_is_not_an_answer() -> None:
    with pytest.raises(FileNotFoundError), reading(28):
        raise FileNotFoundError


@pytest.mark.parametrize("value", ["null", "5", '"x"', "[]"])
def test_members_have_their_type(value: str) -> None:
    parent = json_object(b'{"table":%s}' % value.encode())
    with pytest.raises(UnexpectedAnswer, match="table is no object"):
        member_object(parent, "table")


def test_a_list_may_be_missing_and_holds_objects() -> None:
    parent = json_object(b'{"none":null,"rows":[{"a":1}],"odd":[{},5],"text":"ab","number":1}')
    assert member_objects(parent, "absent") == member_objects(parent, "none") == []
    assert member_objects(parent, "rows") == [{"a": 1}]
    for name in ("odd", "text", "number"):
        with pytest.raises(UnexpectedAnswer, match=f"{name} is no list of objects"):
            member_objects(parent, name)
