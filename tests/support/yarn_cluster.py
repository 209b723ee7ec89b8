"""A YARN of one process on this machine, built by Maven: a ResourceManager and two NodeManagers.

Hadoop's own cluster for tests, in the release whose client pip's Spark brings. Executors are processes of the nodes,
under a Python that has the project's libraries and not the project.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pyspark
from spark_cluster import _environment, kill_all, python_without_the_project

SOURCE = Path(__file__).resolve().parent.parent / "cluster" / "yarn"
JARS = Path(pyspark.__file__).parent / "jars"
# Taken before the tests give themselves a cache of their own: what Maven fetched is worth keeping.
_BUILD = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "storescope", "yarn")


def build() -> str:
    """Compile the starter of the cluster, and download Hadoop's part of it; return a class path."""
    release = next(match[1] for jar in JARS.iterdir() if (match := re.match(r"hadoop-client-api-(.+)\.jar", jar.name)))
    folder = _BUILD / release
    process = subprocess.run(
        [
            "mvn",
            "-q",
            "-B",
            "-f",
            SOURCE / "pom.xml",
            f"-Dhadoop.version={release}",
            f"-Dspark.jars={JARS}",
            f"-Dyarn.build={folder}",
            "process-classes",
        ],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert process.returncode == 0, process.stdout[-3000:] + process.stderr[-3000:]
    return os.pathsep.join((str(folder / "classes"), str(folder / "lib" / "*"), str(JARS / "*")))


class YarnCluster:
    """The cluster; ``environment`` is that of a user who may use it."""

    def __init__(self, folder: Path, nodes: int = 2) -> None:
        self.folder = folder
        self.python = python_without_the_project(folder / "python")
        settings = folder / "hadoop"
        spark_settings = folder / "spark"
        settings.mkdir()
        spark_settings.mkdir()
        environment = _environment(folder)
        self.environment = {**environment, "HADOOP_CONF_DIR": str(settings), "SPARK_CONF_DIR": str(spark_settings)}
        saved = {name: environment[name] for name in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR")}
        (spark_settings / "spark-defaults.conf").write_text(
            f"spark.executor.instances {nodes}\n"
            "spark.executor.memory 600m\n"
            f"spark.yarn.jars local:{JARS}/*\n"
            f"spark.yarn.stagingDir file:{folder}/staging\n"
            + "".join(f"spark.executorEnv.{name} {value}\n" for name, value in saved.items())
        )
        with (folder / "yarn.log").open("wb") as log:
            self._process = subprocess.Popen(
                [Path(environment["JAVA_HOME"], "bin", "java"), "-cp", build(), "yarn.Yarn", settings, str(nodes)],
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        # Spark's log settings write to standard error; a line here is the cluster's own.
        if b"ready\n" not in iter(self._process.stdout.readline, b""):
            self.stop()
            raise AssertionError((folder / "yarn.log").read_text()[-3000:])

    def stop(self) -> None:
        """End the cluster, and all processes on its nodes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        kill_all(self._process)
        self._process.stdin.close()
        self._process.stdout.close()
