"""What is wrong with an analysis before anything is asked: its data, the files it would write, missing packages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ferrule.errors import SettingsError

if TYPE_CHECKING:
    from ferrule.cli.analysis_run import AnalysisFiles, AnalysisOrder

_PACKAGES = (
    "pandas", "matplotlib", "charset_normalizer", "duckdb", "friendly_traceback", "fsspec", "openpyxl",
    "pyarrow", "Stemmer", "sklearn", "scipy", "statsmodels",
)  # fmt: skip
"""What the extra `analysis` installs, by the names of the modules."""
_HOSTED = "httpx2"


def check_order(order: AnalysisOrder) -> None:
    """Raise `SettingsError` or `DataError` for what would fail only after models were paid."""
    check_output_files(order.files, order.data)
    if order.files.replay is not None:
        return
    if order.data:
        from ferrule.analysis.data.sources import check_sources, make_sources

        check_sources(make_sources(order.data))
    _check_packages(order)


def _check_packages(order: AnalysisOrder) -> None:
    from ferrule.models.providers import PROVIDERS

    missing = [name for name in _PACKAGES if find_spec(name) is None]
    extras = ["analysis"] if missing else []
    names = (order.options.model, order.options.fallback, *order.settings.models.values())
    providers = {name.partition(":")[0] for name in names if isinstance(name, str)}
    if order.files.taken is None and providers & set(PROVIDERS) and find_spec(_HOSTED) is None:
        missing.append(_HOSTED)
        extras.append("hosted")
    if missing:
        raise SettingsError(
            f"this needs {', '.join(missing)}; install it with: pip install 'ferrule[{','.join(extras)}]'"
        )


def check_output_files(files: AnalysisFiles, data: Sequence[str]) -> None:
    """Raise `SettingsError` for a report or notebook that would overwrite data, a recording or the other one."""
    from ferrule.analysis.data.sources import parse_data_argument
    from ferrule.analysis.recording.data import list_data_files

    read = [(parse_data_argument(one)[1], "a file of --data") for one in data]
    named = ((files.replay, "--replay"), (files.rerun, "--rerun"), (files.continues, "--continue"))
    read += [(path, f"the recording of {option}") for path, option in (*named, (files.record, "--record")) if path]
    read += [(file, f"a data file of {path}") for path, _ in named if path for file in list_data_files(path)]
    for option, path in _list_outputs(files):
        if path.is_dir():
            raise SettingsError(f"{option} {path}: it is a folder; name a file in it")
        for other, what in read:
            if _is_same(path, other):
                raise SettingsError(f"{option} {path}: it is {what}, which would be overwritten; name another file")
        read.append((path, f"the file of {option}"))
    if files.record is not None:
        _check_record(files.record, [path for path, _ in read[: len(data)]])


def _check_record(record: Path, data: Iterable[Path]) -> None:
    if any(_is_same(record, path) for path in data):
        raise SettingsError(f"--record {record}: it is a file of --data; name another file")


def _list_outputs(files: AnalysisFiles) -> Iterator[tuple[str, Path]]:
    if files.report is not None:
        yield "--report", files.report
    if files.notebook is not None:
        yield "--notebook", files.notebook


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.resolve() == other.resolve() or (path.exists() and other.exists() and path.samefile(other))
    except (OSError, RuntimeError):
        return False
