"""The names that checks look for: those that `strict` forbids, and those that can't work in the sandbox.

The original lists end in "and more"; the additions belong to the same families.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ferrule.sandbox.checks.findings import Listed, Rule


@dataclass(frozen=True, slots=True)
class ForbiddenName:
    """Which list a name is on, and what to do instead of using it."""

    listed: Listed
    instead: str


@dataclass(frozen=True, slots=True)
class UnusableName:
    """Why something can't work in the sandbox, and what to do instead."""

    rule: Rule
    why: str
    instead: str


_FILES: Final = "take data from the inputs of the run, and give results back as the value of the last line"
_NETWORK: Final = "ask for the data as an input of the run"
_SYSTEM: Final = "compute in this one process"
_THREADS: Final = (
    "compute in this one process: in a loop, with numpy, or with threads (concurrent.futures.ThreadPoolExecutor)"
)
_CODE: Final = "write the code itself, and import modules by name"
_DATABASE: Final = "use pandas, or plain dicts and lists"
_NEW_LIST: Final = "make a new list without the element, as in [one for one in values if one != unwanted]"
_DIRECT: Final = "name the attribute or variable directly"
_INPUTS: Final = "take what is needed from the inputs of the run"
_PANDAS: Final = "read tables from text with pd.read_csv(io.StringIO(...)), and give back the DataFrame itself"
_ARRAYS: Final = "take arrays from the inputs of the run, and give back the array itself"


def _build_table(original: Mapping[str, str], added: Mapping[str, str]) -> dict[str, ForbiddenName]:
    """Build one table from two lists, each of texts of names by what to do instead."""
    lists: tuple[tuple[Listed, Mapping[str, str]], ...] = (("added", added), ("original", original))
    return {
        name: ForbiddenName(listed, instead)
        for listed, families in lists
        for instead, names in families.items()
        for name in names.split()
    }


def _expand(names: str, unusable: UnusableName) -> dict[str, UnusableName]:
    return dict.fromkeys(names.split(), unusable)


MODULES: Final = _build_table(
    original={
        _FILES: "os io pathlib glob shutil tempfile",
        _NETWORK: "socket http urllib ftplib email smtplib",
        _SYSTEM: "subprocess sys signal ctypes multiprocessing",
        _CODE: "code codeop imp",
        _DATABASE: "sqlite3 dbm",
    },
    added={
        _FILES: "_io bz2 compression fileinput fcntl gzip linecache lzma mmap nt ntpath posix posixpath tarfile"
        " zipfile",
        _NETWORK: "aiohttp httpx imaplib poplib requests select selectors socketserver ssl urllib3 webbrowser xmlrpc",
        _SYSTEM: "_posixsubprocess _thread cffi gc platform pty resource threading",
        _CODE: "bdb builtins importlib inspect marshal pdb pickle pip pkgutil runpy shelve site timeit zipimport",
    },
)
"""Modules, by the first part of their name."""

BUILTINS: Final = _build_table(
    original={
        _FILES: "open",
        _CODE: "exec eval compile __import__",
        _INPUTS: "input breakpoint",
        _DIRECT: "getattr setattr delattr globals locals vars dir",
    },
    added={_CODE: "__builtins__ __loader__ __spec__"},
)

ATTRIBUTES: Final = _build_table(
    original={
        _SYSTEM: "system popen spawn exec kill",
        _NEW_LIST: "remove",
        _FILES: "unlink rmdir mkdir chmod chown read write listdir scandir walk glob",
        _PANDAS: "to_csv read_excel to_excel",
    },
    added={
        _SYSTEM: "fork forkpty execv execve execvp posix_spawn spawnl spawnv killpg",
        _FILES: "makedirs removedirs rmtree symlink truncate read_text read_bytes write_text write_bytes savefig",
        _PANDAS: "read_clipboard read_feather read_fwf read_hdf read_html read_orc read_parquet read_pickle read_sas"
        " read_spss read_sql read_stata read_xml to_clipboard to_feather to_hdf to_orc to_parquet to_pickle to_sql"
        " to_stata",
        _ARRAYS: "fromfile genfromtxt loadtxt memmap savetxt savez tofile",
        _DIRECT: "__bases__ __builtins__ __closure__ __code__ __getattribute__ __globals__ __import__ __loader__"
        " __mro__ __reduce__ __reduce_ex__ __spec__ __subclasses__ ag_frame cr_frame f_back f_builtins f_globals"
        " f_locals gi_frame tb_frame",
    },
)

IN_MEMORY_READERS: Final = {
    name: ForbiddenName("original", _PANDAS) for name in ("read_csv", "read_json", "read_table")
}
"""What `strict` allows for text only, `pd.read_csv(io.StringIO(...))`."""

_NO_NETWORK: Final = UnusableName("network", "needs the network, and the sandbox has none", _NETWORK)
_NO_PROCESS: Final = UnusableName("process", "starts another process, which the sandbox refuses", _SYSTEM)
_NO_WORKERS: Final = UnusableName("process", "needs other processes, which the sandbox refuses", _THREADS)
_NO_DISPLAY: Final = UnusableName("input", "needs a display, and the sandbox has none", "draw with matplotlib")

UNUSABLE_MODULES: Final[dict[str, UnusableName]] = {
    **_expand(
        "aiohttp boto3 ftplib http.client http.server httpx imaplib paramiko poplib pycurl requests smtplib socket"
        " socketserver ssl telnetlib urllib.request urllib3 webbrowser websockets xmlrpc yfinance",
        _NO_NETWORK,
    ),
    **_expand("ensurepip pip pty subprocess venv", _NO_PROCESS),
    **_expand("multiprocessing", _NO_WORKERS),
    **_expand("tkinter turtle", _NO_DISPLAY),
}
"""Modules that can't work in the sandbox, with their submodules."""

WORKING_MODULES: Final = ("multiprocessing.dummy",)
"""Submodules of those above that do work."""

UNUSABLE_MEMBERS: Final[dict[str, UnusableName]] = {
    **_expand(
        "os.fork os.forkpty os.popen os.posix_spawn os.posix_spawnp os.system os.execl os.execle os.execlp os.execv"
        " os.execve os.execvp os.spawnl os.spawnle os.spawnlp os.spawnv os.spawnve os.spawnvp",
        _NO_PROCESS,
    ),
    # The thread pool of `multiprocessing.dummy` needs a lock that processes could share.
    **_expand("concurrent.futures.ProcessPoolExecutor multiprocessing.dummy.Pool", _NO_WORKERS),
}
"""Functions and classes that can't work in the sandbox, by their full names."""

UNUSABLE_CALLS: Final[dict[str, UnusableName]] = {
    "input": UnusableName("input", "waits for keyboard input, and the sandbox has none", _INPUTS),
    "breakpoint": UnusableName("input", "waits for a debugger, and the sandbox has none", "print what is of interest"),
}
"""Built-ins that can't work in the sandbox."""

ADDRESS_READER: Final = _NO_NETWORK
"""For `pd.read_csv("https://...")` and similar calls."""
