"""One Spark session in this process, quiet, with its chatter in a file.

Spark is a Java program beside this one: it starts once, in some seconds, and ends with this process or by :func:`stop`.

What can be known of a master is asked before Java starts: how it is written, what it needs here, whether anybody
listens. Spark and Hadoop try for a long time to reach who is not there, fifteen minutes on YARN: so whoever should
listen is asked for a connection first. What a configuration says in ways of its own (variables, inclusions) is left to
them. So is asked what Python the processes are that Spark starts beside this one: they must be able to do the work.

Java beside this process with a session of Spark in it: started whole, or ended with all that it put aside.

The engine for executors that do not have it: one zip, which Spark hands to them.

Its code runs out of that zip and from nowhere else (:mod:`engine.shipped`), whatever lies in the caches of a machine.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

from engine.pipeline.defaults import NEEDED
from engine.pipeline.insides.java_process import (
    SETTINGS,
    by_unix_socket,
    forget_java,
    gives_an_executor,
    hear_py4j,
    noted,
    own_interrupts,
    without_last_words,
)
from engine.pipeline.java import CannotStart, find_java
from engine.scratch import Scratch, hold_new

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession


__all__ = ["CannotStart", "abandon", "ship_engine", "start", "stop"]
_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    **SETTINGS,
}
_LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


@dataclass(slots=True)
class Running:
    """A session, the way to its Java, and the folder of this machine where both put things aside."""

    spark: SparkSession
    gateway: Any
    master: str
    log: IO[bytes]
    scratch: Scratch


def launch(
    master: str, java_home: str, log: IO[bytes], settings: Mapping[str, str], patience: float | None = None
) -> Running:
    """A new session, begun within ``patience`` seconds (None: however long it takes) behind the start of Java.

    Raises :class:`CannotStart` in one sentence. Nothing is left of one that was interrupted.
    """
    from pyspark import SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    held = hold_new(Path(tempfile.gettempdir()), "storescope-java-")
    scratch = held.path
    java: list[subprocess.Popen[bytes]] = []
    whole, late = False, threading.Event()
    try:
        with _surroundings(master.startswith("local"), java_home), own_interrupts():
            with noted(java):
                gateway = launch_gateway(  # type: ignore[no-untyped-call]
                    _conf(master, scratch, settings), {"stdout": log, "stderr": log, "start_new_session": True}
                )
            with _ended_late(java, patience, late):
                session = SparkSession(SparkContext(conf=_conf(master, scratch, settings), gateway=gateway))
        whole = True
        return Running(session, gateway, master, log, held)
    except Exception as error:
        if late.is_set():
            told = f"the master {master} does not answer within {patience:g} s"
            raise CannotStart(f"{told}; what Spark said stands in {log.name}") from error
        kind = error.__class__.__name__ if isinstance(error, PySparkException) else _first_line(error)
        raise CannotStart(f"Spark did not start on {master} ({kind}); what it said stands in {log.name}") from error
    finally:
        if not whole:
            forget_java()
            for process in java:
                end(process)
            held.give_up()
            hear_py4j()


def _conf(master: str, scratch: Path, settings: Mapping[str, str]) -> SparkConf:
    """Spark's settings; what it and Java put aside on this machine goes to ``scratch``."""
    from pyspark import SparkConf

    local = master.startswith("local")
    conf = SparkConf(loadDefaults=False).setMaster(with_retries(master)).setAppName("storescope")
    conf.set("spark.driver.extraJavaOptions", f'-XX:-UsePerfData "-Djava.io.tmpdir={scratch}"')
    if local:
        conf.set("spark.local.dir", str(scratch))
        conf.setAll([*by_unix_socket(scratch).items()])
    return conf.setAll([*_QUIET.items(), *(_LOCAL.items() if local else ()), *settings.items()])


@contextlib.contextmanager
def _surroundings(local: bool, java_home: str) -> Iterator[None]:
    """The environment that Spark's launcher reads, put back at the end."""
    before = {name: os.environ.get(name) for name in ("JAVA_HOME", "SPARK_LOCAL_IP", "PYTHONPATH")}
    os.environ["JAVA_HOME"] = java_home
    if local:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        root = str(Path(__file__).parent.parent.parent)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, before["PYTHONPATH"])))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _ended_late(
    java: Sequence[subprocess.Popen[bytes]], patience: float | None, late: threading.Event
) -> Iterator[None]:
    """Java is killed, and the block raises, where its end is not reached within ``patience`` seconds."""
    if patience is None:
        yield
        return

    def over() -> None:
        late.set()
        for process in java:
            end(process)

    watch = threading.Timer(patience, over)
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()
        watch.join()
    if late.is_set():
        raise TimeoutError


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a Java, with all that its launcher began: it has a process group of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    if process.stdin is not None:
        process.stdin.close()
    process.wait()


def _first_line(error: BaseException) -> str:
    """What a Java error says, without its stack."""
    java = getattr(error, "java_exception", None)
    said = str(java.getMessage()) if java is not None else str(error)
    return said.strip().partition("\n")[0][:300] or error.__class__.__name__


BEGINNING = 15.0
"""Seconds of Spark's own beginning, beside what a master is given to answer."""
LAST_WORDS = 3.0
"""Seconds that a cluster is given to hear that a job was stopped."""


class _Here:
    """The session of this process, while there is one."""

    running: Running | None = None


def start(
    master: str = "local[*]",
    log_file: str | Path | None = None,
    memory: str | None = None,
    settings: Mapping[str, str] | None = None,
    patience: float | None = None,
) -> SparkSession:
    """The session of this process, started where there is none yet; what Spark and Java say goes to ``log_file``.

    ``memory`` is the driver's heap (None: as ``spark-defaults.conf`` says, else 1 GiB), ``settings`` are Spark's own.
    Raises :class:`CannotStart` in one sentence: a package or Java is missing, the master does not answer or gives
    nothing within ``patience`` seconds (None: what is usual for it), or a session with another master runs.
    """
    if (here := _Here.running) is not None:
        if here.master != master:
            raise CannotStart(f"a session on {here.master} runs in this process, another on {master} cannot")
        return here.spark
    lacking = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if lacking:
        raise CannotStart(f"the pipeline needs {', '.join(lacking)}: pip install 'storescope[spark]'")
    java = find_java()
    if patience is None:
        patience = patience_with(master)
    knock(master, patience)
    log = _open_log(log_file)
    try:
        heap = {"spark.driver.memory": memory} if memory is not None else {}
        watched = None if names_this_process(master) else patience + BEGINNING
        running = launch(master, java.home, log, {**heap, **(settings or {})}, watched)
    except BaseException:
        log.close()
        raise
    _Here.running = running
    atexit.register(stop)
    if not names_this_process(master):
        _await_executor(running, patience)
    return running.spark


def stop() -> None:
    """End the session and its Java; nothing where none runs."""
    running, _Here.running = _Here.running, None
    if running is None:
        return
    atexit.unregister(stop)
    try:
        running.spark.stop()
    finally:
        forget_java()
        running.gateway.shutdown()
        process = running.gateway.proc
        process.stdin.close()
        process.wait()
        running.log.close()
        running.scratch.give_up()
        hear_py4j()


def abandon() -> None:
    """End the session now, whatever it does: a cluster is told, Java is killed, what both put aside is removed."""
    running, _Here.running = _Here.running, None
    if running is None:
        return
    atexit.unregister(stop)
    without_last_words(running.spark)
    if not running.master.startswith("local"):
        told = threading.Thread(target=running.spark.stop, daemon=True)
        told.start()
        told.join(LAST_WORDS)
    forget_java(session=True)
    end(running.gateway.proc)
    running.log.close()
    running.scratch.give_up()


def _open_log(log_file: str | Path | None) -> IO[bytes]:
    if log_file is None:
        return tempfile.NamedTemporaryFile("ab", prefix="storescope-spark-", suffix=".log", delete=False)
    path = Path(log_file)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("ab")
    except OSError as error:
        raise CannotStart(f"the log file cannot be written: {error.strerror}", file=str(path)) from error


def _await_executor(running: Running, patience: float) -> None:
    """Raise :class:`CannotStart` where the master gives no executor, unless they are asked for as tasks come."""
    if running.spark.sparkContext.getConf().get("spark.dynamicAllocation.enabled") == "true":
        return
    until = time.monotonic() + patience
    while time.monotonic() < until:
        given = gives_an_executor(running.spark)
        if given:
            return
        if given is None:
            break
        time.sleep(0.2)
    stop()
    raise CannotStart(
        f"the master {running.master} gave no executor within {patience:g} s; what Spark said stands in "
        f"{running.log.name}"
    )


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


_Needed = ("engine.pipeline", "numpy", "pyarrow", "platformdirs")
_ASK = """
import importlib.util, sys

def lacking(name):
    try:
        return importlib.util.find_spec(name) is None
    except ImportError:
        return True

print(*sys.version_info[:2], sep=".")
print(*filter(lacking, sys.argv[1:]), sep=", ")
"""
_PATIENCE = 30


def must_serve(spark: SparkSession) -> None:
    """Raise :class:`CannotStart` where workers beside this process would be a Python that cannot do their work.

    Of a cluster's workers nothing is known here: they lie elsewhere.
    """
    context = spark.sparkContext
    named = str(context.pythonExec)
    found = shutil.which(named)
    what = f"Spark's workers would be {named}"
    remedy = f"set PYSPARK_PYTHON={sys.executable} before the session begins"
    if found is None:
        raise CannotStart(f"{what}, and there is none that runs: {remedy}")
    if _same(found, sys.executable):
        return
    try:
        asked = subprocess.run(  # noqa: S603  the program that Spark would start
            [found, "-c", _ASK, *_Needed], capture_output=True, text=True, check=True, timeout=_PATIENCE
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotStart(f"{what} ({found}), which does not run: {remedy}") from error
    version, lacking = asked.stdout.split("\n")[:2]
    if version != str(context.pythonVer):
        raise CannotStart(f"{what} ({found}), a Python {version}, and this is {context.pythonVer}: {remedy}")
    if lacking:
        raise CannotStart(f"{what} ({found}), which does not have {lacking}: {remedy}")


def _same(one: str, other: str) -> bool:
    """Whether two paths are one Python with one set of packages."""
    first, second = Path(one), Path(other)
    return first == second or (first.parent == second.parent and first.resolve() == second.resolve())


NOT_SHIPPED = ("lab",)
"""Folders of the engine that no task imports."""
_DATE = (2000, 1, 1, 0, 0, 0)
_BEGIN = """

from engine.shipped import import_from

import_from(__spec__.loader.archive, "{digest}")
"""
_shipped: set[str] = set()
"""Identifiers of the applications that have the engine."""


def is_local(spark: SparkSession) -> bool:
    """Whether the executors are in this process's own Java, and so import what this process imports."""
    return names_this_process(str(spark.sparkContext.master))


_LOCAL_MASTER = re.compile(r"local\[(\d+|\*)\]")
TASK_ATTEMPTS = 3
"""How often a task of a local session is tried: Spark's own ``local[N]`` gives a job up when one worker is killed."""


def with_retries(master: str) -> str:
    """Return the master URL with :data:`TASK_ATTEMPTS`, where it is a local one that names no number of attempts."""
    local = _LOCAL_MASTER.fullmatch(master)
    return f"local[{local[1]},{TASK_ATTEMPTS}]" if local else master


def names_this_process(master: str) -> bool:
    """Whether ``master`` stands for threads beside this process, and not for workers elsewhere."""
    return master == "local" or master.startswith("local[")


def ship_engine(spark: SparkSession) -> None:
    """Give executors the engine, once a session, so that they need not have the project; local ones have it."""
    if is_local(spark) or spark.sparkContext.applicationId in _shipped:
        return
    # Executors fetch the file when they start, and one that takes the place of a lost one starts late.
    held = hold_new(Path(tempfile.gettempdir()), "storescope-engine-")
    atexit.register(held.give_up)
    archive = held.path / "storescope-engine.zip"
    pack_engine(archive)
    spark.sparkContext.addPyFile(str(archive))
    _shipped.add(spark.sparkContext.applicationId)


def pack_engine(archive: Path) -> None:
    """Write the zip of what executors import; the same engine gives the same bytes."""
    root = Path(__file__).parent.parent
    files = {
        f"engine/{path.relative_to(root).as_posix()}": path.read_bytes()
        for path in sorted(root.rglob("*.py"))
        if path.relative_to(root).parts[0] not in NOT_SHIPPED
    }
    digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]
    files["engine/__init__.py"] += _BEGIN.format(digest=digest).encode()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in files.items():
            out.writestr(zipfile.ZipInfo(name, _DATE), data, zipfile.ZIP_DEFLATED)
