"""The session: its Java, its sentences when it cannot start, and the place of its output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli.main import main
from engine.pipeline import reachable, session
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
@pytest.mark.spark_full
def test_a_master_that_is_silent_is_one_line_and_another_session_begins(tmp_path):
    """The listener accepts the connection and sends nothing."""
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
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root), "TMPDIR": str(tmp_path)},
        timeout=280,
    )
    expected = " answer within 4 s; Spark's messages are in one.log\n3\n"
    assert (process.returncode, process.stdout, process.stderr) == (0, expected, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.log", "two.log"]


@pytest.mark.spark
def test_the_session_is_the_same_at_the_second_ask(spark):
    assert session.start("local[2]") is spark
    with pytest.raises(CannotStart, match=r"already has a session on local\[2\]"):
        session.start("local[3]")


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", *reachable._PROXIES):
        monkeypatch.delenv(name, raising=False)


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


@pytest.mark.spark
@pytest.mark.parametrize("master", ["yarn", "k8s://https://127.0.0.1:1", "spark://127.0.0.1:1"])
def test_a_master_where_nobody_listens_is_one_line_of_the_command(golden, configured, capsys, monkeypatch, master):
    """Hadoop's client asks for an absent ResourceManager for fifteen minutes."""
    monkeypatch.setattr(session._Current, "running", None)  # that of other tests
    file = configured(yarn_resourcemanager_address="127.0.0.1:1")
    assert main(["pipeline", "stats", str(golden("clean-5.3.3")), "--master", master]) == 3
    text = f"the ResourceManager 127.0.0.1:1 (of {file})" if master == "yarn" else f"the master {master}"
    assert capsys.readouterr().err == f"storescope: {text} does not answer: Connection refused\n"


pytestmark = pytest.mark.spark


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
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        timeout=280,
    )
    assert (process.returncode, process.stdout, process.stderr) == (0, "3\n", "")
    assert (tmp_path / "spark.log").stat().st_size > 0
