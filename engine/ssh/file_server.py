"""The far side of a store on another machine: answers requests for files, and can do nothing else.

Its source goes through ssh to a Python there (3.7 or newer), which holds it in memory: nothing is installed or written
on that machine. So it imports the standard library only, and uses no syntax that an old Python does not know.

Read-only by construction: every request is a method of :class:`FileServer`, and none opens a file for writing, makes,
renames or removes one.

Frames in both directions: length of the header and of the data (``>II``), a JSON object, bytes. Requests are answered
in their order. Errors carry the name of the system's error, as its numbers differ between systems.
"""

import errno
import fcntl
import hashlib
import json
import os
import stat
import struct
import sys
import zlib

VERSION = 1
MARK = b"\0STORESCOPE-FILES\n"
"""Comes before the first frame: a shell's start files may print something in front of it."""
FRAME = struct.Struct(">II")
BLOCK_BYTES = 64 << 10
"""Bytes that are compared and sent as one."""
MAX_REQUEST_BYTES = 16 << 20
MAX_HEADER_BYTES = 1 << 20
MAX_OPEN_FILES = 64
MAX_EXTENTS = 4096
_SAMPLE_BYTES = 4096
_MIN_SHARE = 0.9


def block_hash(data):
    """Return the name of a block's content."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _facts(info):
    """Return what a listing says about a file."""
    return [
        info.st_mode,
        info.st_ino,
        info.st_dev,
        info.st_nlink,
        info.st_uid,
        info.st_gid,
        info.st_size,
        info.st_atime_ns,
        info.st_mtime_ns,
        info.st_ctime_ns,
        getattr(info, "st_blocks", -(-info.st_size // 512)),
    ]


def _error(error):
    return {"error": errno.errorcode.get(error.errno, "EIO"), "text": error.strerror or str(error)}


def _packed(data):
    """Return ``data`` deflated and True where that makes it smaller, else as it is and False."""
    sample = data[:_SAMPLE_BYTES]
    if len(data) > 2 * _SAMPLE_BYTES and len(zlib.compress(sample, 1)) > _MIN_SHARE * len(sample):
        return data, False
    packed = zlib.compress(data, 1)
    return (packed, True) if len(packed) < len(data) else (data, False)


class FileServer:
    """Answers requests. Each method takes the header of a request and returns header and data of the answer."""

    def __init__(self):
        self._open_files = {}  # path -> descriptor, the one that was used last at the end

    def hello(self, _request):
        """Say which version answers, and where."""
        facts = {"version": VERSION, "python": sys.version.split()[0], "system": sys.platform}
        facts["home"] = os.path.expanduser("~")
        return facts, b""

    def stat(self, request):
        """Return the system's information about a path."""
        follow = request["follow"]
        return {"facts": _facts(os.stat(request["path"]) if follow else os.lstat(request["path"]))}, b""

    def list(self, request):
        """Return the entries of a folder and of those below it, as long as they are fewer than ``limit``."""
        folders, pending, count = [], [request["path"]], 0
        while pending and (not folders or count < request["limit"]):
            folder = pending.pop(0)
            try:
                entries = self._entries(folder)
            except OSError as error:
                if not folders:
                    raise
                folders.append({"folder": folder, "problem": _error(error)})
                continue
            count += len(entries)
            folders.append({"folder": folder, "entries": entries})
            below = [os.path.join(folder, entry[0]) for entry in entries if stat.S_ISDIR(entry[1][0])]
            pending.extend(below)
        with_locks = [item["folder"] for item in folders if "lock" in [entry[0] for entry in item.get("entries", ())]]
        above = os.path.dirname(request["path"])  # of one part of a store: the lock is above it
        locks = [self._lock_state(folder) for folder in [*with_locks, above, os.path.dirname(above)]]
        data, is_packed = _packed(json.dumps(folders).encode("ascii"))
        return {"packed": is_packed, "locks": locks}, data

    def _lock_state(self, folder):
        try:
            return self.lock({"path": os.path.join(folder, "lock")})[0]["state"]
        except OSError:
            return "unknown"

    def _entries(self, folder):
        """Return name, own facts and the facts of its target for everything in a folder. Names keep undecodable bytes:
        JSON has them as lone surrogates.
        """
        entries = []
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            try:
                own = os.lstat(path)
            except OSError as error:
                if error.errno == errno.ENOENT:  # it was removed meanwhile
                    continue
                raise
            target = None
            if stat.S_ISLNK(own.st_mode):
                try:
                    target = _facts(os.stat(path))
                except OSError as error:
                    target = _error(error)
            entries.append([name, _facts(own), target])
        return entries

    def _descriptor(self, path, identity=None):
        """Return a descriptor of the file at ``path``; ESTALE if it is another file than ``identity``."""
        descriptor = self._open_files.pop(path, None)
        if descriptor is None:
            flags = os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)
            try:
                descriptor = os.open(path, flags | getattr(os, "O_NOATIME", 0))
            except PermissionError:
                descriptor = os.open(path, flags)
        self._open_files[path] = descriptor
        if len(self._open_files) > MAX_OPEN_FILES:
            oldest = next(iter(self._open_files))
            os.close(self._open_files.pop(oldest))
        info = os.fstat(descriptor)
        if identity is not None and [info.st_dev, info.st_ino] != identity:
            self._forget(path)
            if self._now_named(path) == identity:
                return self._descriptor(path, identity)
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)
        return descriptor

    @staticmethod
    def _now_named(path):
        info = os.stat(path)
        return [info.st_dev, info.st_ino]

    def _forget(self, path):
        descriptor = self._open_files.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)

    def open(self, request):
        """Open a file anew, and return the system's information about it, and its first block."""
        self._forget(request["path"])
        info = os.fstat(self._descriptor(request["path"]))
        answer, data = {"lengths": []}, b""
        if stat.S_ISREG(info.st_mode):
            place = {"position": 0, "size": BLOCK_BYTES, "known": [None]}
            answer, data = self.read({"path": request["path"], "identity": [info.st_dev, info.st_ino], **place})
        answer["facts"] = _facts(info)
        return answer, data

    def read(self, request):
        """Return blocks of a file from ``position`` on; only the length -1 for a block whose hash is in ``known``."""
        descriptor = self._descriptor(request["path"], request["identity"])
        size = min(request["size"], MAX_REQUEST_BYTES)
        os.lseek(descriptor, request["position"], os.SEEK_SET)
        pieces = []
        missing = size
        while missing:
            piece = os.read(descriptor, missing)
            if not piece:
                break
            pieces.append(piece)
            missing -= len(piece)
        data = b"".join(pieces)
        lengths, changed = [], []
        for number, known in enumerate(request["known"]):
            block = data[number * BLOCK_BYTES : (number + 1) * BLOCK_BYTES]
            if known is not None and block_hash(block) == known:
                lengths.append(-1)
            else:
                lengths.append(len(block))
                changed.append(block)
        data, is_packed = _packed(b"".join(changed))
        return {"lengths": lengths, "packed": is_packed}, data

    def extents(self, request):
        """Return the spans of a file that hold data, as far as the file system says; one to the end if it does not."""
        descriptor = self._descriptor(request["path"], request["identity"])
        position, size, extents = request["position"], request["size"], []
        try:
            while position < size:
                start = os.lseek(descriptor, position, os.SEEK_DATA)
                if start >= size:
                    break
                position = min(os.lseek(descriptor, start, os.SEEK_HOLE), size)
                if len(extents) == min(MAX_EXTENTS, request["limit"]):
                    extents.append((start, size))
                    break
                extents.append((start, position))
        except (OSError, AttributeError) as error:
            if not isinstance(error, OSError) or error.errno != errno.ENXIO:  # ENXIO: only a hole to the end
                extents.append((position, size))
        return {"extents": extents}, b""

    def lock(self, request):
        """Return whether a process there holds a lock on the first byte of a file."""
        try:
            descriptor = self._descriptor(request["path"])
        except FileNotFoundError:
            return {"state": "absent"}, b""
        if not sys.platform.startswith("linux"):
            return {"state": "unknown"}, b""
        question = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, question)
        is_free = struct.unpack("hhqqi4x", answer)[0] == fcntl.F_UNLCK
        return {"state": "free" if is_free else "held"}, b""

    def space(self, request):
        """Return the bytes of a path's file system: all, those that are free, and those that its user may take."""
        info = os.statvfs(request["path"])
        return {"space": [count * info.f_frsize for count in (info.f_blocks, info.f_bfree, info.f_bavail)]}, b""


REQUESTS = ("hello", "stat", "list", "open", "read", "extents", "lock", "space")


def serve(source, target):
    """Answer the requests of ``source`` until it ends."""
    server = FileServer()
    target.write(MARK)
    target.flush()
    while True:
        head = source.read(FRAME.size)
        if len(head) < FRAME.size:
            return
        header_bytes, data_bytes = FRAME.unpack(head)
        if header_bytes > MAX_HEADER_BYTES or data_bytes:
            return
        request = json.loads(source.read(header_bytes).decode("ascii"))
        try:
            if request["request"] not in REQUESTS or not isinstance(request.get("path", ""), str):
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            answer, data = getattr(server, request["request"])(request)
        except OSError as error:
            answer, data = _error(error), b""
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            answer, data = {"error": "EINVAL", "text": str(error)}, b""
        answer["id"] = request["id"]
        header = json.dumps(answer).encode("ascii")
        target.write(FRAME.pack(len(header), len(data)) + header)
        target.write(data)
        target.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
