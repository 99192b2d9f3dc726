"""The prompt: where lines are typed, what is shown around it, and its keys."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from prompt_toolkit.application import Application, get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, ThreadedCompleter
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
    app: Application[int] = Application(
        layout=Layout(_make_container(owner, buffer)),
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


def _make_container(owner: PromptOwner, buffer: Buffer) -> FloatContainer:
    def show_live() -> AnyFormattedText:
        return [("class:live", owner.list_live_text())]

    def show_prompt(_line: int, _wrap: int) -> AnyFormattedText:
        prompt = owner.describe_prompt() if (_line, _wrap) == (0, 0) else "  "
        return [("class:prompt", prompt)]

    def show_status() -> AnyFormattedText:
        return [("class:status", owner.describe_status(_get_columns()))]

    has_live = Condition(lambda: bool(owner.list_live_text()))
    live = Window(FormattedTextControl(show_live), dont_extend_height=True, wrap_lines=True)
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
            ConditionalContainer(live, has_live),
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
