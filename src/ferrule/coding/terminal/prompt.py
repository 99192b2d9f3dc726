"""The prompt: where lines are typed and completed, its keys, and the status line below it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from prompt_toolkit.application import Application, get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, ThreadedCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.formatted_text import AnyFormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import ConditionalContainer, Float, FloatContainer, HSplit, Layout, VSplit, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.dimension import Dimension
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.defaults import create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

if TYPE_CHECKING:
    from ferrule.coding.program import CodingSession

_FILE = re.compile(r"""(?:^|\s)@(?:"([^"\n]*)|([^\s"]*))$""")
_MOST_NAMES = 200
"""The most names that completion offers."""
_HIGHEST = 10
"""The most lines of a question that are shown at once."""
_MENU = 8
_STYLE = Style.from_dict({"live": "ansibrightblack", "prompt": "bold", "status": "reverse", "queued": "italic"})


class PromptOwner(Protocol):
    """What the prompt shows, and what its keys do."""

    @property
    def is_answering(self) -> bool:
        """Whether what is typed answers a question of the program."""

    @property
    def has_queue(self) -> bool:
        """Whether something that was typed waits for the turn to end."""

    def take_back(self) -> None:
        """Up was pressed where nothing was typed, and something waits."""

    def accept_line(self, text: str) -> None:
        """A line was entered."""

    def interrupt(self) -> None:
        """Ctrl-C was pressed."""

    def leave(self) -> None:
        """Ctrl-D was pressed where nothing was typed."""

    def list_live_text(self) -> str:
        """What is happening now, in lines above the prompt."""

    def describe_prompt(self) -> str:
        """What stands before the typed text."""

    def describe_status(self, width: int) -> str:
        """The status line."""


def make_application(owner: PromptOwner, history: Path | None, completer: Completer) -> Application[int]:
    """Make the application that shows the prompt; its result is the program's exit status."""
    buffer = Buffer(
        name="prompt",
        multiline=True,
        completer=ThreadedCompleter(completer),
        complete_while_typing=True,
        history=open_history(history),
    )
    output = create_output()
    if isinstance(output, Vt100_Output):
        # Where the cursor stands isn't needed, and an answer that comes late would be taken for typed text.
        output.enable_cpr = False
    live = FormattedTextControl(style="class:live")

    def update_live(_: object) -> None:
        # Once for each drawing: the layout looks at it several times.
        live.text = owner.list_live_text()

    app: Application[int] = Application(
        layout=Layout(_make_container(owner, buffer, live)),
        before_render=update_live,
        key_bindings=_make_keys(owner, buffer),
        style=_STYLE,
        color_depth=ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None,
        erase_when_done=True,
        output=output,
        mouse_support=False,
    )
    app.ttimeoutlen = 0.1
    return app


def open_history(path: Path | None) -> History:
    """Open the file of earlier lines, which only its owner can read; without it, lines are kept in memory."""
    if path is not None:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError:
            return InMemoryHistory()
        return _TolerantHistory(str(path))
    return InMemoryHistory()


class _TolerantHistory(FileHistory):
    """A file of lines; what can't be written, on a full disk, is only remembered."""

    def store_string(self, string: str) -> None:
        try:
            super().store_string(string)
        except OSError:
            return


def _make_container(owner: PromptOwner, buffer: Buffer, live: FormattedTextControl) -> FloatContainer:
    def show_prompt(_line: int, _wrap: int) -> AnyFormattedText:
        prompt = owner.describe_prompt() if (_line, _wrap) == (0, 0) else "  "
        return [("class:prompt", prompt)]

    def show_status() -> AnyFormattedText:
        return [("class:status", owner.describe_status(_get_columns()))]

    typed = Window(
        BufferControl(buffer),
        get_line_prefix=show_prompt,
        height=lambda: Dimension(min=1, max=_HIGHEST),
        dont_extend_height=True,
        wrap_lines=True,
    )
    menu_room = Window(height=lambda: Dimension.exact(_MENU if buffer.complete_state else 0))
    rows = HSplit(
        [
            ConditionalContainer(
                Window(live, dont_extend_height=True, wrap_lines=True), Condition(lambda: bool(live.text))
            ),
            typed,
            menu_room,
            VSplit(
                [Window(FormattedTextControl(show_status), height=1, dont_extend_height=True, style="class:status")]
            ),
        ]
    )
    menu = CompletionsMenu(max_height=_MENU, scroll_offset=1)
    return FloatContainer(rows, [Float(menu, xcursor=True, ycursor=True)])


def _get_columns() -> int:
    return get_app().output.get_size().columns


def _make_keys(owner: PromptOwner, buffer: Buffer) -> KeyBindings:
    keys = KeyBindings()
    is_empty = Condition(lambda: not buffer.text)

    def enter(_: KeyPressEvent) -> None:
        state = buffer.complete_state
        if state is not None and state.current_completion is not None:
            buffer.apply_completion(state.current_completion)
        elif buffer.document.text_before_cursor.endswith("\\") and buffer.document.is_cursor_at_the_end:
            buffer.delete_before_cursor()
            buffer.newline(copy_margin=False)
        else:
            text = buffer.text
            if not owner.is_answering:
                buffer.append_to_history()
            buffer.reset()
            owner.accept_line(text)

    # What is typed before the prompt is there comes with c-j for Enter.
    for accept in ("enter", "c-j"):
        keys.add(accept)(enter)
    keys.add("escape", "enter")(lambda _: buffer.newline(copy_margin=False))
    for stop in ("c-c", Keys.SIGINT):
        keys.add(stop)(lambda _: owner.interrupt())
    keys.add("up", filter=is_empty & Condition(lambda: owner.has_queue and not owner.is_answering))(
        lambda _: owner.take_back()
    )
    keys.add("c-d", filter=is_empty)(lambda _: owner.leave())
    keys.add("c-l")(lambda event: event.app.renderer.clear())
    keys.add("c-z")(lambda event: event.app.suspend_to_background())
    keys.add("escape", eager=True, filter=has_completions)(lambda _: buffer.cancel_completion())
    return keys


class PromptCompleter(Completer):
    """Completes commands after a slash, and the names of files after `@`.

    `list_commands` returns usages with what they do, `list_files` the paths of files relative to the workspace.
    """

    def __init__(
        self, list_commands: Callable[[], Sequence[tuple[str, str]]], list_files: Callable[[], Sequence[str]]
    ) -> None:
        self._list_commands = list_commands
        self._list_files = list_files

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002 - as it is called
        """Yield completions of the word before the cursor."""
        before = document.text_before_cursor
        if before.startswith("/") and " " not in before and "\n" not in before:
            for usage, about in self._list_commands():
                name = usage.split()[0]
                if name.startswith(before):
                    yield Completion(name, -len(before), display=usage, display_meta=about)
            return
        found = _FILE.search(before)
        if found is not None:
            typed = found[2] if found[1] is None else found[1]
            for path in rank_paths(self._list_files(), typed):
                is_quoted = found[1] is not None or " " in path
                start = -len(typed) - (found[1] is not None)
                yield Completion(f'"{path}" ' if is_quoted else f"{path} ", start, display=path)


def rank_paths(paths: Iterable[str], typed: str) -> list[str]:
    """Return the paths that contain what was typed: those whose name begins with it first, the shortest first."""
    wanted = typed.casefold()
    ranked = []
    for path in paths:
        folded = path.casefold()
        if wanted in folded:
            name = folded.rpartition("/")[2]
            ranked.append((not folded.startswith(wanted), not name.startswith(wanted), len(path), path))
    ranked.sort()
    return [path for *_, path in ranked[:_MOST_NAMES]]


def describe_status(coding: CodingSession | None, seconds: float | None, width: int, is_leaving: bool) -> str:
    """Describe the session in at most `width` columns; what matters least is left out first.

    `seconds` is how long the turn has taken, None if there is none.
    """
    if is_leaving:
        return _fit(["Ctrl-C again leaves"], width)
    if coding is None:
        return _fit(["starting"], width)
    from ferrule._util.pluralize import pluralize
    from ferrule._util.terminal_text import escape_line
    from ferrule.coding.meter import format_count

    meter = coding.meter
    parts = [coding.profile, escape_line(coding.session.model_name)]
    if seconds is not None:
        parts.insert(0, f"{seconds:.0f} s, Ctrl-C stops")
    if meter.context_left is not None:
        parts.append(f"{meter.context_left:.0%} context left")
    jobs = coding.count_jobs()
    if jobs:
        parts.append(pluralize(jobs, "job"))
    total = meter.total
    if total.prompt_tokens or total.sampled_tokens:
        parts.append(f"{format_count(total.prompt_tokens + total.sampled_tokens)} tokens")
    if meter.dollars:
        parts.append(f"${meter.dollars:.3f}")
    return _fit(parts, width)


def _fit(parts: list[str], width: int) -> str:
    while len(parts) > 1 and len(" · ".join(parts)) + 2 > width:
        parts = parts[:-1]
    line = f" {' · '.join(parts)} "
    return line if len(line) <= width else f"{line[: max(0, width - 1)]}…"
