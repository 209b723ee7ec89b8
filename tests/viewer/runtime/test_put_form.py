"""The text in the put form, and the resulting messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.codec import properties as props
from engine.codec.message import COMMIT, PREPARED, ROLLBACK
from viewer.runtime.put_form import FormFault, PutForm


def test_a_plain_form_is_a_message_with_its_properties() -> None:
    form = PutForm("Orders", "3", "card", "k1 k2", "7", "source=web; tier = gold", "héllo")
    message = form.message()
    assert (message.topic, message.queue_id, message.flag, message.body) == ("Orders", 3, 7, "héllo".encode())
    assert message.properties == {"source": "web", "tier": "gold", "WAIT": "true", "TAGS": "card", "KEYS": "k1 k2"}
    assert PutForm(wait=False).message().properties == {"WAIT": "false"}


def test_a_body_is_given_as_hex_or_as_a_file(tmp_path: Path) -> None:
    assert PutForm(body="DA A3 20 a7", body_form="hex").message().body == bytes.fromhex("DAA320A7")
    file = tmp_path / "body.bin"
    file.write_bytes(b"\x00\x01")
    assert PutForm(body=str(file), body_form="file").message().body == b"\x00\x01"


def test_kinds_set_flags_properties_and_the_half_message() -> None:
    assert PutForm(kind="delay", extra="3").message().properties == {"WAIT": "true", props.DELAY: "3"}
    half = PutForm(kind="half").message()
    assert half.sys_flag == PREPARED
    assert (half.properties or {})[props.TRANSACTION_PREPARED] == "true"
    commit = PutForm(kind="commit", extra="1,024").message()
    assert (commit.sys_flag, commit.prepared_transaction_offset) == (COMMIT, 1024)
    assert PutForm(kind="rollback", extra="0x10").message().sys_flag == ROLLBACK


def test_a_batch_numbers_its_keys() -> None:
    messages = PutForm(kind="batch", extra="3", keys="k").messages()
    assert [(message.properties or {})["KEYS"] for message in messages] == ["k-0", "k-1", "k-2"]
    assert len(PutForm(kind="batch").messages()) == 2


@pytest.mark.parametrize(
    ("form", "field"),
    [
        (PutForm(topic=" "), "topic"),
        (PutForm(queue="x"), "queue"),
        (PutForm(queue="-1"), "queue"),
        (PutForm(flag="3000000000"), "flag"),
        (PutForm(properties="no sign"), "properties"),
        (PutForm(properties="a=b\x01c"), "properties"),
        (PutForm(body="ABC", body_form="hex"), "body"),
        (PutForm(body="/no/such/file", body_form="file"), "body"),
        (PutForm(kind="delay", extra="0"), "extra"),
        (PutForm(kind="batch", extra="many"), "extra"),
    ],
)
def test_invalid_input_names_its_field(form: PutForm, field: str) -> None:
    with pytest.raises(FormFault) as caught:
        form.messages()
    assert caught.value.field == field
    assert str(caught.value)
