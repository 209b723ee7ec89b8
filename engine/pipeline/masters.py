"""What can be known of a master before Java starts: how it is written, what it needs here, and whether anybody listens.

Spark and Hadoop try for a long time to reach who is not there, fifteen minutes on YARN. So whoever should listen is
asked for a connection first. What a configuration says in ways of its own (variables, inclusions) is left to them.
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

ANSWERS = 30.0
"""Seconds that a connection, and a standalone master, may take."""
CONTAINERS = 300.0
"""Seconds that a YARN or a Kubernetes may take: what they give is queued for, and may have to be fetched."""
MANAGER_PORT = 8032
"""Where a ResourceManager listens unless its address says otherwise."""
_HOST_PORT = re.compile(r"(?P<host>[\w.-]+|\[[0-9a-fA-F:]+\]):(?P<port>\d+)")
_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")


@dataclass(frozen=True, slots=True)
class Listener:
    """Who should listen at ``host`` and ``port``, in words."""

    who: str
    host: str
    port: int


def patience_with(master: str) -> float:
    """Seconds that ``master`` is usually given until there is something to work with."""
    return CONTAINERS if master == "yarn" or master.startswith("k8s://") else ANSWERS


def knock(master: str, patience: float) -> None:
    """Raise :class:`CannotStart` in one sentence where nobody listens, or something is missing that the master needs.

    Of several that share the work one suffices.
    """
    refused: CannotStart | None = None
    for one in listeners(master):
        try:
            with socket.create_connection((one.host, one.port), min(patience, ANSWERS)):
                return
        except OSError as error:
            refused = refused or CannotStart(f"{one.who} does not answer: {error.strerror or error}")
    if refused is not None:
        raise refused


def listeners(master: str) -> list[Listener]:
    """Those of whom one has to listen; [] where none is needed, or none is known. Raises :class:`CannotStart`."""
    if master.startswith("spark://"):
        return list(_standalone(master))
    if master == "yarn":
        return _yarn()
    if master.startswith("k8s://"):
        return _kubernetes(master)
    return []


def _standalone(master: str) -> Iterator[Listener]:
    for each in master.removeprefix("spark://").split(","):
        found = _HOST_PORT.fullmatch(each)
        if found is None:
            raise CannotStart(f"expected spark://HOST:PORT, found {master}")
        yield Listener(f"the master {master}", found["host"].strip("[]"), int(found["port"]))


def _kubernetes(master: str) -> list[Listener]:
    url = master.removeprefix("k8s://")
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        host, port = parts.hostname, parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        host = port = None
    if host is None or port is None:
        raise CannotStart(f"expected k8s://https://HOST:PORT, found {master}")
    if any(os.environ.get(name) for name in _PROXIES):  # then somebody else is asked for it
        return []
    return [Listener(f"the master {master}", host, port)]


def _yarn() -> list[Listener]:
    """The ResourceManagers that the configuration names."""
    folders = [folder for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR") if (folder := os.environ.get(name))]
    if not folders:
        raise CannotStart("the master yarn needs HADOOP_CONF_DIR (or YARN_CONF_DIR): the folder with yarn-site.xml")
    files = [file for folder in folders if (file := Path(folder, "yarn-site.xml")).is_file()]
    if not files:
        raise CannotStart(f"the master yarn needs yarn-site.xml, there is none in {' or '.join(folders)}")
    said = _properties(files[-1])
    if said is None:
        return []
    numbers = said.get("yarn.resourcemanager.ha.rm-ids", "").split(",")
    high = said.get("yarn.resourcemanager.ha.enabled") == "true"
    found = []
    for tail in [f".{number.strip()}" for number in numbers] if high else [""]:
        host = said.get(f"yarn.resourcemanager.hostname{tail}", "")
        address = said.get(f"yarn.resourcemanager.address{tail}") or (host and f"{host}:{MANAGER_PORT}")
        place = _HOST_PORT.fullmatch(address)
        if place is None:
            return []
        who = f"the ResourceManager {address} (of {files[-1]})"
        found.append(Listener(who, place["host"].strip("[]"), int(place["port"])))
    return found


def _properties(file: Path) -> dict[str, str] | None:
    """Names and values of a configuration of Hadoop's; None where it cannot be read as that."""
    try:
        root = ET.parse(file).getroot()  # noqa: S314  the operator's own file, which Hadoop reads as well
    except (OSError, ET.ParseError):
        return None
    pairs = ((one.findtext("name", ""), one.findtext("value", "")) for one in root.iter("property"))
    return {name.strip(): value.strip() for name, value in pairs}
