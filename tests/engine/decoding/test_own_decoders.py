"""Decoders of the user's own: found as entry points, run in a process of their own with a time limit."""

from __future__ import annotations

import pytest

from engine.decoding import own_decoders
from engine.decoding.decoders import prepare
from engine.decoding.rules import DecodingRule
from engine.decoding.values import BadBody
from engine.errors import UsageError

_MODULE = """
import os, time

def decode(body, options):
    if body == b"sleep":
        time.sleep(60)
    if body == b"raise":
        raise ValueError("no such record")
    if body == b"exit":
        os._exit(3)
    if body == b"memory":
        return len(bytearray(8 << 30))
    print("a decoder may print")
    fields = dict(part.split("=", 1) for part in body.decode().split(";"))
    return {"fields": fields, "raw": body, "options": options}
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a package with one decoder into a temporary folder, as pip would."""
    (tmp_path / "pairs_decoder.py").write_text(_MODULE)
    metadata = tmp_path / "pairs_decoder-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: pairs-decoder\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[storescope.decoders]\npairs = pairs_decoder:decode\nbroken = pairs_decoder:nothing\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def _decoder(name: str):
    return prepare(DecodingRule("Orders", "own", options=(("name", name),)))


@pytest.mark.usefixtures("installed")
def test_an_installed_decoder_is_found_and_used():
    assert {"broken", "pairs"} <= set(own_decoders.own_decoder_names())
    decode = _decoder("pairs")
    assert decode(b"id=7;name=Ann") == {
        "fields": {"id": "7", "name": "Ann"},
        "raw": "aWQ9NztuYW1lPUFubg==",
        "options": {"name": "pairs", "topic": "Orders"},
    }
    assert decode(b"a=" + b"x" * 1_000_000)["fields"]["a"] == "x" * 1_000_000
    with pytest.raises(BadBody, match="the decoder pairs: ValueError: no such record"):
        decode(b"raise")
    assert decode(b"id=8")["fields"] == {"id": "8"}


@pytest.mark.usefixtures("installed")
def test_a_decoder_over_the_time_limit_is_ended_and_not_called_for_ever(monkeypatch):
    monkeypatch.setattr(own_decoders, "TIME_LIMIT_S", 0.2)
    decode = _decoder("pairs")
    for _ in range(own_decoders.MAX_TIMEOUTS):
        with pytest.raises(BadBody, match=r"took more than 0\.2 s"):
            decode(b"sleep")
    with pytest.raises(BadBody, match="is not called after 3 timeouts"):
        decode(b"id=7")


@pytest.mark.usefixtures("installed")
def test_a_decoder_that_ends_its_process_or_takes_all_memory_harms_one_body():
    decode = _decoder("pairs")
    with pytest.raises(BadBody, match="the process of the decoder pairs ended"):
        decode(b"exit")
    with pytest.raises(BadBody, match="MemoryError"):
        decode(b"memory")
    assert decode(b"id=7")["fields"] == {"id": "7"}


@pytest.mark.usefixtures("installed")
def test_a_decoder_that_cannot_be_loaded_says_why():
    with pytest.raises(BadBody, match="the decoder broken: AttributeError"):
        _decoder("broken")(b"")
    with pytest.raises(UsageError, match=r"no installed package provides the decoder 'other'; provided are: .*pairs"):
        _decoder("other")
