"""Shows a person what a call would do, as lines for a terminal: its change as a diff, its command with its parts.

Every character that could hide something, move the cursor or pass for another is escaped; each line of a text that
isn't ours is behind a bar. Colours repeat what the words say, and never say more.
"""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from ferrule._util.terminal_text import escape_line
from ferrule._util.word_folding import fold_words, measure
from ferrule.execution.decisions import ApprovalRequest
from ferrule.execution.preview import CallPreview, EffectPreview
from ferrule.execution.rules import VERBS
from ferrule.tools.intent import Diff, ImageRef, Preview

WIDTH = 200
"""The most characters per line where the width of the terminal isn't known; longer lines are wrapped."""
_NARROWEST = 16
_TAB = 4
_MOST_OF_SUMMARY = 4
"""The most lines for one call among several."""
_NUMBER_COLUMNS = 5
_LONGEST_PROGRAM = 40
_DEFAULT = "(default)"
_CHANGED_TOOL = 'the server has changed this tool since the last "always"'
_OF_SERVER = "mcp:"
"""How the origins of servers' tools begin."""
_SHORT_PREVIEW = 12
"""A text preview of at most this many lines stands before the effects."""
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan", "\\": "dim"}
_DIFF_HEADERS = re.compile(r"^--- .*\n\+\+\+ ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Line:
    """One line to show, without control characters, and its style for Rich."""

    text: str
    style: str = ""


class CallDisplay:
    """Renders requests for a terminal that has `width` columns."""

    def __init__(self, width: int = WIDTH) -> None:
        self.width = max(_NARROWEST, width)

    def render(self, request: ApprovalRequest) -> list[Line]:
        """Render a call: its effects, its preview, and those arguments that the preview doesn't show."""
        return [*self.render_title(request), *self.render_body(request)]

    def render_body(self, request: ApprovalRequest, is_listed: bool = False) -> list[Line]:
        """Render all of a call but its title; `is_listed`, without what refers to the answers about a single call."""
        preview = request.find_preview()
        text = preview.content if isinstance(preview.content, str) else ""
        shown = self._render_content(preview.content)
        effects = self._render_effects(preview, request.workspace)
        arguments = self._render_arguments(preview, is_brief=True, is_listed=is_listed)
        server = self._render_field("from", request.origin) if request.origin.startswith(_OF_SERVER) else []
        is_short = bool(text) and text.count("\n") < _SHORT_PREVIEW
        parts = (shown, effects, arguments) if is_short else (effects, arguments, shown)
        return [line for part in (server, *parts, self._render_definition_change(request)) for line in part]

    def render_title(self, request: ApprovalRequest) -> list[Line]:
        """Render the first line: which tool asks for what."""
        agent = f", for the sub-agent {request.agent}" if request.agent else ""
        return [Line(text, "bold") for text in self._wrap(f"▸ {request.tool} {_describe_state(request)}{agent}", "  ")]

    def wrap_words(self, text: str, indent: str = "") -> str:
        """Break a text of our own between words; further lines begin with `indent`."""
        lines = textwrap.wrap(
            text, self.width - 1, break_on_hyphens=False, break_long_words=False, subsequent_indent=indent
        )
        pieces = (piece.rstrip() for line in lines for piece in fold_words(line, self.width - 1, len(indent)))
        return f"\n{indent}".join(pieces) if len(lines) == 1 else "\n".join(pieces)

    def render_details(self, request: ApprovalRequest) -> list[Line]:
        """Render all arguments in full, and the names of the paths with links followed."""
        preview = request.find_preview()
        lines = self._render_arguments(preview, is_brief=False)
        for one in preview.effects:
            if one.real_path not in (None, one.effect.target):
                lines += self._render_field(f"{one.effect.target} is", one.real_path or "")
        return lines

    def render_reason(self, request: ApprovalRequest) -> list[Line]:
        """Render the reason for asking, and what was wrong with the last edit."""
        lines = self._render_field("why you are asked", request.reason)
        if request.problem:
            lines += [Line(line.text, "bold red") for line in self._render_block(f"not accepted: {request.problem}")]
        return lines

    def render_scope(self, request: ApprovalRequest) -> list[Line]:
        """Render what an "always" would allow."""
        if request.always is None:
            return [Line(text) for text in self._wrap('  there is no "always" for this call', "  ")]
        return self._render_field('"always" would allow', request.always)

    def render_rules(self, request: ApprovalRequest) -> list[Line]:
        """Render what an "always" would allow, with its exact rules."""
        lines = self.render_scope(request)
        for rule in request.always_rules:
            lines += self._render_block(rule)
        return lines

    def is_whole_summary(self, request: ApprovalRequest) -> bool:
        """Whether `summarize` shows all that a call would do: no change of a file, and nothing that is cut."""
        content = request.find_preview().content
        if not isinstance(content, str) or _shows_change(content) or request.definition_change is not None:
            return False
        return len(self._fold_summary(_write_summary(request), _NUMBER_COLUMNS)) <= _MOST_OF_SUMMARY

    def summarize(self, request: ApprovalRequest, number: str) -> list[Line]:
        """Render a call among several: its number, its tool, and what it changes or runs; one line if it fits."""
        summary = _write_summary(request)
        pieces = self._fold_summary(summary, len(number))
        if len(pieces) > _MOST_OF_SUMMARY:
            pieces[_MOST_OF_SUMMARY - 1] = "… (look at it for the rest)"[: self.width - len(number) - 2]
        return [
            Line(f"{number if not place else ' ' * len(number)}  {piece}", summary.style)
            for place, piece in enumerate(pieces[:_MOST_OF_SUMMARY])
        ]

    def _fold_summary(self, summary: Line, columns: int) -> list[str]:
        """Fold a summary beside a number that takes `columns`."""
        return fold_words(summary.text, max(_NARROWEST // 2, self.width - columns - 2))

    def _render_effects(self, preview: CallPreview, workspace: str | None) -> list[Line]:
        """Render the effects, those that need attention first."""
        change = preview.content if isinstance(preview.content, Diff) else None
        runs = {one.effect.words for one in preview.effects if one.effect.kind == "run" and one.effect.words}
        is_counted = False
        marked: list[Line] = []
        others: list[Line] = []
        for one in dict.fromkeys(preview.effects):
            effect, marks = one.effect, list(_mark(one))
            is_workspace = effect.kind == "write" and effect.target == workspace
            if is_workspace and effect.words in runs and not marks:
                continue  # said with the program itself
            text = _describe_target(one, preview, workspace)
            if effect.kind == "run" and len(text) > self.width - 8 and preview.shows_whole(effect):
                text = f"it{text.removeprefix(effect.target)}"  # said above, whole
            if change is not None and one.is_changed:
                text, is_counted = f"{text}  ({_count_changes(change)})", True
            if marks:
                marked += self._render_field(f"! {', '.join(marks)}: {VERBS[effect.kind]}", text, "bold red", "")
            else:
                others += self._render_field(VERBS[effect.kind], text, end="")
        if change is not None and not is_counted:
            path = _shorten_path(change.path, workspace)
            others += self._render_field("changes", f"{path}  ({_count_changes(change)})", end="")
        return [*marked, *others]

    def _render_content(self, content: Preview) -> list[Line]:
        if isinstance(content, Diff):
            return self._render_diff(str(content).split("\n")[2:], _has_crlf(content))
        if isinstance(content, ImageRef):
            return [
                Line(text) for text in self._wrap(f"  an image ({content.media_type}), which can't be shown here", "  ")
            ]
        if _shows_change(content):
            return self._render_diff(content.split("\n"), False)
        return self._render_block(content) if content else []

    def _render_diff(self, lines: Sequence[str], is_crlf: bool) -> list[Line]:
        """Render the lines of a unified diff. White space is made visible where it is what changes."""
        rendered = [Line("  │ (all lines end in CRLF)", "dim")] if is_crlf else []
        spaces_only = _find_changes_of_white_space(lines)
        for number, line in enumerate(lines):
            text = line.removesuffix("\r") if is_crlf else line
            sign = text[:1]
            if sign in ("+", "-"):
                text = _show_white_space(text, tabs=number in spaces_only)
            style = _DIFF_STYLES.get(sign, "")
            pieces = fold_words(escape_line(text.expandtabs(_TAB)), self.width - 4)
            rendered += [Line(f"  │ {piece}", style) for piece in pieces]
        return rendered

    def _render_definition_change(self, request: ApprovalRequest) -> list[Line]:
        if request.definition_change is None:
            return []
        title = [Line(text, "bold red") for text in self._wrap(f"  ! {_CHANGED_TOOL}:", "  ")]
        return [*title, *self._render_content(request.definition_change)]

    def _render_arguments(self, preview: CallPreview, is_brief: bool, is_listed: bool = False) -> list[Line]:
        content = preview.content
        # The content shows what the defaults lead to.
        defaults = {} if is_brief and content else preview.defaults
        lines = [] if preview.arguments or defaults else [Line("  without arguments")]
        for name, value in preview.arguments.items():
            words = value.strip() if isinstance(value, str) else ""
            if is_brief and words and isinstance(content, str) and words in content:
                continue
            if is_brief and content and value in ("", None):
                continue
            text = str(value) if "\n" in words else json.dumps(value, ensure_ascii=False)
            is_long = "\n" in text or len(text) > self.width - len(name) - 4
            if is_brief and is_long and _shows_change(content):
                if is_listed:
                    continue
                text = f"{len(text):,} characters ([d]etails shows them)"
            lines += self._render_field(name, text)
        for name, value in defaults.items():
            lines += self._render_field(name, f"{json.dumps(value, ensure_ascii=False)} {_DEFAULT}")
        return lines

    def _render_field(self, name: str, text: str, style: str = "", end: str = ":") -> list[Line]:
        """Render a name and its text on one line, or with a long or multi-line text below the name."""
        name = escape_line(name)
        line = f"  {name}{end} {escape_line(text)}"
        if measure(line) <= self.width and "\n" not in text:
            return [Line(line, style)]
        return [
            *(Line(one, style) for one in self._wrap(f"  {name}:", "  ")),
            *self._render_block(text, style),
        ]

    def _render_block(self, text: str, style: str = "") -> list[Line]:
        """Render lines behind a bar each, so that none can be mistaken for ours."""
        lines = text.split("\n")
        if lines[-1] == "" and len(lines) > 1:
            lines.pop()
        return [
            Line(f"  │ {piece}", style) for line in lines for piece in fold_words(escape_line(line), self.width - 4)
        ]

    def _wrap(self, text: str, indent: str) -> list[str]:
        first, *rest = fold_words(escape_line(text), self.width - len(indent))
        return [first, *(f"{indent}{piece}" for piece in rest)]


def print_lines(lines: Sequence[Line], stream: TextIO) -> None:
    """Print lines, in colour if `stream` is a terminal that has any."""
    is_styled = stream.isatty() and any(line.style for line in lines)
    # At once, so that nothing comes in between.
    stream.write(write_lines(lines) if is_styled else "".join(f"{line.text}\n" for line in lines))
    stream.flush()


def write_lines(lines: Sequence[Line]) -> str:
    """Write lines as a text for a terminal, in colour unless its environment forbids it."""
    import io

    from rich.console import Console
    from rich.text import Text

    target = io.StringIO()
    console = Console(file=target, force_terminal=True, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text(line.text, line.style), end="\n")
    return target.getvalue()


def _write_arguments(arguments: Mapping[str, Any]) -> list[str]:
    return [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items()]


def _write_summary(request: ApprovalRequest) -> Line:
    """Write on one line what `CallDisplay.summarize` folds."""
    preview = request.find_preview()
    content = preview.content
    if isinstance(content, Diff):
        does = f"{_shorten_path(content.path, request.workspace)}  {_count_changes(content)}"
    elif isinstance(content, str) and content:
        does = content.replace("\n", " ⏎ ")
    else:
        given, left_out = map(_write_arguments, (preview.arguments, preview.defaults))
        does = "  ".join((*given, *(f"{one} {_DEFAULT}" for one in left_out)))
    server = f"  ({request.origin.partition('@')[0]})" if request.origin.startswith(_OF_SERVER) else ""
    text = f"{escape_line(request.tool + server)}  {escape_line(does)}"
    marks = [] if request.definition_change is None else [_CHANGED_TOOL]
    marks += (mark for one in preview.effects for mark in _mark(one))
    for mark in dict.fromkeys(marks):
        text = f"! {mark}: {text}"
    return Line(text, "bold red" if marks else "")


def _describe_state(request: ApprovalRequest) -> str:
    if request.is_running:
        return "is running, and asks for more"
    if request.is_changed:
        return "asks again, since an earlier call has changed what it would do"
    return "asks to run, edited" if request.is_edited else "asks to run"


def _describe_target(shown: EffectPreview, preview: CallPreview, workspace: str | None) -> str:
    """What an effect is on, as a person would write it, and which program has it."""
    effect = shown.effect
    if effect.kind in ("run", "net"):
        writes = any(
            one.effect.kind == "write" and one.effect.target == workspace and one.effect.words == effect.words
            for one in preview.effects
        )
        is_writing = effect.kind == "run" and effect.words and writes
        return f"{effect.target}{'  (may write in the workspace)' if is_writing else ''}"
    path = _shorten_path(effect.target, workspace)
    program = f"  (by {_cut(shlex.join(effect.words))})" if effect.words else ""
    leads = f"  (leads to {shown.leads_to})" if shown.leads_to is not None else ""
    return f"{path}{program}{leads}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_PROGRAM else f"{text[: _LONGEST_PROGRAM - 1]}…"


def _mark(shown: EffectPreview) -> Iterator[str]:
    """Name what needs attention about an effect."""
    if shown.effect.is_protected:
        yield "protected"
    if shown.outside is not None:
        yield "outside the workspace"


def _shorten_path(path: str, workspace: str | None) -> str:
    """A path as it is called from the workspace, if it is written as one inside of it."""
    if workspace is None:
        return path
    if path == workspace:
        return "the workspace"
    return path.removeprefix(f"{workspace.rstrip('/')}/")


def _shows_change(content: Preview) -> bool:
    """Whether a preview is what the arguments would change, as one diff or several."""
    return isinstance(content, Diff) or (isinstance(content, str) and _DIFF_HEADERS.search(content) is not None)


def _count_changes(diff: Diff) -> str:
    lines = str(diff).split("\n")[2:]
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    if not diff.before:
        return f"new file, +{added:,}"
    return f"+{added:,} −{removed:,}" if added or removed else "no change"


def _has_crlf(diff: Diff) -> bool:
    """Whether every line of both texts ends in CRLF, so that it needn't be shown at each."""
    texts = [text for text in (diff.before, diff.after) if text]
    return bool(texts) and all("\r\n" in text and text.count("\n") == text.count("\r\n") for text in texts)


def _find_changes_of_white_space(lines: Sequence[str]) -> set[int]:
    """The numbers of removed and added lines that differ from one on the other side by their white space alone."""
    sides: dict[str, Mapping[str, list[int]]] = {"+": {}, "-": {}}
    found: set[int] = set()
    for number, line in enumerate([*lines, "@@"]):
        if line[:1] in sides:
            by_text: Any = sides[line[0]]
            by_text.setdefault("".join(line[1:].split()), []).append(number)
        elif any(sides.values()):
            for text in sides["+"].keys() & sides["-"].keys():
                found.update(sides["+"][text], sides["-"][text])
            sides = {"+": {}, "-": {}}
    return found


def _show_white_space(text: str, tabs: bool) -> str:
    """Make spaces at the end of a line visible, and with `tabs` every tab."""
    kept = text.rstrip(" \t")
    shown = kept + text[len(kept) :].replace(" ", "·").replace("\t", "→   ")
    return shown.replace("\t", "→   ") if tabs else shown
