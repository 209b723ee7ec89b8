"""Preview of a pipeline job: what it would read and where it would write. Reads the disk; no Spark."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass
from pathlib import Path

from engine.errors import StoreError
from engine.pipeline.defaults import NEEDED, SPLIT_BYTES
from viewer.pipeline.request import JobRequest

MAX_FILES = 200_000


@dataclass(frozen=True, slots=True)
class JobPreview:
    """Result of a preview.

    ``stores`` is 0 if nothing could be examined from here (another file system). ``fault`` describes an error of the
    stores, ``out_fault`` (a key of :data:`OUT_FAULTS`) one of the output.
    """

    stores: int = 0
    log_bytes: int = 0
    splits: int = 0
    built_bytes: int = 0
    fault: str = ""
    out_fault: str = ""
    free: int | None = None
    remote: bool = False


def missing() -> tuple[str, ...]:
    """The packages a job needs and this Python does not have; nothing is imported."""
    return tuple(name for name in NEEDED if importlib.util.find_spec(name) is None)


def look(job_request: JobRequest) -> JobPreview:
    """Stores, bytes and splits that ``job_request`` names, and whether its output place is free."""
    out_fault, free = _out(job_request) if job_request.kind.writes and job_request.out else ("", None)
    if job_request.kind.source == "export":
        return _export(job_request.places[0] if job_request.places else "", out_fault, free)
    if any("://" in place for place in job_request.places):
        return JobPreview(out_fault=out_fault, free=free, remote=True)
    from engine.pipeline.files import find_stores, log_files

    log = splits = built = 0
    try:
        stores = find_stores(job_request.places) if job_request.places else []
        for store in stores:
            for file in log_files(store):
                log += file.size
                splits += max(1, -(-file.size // SPLIT_BYTES))
            if job_request.job == "rebuild":
                built += _built(Path(store.path))
    except StoreError as error:
        return JobPreview(fault=str(error), out_fault=out_fault, free=free)
    except OSError as error:
        return JobPreview(fault=f"{error.filename or ''}: {error.strerror or error}", out_fault=out_fault, free=free)
    return JobPreview(len(stores), log, splits, built, "", out_fault, free)


def _built(store: Path) -> int:
    """Bytes of the queues and index files that a store has now."""
    total = files = 0
    for folder in ("consumequeue", "batchconsumequeue", "index"):
        for path in (store / folder).rglob("*"):
            files += 1
            if files > MAX_FILES:
                return total
            if path.is_file():
                total += path.stat().st_size
    return total


def _out(job_request: JobRequest) -> tuple[str, int | None]:
    target = Path(job_request.out).expanduser()
    fault = ""
    try:
        if target.exists():
            empty = job_request.job == "rebuild" and target.is_dir() and not any(target.iterdir())
            fault = "" if empty else "there"
        above = next((folder for folder in target.absolute().parents if folder.is_dir()), None)
        if above is None:
            return "nowhere", None
        return fault, shutil.disk_usage(above).free
    except OSError:
        return "closed", None


def _export(source: str, out_fault: str, free: int | None) -> JobPreview:
    if not source:
        return JobPreview(out_fault=out_fault, free=free)
    folder = Path(source).expanduser()
    if not (folder / "_storescope.json").is_file():
        return JobPreview(fault="no export", out_fault=out_fault, free=free)
    total = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return JobPreview(1, total, 0, 0, "", out_fault, free)
