"""`ferrule render`: show a conversation as the tokens that a model is trained on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ferrule.cli.completion import complete_dialect
from ferrule.cli.options import AsJson, FormatName

if TYPE_CHECKING:
    from ferrule.capabilities import Loss
    from ferrule.conversation import Conversation
    from ferrule.tokens.render import Trace
    from ferrule.tokens.tokenizer import Tokenizer
    from ferrule.toolspec import ToolSpec

_SHOWN = 60
_TRAINED, _UNTRAINED = "green", "bright_black"


def render(
    file: Annotated[Path, typer.Argument(help="Conversations as JSON or JSON lines; - reads standard input.")],
    dialect: Annotated[
        str | None,
        typer.Option(
            help="A family with turns, see `ferrule dialects`; default: by the tokenizer.",
            autocompletion=complete_dialect,
        ),
    ] = None,
    tokenizer: Annotated[
        str, typer.Option(metavar="WHERE", help="embedded, a tokenizer.json, or a folder with one.")
    ] = "embedded",
    form: FormatName = None,
    as_json: AsJson = False,
) -> None:
    """Show conversations as tokens, trained and untrained."""
    from ferrule.cli.files import read_rows

    rows = read_rows(file, form)
    printer = TracePrinter(tokenizer, dialect)
    for row in rows:
        printer.print_conversation(row.conversation, row.tools, as_json)
    if not as_json:
        printer.print_summary()


class TextRun(NamedTuple):
    """The text of adjacent tokens, either all trained or all not."""

    trained: bool
    text: str


class TracePrinter:
    """Prints conversations as a dialect and a tokenizer render them, and counts tokens."""

    def __init__(self, tokenizer: str, dialect: str | None) -> None:
        """If `dialect` is None, the tokenizer's control tokens choose it. Raises `TokenizerError`, `DialectError`."""
        from rich.console import Console

        from ferrule.dialects import get_dialect
        from ferrule.dialects.families.nanochat_tools import find_frame
        from ferrule.embedded import find_embedded_folder

        path = find_embedded_folder() if tokenizer == "embedded" else Path(tokenizer)
        self._tokenizer = _read_tokenizer(path / "tokenizer.json" if path.is_dir() else path)
        self._dialect = get_dialect(dialect or find_frame(self._tokenizer.control) or "hermes")
        self._console = Console(highlight=False, soft_wrap=True)
        self._count = self._tokens = self._trained = 0

    def print_conversation(self, conversation: Conversation, tools: Sequence[ToolSpec], as_json: bool) -> None:
        """Print one conversation, with the tools offered in it, and on stderr what the dialect can't express.

        Raises `DialectError` with the conversation's number.
        """
        from ferrule.errors import DialectError, TokenizerError
        from ferrule.tokens.render import drop_foreign_samples, encode_layout, make_layout_without_images

        self._count += 1
        try:
            own = drop_foreign_samples(conversation, self._dialect, self._tokenizer)
            # How many placeholders an image has is known to its model's image processor alone.
            layout = make_layout_without_images(own, self._dialect, tools)
            trace = encode_layout(layout, self._tokenizer)
        except (DialectError, TokenizerError) as error:
            raise DialectError(f"conversation {self._count}: {error}") from error
        self._warn_of_losses(conversation, trace.losses)
        self._tokens += len(trace)
        self._trained += sum(trace.mask)
        pieces = split_by_mask(trace, self._tokenizer)
        if as_json:
            from ferrule._util.terminal_text import escape_json

            listed = [{"trained": piece.trained, "text": piece.text} for piece in pieces]
            data = {"dialect": self._dialect.name, "ids": trace.ids, "mask": trace.mask, "pieces": listed}
            print(escape_json(data))
        elif self._console.is_terminal:
            self._print_runs(*pieces)
        else:
            print("".join(f"⟦{piece.text}⟧" if piece.trained else piece.text for piece in pieces))

    def print_summary(self) -> None:
        """Print the legend and the counts."""
        from ferrule._util.pluralize import pluralize

        count = f"{pluralize(self._count, 'conversation')}, {pluralize(self._tokens, 'token')}"
        whole = f"\n{self._dialect.name}: {count}, "
        trained, rest = f"{self._trained:,} trained", f"{self._tokens - self._trained:,} not trained"
        if self._console.is_terminal:
            self._print_runs(TextRun(False, whole), TextRun(True, trained), TextRun(False, f", {rest}"))
        else:
            print(f"{whole}⟦{trained}⟧, {rest}")

    def _warn_of_losses(self, conversation: Conversation, losses: Sequence[Loss]) -> None:
        from ferrule.session.terminal.output import print_notice

        lost = dict.fromkeys(f"{loss.kind}: {loss.detail}" for loss in losses)
        if lost:
            print_notice(f"conversation {self._count}, not preserved in {self._dialect.name}: {'; '.join(lost)}")
        for position, raw in _find_untrained_calls(conversation):
            excerpt = raw if len(raw) <= _SHOWN else f"{raw[:_SHOWN]}…"
            print_notice(
                f"conversation {self._count}: message {position} has a malformed call, which is not trained: "
                f"{excerpt!r}"
            )

    def _print_runs(self, *pieces: TextRun) -> None:
        from rich.text import Text

        from ferrule._util.terminal_text import escape_text

        styled = ((escape_text(piece.text), _TRAINED if piece.trained else _UNTRAINED) for piece in pieces)
        self._console.print(Text.assemble(*styled))


def _find_untrained_calls(conversation: Conversation) -> Iterator[tuple[int, str]]:
    """Find malformed calls that no model is known to have sampled: the position of the message, and the text."""
    from ferrule.conversation import MalformedCall

    for position, message in enumerate(conversation.messages):
        if message.sampled is None:
            yield from ((position, call.raw) for call in message.calls if isinstance(call, MalformedCall))


def split_by_mask(trace: Trace, tokenizer: Tokenizer) -> list[TextRun]:
    """Split the text of a trace where the mask changes."""
    pieces = []
    for trained, tokens in groupby(zip(trace.mask, trace.ids, strict=True), key=lambda token: bool(token[0])):
        data = b"".join(tokenizer.decode_token(token) for _, token in tokens)
        pieces.append(TextRun(trained, data.decode("utf-8", "replace")))
    return pieces


def _read_tokenizer(path: Path) -> Tokenizer:
    from ferrule.errors import TokenizerError
    from ferrule.models.checkpoints.loading import read_tokenizer

    if not path.is_file():
        raise TokenizerError(f"{path}: no such tokenizer")
    return read_tokenizer(path)
