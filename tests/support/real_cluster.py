"""The real name server, broker and Java clients of RocketMQ (``tests/clients/java``), started and ended by tests."""

from __future__ import annotations

import contextlib
import filecmp
import json
import os
import random
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import peer

JAVA = Path(__file__).resolve().parent.parent / "clients" / "java"
CACHE = os.environ.get("TRAFFIC_CACHE") or str(Path(peer.BUILD).parent / "traffic")
TIMEOUT_S = 300.0
_LEAN = "-Xms256m -Xmx512m -XX:MaxDirectMemorySize=512m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

_AUTH = "org.apache.rocketmq.auth"
ACCOUNT_SETTINGS: dict[str, dict[str, str]] = {
    "4.9": {"aclEnable": "true"},
    "5.3": {
        "authenticationEnabled": "true",
        "authorizationEnabled": "true",
        "migrateAuthFromV1Enabled": "true",
        "authenticationProvider": f"{_AUTH}.authentication.provider.DefaultAuthenticationProvider",
        "authenticationMetadataProvider": f"{_AUTH}.authentication.provider.LocalAuthenticationMetadataProvider",
        "authorizationProvider": f"{_AUTH}.authorization.provider.DefaultAuthorizationProvider",
        "authorizationMetadataProvider": f"{_AUTH}.authorization.provider.LocalAuthorizationMetadataProvider",
        "innerClientAuthenticationCredentials": json.dumps({"accessKey": "adminuser", "secretKey": "87654321"}),
    },
}
"""Keys of a broker that checks the accounts of ``home/conf/plain_acl.yml``, whose administrator is ``adminuser``."""


def environment(*jvm_options: str) -> dict[str, str]:
    return {**os.environ, "TRAFFIC_CACHE": CACHE, "CLUSTER_JVM": " ".join((_LEAN, *jvm_options))}


def free_port() -> int:
    """Return a port that is free, with its neighbours: a broker takes three. It is below those that the system gives to
    connections, so that none of them takes it before the broker.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        if all(_free(port + step) for step in (-2, 0, 1)):
            return port


def _free(port: int) -> bool:
    with socket.socket() as item:
        item.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            item.bind(("", port))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def real(
    folder: Path,
    *options: object,
    release: str = "5.3.3",
    clean_end: bool = False,
    jvm_options: Sequence[str] = (),
) -> Iterator[dict[str, Any]]:
    """Start a real name server, a broker, or both, and yield the first line of its output once it accepts.

    It is killed after the block. ``clean_end``: it shuts down, which takes it 15 s; for tests that go on with its
    store, or that watch the effects of its end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "said.log").open("wb") as log:
        words = ["bash", str(JAVA / "cluster"), release, str(folder), *map(str, options)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=log, text=True, env=environment(*jvm_options))
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, (folder / "said.log").read_text("utf-8", "replace")[-2000:]
            yield json.loads(line)
        finally:
            if clean_end:
                process.terminate()
            else:
                process.kill()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


def traffic(scenario: str, seed: int, out: Path, namesrv: str, release: str = "5.3.3") -> list[dict[str, Any]]:
    """Return the lines of real Java clients' records in one scenario."""
    words = ["bash", str(JAVA / "traffic"), release, scenario, str(seed), str(out), "--namesrv", namesrv]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    lines = (out / "truth.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def mqadmin(namesrv: str, commands: str, release: str = "5.3.3") -> str:
    """Return all output of mqadmin, which executes the lines of ``commands``."""
    return subprocess.run(
        ["bash", str(JAVA / "mqadmin"), release, namesrv],
        input=commands,
        capture_output=True,
        text=True,
        timeout=240,
        env=environment(),
        check=True,
    ).stdout


def same(record: Path, other_record: Path) -> tuple[int, str]:
    """Return the differences of two records of one scenario, with 0 if there are none."""
    done = subprocess.run(
        ["python3", str(JAVA / "same"), str(record), str(other_record)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout


def differing_log_files(log: Path, other_log: Path) -> list[str]:
    """Return the names of the files in which two folders of a commit log differ.

    A file that only one of them has counts if it is not blank: a broker makes the next file ahead of need.
    """
    names = {file.name for file in (*log.iterdir(), *other_log.iterdir())}
    differing = []
    for name in sorted(names):
        files = [folder / name for folder in (log, other_log) if (folder / name).exists()]
        equal = filecmp.cmp(*files, shallow=False) if len(files) == 2 else not any(files[0].read_bytes())
        if not equal:
            differing.append(name)
    return differing
