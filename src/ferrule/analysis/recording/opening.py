"""What an analysis begins with, recorded or taken from a recording: its models, its settings and its data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ferrule.analysis.asking import ModelChoice
from ferrule.analysis.recording.differences import describe_sources, find_changes, find_files, write_path
from ferrule.analysis.recording.source import Beginning, RecordedFile
from ferrule.analysis.settings import AnalysisSettings
from ferrule.errors import SettingsError
from ferrule.models.prices import find_price

if TYPE_CHECKING:
    from ferrule.analysis.data.table import Table
    from ferrule.analysis.recording.recording import Recording

_DATA = "data"
"""The name of the recorded value with the tables and what models were shown of them."""
_IS_ABSOLUTE = "is_absolute"
"""The key of a recorded table that says how the path of its file was given."""


def choose_settings(recording: Recording, given: AnalysisSettings | None) -> AnalysisSettings:
    """The recorded settings of an analysis that is taken from a recording, else those given, or the defaults.

    Raises `SettingsError` for a recorded one that this ferrule doesn't know.
    """
    source = recording.source
    if source is None:
        if given is not None and not isinstance(given, AnalysisSettings):
            raise SettingsError(
                f"settings is a {type(given).__name__}; give AnalysisSettings(…), as AnalysisSettings(mode='quick')"
            )
        return given or AnalysisSettings()
    try:
        return AnalysisSettings(**source.header.settings)
    except SettingsError as error:
        raise source.refuse(error) from error


def list_recorded_files(recording: Recording) -> list[str]:
    """The data files of the recording that is run again or continued. Raises `SettingsError` for a missing one."""
    base = None if recording.is_replay else recording.source or recording.earlier
    return [] if base is None else find_files(base.header.data, base.path)


def describe_settings(settings: AnalysisSettings) -> dict[str, Any]:
    """The settings that differ from the defaults, as JSON; models by their names."""
    changed = {
        name: getattr(settings, name)
        for name, field in AnalysisSettings.model_fields.items()
        if getattr(settings, name) != field.get_default(call_default_factory=True)
    }
    if "models" in changed:
        changed["models"] = {name: one if isinstance(one, str) else one.name for name, one in changed["models"].items()}
    return changed


def record_models(recording: Recording, models: ModelChoice) -> ModelChoice:
    """The same models, with their answers recorded."""
    if recording.path is None:
        return models
    others = {name: recording.wrap_model(model) for name, model in models.others.items()}
    return ModelChoice(recording.wrap_model(models.default), others, models.owned)


def replay_models(recording: Recording) -> ModelChoice:
    """The models of a recording, which answer what was recorded. Raises `SettingsError` for one that is missing."""
    assert recording.source is not None
    header = recording.source.header
    others = {name: recording.make_model(model) for name, model in header.models.items()}
    return ModelChoice(recording.make_model(header.model), others)


def begin_recording(
    recording: Recording,
    question: str,
    settings: AnalysisSettings,
    models: ModelChoice,
    data: Mapping[str, Path | str] | Sequence[Path | str],
) -> list[str]:
    """Record what an analysis begins with. Returns a sentence for each of its files that isn't the recorded one.

    Raises `DataError` for files that can't be read.
    """
    base = recording.source or recording.earlier
    files = base.header.data if recording.is_replay and base is not None else _describe_files(recording, data)
    if recording.path is not None:
        recording.begin(
            Beginning(
                question=question,
                model=models.default.name,
                models={name: model.name for name, model in models.others.items()},
                settings=describe_settings(settings),
                prices=_describe_prices(recording, settings, models),
                data=files,
            )
        )
        for model in (models.default, *models.others.values()):
            recording.add_model(model)
    return [] if base is None else find_changes(base.header.data, files)


def _describe_prices(recording: Recording, settings: AnalysisSettings, models: ModelChoice) -> dict[str, Any]:
    if recording.source is not None:
        return recording.source.header.prices
    if settings.max_cost is None:
        return {}
    prices = {name: find_price(name) for name in models.names}
    return {name: price.describe() for name, price in prices.items() if price is not None}


def _describe_files(recording: Recording, data: Mapping[str, Path | str] | Sequence[Path | str]) -> list[RecordedFile]:
    if not data or not (recording.is_used or recording.earlier):
        return []
    from ferrule.analysis.data.sources import check_sources, make_sources

    sources = make_sources(data)
    check_sources(sources)
    return describe_sources(sources, recording.path or Path("recording"))


def keep_data(recording: Recording, tables: Iterable[Table], text: str, profiles: dict[str, str]) -> None:
    """Record the tables, without their rows, and what models are shown of them."""
    if recording.path is None:
        return
    rows = [
        table.model_dump(mode="json")
        # The copies as Parquet are in a folder that is deleted with the analysis.
        | {"path": write_path(table.path, recording.path), "parquet": table.parquet.name}
        | {_IS_ABSOLUTE: table.path.is_absolute()}
        for table in tables
    ]
    recording.keep(_DATA, {"tables": rows, "text": text, "profiles": profiles})


def take_data(recording: Recording) -> tuple[tuple[Table, ...], str, dict[str, str]]:
    """The recorded tables, and what models were shown of them. Raises `SettingsError` for what can't be read."""
    assert recording.source is not None
    with recording.source.reading(_DATA) as found:
        if found is None:
            return (), "", {}
        folder = recording.source.path.parent
        tables = tuple(_read_table(row, folder) for row in found["tables"])
        text, profiles = str(found["text"]), dict(found["profiles"])
    keep_data(recording, tables, text, profiles)
    return tables, text, profiles


def _read_table(row: dict[str, Any], folder: Path) -> Table:
    """A recorded table, whose file is named from the working folder if it was given so, else from the recording."""
    from ferrule.analysis.data.table import Table

    table = Table.model_validate({name: value for name, value in row.items() if name != _IS_ABSOLUTE})
    path = folder / table.path
    if not row.get(_IS_ABSOLUTE, True):
        path = Path(os.path.relpath(path))
    return table.model_copy(update={"path": path})
