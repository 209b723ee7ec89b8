"""Each kind of change becomes patches that fit; what was typed wrong is named."""

from __future__ import annotations

import pytest
from handmade_stores import healthy

from engine.codec.checkpoint import PARTS
from engine.codec.message import Unit
from engine.errors import UsageError
from engine.inspection.snapshot import open_store
from viewer.pane.edit_kinds import BY_ID, EDIT_KINDS, edit_title, make_patches


@pytest.fixture
def root(tmp_path):
    return healthy().write(tmp_path / "store")


def test_each_kind_makes_patches_that_fit(root) -> None:
    with open_store(root) as store:
        units = [item for item in store.log.walk() if isinstance(item, Unit)]
    first, second = units[:2]
    place = {"topic": first.topic, "queue": str(first.queue_id)}
    body_at = first.offset + first.size - 1
    values = {
        "logBytes": {"offset": f"{body_at:,}", "bytes": "2A", "unit": ""},
        "groupOffset": {**place, "group": "billing", "offset": "0"},
        "checkpoint": {"field": PARTS[0].name, "number": "1764409000000"},
        "queueEntry": {**place, "entry": str(first.queue_offset), "offset": str(second.offset)},
        "removeMessage": {"offset": str(first.offset)},
        "cutLog": {"offset": hex(second.offset)},
        "removeFile": {"file": "checkpoint"},
        "moveFile": {"file": "checkpoint", "target": "old/checkpoint"},
    }
    assert values.keys() | {"delayOffset"} == {kind.id for kind in EDIT_KINDS}
    for kind_id, typed in values.items():
        patches = make_patches(root, None, (), BY_ID[kind_id], typed)
        assert patches, kind_id
        with open_store(root, None, patches):
            pass
    with pytest.raises(UsageError, match="expected a delay level"):
        make_patches(root, None, (), BY_ID["delayOffset"], {"level": "0", "offset": "1"})


def test_a_change_follows_another_one_and_nothing_is_staged_twice(root) -> None:
    kind = BY_ID["checkpoint"]
    typed = {"field": PARTS[0].name, "number": "1764409000000"}
    first = make_patches(root, None, (), kind, typed)
    assert make_patches(root, None, first, kind, typed) == ()
    second = make_patches(root, None, first, kind, {**typed, "number": "1764409000001"})
    with open_store(root, None, (*first, *second)) as store:
        assert store.small_file(store.paths.checkpoint)[:8] == (1764409000001).to_bytes(8, "big")
    assert edit_title(kind, typed).endswith(f"{PARTS[0].name} · 1764409000000")


@pytest.mark.parametrize(("number", "data"), [("", "00"), ("twelve", "00"), ("0", "0"), ("0", "zz")])
def test_what_is_no_number_or_no_byte_is_named(root, number: str, data: str) -> None:
    with pytest.raises(UsageError, match="expected"):
        make_patches(root, None, (), BY_ID["logBytes"], {"offset": number, "bytes": data, "unit": ""})
