"""The process that holds an occupied port."""

from __future__ import annotations

import os
import socket

import pytest

from engine.errors import CannotRead
from engine.remoting.connection import bind
from engine.remoting.port_holder import port_holder


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_port_that_is_taken_names_the_process_that_holds_it(family: socket.AddressFamily, host: str) -> None:
    """ "Address already in use" left an operator to look for the other broker."""
    with socket.socket(family) as received:
        received.bind((host, 0))
        received.listen()
        port = received.getsockname()[1]
        holder = port_holder(port)
        assert holder is not None
        assert holder[0] == os.getpid()
        with pytest.raises(CannotRead, match=rf"Address already in use, by .*\(process {os.getpid()}\)"):
            bind(host, port, "the broker's port")
    assert port_holder(port) is None
