"""The session: which Java, what is said where it cannot start, and where the chatter goes.

Masters before Java starts: who should listen, and one sentence where nobody does. No Java is needed here.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.cli.main import main
from engine.pipeline import session
from engine.pipeline.java import CannotStart


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(session._Current, "running", None)
    monkeypatch.setattr(session, "NEEDED", ("pyarrow", "no_such_package_here"))
    with pytest.raises(
        CannotStart, match=r"the pipeline needs no_such_package_here: pip install 'storescope\[spark\]'"
    ):
        session.start()


@pytest.mark.spark
def test_a_master_that_does_not_answer_is_one_line(monkeypatch):
    monkeypatch.setattr(session._Current, "running", None)
    with pytest.raises(CannotStart, match=r"the master spark://127\.0\.0\.1:1 does not answer: Connection refused"):
        session.start("spark://127.0.0.1:1")
    with pytest.raises(CannotStart, match="expected spark://HOST:PORT"):
        session.start("spark://nowhere")


@pytest.mark.spark
def test_a_master_that_is_silent_is_one_line_and_another_session_begins(tmp_path):
    """Who listens there takes what is said and says nothing."""
    script = """if True:
        import os, socket, sys
        from engine.pipeline import session
        session.START_TIMEOUT_S = 2.0
        with socket.create_server(("127.0.0.1", 0)) as silent:
            try:
                session.start(f"spark://127.0.0.1:{silent.getsockname()[1]}", "one.log", patience=2.0)
            except session.CannotStart as error:
                print(str(error).partition(" does not")[2])
        print(session.start("local[1]", "two.log").range(3).count())
        session.stop()
    """
    root = Path(__file__).parent.parent.parent
    told = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root), "TMPDIR": str(tmp_path)},
        timeout=280,
    )
    expected = " answer within 4 s; what Spark said stands in one.log\n3\n"
    assert (told.returncode, told.stdout, told.stderr) == (0, expected, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.log", "two.log"]


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local[*]", "local[*,3]"),
        ("local[2]", "local[2,3]"),
        ("local[2,5]", "local[2,5]"),
        ("local", "local"),
        ("spark://a:7077", "spark://a:7077"),
    ],
)
def test_tasks_of_a_local_session_are_tried_again(master, expected):
    """One killed worker ended a whole job on this machine: Spark tries no task of local[N] again."""
    assert session.with_retries(master) == expected


@pytest.mark.spark
def test_the_session_is_the_same_at_the_second_ask(spark):
    assert session.start("local[2]") is spark
    with pytest.raises(CannotStart, match=r"a session on local\[2\] runs in this process"):
        session.start("local[3]")


@pytest.mark.spark
def test_a_session_says_nothing_and_leaves_nothing_behind(tmp_path):
    """Java's first words are written before any setting of Spark's log is read."""
    script = (
        "from engine.pipeline import session\n"
        f"spark = session.start('local[1]', log_file={str(tmp_path / 'spark.log')!r})\n"
        "print(spark.range(3).count())\n"
        "session.stop()\n"
    )
    root = Path(__file__).parent.parent.parent
    told = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        timeout=280,
    )
    assert (told.returncode, told.stdout, told.stderr) == (0, "3\n", "")
    assert (tmp_path / "spark.log").stat().st_size > 0


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", *session._PROXIES):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def configured(tmp_path, monkeypatch):
    """``configured(name=value, …)``: a folder with such a yarn-site.xml, named in the environment; ``_`` is a dot."""

    def write(**settings):
        pairs = (f"<property><name>{k}</name><value>{v}</value></property>" for k, v in settings.items())
        lines = (line.replace("__", "-").replace("_", ".") for line in pairs)
        (tmp_path / "yarn-site.xml").write_text(f'<?xml version="1.0"?><configuration>{"".join(lines)}</configuration>')
        monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
        return tmp_path / "yarn-site.xml"

    return write


def places(master):
    return [(one.host, one.port) for one in session.listeners(master)]


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
def test_a_master_says_who_listens(master, expected):
    assert places(master) == expected


@pytest.mark.parametrize("master", ["spark://one", "spark://one:7077,two", "k8s://", "k8s://https://one:port"])
def test_a_master_that_is_no_address_is_told(master):
    with pytest.raises(CannotStart, match=r"expected (spark|k8s)://"):
        session.listeners(master)


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


def test_yarn_without_its_configuration_is_told(tmp_path, monkeypatch):
    with pytest.raises(
        CannotStart, match=r"yarn needs HADOOP_CONF_DIR \(or YARN_CONF_DIR\): the folder with yarn-site"
    ):
        session.check_reachable("yarn", 1)
    monkeypatch.setenv("YARN_CONF_DIR", str(tmp_path))
    with pytest.raises(CannotStart, match=f"needs yarn-site.xml, there is none in {tmp_path}"):
        session.check_reachable("yarn", 1)


def test_one_of_several_that_listens_suffices():
    with socket.create_server(("127.0.0.1", 0)) as there:
        there.settimeout(60)
        session.check_reachable(f"spark://127.0.0.1:1,127.0.0.1:{there.getsockname()[1]}", 5)
        came, _ = there.accept()
        came.close()
        assert came.fileno() == -1


@pytest.mark.spark
@pytest.mark.parametrize("master", ["yarn", "k8s://https://127.0.0.1:1", "spark://127.0.0.1:1"])
def test_a_master_where_nobody_listens_is_one_line_of_the_command(golden, configured, capsys, monkeypatch, master):
    """Hadoop's client goes on asking for a ResourceManager that is not there, for fifteen minutes."""
    monkeypatch.setattr(session._Current, "running", None)  # that of other tests
    file = configured(yarn_resourcemanager_address="127.0.0.1:1")
    assert main(["pipeline", "stats", str(golden("clean-5.3.3")), "--master", master]) == 3
    who = f"the ResourceManager 127.0.0.1:1 (of {file})" if master == "yarn" else f"the master {master}"
    assert capsys.readouterr().err == f"storescope: {who} does not answer: Connection refused\n"


pytestmark = pytest.mark.spark


def python(tmp_path, lines):
    path = tmp_path / "python3"
    path.write_text("#!/bin/sh\n" + lines)
    path.chmod(0o755)
    return str(path)


def told(name):
    context = SimpleNamespace(pythonExec=name, pythonVer=f"{sys.version_info[0]}.{sys.version_info[1]}")
    session.check_workers_python(SimpleNamespace(sparkContext=context))


def test_workers_of_another_python_are_told(tmp_path):
    """The first ``load`` died in a worker: ``ModuleNotFoundError: No module named 'engine'``."""
    remedy = f"set PYSPARK_PYTHON={sys.executable} before the session begins"
    told(sys.executable)
    for name, why in (
        (str(tmp_path / "none"), "and there is none that runs"),
        (python(tmp_path, "exit 1"), "which does not run"),
    ):
        with pytest.raises(CannotStart, match=f"{name}.*{why}: {remedy}"):
            told(name)
    with pytest.raises(CannotStart, match=f"a Python 3.9, and this is 3.*: {remedy}"):
        told(python(tmp_path, "echo 3.9; echo"))
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    with pytest.raises(CannotStart, match=f"which does not have engine.pipeline, numpy: {remedy}"):
        told(python(tmp_path, f"echo {here}; echo engine.pipeline, numpy"))
    told(python(tmp_path, f'exec "{sys.executable}" "$@"'))
