"""Addresses of stores on another machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.cli.main import main
from engine.errors import UsageError
from engine.ssh.address import is_ssh_address, parse_address, refuse_ssh_address


@pytest.mark.parametrize(
    ("text", "user", "host", "port", "path"),
    [
        ("ssh://ops@broker-a/data/store", "ops", "broker-a", None, "/data/store"),
        ("ssh://broker-a:2222/data/store/", "", "broker-a", 2222, "/data/store"),
        ("ssh:/ops@broker-a/data/store", "ops", "broker-a", None, "/data/store"),
        ("ssh://ops@[fe80::1]:22/~/store", "ops", "fe80::1", 22, "/~/store"),
        ("ssh://broker-a/with a space/store", "", "broker-a", None, "/with a space/store"),
    ],
)
def test_an_address_has_user_host_port_and_path(text, user, host, port, path):
    address = parse_address(text)
    assert (address.user, address.host, address.port, address.path) == (user, host, port, path)
    assert parse_address(address.root) == address, "Path keeps only one slash"
    assert is_ssh_address(address.root)


@pytest.mark.parametrize(
    "text",
    [
        "ssh://",
        "ssh://host",
        "ssh://host/",
        "ssh:///data",
        "ssh://a@b@c/data",
        "ssh://-oProxyCommand=x/data",
        "ssh://-l@host/data",
        "ssh://host:port/data",
    ],
)
def test_what_is_no_address_is_refused_with_the_form_of_one(text):
    """A host that begins with a dash would be an option of ssh."""
    with pytest.raises(UsageError, match="expected ssh://USER@HOST/path/of/the/store"):
        parse_address(text)


def test_a_folder_of_this_machine_is_no_address():
    assert not is_ssh_address(Path("/data/ssh:/store"))
    refuse_ssh_address("/data/store")


@pytest.mark.parametrize(
    "words",
    [
        ["set-offset", "STORE", "group", "Orders", "0", "1"],
        ["recover", "STORE", "--apply"],
        ["repair", "STORE", "--apply", "--yes"],
    ],
)
def test_commands_that_write_refuse_an_address(words, capsys):
    address = "ssh://ops@broker-a/data/store"
    assert main([address if word == "STORE" else word for word in words]) == 2
    assert "this store is on another machine: it can be read here, but not changed" in capsys.readouterr().err
