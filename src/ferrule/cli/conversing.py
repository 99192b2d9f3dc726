"""The lines of a chat: questions, and the few words that begin with a slash."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from ferrule.cli.guard import complain, words_of
from ferrule.cli.session import Session
from ferrule.cli.standard_input import is_interactive, prompted_lines
from ferrule.conversation import Conversation
from ferrule.errors import FerruleError

_HELP = "/save FILE writes the conversation, /new begins another, /quit or Ctrl-D ends, Ctrl-C stops an answer"


def converse(session: Session) -> None:
    """Answer line after line until the input ends. What is wrong with one line doesn't end the conversation.

    A resumed conversation that ends in open calls goes on with those first.
    """
    if session.conversation.pending:
        _attempt(session.go_on)
    for line in prompted_lines():
        if line.strip() in ("/quit", "/exit"):
            return
        _attempt(partial(_take, session, line))


def _attempt(act: Callable[[], object]) -> None:
    try:
        act()
    except KeyboardInterrupt:
        if not is_interactive():
            raise
    except BrokenPipeError:
        raise
    except (FerruleError, OSError) as error:
        complain(words_of(error) or str(error))


def _take(session: Session, line: str) -> None:
    word, _, rest = line.strip().partition(" ")
    if word == "/new":
        session.begin_anew()
    elif word == "/save":
        _save(session.conversation, rest.strip())
    elif word.startswith("/") and word[1:].isalpha():
        complain(_HELP)
    elif word:
        session.answer(line)


def _save(conversation: Conversation, name: str) -> None:
    from ferrule.cli.conversation_files import write_conversation

    form = None
    if name.startswith("--format "):
        form, _, name = name.removeprefix("--format ").strip().partition(" ")
    if not name:
        complain("/save needs the name of a file")
        return
    write_conversation(Path(name.strip()), conversation, form)
    complain(f"saved {len(conversation)} messages in {name}")
