"""Pipeline jobs as commands over a fleet of three brokers, and their answers, ready to be compared."""

import hashlib
import itertools
import json

from pyarrow.parquet import ParquetFile

from engine.codec.message import Unit
from engine.inspection.snapshot import open_store

VOLATILE = {
    "seconds",
    "sessionSeconds",
    "unitsPerSecond",
    "tasks",
    "triedAgain",
    "master",
    "logFile",
    "out",
    "path",
    "keptPieces",
    "bytesWritten",
}
"""What a record may say otherwise on the next run."""
SPLIT = ("--split-bytes", "50_000")


class JobCommands:
    """The jobs as commands over a fleet; their output goes below ``folder``."""

    def __init__(self, fleet, folder):
        self._stores, self._folder = fleet / "*" / "store", folder
        self._keys = ["nowhere"]
        for store in sorted(fleet.glob("*/store")):
            with open_store(store) as opened:
                units = (item for item in opened.units() if isinstance(item, Unit) and item.unique_key)
                self._keys += [unit.unique_key for unit in itertools.islice(units, 0, 400, 100)]

    def words(self, job):
        """Return the command of a job."""
        out = ["--out", self._folder / job]
        extra = {
            "stats": ["--by", "queue,tag,producer,hour,key"],
            "rebuild": [*out, "--compare"],
            "export": [*out, "--format", "parquet"],
            "trace": [word for key in self._keys for word in ("--key", key)],
        }
        if job == "import":
            complete = str(self._stores).replace("*", "a")
            return ["import", self._folder / "export", "--store", complete, *out]
        return [job, self._stores, *extra.get(job, []), *SPLIT]

    def run(self, driver, job, middle=None):
        """Run a job and return its output and files, without parts that differ from run to run."""
        if job == "import" and not (self._folder / "export").exists():
            driver.run(self.words("export"))
        code, output, _ = driver.run(self.words(job), middle)
        driver.records = output
        return code, plainly(output), self.written(job)

    def written(self, job):
        """Return digests of a job's files."""
        folder = self._folder / job
        if not folder.exists():
            return None
        names = [path.name for path in self._folder.iterdir() if path.name.startswith(".")]
        assert names == [], "what was staged is still there"
        if job == "export":
            return sorted(
                f"{path.parent.relative_to(folder)} {row}"
                for path in folder.rglob("*.parquet")
                for row in ParquetFile(path).read().to_pylist()
            )
        results = []
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            kind = path.relative_to(folder)
            if path.name in {"checkpoint", "lock"} or "config" in kind.parts:
                continue
            # An index file is named after the time when it was begun.
            name = kind.with_name("index file") if "index" in kind.parts else kind
            results.append((str(name), hashlib.sha256(path.read_bytes()).hexdigest()))
        return results


def plainly(records):
    """Return records in a form that can be compared."""
    saved = [
        {k: v for k, v in record.items() if k not in VOLATILE} for record in records if record["type"] != "progress"
    ]
    return sorted(json.dumps(record, sort_keys=True) for record in saved)
