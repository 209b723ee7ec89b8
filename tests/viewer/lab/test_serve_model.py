"""The model of the lab's Serve panel: its form, and the report of a served store."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.lab.samples import ServeSettings
from engine.lab.serving import CodeCount, ServedClient, ServingState
from viewer.lab.serve_model import ServeForm, ServeModel


def state(seconds: float, count: int = 0) -> ServingState:
    clients = (ServedClient("a@1", "127.0.0.1:9", "JAVA", "5.3.3", ("payers",), (), 1),)
    codes = (CodeCount(10, "SEND_MESSAGE", count),) if count else ()
    return ServingState("127.0.0.1:1", "127.0.0.1:2", "broker-a", 0, 0.1, seconds, codes=codes, clients=clients)


@pytest.mark.parametrize(
    ("form", "placeholders", "vip"),
    [
        (ServeForm(), ("10911", "9876", "10912"), "VIP 10909"),
        (ServeForm("20000"), ("10911", "9876", "20001"), "VIP 19998"),
        (ServeForm("0"), ("10911", "9876", "…"), "VIP"),
        (ServeForm(config="broker.conf"), ("…", "9876", "…"), "VIP"),
        (ServeForm("20000", config=" broker.conf "), ("…", "9876", "…"), "VIP 19998"),
    ],
)
def test_empty_fields_show_their_defaults(form: ServeForm, placeholders: tuple[str, ...], vip: str):
    assert (form.placeholders(), form.vip_words()) == (placeholders, vip)


@pytest.mark.parametrize(
    ("form", "fault"),
    [
        (ServeForm(), ""),
        (ServeForm("0", "0", "0"), ""),
        (ServeForm("10911", "99999"), "99999 is not a port: expected 0 to 65,535"),
        (ServeForm("10911", "9876", "9876"), "9876 is named twice: each needs a port of its own"),
    ],
)
def test_ports_that_cannot_be_served_are_named(form: ServeForm, fault: str):
    assert form.fault() == fault


def test_the_settings_are_those_of_the_form():
    form = ServeForm("0", "9876", "", vip=False, config=" /etc/broker.conf ")
    assert form.settings() == ServeSettings(0, 9876, None, vip=False, config=Path("/etc/broker.conf"))
    assert ServeForm().settings() == ServeSettings()


def test_rates_are_counted_between_two_states():
    model = ServeModel()
    assert model.head_note().startswith("name server and broker on this store")
    assert (model.codes(), model.clients(), model.addresses()) == ([], [], [])
    model.take(state(1.0, 100), 1000.0)
    assert model.head_note() == ""
    model.take(state(3.0, 160), 1002.0)
    assert model.head_note() == "30 requests a second"
    model.take(state(3.0, 160), 1002.1)
    assert model.head_note() == "30 requests a second", "the same state came again"
    assert [row.code for row in model.codes()] == [10]
    assert len(model.clients()) == 1
    assert model.addresses()[0].value == "127.0.0.1:2"


def test_a_store_that_is_served_again_starts_from_zero():
    model = ServeModel()
    model.take(state(1.0, 100), 1000.0)
    model.take(state(3.0, 160), 1002.0)
    model.take(None, 1003.0)
    assert model.head_note().startswith("name server and broker on this store")
    model.take(state(0.5, 20), 1010.0)
    assert model.head_note() == ""
