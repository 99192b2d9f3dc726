"""What `ferrule analyze` does: opens the recording, runs the analysis, shows it as it goes on, and writes its files."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ferrule.cli.errors import PROVIDER_FAILED, require_extra
from ferrule.cli.options import APPROVAL_HINT
from ferrule.cli.session_options import SessionOptions, make_pipeline, make_servers
from ferrule.errors import FerruleError, ProviderError, SettingsError
from ferrule.execution.approver import confirms_edits
from ferrule.session.approvals import Permissions, open_permissions
from ferrule.session.terminal.output import print_notice

if TYPE_CHECKING:
    from ferrule.analysis.plan import Plan
    from ferrule.analysis.recording import Recording
    from ferrule.analysis.result import AnalysisResult
    from ferrule.analysis.settings import AnalysisSettings
    from ferrule.cli.analysis_progress import AnalysisProgress
    from ferrule.execution import ApprovalRequest, Approver, Decision
    from ferrule.models.protocol import Model
    from ferrule.tools.registry import ToolLike

_INTERRUPTED = 130
_CHOOSE_MODEL = (
    "choose one by --model (such as openai:gpt-5 or ollama:qwen3), FERRULE_MODEL, or `model` in the configuration "
    "file; `ferrule models` lists the providers, and --replay needs none"
)


@dataclass(frozen=True, slots=True)
class AnalysisFiles:
    """The files that an analysis leaves, and the recording that it begins with."""

    record: Path | None = None
    no_record: bool = False
    replay: Path | None = None
    rerun: Path | None = None
    continues: Path | None = None
    report: Path | None = None
    notebook: Path | None = None

    @property
    def taken(self) -> Path | None:
        """The recording that answers are taken from."""
        return self.replay or self.rerun


@dataclass(frozen=True, slots=True)
class AnalysisOrder:
    """What a command asks for."""

    question: str
    data: tuple[str, ...]
    settings: AnalysisSettings
    shows_plan: bool
    files: AnalysisFiles
    options: SessionOptions
    prices: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What models cost, where the command says so."""


@dataclass(slots=True)
class _Outcome:
    result: AnalysisResult
    was_interrupted: bool = False
    error: FerruleError | None = None
    """What made the result partial, if it was an error."""


def analyze_and_show(order: AnalysisOrder) -> int:
    """Run an analysis and print its result; returns the exit status. Raises `FerruleError` and `OSError`."""
    from ferrule.cli.analysis_plan import check_order

    files = order.files
    check_order(order)
    with closing(_open_recording(files, _choose_path(order))) as recording:
        outcome = _run(order, recording)
        _show(order, outcome.result, recording)
        _write_files(files, outcome.result)
    if outcome.was_interrupted:
        return _INTERRUPTED
    is_without_result = not any(task.status == "done" for task in outcome.result.tasks)
    if isinstance(outcome.error, ProviderError) and is_without_result:
        return PROVIDER_FAILED
    return 1 if outcome.result.stopped is not None or recording.differences else 0


def _open_recording(files: AnalysisFiles, path: Path | None) -> Recording:
    """The recording that answers are taken from, and the one that is written."""
    from ferrule.analysis.recording import record_analysis, replay_analysis

    if files.taken is not None:
        return replay_analysis(files.taken, computes=files.rerun is not None, record=path)
    return record_analysis(path, continues=files.continues)


def _choose_path(order: AnalysisOrder) -> Path | None:
    """The file to record in; None if nothing is to be recorded, as for a replay without --record."""
    from ferrule.analysis.recording.writer import make_recording_path

    files = order.files
    if files.record is not None or files.no_record or files.taken is not None:
        return files.record
    try:
        return make_recording_path(order.question)
    except (OSError, RuntimeError) as error:
        print_notice(f"the analysis is not recorded: {error}; name a file by --record, or give --no-record")
        return None


def _run(order: AnalysisOrder, recording: Recording) -> _Outcome:
    """Run the analysis with what the options name. Ctrl-C ends it with what was found until then."""
    from ferrule.cli.analysis_progress import open_progress
    from ferrule.execution.tool_output import route_tool_output
    from ferrule.models.prices import configure_prices

    options = order.options
    if order.prices:
        configure_prices(order.prices)
    with (
        require_extra("analysis"),
        route_tool_output(),
        asyncio.Runner() as runner,
        _open_model(order, runner) as model,
        open_permissions(options.yes, options.policy, options.journal, APPROVAL_HINT) as permissions,
        open_progress(
            options.as_json, name_receivers(options, order.settings) if model is not None else None
        ) as progress,
    ):
        return runner.run(_stream(order, recording, model, progress, permissions))


async def _stream(
    order: AnalysisOrder,
    recording: Recording,
    model: Model | None,
    progress: AnalysisProgress,
    permissions: Permissions,
) -> _Outcome:
    from ferrule.analysis import stream_analysis
    from ferrule.cli.analysis_plan import ask_about_plan

    async def approve(plan: Plan) -> Plan | None:
        with progress.paused():
            return await ask_about_plan(plan, analysis.check_plan)

    tools, origins = _collect_tools(order.options)
    outcome: _Outcome | None = None
    async with stream_analysis(
        order.question,
        data=order.data,
        model=model,
        settings=order.settings,
        recording=recording,
        tools=tools,
        policy=permissions.trust(*origins).policy,
        approver=_PausingApprover(permissions.approver, progress),
        journal=permissions.journal,
        approve_plan=approve if order.shows_plan else None,
    ) as analysis:
        try:
            async for event in analysis:
                progress.show(event)
        except asyncio.CancelledError:
            # Ctrl-C: the result so far is valid.
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            outcome = _Outcome(analysis.result, was_interrupted=True)
    return outcome or _Outcome(analysis.result, error=analysis.error)


def _collect_tools(options: SessionOptions) -> tuple[list[ToolLike], list[str]]:
    """The tools that are added to the analyst's own, and the origins among them that are trusted."""
    tools: list[ToolLike] = []
    if options.tools or options.plugins:
        from ferrule.builtin_tools import calculator
        from ferrule.cli.tool_sources import collect_tools

        tools += [one for one in collect_tools(options.tools or [], options.plugins) if one.name != calculator.name]
    if options.trust and not options.mcp:
        raise SettingsError("--trust is for the servers of --mcp, but there are none")
    servers = make_servers(options)
    return [*tools, *servers], [one.origin for one in servers] if options.trust else []


class _PausingApprover:
    """Asks a person about a call while the progress isn't drawn."""

    def __init__(self, approver: Approver, progress: AnalysisProgress) -> None:
        self._approver = approver
        self._progress = progress

    @property
    def confirms_edits(self) -> bool:
        """Whether the approver is to be shown a call again after it was edited."""
        return confirms_edits(self._approver)

    async def decide(self, request: ApprovalRequest) -> Decision:
        """See `Approver.decide`."""
        with self._progress.paused():
            return await self._approver.decide(request)


@contextmanager
def _open_model(order: AnalysisOrder, runner: asyncio.Runner) -> Iterator[Model | None]:
    """The model that is asked; None where the answers are recorded. Raises `SettingsError` for the embedded one."""
    from ferrule.analysis.analyst import check_can_plan

    if order.files.taken is not None:
        yield None
        return
    check_can_plan(order.options.model, _CHOOSE_MODEL)
    pipeline = make_pipeline(order.options)
    try:
        yield pipeline.model
    finally:
        runner.run(pipeline.model.aclose())


def name_receivers(options: SessionOptions, settings: AnalysisSettings) -> str | None:
    """Who gets what is shown of the data, by any stage or tool; None if it stays on this machine."""
    asked = [(options.model, options.base_url), (options.fallback, None)]
    asked += [(name, None) for name in settings.models.values()]
    away = [name for name, base_url in asked if isinstance(name, str) and not is_local(name, base_url)]
    return ", ".join(dict.fromkeys(away)) or None


def is_local(name: str, base_url: str | None) -> bool:
    """Whether a model runs on this machine, by its provider's address."""
    from ferrule.models.providers import PROVIDERS

    provider = PROVIDERS.get(name.partition(":")[0])
    address = base_url or (provider.address if provider is not None else "")
    if not address:
        return provider is None
    host = urlsplit(address).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _show(order: AnalysisOrder, result: AnalysisResult, recording: Recording) -> None:
    """Print the result, and what differs from the recording that it began with."""
    from ferrule.cli.analysis_answer import describe_comparison, describe_result, print_answer
    from ferrule.cli.analysis_progress import describe_spending
    from ferrule.session.terminal.output import print_json

    if order.options.as_json:
        print_json(describe_result(result, recording))
        return
    print_answer(result)
    for line in describe_comparison(recording):
        print_notice(line)
    print_notice(describe_spending(result.usage))
    if recording.path is not None:
        scrubbed = "; keys in it were replaced" if recording.has_scrubbed else ""
        print_notice(f"recorded in {recording.path}{scrubbed}")


def _write_files(files: AnalysisFiles, result: AnalysisResult) -> None:
    """Write the report and the notebook. Raises `OSError`."""
    if files.report is not None:
        from ferrule.analysis.report.html import write_report

        write_report(result, files.report)
    if files.notebook is not None:
        from ferrule.analysis.report.notebook import write_notebook

        write_notebook(result, files.notebook)
        for path in dict.fromkeys(table.path for table in result.tables):
            if not path.is_file():
                print_notice(f"{path} isn't there; the notebook reads it from there when it runs, so put it back first")
