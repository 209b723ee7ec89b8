"""Check what can be known of a master before Java starts: its spelling, its needs, and whether something listens.

Spark and Hadoop try for a long time to reach a server that is not there, fifteen minutes on YARN; so the server is
asked for a connection first. Parts of a configuration that need interpretation (variables, inclusions) are left to
them.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

from engine.pipeline.java import CannotStart
from engine.sentences import sentence

CONNECT_TIMEOUT_S = 30.0
"""Seconds that a connection, and a standalone master, may take."""
CLUSTER_TIMEOUT_S = 300.0
"""Seconds that a YARN or a Kubernetes may take: what they give is queued for, and may have to be fetched."""
MANAGER_PORT = 8032
"""Where a ResourceManager listens unless its address says otherwise."""
_HOST_PORT = re.compile(r"(?P<host>[\w.-]+|\[[0-9a-fA-F:]+\]):(?P<port>\d+)")
_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


@dataclass(frozen=True, slots=True)
class Listener:
    """A host and port at which something must listen, with a description."""

    description: str
    host: str
    port: int


def timeout_for(master: str) -> float:
    """Return the seconds after which a start on ``master`` is usually given up."""
    return CLUSTER_TIMEOUT_S if master == "yarn" or master.startswith("k8s://") else CONNECT_TIMEOUT_S


def check_reachable(master: str, timeout_s: float) -> None:
    """Raise :class:`CannotStart` in one sentence if nothing listens, or something is missing that the master needs.

    If several servers share the work, one that listens is enough.
    """
    refused: CannotStart | None = None
    for listener in listeners(master):
        try:
            with socket.create_connection((listener.host, listener.port), min(timeout_s, CONNECT_TIMEOUT_S)):
                return
        except OSError as error:
            refused = refused or CannotStart(
                sentence(
                    "{server} does not answer: {reason}",
                    server=listener.description,
                    reason=sentence(error.strerror) if error.strerror else str(error),
                )
            )
    if refused is not None:
        raise refused


def listeners(master: str) -> list[Listener]:
    """Return the places of which one must listen; [] if none is needed, or none is known. Raises
    :class:`CannotStart`.
    """
    if master.startswith("spark://"):
        return list(_standalone(master))
    if master == "yarn":
        return _yarn()
    if master.startswith("k8s://"):
        return _kubernetes(master)
    return []


def _standalone(master: str) -> Iterator[Listener]:
    for each in master.removeprefix("spark://").split(","):
        match = _HOST_PORT.fullmatch(each)
        if match is None:
            raise CannotStart(sentence("expected {form}, found {found}", form="spark://HOST:PORT", found=master))
        yield Listener(sentence("the master {master}", master=master), match["host"].strip("[]"), int(match["port"]))


def _kubernetes(master: str) -> list[Listener]:
    url = master.removeprefix("k8s://")
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        host, port = parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        host = port = None
    if host is None or port is None:
        raise CannotStart(sentence("expected {form}, found {found}", form="k8s://https://HOST:PORT", found=master))
    if any(os.environ.get(name) for name in _PROXIES):  # then somebody else is asked for it
        return []
    return [Listener(sentence("the master {master}", master=master), host, port)]


def _yarn() -> list[Listener]:
    """Return the ResourceManagers that the configuration names."""
    folders = [folder for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR") if (folder := os.environ.get(name))]
    if not folders:
        raise CannotStart(
            sentence("the master yarn needs HADOOP_CONF_DIR (or YARN_CONF_DIR): the folder with yarn-site.xml")
        )
    files = [file for folder in folders if (file := Path(folder, "yarn-site.xml")).is_file()]
    if not files:
        raise CannotStart(
            sentence("the master yarn needs yarn-site.xml, which is not in {folders}", folders=", ".join(folders))
        )
    settings = _properties(files[-1])
    if settings is None:
        return []
    numbers = settings.get("yarn.resourcemanager.ha.rm-ids", "").split(",")
    is_highly_available = settings.get("yarn.resourcemanager.ha.enabled") == "true"
    managers = []
    for tail in [f".{number.strip()}" for number in numbers] if is_highly_available else [""]:
        host = settings.get(f"yarn.resourcemanager.hostname{tail}", "")
        address = settings.get(f"yarn.resourcemanager.address{tail}") or (host and f"{host}:{MANAGER_PORT}")
        place = _HOST_PORT.fullmatch(address)
        if place is None:
            return []
        description = f"the ResourceManager {address} (of {files[-1]})"
        managers.append(Listener(description, place["host"].strip("[]"), int(place["port"])))
    return managers


def _properties(file: Path) -> dict[str, str] | None:
    """Read names and values of a Hadoop configuration; None if it cannot be read as one."""
    try:
        root = ET.parse(file).getroot()  # noqa: S314  the operator's own file, which Hadoop reads as well
    except (OSError, ET.ParseError):
        return None
    pairs = ((element.findtext("name", ""), element.findtext("value", "")) for element in root.iter("property"))
    return {name.strip(): value.strip() for name, value in pairs}
