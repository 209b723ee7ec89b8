"""The Spark session of this process, quiet, with its output in a file.

Spark is a Java program beside this one. It starts once, in some seconds, and ends with this process or by :func:`stop`.

What can be known of a master is checked before Java starts: its spelling, what it needs on this machine, and whether
something listens. Spark and Hadoop try for a long time to reach a server that is not there, fifteen minutes on YARN; so
the server is asked for a connection first. Parts of a configuration that need interpretation (variables, inclusions)
are left to them. The Python of the processes that Spark starts beside this one is checked too: it must be able to run
tasks.

Java runs beside this process with a session of Spark in it. It is either started completely, or ended with all its
temporary files.

Executors that do not have the engine get it as one zip from Spark. Its code runs from that zip only
(:mod:`engine.files.zip_import`), whatever is in the caches of a machine.
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

from engine.files.temporary_folders import Scratch, hold_new
from engine.pipeline.defaults import NEEDED
from engine.pipeline.java import CannotStart, find_java
from engine.pipeline.spark_internals.java_process import (
    SETTINGS,
    by_unix_socket,
    forget_java,
    gives_an_executor,
    hear_py4j,
    noted,
    own_interrupts,
    without_last_words,
)

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
    """A session, the way to its Java, and the folder of this machine with the temporary files of both."""

    spark: SparkSession
    gateway: Any
    master: str
    log: IO[bytes]
    scratch: Scratch


def launch(
    master: str, java_home: str, log: IO[bytes], settings: Mapping[str, str], patience: float | None = None
) -> Running:
    """Start a session within ``patience`` seconds after the start of Java (None: however long it takes).

    Raises :class:`CannotStart` in one sentence. Nothing is left of one that was interrupted.
    """
    from pyspark import SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    scratch_holder = hold_new(Path(tempfile.gettempdir()), "storescope-java-")
    scratch = scratch_holder.path
    java: list[subprocess.Popen[bytes]] = []
    is_running, timed_out = False, threading.Event()
    try:
        with _launcher_environment(master.startswith("local"), java_home), own_interrupts():
            with noted(java):
                gateway = launch_gateway(  # type: ignore[no-untyped-call]
                    _conf(master, scratch, settings), {"stdout": log, "stderr": log, "start_new_session": True}
                )
            with _ended_late(java, patience, timed_out):
                session = SparkSession(SparkContext(conf=_conf(master, scratch, settings), gateway=gateway))
        is_running = True
        return Running(session, gateway, master, log, scratch_holder)
    except Exception as error:
        if timed_out.is_set():
            reason = f"the master {master} does not answer within {patience:g} s"
            raise CannotStart(f"{reason}; what Spark said stands in {log.name}") from error
        kind = error.__class__.__name__ if isinstance(error, PySparkException) else _first_line(error)
        raise CannotStart(f"Spark did not start on {master} ({kind}); what it said stands in {log.name}") from error
    finally:
        if not is_running:
            forget_java()
            for process in java:
                end(process)
            scratch_holder.give_up()
            hear_py4j()


def _conf(master: str, scratch: Path, settings: Mapping[str, str]) -> SparkConf:
    """Return Spark's settings; its and Java's temporary files on this machine go to ``scratch``."""
    from pyspark import SparkConf

    local = master.startswith("local")
    conf = SparkConf(loadDefaults=False).setMaster(with_retries(master)).setAppName("storescope")
    conf.set("spark.driver.extraJavaOptions", f'-XX:-UsePerfData "-Djava.io.tmpdir={scratch}"')
    if local:
        conf.set("spark.local.dir", str(scratch))
        conf.setAll([*by_unix_socket(scratch).items()])
    return conf.setAll([*_QUIET.items(), *(_LOCAL.items() if local else ()), *settings.items()])


@contextlib.contextmanager
def _launcher_environment(local: bool, java_home: str) -> Iterator[None]:
    """Set the environment that Spark's launcher reads, and restore it at the end."""
    old_values = {name: os.environ.get(name) for name in ("JAVA_HOME", "SPARK_LOCAL_IP", "PYTHONPATH")}
    os.environ["JAVA_HOME"] = java_home
    if local:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        root = str(Path(__file__).parent.parent.parent)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, old_values["PYTHONPATH"])))
    try:
        yield
    finally:
        for name, value in old_values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _ended_late(
    java: Sequence[subprocess.Popen[bytes]], patience: float | None, late: threading.Event
) -> Iterator[None]:
    """Kill Java, and raise, if the block does not end within ``patience`` seconds."""
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
    """Kill a Java, with all processes of its launcher: it has its own process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    if process.stdin is not None:
        process.stdin.close()
    process.wait()


def _first_line(error: BaseException) -> str:
    """Return a Java error's message without its stack."""
    java = getattr(error, "java_exception", None)
    message = str(java.getMessage()) if java is not None else str(error)
    return message.strip().partition("\n")[0][:300] or error.__class__.__name__


START_TIMEOUT_S = 15.0
"""Seconds of Spark's own beginning, beside what a master is given to answer."""
STOP_TIMEOUT_S = 3.0
"""Seconds that a cluster is given to hear that a job was stopped."""


class _Current:
    """The session of this process, while there is one."""

    running: Running | None = None


def start(
    master: str = "local[*]",
    log_file: str | Path | None = None,
    memory: str | None = None,
    settings: Mapping[str, str] | None = None,
    patience: float | None = None,
) -> SparkSession:
    """Return the session of this process, started where there is none yet; the output of Spark and Java goes to
    ``log_file``.

    ``memory`` is the driver's heap (None: as ``spark-defaults.conf`` says, else 1 GiB), ``settings`` are Spark's own.
    Raises :class:`CannotStart` in one sentence: a package or Java is missing, the master does not answer or gives
    nothing within ``patience`` seconds (None: what is usual for it), or a session with another master runs.
    """
    if (running_session := _Current.running) is not None:
        if running_session.master != master:
            raise CannotStart(f"a session on {running_session.master} runs in this process, another on {master} cannot")
        return running_session.spark
    lacking = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if lacking:
        raise CannotStart(f"the pipeline needs {', '.join(lacking)}: pip install 'storescope[spark]'")
    java = find_java()
    if patience is None:
        patience = patience_with(master)
    check_reachable(master, patience)
    log = _open_log(log_file)
    try:
        heap = {"spark.driver.memory": memory} if memory is not None else {}
        watched = None if names_this_process(master) else patience + START_TIMEOUT_S
        running = launch(master, java.home, log, {**heap, **(settings or {})}, watched)
    except BaseException:
        log.close()
        raise
    _Current.running = running
    atexit.register(stop)
    if not names_this_process(master):
        _await_executor(running, patience)
    return running.spark


def stop() -> None:
    """End the session and its Java; do nothing if none runs."""
    running, _Current.running = _Current.running, None
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
    """End the session now, whatever it does: a cluster is told, Java is killed, their temporary files are removed."""
    running, _Current.running = _Current.running, None
    if running is None:
        return
    atexit.unregister(stop)
    without_last_words(running.spark)
    if not running.master.startswith("local"):
        stopping = threading.Thread(target=running.spark.stop, daemon=True)
        stopping.start()
        stopping.join(STOP_TIMEOUT_S)
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
        has_executor = gives_an_executor(running.spark)
        if has_executor:
            return
        if has_executor is None:
            break
        time.sleep(0.2)
    stop()
    raise CannotStart(
        f"the master {running.master} gave no executor within {patience:g} s; what Spark said stands in "
        f"{running.log.name}"
    )


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


def patience_with(master: str) -> float:
    """Seconds that ``master`` is usually given until there is something to work with."""
    return CLUSTER_TIMEOUT_S if master == "yarn" or master.startswith("k8s://") else CONNECT_TIMEOUT_S


def check_reachable(master: str, patience: float) -> None:
    """Raise :class:`CannotStart` in one sentence if nothing listens, or something is missing that the master needs.

    If several servers share the work, one that listens is enough.
    """
    refused: CannotStart | None = None
    for listener in listeners(master):
        try:
            with socket.create_connection((listener.host, listener.port), min(patience, CONNECT_TIMEOUT_S)):
                return
        except OSError as error:
            refused = refused or CannotStart(f"{listener.description} does not answer: {error.strerror or error}")
    if refused is not None:
        raise refused


def listeners(master: str) -> list[Listener]:
    """Return the places of which one must listen; [] where none is needed, or none is known. Raises
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
            raise CannotStart(f"expected spark://HOST:PORT, found {master}")
        yield Listener(f"the master {master}", match["host"].strip("[]"), int(match["port"]))


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
    """Return the ResourceManagers that the configuration names."""
    folders = [folder for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR") if (folder := os.environ.get(name))]
    if not folders:
        raise CannotStart("the master yarn needs HADOOP_CONF_DIR (or YARN_CONF_DIR): the folder with yarn-site.xml")
    files = [file for folder in folders if (file := Path(folder, "yarn-site.xml")).is_file()]
    if not files:
        raise CannotStart(f"the master yarn needs yarn-site.xml, there is none in {' or '.join(folders)}")
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
    """Read names and values of a Hadoop configuration; None where it cannot be read as one."""
    try:
        root = ET.parse(file).getroot()  # noqa: S314  the operator's own file, which Hadoop reads as well
    except (OSError, ET.ParseError):
        return None
    pairs = ((element.findtext("name", ""), element.findtext("value", "")) for element in root.iter("property"))
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
_PYTHON_TIMEOUT_S = 30


def check_workers_python(spark: SparkSession) -> None:
    """Raise :class:`CannotStart` if the workers beside this process would use a Python that cannot run their tasks.

    Workers of a cluster are not checked: they run on other machines.
    """
    context = spark.sparkContext
    named = str(context.pythonExec)
    executable = shutil.which(named)
    problem = f"Spark's workers would be {named}"
    remedy = f"set PYSPARK_PYTHON={sys.executable} before the session begins"
    if executable is None:
        raise CannotStart(f"{problem}, and there is none that runs: {remedy}")
    if _is_same_python(executable, sys.executable):
        return
    try:
        answer = subprocess.run(  # noqa: S603  the program that Spark would start
            [executable, "-c", _ASK, *_Needed], capture_output=True, text=True, check=True, timeout=_PYTHON_TIMEOUT_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotStart(f"{problem} ({executable}), which does not run: {remedy}") from error
    version, lacking = answer.stdout.split("\n")[:2]
    if version != str(context.pythonVer):
        raise CannotStart(f"{problem} ({executable}), a Python {version}, and this is {context.pythonVer}: {remedy}")
    if lacking:
        raise CannotStart(f"{problem} ({executable}), which does not have {lacking}: {remedy}")


def _is_same_python(executable: str, other_executable: str) -> bool:
    """Return whether two paths are one Python with one set of packages."""
    path, other_path = Path(executable), Path(other_executable)
    return path == other_path or (path.parent == other_path.parent and path.resolve() == other_path.resolve())


NOT_SHIPPED = ("lab",)
"""Folders of the engine that no task imports."""
_DATE = (2000, 1, 1, 0, 0, 0)
_BEGIN = """

from engine.files.zip_import import import_from

import_from(__spec__.loader.archive, "{digest}")
"""
_shipped: set[str] = set()
"""Identifiers of the applications that have the engine."""


def is_local(spark: SparkSession) -> bool:
    """Return whether the executors run in this process's own Java, and so import what this process imports."""
    return names_this_process(str(spark.sparkContext.master))


_LOCAL_MASTER = re.compile(r"local\[(\d+|\*)\]")
TASK_ATTEMPTS = 3
"""How often a task of a local session is tried: Spark's own ``local[N]`` gives a job up when one worker is killed."""


def with_retries(master: str) -> str:
    """Return the master URL with :data:`TASK_ATTEMPTS`, where it is a local one that names no number of attempts."""
    local = _LOCAL_MASTER.fullmatch(master)
    return f"local[{local[1]},{TASK_ATTEMPTS}]" if local else master


def names_this_process(master: str) -> bool:
    """Return whether ``master`` names threads beside this process, and not workers elsewhere."""
    return master == "local" or master.startswith("local[")


def ship_engine(spark: SparkSession) -> None:
    """Give executors the engine, once a session, so that they need not have the project; local ones have it."""
    if is_local(spark) or spark.sparkContext.applicationId in _shipped:
        return
    # Executors fetch the file when they start, and one that takes the place of a lost one starts late.
    scratch_holder = hold_new(Path(tempfile.gettempdir()), "storescope-engine-")
    atexit.register(scratch_holder.give_up)
    archive = scratch_holder.path / "storescope-engine.zip"
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
