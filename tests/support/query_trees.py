"""Random trees of the filter language: only those that a text can express."""

from __future__ import annotations

from hypothesis import strategies as st

from engine.query.fields import FIELDS
from engine.query.tree import (
    Arithmetic,
    Between,
    Compare,
    Constant,
    Field,
    In,
    IsNull,
    Matches,
    Node,
    Not,
    Now,
    TextTest,
    all_of,
    any_of,
)

_SIGNS = ("=", "!=", "<", "<=", ">", ">=")
_I64 = st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-5, 5000)


def _text(value: str) -> Constant:
    return Constant(value, "text")


def _number(value: int) -> Constant:
    return Constant(value, "number")


def conditions(now: int) -> st.SearchStrategy[Node]:
    """Return conditions of any shape; ``now`` is the moment of the word ``now``."""
    fields = {
        kind: [Field(name) for name, spec in FIELDS.items() if spec.kind == kind] for kind in ("number", "time", "text")
    }
    number = st.sampled_from(fields["number"]) | _I64.map(_number)
    number |= st.builds(Arithmetic, st.sampled_from("+-&"), number, number, st.just("number"))
    duration = _I64.map(lambda value: Constant(value, "duration"))
    moment = st.sampled_from(fields["time"]) | st.just(Now(now))
    moment |= st.builds(Arithmetic, st.sampled_from("+-"), moment, duration, st.just("time"))
    fixed = st.integers(-62135596800000, 253402300799999).map(lambda value: Constant(value, "time"))
    between_moments = st.builds(Arithmetic, st.just("-"), moment, moment | fixed, st.just("duration"))
    span = duration | between_moments
    texts = st.text(max_size=12).map(_text)
    plain = [field for field in fields["text"] if not FIELDS[field.name].words]
    prop = st.text(max_size=8).map(lambda name: Field(name, True)) | st.sampled_from("ab").map(
        lambda name: Field(name, True)
    )
    text = st.sampled_from(plain) | texts | prop
    listed = st.just(Field("keys"))
    sign, flag = st.sampled_from(_SIGNS), st.booleans()
    same = st.sampled_from(("=", "!="))
    tests = (
        st.sampled_from([Field(name) for name, spec in FIELDS.items() if spec.kind == "condition"])
        | st.booleans().map(lambda value: Constant(value, "condition"))
        | st.builds(Compare, sign, number, number)
        | st.builds(Compare, sign, moment, moment | fixed | _I64.map(_number))
        | st.builds(Compare, sign, fixed, moment)
        | st.builds(Compare, sign, span, span)
        | st.builds(Compare, sign, text, text)
        | st.builds(Compare, sign, prop, number | span | moment)
        | st.builds(Compare, same, listed, text)
        | st.builds(Compare, same, st.just(Field("crc")), st.sampled_from(["ok", "bad"]).map(_text))
        | st.builds(TextTest, st.sampled_from(("contains", "startswith", "endswith")), text | listed, text, flag)
        | st.builds(TextTest, st.just("like"), text | listed, texts, flag)
        | st.builds(
            Matches,
            text | listed,
            st.sampled_from((r"a/b", r"^x+$", r"\\", r"[\]/]", "é\n", r"\d{2}")),
            st.sampled_from(("", "i", "imsx", "s")),
            flag,
        )
        | st.builds(In, number, st.lists(_I64.map(_number), min_size=1, max_size=4).map(tuple), flag)
        | st.builds(In, moment, st.lists(fixed, min_size=1, max_size=3).map(tuple), flag)
        | st.builds(In, text | listed, st.lists(texts, min_size=1, max_size=3).map(tuple), flag)
        | st.builds(Between, number, number, number, flag)
        | st.builds(Between, moment, moment | fixed, moment | fixed, flag)
        | st.builds(Between, prop, number, span, flag)
        | st.builds(Between, text, text, text, flag)
        | st.builds(IsNull, text | listed | number | moment | span, flag)
    )
    return st.recursive(
        tests,
        lambda inner: (
            st.builds(Not, inner)
            | st.lists(inner, min_size=2, max_size=3).map(lambda items: all_of(*items))
            | st.lists(inner, min_size=2, max_size=3).map(lambda items: any_of(*items))
        ),
        max_leaves=8,
    )
