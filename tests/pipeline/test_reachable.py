"""A master is checked before Java starts: its spelling, its needs, and its listening port."""

from __future__ import annotations

import socket

import pytest

from engine.pipeline import reachable
from engine.pipeline.java import CannotStart


@pytest.fixture
def configured(tmp_path, monkeypatch):
    """``configured(name=value, …)``: write such a yarn-site.xml and name its folder in the environment; ``_`` is a
    dot.
    """

    def write(**settings):
        pairs = (f"<property><name>{k}</name><value>{v}</value></property>" for k, v in settings.items())
        lines = (line.replace("__", "-").replace("_", ".") for line in pairs)
        (tmp_path / "yarn-site.xml").write_text(f'<?xml version="1.0"?><configuration>{"".join(lines)}</configuration>')
        monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
        return tmp_path / "yarn-site.xml"

    return write


def places(master):
    return [(listener.host, listener.port) for listener in reachable.listeners(master)]


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local[*]", []),
        ("spark://one:7077", [("one", 7077)]),
        ("spark://one:7077,two:7078", [("one", 7077), ("two", 7078)]),
        ("spark://[::1]:7077", [("::1", 7077)]),
        ("k8s://https://one:6443", [("one", 6443)]),
        ("k8s://one:6443", [("one", 6443)]),
        ("k8s://https://one", [("one", 443)]),
        ("k8s://http://127.0.0.1:8001/below", [("127.0.0.1", 8001)]),
    ],
)
def test_a_master_names_the_addresses_that_must_listen(master, expected):
    assert places(master) == expected


@pytest.mark.parametrize("master", ["spark://one", "spark://one:7077,two", "k8s://", "k8s://https://one:port"])
def test_a_master_that_is_no_address_is_an_error(master):
    with pytest.raises(CannotStart, match=r"expected (spark|k8s)://"):
        reachable.listeners(master)


def test_behind_a_proxy_a_kubernetes_is_not_asked(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert places("k8s://https://one:6443") == []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"yarn_resourcemanager_address": "one:18032"}, [("one", 18032)]),
        ({"yarn_resourcemanager_hostname": "one"}, [("one", 8032)]),
        ({"yarn_resourcemanager_hostname": "one", "yarn_resourcemanager_address": "two:1"}, [("two", 1)]),
        ({"yarn_resourcemanager_address": "${somewhere}:8032"}, []),
        ({"yarn_nodemanager_aux__services": "shuffle"}, []),
        (
            {
                "yarn_resourcemanager_ha_enabled": "true",
                "yarn_resourcemanager_ha_rm__ids": "rm1, rm2",
                "yarn_resourcemanager_hostname_rm1": "one",
                "yarn_resourcemanager_address_rm2": "two:18032",
            },
            [("one", 8032), ("two", 18032)],
        ),
    ],
)
def test_resource_managers_are_those_of_the_configuration(configured, settings, expected):
    configured(**settings)
    assert places("yarn") == expected


def test_a_configuration_that_cannot_be_read_is_left_to_hadoop(configured):
    configured().write_text("<configuration>")
    assert places("yarn") == []


def test_yarn_without_its_configuration_is_an_error(tmp_path, monkeypatch):
    with pytest.raises(
        CannotStart, match=r"yarn needs HADOOP_CONF_DIR \(or YARN_CONF_DIR\): the folder with yarn-site"
    ):
        reachable.check_reachable("yarn", 1)
    monkeypatch.setenv("YARN_CONF_DIR", str(tmp_path))
    with pytest.raises(CannotStart, match=f"needs yarn-site.xml, which is not in {tmp_path}"):
        reachable.check_reachable("yarn", 1)


def test_one_of_several_that_listens_suffices():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        reachable.check_reachable(f"spark://127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}", 5)
        arrived, _ = server.accept()
        arrived.close()
        assert arrived.fileno() == -1
