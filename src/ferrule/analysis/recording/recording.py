"""What an analysis is recorded with, and replayed from: `run_analysis(…, recording=…)`.

record_analysis(path)                     # everything is asked and run, and recorded
replay_analysis(path)                     # nothing is asked or run: all is taken from the recording
replay_analysis(path, computes=True)      # answers are taken from it; code runs again, and is compared
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from ferrule.analysis.limits import LimitReached
from ferrule.analysis.plan import Plan
from ferrule.analysis.recording.differences import ChangedRequest, RunDifference, compare_outcomes, describe_change
from ferrule.analysis.recording.model import RecordedModel, describe_failure, restore_failure
from ferrule.analysis.recording.outcomes import decode_outcome, decode_value, encode_value
from ferrule.analysis.recording.rows import (
    AnalysisRow,
    AnswerRow,
    EndRow,
    ModelRow,
    Place,
    RecordedFailure,
    RecordedRequest,
    ResultRow,
    RunRow,
    ValueRow,
)
from ferrule.analysis.recording.source import RecordedAnalysis
from ferrule.analysis.recording.writer import RecordingWriter
from ferrule.analysis.versions import list_versions
from ferrule.blobs import hash_blob
from ferrule.conversation import tool_message
from ferrule.errors import FerruleError, SettingsError
from ferrule.events import MessageFinished, Usage
from ferrule.formats.conversation_json import message_from_json, message_to_json
from ferrule.models.recording.file import make_model_row
from ferrule.models.recording.request import Request

if TYPE_CHECKING:
    from ferrule.analysis.result import AnalysisResult, TaskExecution
    from ferrule.analysis.stages import StageKey
    from ferrule.conversation import ToolResult
    from ferrule.models.protocol import Model

Outcome = TypeVar("Outcome")
"""What a run leaves."""
_APPROVED = "approved plan"
"""The name of the recorded value with the plan that a person approved."""


def record_analysis(path: Path | str | None, *, continues: Path | str | None = None) -> Recording:
    """Record an analysis in a new file, or nowhere; `continues` is the recording of one that it goes on from.

    Raises `SettingsError` if the file exists, or for what is no recording, and `OSError`.
    """
    earlier = RecordedAnalysis.read(Path(continues)) if continues is not None else None
    return Recording(writer=RecordingWriter(Path(path)) if path is not None else None, earlier=earlier)


def replay_analysis(path: Path | str, *, computes: bool = False, record: Path | str | None = None) -> Recording:
    """Take the answers from a recording, and what code left, unless `computes`.

    With `record`, what is taken and computed is recorded anew. Raises `SettingsError` for what is no recording, and
    `OSError`.
    """
    path = Path(path)
    source = RecordedAnalysis.read(path)
    earlier = None
    if source.header.continues is not None:
        earlier = RecordedAnalysis.read(path.parent / source.header.continues)
    writer = RecordingWriter(Path(record)) if record is not None else None
    return Recording(source, writer, computes=computes, earlier=earlier)


class Recording:
    """The recording of one analysis; `source` is what it takes answers from, `writer` what it records in."""

    def __init__(
        self,
        source: RecordedAnalysis | None = None,
        writer: RecordingWriter | None = None,
        *,
        computes: bool = True,
        earlier: RecordedAnalysis | None = None,
    ) -> None:
        self.source = source
        self.earlier = earlier
        """The recording of the analysis that this one continues."""
        self.is_replay = source is not None and not computes
        """Whether nothing is run, and no data are read."""
        self.changes: list[ChangedRequest] = []
        """The requests of a replay that differ from the recorded ones: a model would be asked these anew."""
        self.differences: list[RunDifference] = []
        """The runs that left something else than the recorded ones."""
        self.compared = 0
        """How many runs were compared with recorded ones."""
        self._writer = writer
        self._requests: Counter[StageKey] = Counter()
        self._runs: Counter[str] = Counter()
        self._calls: Counter[StageKey] = Counter()
        self._models: set[str] = set()
        self._kept: set[str] = set()

    @property
    def path(self) -> Path | None:
        """The file that is written; None if nothing is recorded."""
        return self._writer.path if self._writer is not None else None

    @property
    def is_used(self) -> bool:
        """Whether anything is recorded, or taken from a recording."""
        return self._writer is not None or self.source is not None

    @property
    def cancelled(self) -> Mapping[str, str]:
        """Why they have no result, by id, of the tasks that were cancelled in the recording that answers come from."""
        end = self.source.end if self.source is not None else None
        return {} if end is None else end.cancelled

    @property
    def has_scrubbed(self) -> bool:
        """Whether a secret was replaced in what was recorded."""
        return self._writer is not None and self._writer.has_scrubbed

    def find_versions(self) -> dict[str, str]:
        """The versions of what runs code: of a replay, those of the recording, and now otherwise."""
        return self.source.header.packages if self.source is not None and self.is_replay else list_versions()

    def begin(self, row: AnalysisRow) -> None:
        """Record what is asked, of which data, and how: `row` without what is the same for all recordings."""
        if self._writer is not None:
            earlier = None if self.earlier is None else os.path.relpath(self.earlier.path, self._writer.path.parent)
            self._writer.add(row.model_copy(update={"continues": earlier, "packages": self.find_versions()}))

    def wrap_model(self, model: Model) -> RecordedModel:
        """A model that records what this one answers."""
        return RecordedModel(self, model.name, model.capabilities, model)

    def make_model(self, name: str) -> RecordedModel:
        """The recorded model of a name. Raises `SettingsError` if the recording has no answers of it."""
        assert self.source is not None
        if name not in self.source.models:
            known = ", ".join(self.source.models) or "none"
            raise SettingsError(f"{self.source.path}: it has no answers of {name}, only of: {known}")
        return RecordedModel(self, name, self.source.models[name])

    def begin_request(self, key: StageKey) -> Place:
        """Count a request of a stage; returns its place."""
        return _count(self._requests, key)

    def find_answer(self, place: Place, request: Request) -> AnswerRow:
        """The recorded answer. Raises `LimitReached` if there is none: the analysis ends as the recorded one did."""
        assert self.source is not None
        row = self.source.answers.get(place)
        if row is None:
            raise LimitReached("recording", self.source.explain_end(f"no answer to {place}"))
        recorded = self.source.find_request(row)
        if recorded is not None and recorded.key != request.key:
            self.changes.append(describe_change(str(place), recorded, request))
        return row

    def add_answer(self, place: Place, model: str, request: Request, answer: MessageFinished | RecordedFailure) -> None:
        """Record a message of a model, or why there is none."""
        if self._writer is None:
            return
        named = RecordedRequest(
            id=request.key,
            messages=[self._writer.share(message) for message in request.messages],
            tools=self._writer.share(list(request.tools)),
            settings=self._writer.share(request.settings),
        )
        row = AnswerRow(**place._asdict(), model=model, request=named)
        if isinstance(answer, RecordedFailure):
            self._writer.add(row.model_copy(update={"failure": answer}))
            return
        usage = {one.name: getattr(answer.usage, one.name) for one in fields(answer.usage)}
        message = message_to_json(answer.message)
        message.pop("sampled", None)
        self._writer.add(row.model_copy(update={"answer": message, "usage": usage, "stop": answer.stop}))

    def add_model(self, model: Model) -> None:
        """Record what a model supports."""
        if self._writer is not None and model.name not in self._models:
            self._models.add(model.name)
            capabilities = make_model_row(model.name, model.name, model.capabilities)["capabilities"]
            self._writer.add(ModelRow(name=model.name, capabilities=capabilities))

    async def run(
        self,
        task: str,
        code: str,
        results: Mapping[str, str],
        compute: Callable[[], Awaitable[Outcome]] | None,
        *,
        encode: Callable[[Outcome], Any],
        decode: Callable[[Any], Outcome],
    ) -> Outcome:
        """Run code for a task; without `compute`, give what the recorded run left.

        `code` and `results` are hashes: of the program, and of what it may use. `encode` makes an outcome JSON data,
        `decode` the other way round. Raises what the run raises.
        """
        number = self._runs[task]
        self._runs[task] += 1
        recorded = self.source.runs.get((task, number)) if self.source is not None else None
        if compute is None:
            return self._take_run(task, number, recorded, decode)
        row = RunRow(task=task, number=number, code=code, results=dict(results))
        try:
            outcome = await compute()
        except (FerruleError, TimeoutError) as error:
            self._finish_run(row.model_copy(update={"failure": describe_failure(error)}), recorded)
            raise
        self._finish_run(row.model_copy(update={"outcome": encode(outcome)}), recorded)
        return outcome

    def _take_run(self, task: str, number: int, recorded: RunRow | None, decode: Callable[[Any], Outcome]) -> Outcome:
        assert self.source is not None
        if recorded is None:
            raise LimitReached("recording", self.source.explain_end(f"run {number} of {task} isn't recorded"))
        self._add_run(recorded)
        if recorded.failure is not None:
            raise restore_failure(recorded.failure)
        return decode(recorded.outcome)

    def _finish_run(self, row: RunRow, recorded: RunRow | None) -> None:
        self._add_run(row)
        if self.source is not None:
            self.compared += 1
            self.differences += compare_outcomes(row, recorded)

    def _add_run(self, row: RunRow) -> None:
        if self._writer is not None:
            self._writer.add(row)

    def add_result(self, key: StageKey, result: ToolResult | RecordedFailure) -> None:
        """Record the result of a call of a stage, or what ended the stage while the call was running."""
        row = ResultRow(**_count(self._calls, key)._asdict())
        if self._writer is None:
            return
        if isinstance(result, RecordedFailure):
            self._writer.add(row.model_copy(update={"failure": result}))
            return
        message = message_to_json(tool_message(result), _Blobs(self.put_blob, self.get_blob))
        data = encode_value(result.data, self.put_blob)
        self._writer.add(row.model_copy(update={"result": message, "data": data}))

    def take_result(self, key: StageKey) -> ToolResult:
        """The recorded result of the next call of a stage.

        Raises what ended the stage while the call was running, and `LimitReached` if nothing is recorded.
        """
        assert self.source is not None
        place = _count(self._calls, key)
        row = self.source.results.get(place)
        if row is None:
            raise LimitReached("recording", self.source.explain_end(f"no result of {place}"))
        if self._writer is not None:
            self._writer.add(row)
        if row.failure is not None:
            raise restore_failure(row.failure)
        return self.read_result(row)

    def check(self) -> None:
        """Raise `SettingsError` for a recorded run or result that can't be read, before anything is replayed."""
        if self.source is None:
            return
        for result in self.source.results.values():
            if result.failure is None:
                self.read_result(result)
        for run in self.source.runs.values() if self.is_replay else ():
            if run.failure is None:
                decode_outcome(run.outcome, self.get_blob)

    def read_result(self, row: ResultRow) -> ToolResult:
        """The result that a row holds. Raises `SettingsError` for one that can't be read."""
        assert self.source is not None
        try:
            message = message_from_json(row.result, _Blobs(self.put_blob, self.get_blob))
            return replace(message.result, data=decode_value(row.data, self.get_blob))
        except (FerruleError, LookupError, TypeError, ValueError) as error:
            raise SettingsError(
                f"{self.source.path}: the result of {row.place} can't be read: {error}; record the analysis again"
            ) from error

    def keep_value(self, name: str, value: Any) -> None:
        """Record data that the analysis is made with, as JSON."""
        if self._writer is not None:
            self._writer.add(ValueRow(name=name, value=value))

    @property
    def has_approved_plan(self) -> bool:
        """Whether a person was asked about the plan of the analysis that answers are taken from."""
        return self.source is not None and _APPROVED in self.source.values

    def keep_approved_plan(self, plan: Plan | None) -> None:
        """Record the plan that a person approved, as it was edited; None if it was refused."""
        self.keep_value(_APPROVED, None if plan is None else plan.model_dump(mode="json"))

    def take_approved_plan(self) -> Plan | None:
        """The plan that a person approved; None if it was refused. Raises `SettingsError` for a damaged one."""
        assert self.source is not None
        found = self.source.values[_APPROVED]
        try:
            return None if found is None else Plan.model_validate(found)
        except ValidationError as error:
            raise SettingsError(
                f"{self.source.path}: the approved plan can't be read; record the analysis again"
            ) from error

    def keep_shared(self, name: str, values: list[Any]) -> None:
        """Record a list of which many members are those of other lists; once, whoever asks for it again."""
        if self._writer is not None and name not in self._kept:
            self._kept.add(name)
            self._writer.add(ValueRow(name=name, value=[self._writer.share(value) for value in values]))

    def find_shared(self, name: str) -> list[Any]:
        """The list of that name; empty if none is recorded."""
        assert self.source is not None
        if name not in self.source.values:
            return []
        values = [self.source.find_shared(one) for one in self.source.values[name]]
        self.keep_shared(name, values)
        return values

    def put_blob(self, data: bytes) -> str:
        """Keep bytes beside the recording; returns their name."""
        return self._writer.blobs.put(data) if self._writer is not None else hash_blob(data)

    def get_blob(self, name: str) -> bytes:
        """Bytes that were kept beside the recording. Raises `SettingsError` if they aren't there."""
        assert self.source is not None
        data = self.source.blobs.get(name)
        if data is None:
            raise SettingsError(
                f"{self.source.path}: {name}, a figure or frame of it, is missing; copy the folder "
                f"{self.source.path.with_suffix('.blobs').name} along with the recording"
            )
        self.put_blob(data)
        return data

    def _restore_end(self, result: AnalysisResult) -> None:
        """Give a replayed result the recorded times, the order of its tasks, and the reason why it is partial."""
        end = self.source.end if self.source is not None and self.is_replay else None
        if end is None:
            return
        places = [at for at, entry in enumerate(result.output_entries) if entry.stage_type == "task_execution"]
        tasks = [_set_times(result.output_entries[at].data, end.times) for at in places]
        ranks = {name: at for at, name in enumerate(end.times)}
        for at, task in zip(places, sorted(tasks, key=lambda task: ranks.get(task.id, len(ranks))), strict=True):
            result.output_entries[at] = replace(result.output_entries[at], data=task)
        calls = result.usage.calls if end.calls is None else end.calls
        result.usage = replace(result.usage, seconds=end.seconds, calls=calls)
        if end.usage is not None:
            result.usage = replace(result.usage, usage=Usage(**end.usage), cost=end.cost)
        if result.stopped is not None:
            result.stopped = end.stopped or result.stopped

    def close(self) -> None:
        """Close the file as it is, if it wasn't finished: an error ended the analysis."""
        if self._writer is not None:
            self._writer.close()

    def finish(self, result: AnalysisResult) -> None:
        """Record how the analysis ended, and close the file; a replayed result gets the recorded times."""
        self._restore_end(result)
        if self._writer is not None and self._writer.has_rows:
            times = {task.id: (task.started, task.ended) for task in result.tasks}
            cancelled = {task.id: task.error or "" for task in result.tasks if task.status == "cancelled"}
            spent = result.usage
            self._writer.add(
                EndRow(
                    stopped=result.stopped,
                    times=times,
                    seconds=spent.seconds,
                    calls=spent.calls,
                    usage=asdict(spent.usage) if cancelled else None,
                    cost=spent.cost if cancelled else None,
                    cancelled=cancelled,
                )
            )
        self.close()


@dataclass(frozen=True, slots=True)
class _Blobs:
    """The images of results: see `ImageBlobs`."""

    put: Callable[[bytes], str]
    get: Callable[[str], bytes]


def _count(counter: Counter[StageKey], key: StageKey) -> Place:
    """Count one more request or call of a stage; returns its place."""
    place = Place(key.task, key.stage, key.attempt, counter[key])
    counter[key] += 1
    return place


def _set_times(task: TaskExecution, times: Mapping[str, tuple[float, float]]) -> TaskExecution:
    if task.id not in times:
        return task
    started, ended = times[task.id]
    return replace(task, started=started, ended=ended)
