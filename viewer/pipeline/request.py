"""A requested pipeline job, and the command line that requests the same; no Qt, no disk."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from viewer.look.assets import tr, words

LOCAL = "local[*]"


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job, with its name on the command line and its label.

    ``writes``: it writes to a place that must not exist yet. ``source``: it reads stores, or an export.
    """

    name: str
    words: str
    writes: bool = False
    source: str = "stores"


JOBS = (
    JobKind("stats", words("stats · messages and bytes")),
    JobKind("verify", words("verify · log, queues and index")),
    JobKind("rebuild", words("rebuild · queues and index from the log"), writes=True),
    JobKind("export", words("export · Parquet, CSV or JSON lines"), writes=True),
    JobKind("import", words("import · a new store from an export"), writes=True, source="export"),
    JobKind("trace", words("trace · keys over a fleet")),
)
BY_NAME = {kind.name: kind for kind in JOBS}
FORMATS = (("parquet", words("Parquet, by topic and day")), ("csv", "CSV"), ("json", words("JSON lines")))


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job with all that it needs. ``places`` are stores or patterns of stores, for an import the export."""

    job: str = "stats"
    places: tuple[str, ...] = ()
    master: str = LOCAL
    out: str = ""
    format: str = "parquet"
    compare: bool = True
    keys: tuple[str, ...] = ()
    keys_file: str = ""

    @property
    def kind(self) -> JobKind:
        """The job."""
        return BY_NAME[self.job]

    def words(self) -> list[str]:
        """Return the arguments after ``storescope``, without those that only another program needs."""
        arguments = ["pipeline", self.job]
        if self.master != LOCAL:
            arguments += ["--master", self.master]
        if self.kind.writes:
            arguments += ["--out", self.out]
        if self.job == "rebuild" and self.compare:
            arguments.append("--compare")
        if self.job == "export" and self.format != "parquet":
            arguments += ["--format", self.format]
        if self.job == "trace":
            for key in self.keys:
                arguments.append(f"--key={key}")
            if self.keys_file:
                arguments += ["--keys-file", self.keys_file]
        guard = ["--"] if any(place.startswith("-") for place in self.places) else []
        return [*arguments, *guard, *self.places]

    def arguments(self, log_file: str) -> list[str]:
        """Return the arguments for a program that reads the answer line by line; Spark's own output goes to
        ``log_file``.
        """
        pipeline, job, *options = self.words()
        return [pipeline, job, "--json", "--log-file", log_file, *options]

    def command(self) -> str:
        """The command line that does the same."""
        return shlex.join(["storescope", *self.words()])

    def fault(self) -> str:
        """Return what is missing before the job can run; empty if nothing is."""
        if not self.places:
            return tr("An export is needed.") if self.kind.source == "export" else tr("A store is needed.")
        if not self.master:
            return tr("Spark needs a master: {master} is this machine.", master=LOCAL)
        if self.kind.writes and not self.out:
            return tr("A folder to write to is needed.")
        if self.job == "trace" and not self.keys and not self.keys_file:
            return tr("A key is needed, or a file of keys.")
        return ""


def split_places(text: str) -> tuple[str, ...] | None:
    """The places that a line names, parted by blanks, quoted as in a shell; None while a quote is open."""
    try:
        return tuple(dict.fromkeys(shlex.split(text)))
    except ValueError:
        return None


def join_places(places: tuple[str, ...]) -> str:
    """Return a command line with ``places``; patterns stay readable."""
    return " ".join(place if place and not set(place) & set(" \t\"'\\") else shlex.quote(place) for place in places)
