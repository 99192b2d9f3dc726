"""What an analysis is recorded with, and replayed from: `run_analysis(…, recording=…)`.

record_analysis(path)                     # everything is asked and run, and recorded
replay_analysis(path)                     # nothing is asked or run: all is taken from the recording
replay_analysis(path, computes=True)      # answers are taken from it; code runs again, and is compared
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ferrule.analysis.limits import LimitReached
from ferrule.analysis.plan import Plan
from ferrule.analysis.recording.differences import ChangedRequest, RunDifference, compare_outcomes, describe_change
from ferrule.analysis.recording.outcomes import decode_outcome, decode_value, encode_value
from ferrule.analysis.recording.session import StageModel
from ferrule.analysis.recording.source import ANALYSIS, END, RESULT, RUN, Beginning, Ending, RecordedAnalysis
from ferrule.analysis.recording.writer import RecordingWriter
from ferrule.analysis.result import list_versions
from ferrule.blobs import hash_blob
from ferrule.conversation import tool_message
from ferrule.errors import FerruleError, SettingsError
from ferrule.events import Event, MessageFinished
from ferrule.formats.conversation_json import message_from_json, message_to_json
from ferrule.models.recording.exchange import Exchange, make_row
from ferrule.models.recording.request import Request
from ferrule.models.recording.rows import Failure, ValueRow

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
    source = RecordedAnalysis.read(Path(path))
    earlier = source.read_earlier()
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
        self._counted: Counter[tuple[str, str]] = Counter()
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

    def begin(self, beginning: Beginning) -> None:
        """Record what is asked, of which data, and how: without what is the same for all recordings."""
        if self._writer is not None:
            earlier = None if self.earlier is None else os.path.relpath(self.earlier.path, self._writer.path.parent)
            described = beginning.model_copy(update={"continues": earlier, "packages": self.find_versions()})
            self.keep(ANALYSIS, described.model_dump(mode="json", exclude_defaults=True))

    def wrap_model(self, model: Model) -> StageModel:
        """A model that records what this one answers."""
        return StageModel(self, model.name, model.capabilities, model)

    def make_model(self, name: str) -> StageModel:
        """The recorded model of a name. Raises `SettingsError` if the recording has no answers of it."""
        assert self.source is not None
        models = self.source.file.models
        if name not in models:
            known = ", ".join(models) or "none"
            raise SettingsError(f"{self.source.path}: it has no answers of {name}, only of: {known}")
        return StageModel(self, name, models[name][1])

    def add_model(self, model: Model) -> None:
        """Record what a model supports."""
        if self._writer is not None:
            self._writer.add_model(model.name, model.capabilities)

    def count_request(self, key: StageKey) -> str:
        """Count a request of a stage; returns its place."""
        return self._count("request", key)

    def _count(self, kind: str, key: StageKey) -> str:
        """The place of one more request or call of a stage: an answer that doesn't fit is sent back, a tool called
        again."""
        self._counted[kind, str(key)] += 1
        number = self._counted[kind, str(key)]
        return f"{key}, request {number}" if number > 1 else str(key)

    def find_answer(self, place: str, request: Request) -> Exchange:
        """The recorded answer. Raises `LimitReached` if there is none: the analysis ends as the recorded one did."""
        assert self.source is not None
        found = self.source.answers.get(place)
        if found is None:
            raise LimitReached("recording", self.source.explain_end(f"no answer to {place}"))
        if found.request.key != request.key:
            self.changes.append(describe_change(place, found.request, request))
        return found

    def add_answer(self, place: str, model: str, request: Request, answer: MessageFinished | Failure) -> None:
        """Record a message of a model, or why there is none."""
        if self._writer is None:
            return
        if isinstance(answer, MessageFinished):
            message = replace(answer.message, sampled=None)
            outcome: Failure | list[Event] = [MessageFinished(message, answer.usage, answer.stop)]
        else:
            outcome = answer
        self._writer.add(make_row(model, request, outcome, self._writer, stage=place))

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
        place = f"{task}/run/{self._counted[RUN, task]}"
        self._counted[RUN, task] += 1
        if compute is None:
            self._recall(RUN, place)
            return self._read_run(place, decode)
        row = ValueRow(name=RUN, stage=place, value={"code": code, "results": dict(results), "outcome": None})
        try:
            outcome = await compute()
        except (FerruleError, TimeoutError) as error:
            self._finish_run(row.model_copy(update={"failure": Failure.describe(error)}))
            raise
        self._finish_run(row.model_copy(update={"value": row.value | {"outcome": encode(outcome)}}))
        return outcome

    def _finish_run(self, row: ValueRow) -> None:
        self._add(row)
        if self.source is not None:
            self.compared += 1
            self.differences += compare_outcomes(row, self.source.file.values.get((RUN, row.stage)))

    def _read_run(self, place: str, decode: Callable[[Any], Outcome]) -> Outcome:
        assert self.source is not None
        with self.source.reading(RUN, place):
            return decode(self.source.runs[place].outcome)

    def add_result(self, key: StageKey, result: ToolResult | Failure) -> None:
        """Record the result of a call of a stage, or what ended the stage while the call was running."""
        place = self._count("call", key)
        if isinstance(result, Failure):
            self._add(ValueRow(name=RESULT, stage=place, failure=result))
        elif self._writer is not None:
            message = message_to_json(tool_message(result), _Blobs(self.put_blob, self.get_blob))
            self.keep(RESULT, {"message": message, "data": encode_value(result.data, self.put_blob)}, place)

    def take_result(self, key: StageKey) -> ToolResult:
        """The recorded result of the next call of a stage.

        Raises what ended the stage while the call was running, and `LimitReached` if nothing is recorded.
        """
        place = self._count("call", key)
        self._recall(RESULT, place)
        return self._read_result(place)

    def _read_result(self, place: str) -> ToolResult:
        assert self.source is not None
        with self.source.reading(RESULT, place) as value:
            message = message_from_json(value["message"], _Blobs(self.put_blob, self.get_blob))
            return replace(message.result, data=decode_value(value["data"], self.get_blob))

    def _recall(self, name: str, place: str) -> None:
        """Find a recorded value, and record it again. Raises the recorded failure, and `LimitReached` for none."""
        assert self.source is not None
        row = self.source.file.values.get((name, place))
        if row is None:
            raise LimitReached("recording", self.source.explain_end(f"no {name} of {place}"))
        self._add(row)
        if row.failure is not None:
            raise row.failure.restore()

    def check(self) -> None:
        """Raise `SettingsError` for a recorded run or result that can't be read, before anything is replayed."""
        if self.source is None:
            return
        for (name, stage), row in self.source.file.values.items():
            if name == RESULT and row.failure is None:
                self._read_result(stage)
        for place in self.source.runs if self.is_replay else ():
            self._read_run(place, partial(decode_outcome, get=self.get_blob))

    def keep(self, name: str, value: Any, stage: str = "") -> None:
        """Record data that the analysis is made with, as JSON."""
        self._add(ValueRow(name=name, stage=stage, value=value))

    def _add(self, row: ValueRow) -> None:
        if self._writer is not None:
            self._writer.add(row)

    @property
    def has_approved_plan(self) -> bool:
        """Whether a person was asked about the plan of the analysis that answers are taken from."""
        return self.source is not None and self.source.has(_APPROVED)

    def keep_approved_plan(self, plan: Plan | None) -> None:
        """Record the plan that a person approved, as it was edited; None if it was refused."""
        self.keep(_APPROVED, None if plan is None else plan.model_dump(mode="json"))

    def take_approved_plan(self) -> Plan | None:
        """The plan that a person approved; None if it was refused. Raises `SettingsError` for a damaged one."""
        assert self.source is not None
        with self.source.reading(_APPROVED) as found:
            return None if found is None else Plan.model_validate(found)

    def keep_shared(self, name: str, values: list[Any]) -> None:
        """Record a list that shares members with others; once, whoever asks for it again."""
        if self._writer is not None and name not in self._kept:
            self._kept.add(name)
            self._add(ValueRow(name=name, shared=[self._writer.share(value) for value in values]))

    def put_blob(self, data: bytes) -> str:
        """Keep bytes beside the recording; returns their name."""
        return self._writer.blobs.put(data) if self._writer is not None else hash_blob(data)

    def get_blob(self, name: str) -> bytes:
        """Bytes that were kept beside the recording. Raises `SettingsError` if they aren't there."""
        assert self.source is not None
        data = self.source.blobs.get(name) if isinstance(name, str) else None
        if data is None:
            raise SettingsError(
                f"{self.source.path}: {name}, a figure or frame of it, is missing; copy the folder "
                f"{self.source.path.with_suffix('.blobs').name} along with the recording"
            )
        if hash_blob(data) != name:
            raise SettingsError(f"{self.source.path}: {name}, a figure or frame of it, was changed; record it again")
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
            result.usage = replace(result.usage, usage=end.usage, cost=end.cost)
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
            ending = Ending(
                stopped=result.stopped,
                times=times,
                seconds=spent.seconds,
                calls=spent.calls,
                usage=spent.usage if cancelled else None,
                cost=spent.cost if cancelled else None,
                cancelled=cancelled,
            )
            self.keep(END, ending.model_dump(mode="json", exclude_defaults=True))
        self.close()


@dataclass(frozen=True, slots=True)
class _Blobs:
    """The images of results: see `ImageBlobs`."""

    put: Callable[[bytes], str]
    get: Callable[[str], bytes]


def _set_times(task: TaskExecution, times: Mapping[str, tuple[float, float]]) -> TaskExecution:
    if task.id not in times:
        return task
    started, ended = times[task.id]
    return replace(task, started=started, ended=ended)
