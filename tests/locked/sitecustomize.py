"""Python loads this at its start when the folder is on PYTHONPATH: a machine where little is allowed.

A write below a folder of POSVIZ_READ_ONLY fails as on a read-only disk, a connection that leaves the machine fails as
without a network, and with POSVIZ_NO_TORCH an import of torch fails as where it is not installed. Audit hooks work
alike on every system and for every user; permissions mean nothing to root, and network namespaces need Linux.
"""

import errno
import os
import sys

READ_ONLY = [os.path.realpath(path) + os.sep for path in os.environ["POSVIZ_READ_ONLY"].split(os.pathsep)]
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {
    "os.mkdir",
    "os.remove",
    "os.rmdir",
    "os.rename",
    "os.symlink",
    "os.link",
    "os.chmod",
    "os.truncate",
    "os.utime",
    "sqlite3.connect",
}


def allow(event, arguments):
    if event == "open" and arguments[2] & WRITES:
        read_only(arguments[0])
    elif event in CHANGES:
        for path in arguments[:2]:
            read_only(path)
    elif event == "socket.connect" and isinstance(arguments[1], tuple):
        if arguments[1][0] not in ("127.0.0.1", "::1", "localhost"):
            raise OSError(errno.ENETUNREACH, "Network is unreachable", str(arguments[1]))
    elif event == "socket.getaddrinfo" and arguments[0] not in (None, "", "127.0.0.1", "::1", "localhost"):
        raise OSError(errno.ENETUNREACH, "Network is unreachable", str(arguments[0]))


def read_only(path):
    if isinstance(path, (str, bytes, os.PathLike)):
        path = os.path.realpath(os.fsdecode(path)) + os.sep
        if any(path.startswith(folder) for folder in READ_ONLY):
            raise OSError(errno.EROFS, "Read-only file system", path)


class NoTorch:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")


sys.addaudithook(allow)
if os.environ.get("POSVIZ_NO_TORCH"):
    sys.meta_path.insert(0, NoTorch)
