"""Walks a command line and tells the effects of each of its parts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence as SequenceOf
from dataclasses import replace
from functools import partial

from ferrule.sandbox.git.settings import may_become_repository, may_run_settings
from ferrule.sandbox.paths import is_within
from ferrule.sandbox.shell.command_line.builtins import (
    SETTING_BUILTINS,
    UNREADABLE_BUILTINS,
    is_harmless_assignment,
    judge_builtin,
)
from ferrule.sandbox.shell.command_line.command_line import CommandLine, EffectFinder, Folders, Part
from ferrule.sandbox.shell.command_line.find import Execution, finds_only_files, split_executions
from ferrule.sandbox.shell.command_line.links import LinkSearch, are_plain_names
from ferrule.sandbox.shell.command_line.listings import read_listing
from ferrule.sandbox.shell.command_line.options import UnsureError
from ferrule.sandbox.shell.command_line.outcome import Outcome
from ferrule.sandbox.shell.command_line.parsing import parse_sequence
from ferrule.sandbox.shell.command_line.programs import (
    STDIN_PROGRAMS,
    judge_program,
    name_of_program,
    runs_its_input,
)
from ferrule.sandbox.shell.command_line.syntax import (
    AndOr,
    Compound,
    PipedCommands,
    Redirection,
    Sequence,
    SimpleCommand,
    Statement,
    UnreadableError,
    Word,
)
from ferrule.sandbox.shell.command_line.unwrapping import Program, unwrap
from ferrule.sandbox.shell.command_line.words import expand_variables, find_loop_values
from ferrule.tools.intent import Effect

__all__ = ["parse_command_line"]

MAX_PARTS = 2000
_MAX_TEXTS = 8
_HARMLESS_INPUTS = frozenset({"/dev/null", "/dev/stdin"})  # /dev/zero has no end, and `sort` would keep all of it
_ALIKE_EXPANDED_TWICE = re.compile(r"[\w./+,:=@%-]+")


def parse_command_line(text: str, folder: str, *, looks: bool = True) -> CommandLine:
    """Tell what a command line, run by `sh` in `folder`, would do.

    `folder` is the absolute real path of the workspace, where the command starts. Without `looks`, nothing of what is
    in it counts: links, the settings of repositories, and names. Never raises for what is in `text`: what can't be
    judged is the result's `problem`.
    """
    judge = _Judge(text, folder, LinkSearch(folder) if looks else None)
    line = _judge_line(judge, text, folder)
    if judge.assumes_names and not all(_keeps_names(part, folder) for part in line.parts):
        line = _judge_line(_Judge(text, folder, judge.search, lists_names=False), text, folder)
    return line


def _judge_line(judge: _Judge, text: str, folder: str) -> CommandLine:
    try:
        judge.judge_text(text)
    except UnreadableError as error:
        return CommandLine(text, tuple(judge.parts), (Effect("run", text),), str(error))
    except RecursionError:
        return CommandLine(text, (), (Effect("run", text),), "it is nested too deeply")
    parts = tuple(sorted(judge.parts, key=lambda part: part.start))
    effects = dict.fromkeys(effect for part in parts for effect in part.effects)
    return CommandLine(text, parts, tuple(effects) or (Effect("read", folder),))


def _keeps_names(part: Part, folder: str) -> bool:
    """Whether a part makes no file of a name that a shell would take for more than a name."""
    return all(effect.kind == "read" for effect in part.effects) or (
        part.kind == "redirection"
        and all(is_within(each.target, folder) and are_plain_names(each.target[len(folder) :]) for each in part.effects)
    )


class _Judge:
    """Collects the parts of one command line; `folders` are those that it may be in at this point."""

    def __init__(self, text: str, workspace: str, search: LinkSearch | None, lists_names: bool = True) -> None:
        self.parts: list[Part] = []
        self.search = search
        self._effects = EffectFinder(workspace, search)
        self.assumes_names = False
        """Whether it relies on the names of the files that are there."""
        self._lists_names = lists_names
        self._source: Statement | None = None
        """What the next command reads the output of."""
        self._text = text
        self._workspace = workspace
        self._folders = Folders((workspace,))
        self._loops = 0
        self._variables: dict[str, tuple[Word, ...]] = {}
        self._data = b""
        self._characters: list[int] | None = None
        self._span: tuple[int, int] | None = None
        self._texts = 0
        self._substitutions = 0

    def judge_text(self, text: str) -> None:
        """Judge the text of a command line, or one that is run by a part of it."""
        if self._texts >= _MAX_TEXTS:
            raise UnreadableError(f"it runs shells in more than {_MAX_TEXTS} levels")
        outer, judged = self._data, self._substitutions
        self._texts += 1
        self._data, sequence, substitutions = parse_sequence(text)
        self._substitutions = 0
        if self._texts == 1 and not text.isascii():
            self._characters = _map_bytes(text)
        self._judge_sequence(sequence)
        if self._substitutions != substitutions:
            raise UnreadableError("it has a substitution where none is expected")
        self._substitutions = judged
        self._texts -= 1
        self._data = outer

    def _judge_sequence(self, sequence: Sequence) -> None:
        for index, statement in enumerate(sequence.statements):
            if index in sequence.background:
                self._judge_apart(statement)
            else:
                self._judge(statement)

    def _judge_apart(self, *statements: Statement | Sequence) -> None:
        """Judge statements that run in shells of their own, so that a `cd` there moves nothing here."""
        before, loops = self._folders, self._loops
        for statement in statements:
            self._folders, self._loops = before, 0
            if isinstance(statement, Sequence):
                self._judge_sequence(statement)
            else:
                self._judge(statement)
        self._folders, self._loops = before, loops

    def _judge(self, statement: Statement) -> None:
        source, self._source = self._source, None
        if isinstance(statement, SimpleCommand):
            self._judge_simple(statement, source=source)
        elif isinstance(statement, PipedCommands):
            self._judge_pipeline(statement.stages)
        elif isinstance(statement, AndOr):
            self._judge_list(statement)
        else:
            self._judge_compound(statement)

    def _judge_pipeline(self, stages: SequenceOf[Statement]) -> None:
        if len(stages) == 1:
            self._judge(stages[0])
            return
        for index, stage in enumerate(stages):
            self._source = PipedCommands(tuple(stages[:index])) if index else None
            self._judge_apart(stage)

    def _judge_list(self, statement: AndOr) -> None:
        start = self._folders
        reached = [start]
        self._judge_moving(statement.items[0])
        for operator, item in zip(statement.operators, statement.items[1:], strict=True):
            if operator == "||":
                # Reached when a `cd` before it failed, or when one succeeded and something after it failed.
                for each in reached:
                    self._folders = self._folders.join(each)
            before = self._folders
            reached.append(before)
            self._judge_moving(item)
            if operator == "||":
                self._folders = self._folders.join(before)  # what is next is also reached without this item
        for each in reached:
            self._folders = self._folders.join(each)

    def _judge_moving(self, statement: Statement) -> None:
        """Judge a statement whose success the next one depends on: a `cd` in it has moved."""
        if isinstance(statement, SimpleCommand):
            self._judge_simple(statement, succeeds=True)
        else:
            self._judge(statement)

    def _judge_compound(self, statement: Compound) -> None:
        self._judge_words_inside(statement.words)
        self._judge_words_inside([each.target for each in statement.redirections if each.target])
        self._judge_redirections(statement.redirections)
        if statement.kind == "subshell":
            self._judge_apart(*statement.bodies)
            return
        if statement.variable and not is_harmless_assignment(statement.variable, None):
            raise UnreadableError(f"it sets {statement.variable} in a loop")
        is_loop, variables = statement.kind == "loop", self._variables
        if statement.variable:
            values = find_loop_values(self._data, statement.variable, self._replace_outputs(statement.words))
            self._variables = {**variables, statement.variable: values}
        self._loops += is_loop
        for body in statement.bodies:
            before = self._folders
            self._judge_sequence(body)
            if statement.kind != "group":
                self._folders = self._folders.join(before)
        self._loops -= is_loop
        self._variables = variables

    def _judge_words_inside(self, words: SequenceOf[Word]) -> None:
        for word in words:
            if word.substitutions:
                self._substitutions += len(word.substitutions)
                self._judge_apart(*word.substitutions)

    def _replace_outputs(self, words: SequenceOf[Word]) -> tuple[Word, ...]:
        """Put in place of `$(…)` the words for the files that it names, where they can be no others."""
        found = list[Word]()
        for word in words:
            statements = word.substitutions[0].statements if word.is_output else []
            names = self._list_names(statements[0], False) if len(statements) == 1 else None
            found += names or (word,)
        return tuple(found)

    def _list_names(self, source: Statement, ends_with_nul: bool) -> tuple[Word, ...] | None:
        """The words for the files that `source` names; None if they may be others."""
        folders = self._folders.paths
        if self.search is None or not self._lists_names or folders is None or len(folders) != 1:
            return None
        listing = read_listing(source)
        if listing is None or listing.ends_with_nul is not ends_with_nul:
            return None
        try:
            words = listing.make_words(folders[0], self.search)
        except OSError:
            return None
        self.assumes_names = self.assumes_names or (words is not None and not listing.is_certain)
        return words

    def _judge_simple(self, command: SimpleCommand, succeeds: bool = False, source: Statement | None = None) -> None:
        self._judge_words_inside([each.value for each in command.assignments])
        self._judge_words_inside(command.words)
        self._judge_words_inside([each.target for each in command.redirections if each.target])
        self._judge_redirections(command.redirections)
        is_covered = all(is_harmless_assignment(each.name, each.value) for each in command.assignments)
        if command.words:
            list_input = None if source is None else partial(self._list_names, source)
            for words in expand_variables(self._data, self._replace_outputs(command.words), self._variables):
                program = Program(words, is_covered, list_input=list_input)
                self._judge_program(program, command.start, command.end, succeeds)
        elif command.assignments:
            is_local = all(is_harmless_assignment(each.name, each.value, alone=True) for each in command.assignments)
            effects = (
                (Effect("read", self._workspace),) if is_local else self._run_uncovered(command.start, command.end)
            )
            self._add(command.start, command.end, (), effects, "assignment")
            if not is_local:
                self._folders = Folders(None)  # it may be CDPATH

    def _judge_program(self, given: Program, start: int, end: int, succeeds: bool) -> None:
        """Judge a program with its arguments: those of its wrappers first."""
        try:
            program = unwrap(given)
        except UnsureError as error:
            raise UnreadableError(str(error)) from error
        words = program.words
        if program.text is not None:
            if not program.is_covered:
                self._add(start, end, (), self._run_uncovered(start, end))
            self._judge_inner(program.text, program, start, end)
            return
        if not words:  # a wrapper alone, such as `env`
            self._add(start, end, _known(given.words), (Effect("read", self._workspace, _known(given.words)),))
            return
        name = words[0].text
        if not name:
            raise UnreadableError("the name of a program isn't known before it runs")
        if name in UNREADABLE_BUILTINS:
            raise UnreadableError(f"{name} changes what later commands mean")
        if name in ("cd", "pushd", "popd"):
            # `timeout 5 cd src` moves nothing here.
            is_own = given.words[0].text in ("cd", "command")
            self._move(program, start, end, succeeds and is_own)
            return
        self._judge_named(name, program, start, end)

    def _judge_inner(self, text: str, program: Program, start: int, end: int) -> None:
        """Judge a text that a shell runs."""
        before, span, words = self._folders, self._span, program.words
        if not program.is_covered:
            self._folders = Folders(None)  # the variable that it is given may be CDPATH
        variables, self._variables = self._variables, {}
        loops, self._loops = self._loops, self._loops if words else 0
        self._span = self._span or self._to_characters(start, end)
        self.judge_text(text)
        self._span, self._loops, self._variables = span, loops, variables
        # `eval` runs it in this shell.
        self._folders = self._folders.join(before) if words else before

    def _move(self, program: Program, start: int, end: int, succeeds: bool) -> None:
        if self._loops:
            raise UnreadableError("it changes the folder in a loop")
        words = program.words
        known, name = _known(words), words[0].text
        options = [word for word in words[1:] if word.text in ("-P", "-L", "--")]
        operands = [word for word in words[1:] if word not in options]
        # With a variable such as CDPATH or HOME, it goes elsewhere than its argument says.
        target = operands[0] if len(operands) == 1 and name == "cd" and program.is_covered else None
        moved = self._folders.move(target.text if target else None)
        if target and target.has_tilde:
            effects: tuple[Effect, ...] = (Effect("read", target.prefix),)
        else:
            effects = tuple(Effect("read", each, known) for each in moved.paths or ("/",))
        if not program.is_covered:
            effects = (*self._run_uncovered(start, end), *effects)
        self._add(start, end, known, effects)
        self._folders = moved if succeeds else moved.join(self._folders)

    def _judge_named(self, name: str, program: Program, start: int, end: int) -> None:
        words, arguments = program.words, program.words[1:]
        known = _known(words)
        plain = name_of_program(name)
        is_covered = program.is_covered and self._folders.are_within(self._workspace)
        covering = known if is_covered else ()
        executions = list[Execution]()
        try:
            if plain == "find":
                executions = split_executions(arguments)[1]
            if not name.isascii():
                raise UnsureError("letters that look like others")
            outcome = judge_builtin(name, arguments)
            if outcome is None:
                outcome = judge_program(plain, arguments)
            effects = self._resolve(outcome, known, covering, plain, words, end)
            if plain == "git":
                effects += self._judge_settings(effects, known, covering, words[0].start, end)
        except UnsureError:
            run, write = self._run_uncovered(words[0].start, end, program)
            # Of a known program: it works on paths that aren't known.
            write = replace(write, is_recursive=True)
            effects = replace(write, kind="read"), run, write
        if not program.is_covered:
            effects = (*self._run_uncovered(start, end), *effects)
        self._add(start, end, known, effects)
        if name in SETTING_BUILTINS and any(effect.kind != "read" for effect in effects):
            self._folders = Folders(None)
        for execution in executions:
            self._judge_execution(execution, arguments, start, end)

    def _judge_execution(self, execution: Execution, arguments: SequenceOf[Word], start: int, end: int) -> None:
        """Judge a program that find runs."""
        before = self._folders
        starts = [word for word in _find_starts(arguments) if word.text is not None]
        words, pattern = list[Word](), "" if finds_only_files(arguments) else None
        for word in execution.words:
            if word.text == "{}" and starts:
                words += [
                    Word(None, word.start, word.end, f"{each.text}/", has_pattern=True, pattern=pattern)
                    for each in starts
                ]
            elif word.text is not None and "{}" in word.text:
                words.append(Word(None, word.start, word.end))
            else:
                words.append(word)
        if execution.elsewhere:
            self._folders = Folders(None)
        self._judge_program(Program(tuple(words), True), start, end, succeeds=False)
        self._folders = before

    def _resolve(
        self,
        outcome: Outcome,
        known: tuple[str, ...],
        covering: tuple[str, ...],
        name: str,
        words: SequenceOf[Word],
        end: int,
    ) -> tuple[Effect, ...]:
        """Make effects of an outcome. Raises `UnsureError` if something is written that isn't known."""
        if not outcome.runs:
            return tuple(self._effects.find(outcome, known, covering, self._folders))
        if name in STDIN_PROGRAMS and runs_its_input([word.text for word in words[1:]]):
            covering = ()
        run = Effect("run", self._show(known, words[0].start, end), covering)
        written = () if outcome.writes else (Effect("write", self._workspace, covering),)
        return run, *written, *self._effects.find(outcome, known, covering, self._folders)

    def _judge_settings(
        self, effects: SequenceOf[Effect], known: tuple[str, ...], covering: tuple[str, ...], start: int, end: int
    ) -> tuple[Effect, ...]:
        """The effects of what settings make a reading git command run."""
        if any(effect.kind != "read" for effect in effects):
            return ()
        named = (effect.target for effect in effects if effect.target.startswith("/"))
        folders = dict.fromkeys((*(self._folders.paths or ()), *named))
        verdicts = [may_run_settings(folder, self._workspace) for folder in folders]
        written = (each.target for part in self.parts for each in part.effects if each.kind == "write")
        elsewhere = any(folder != self._workspace for folder in folders)
        if True in verdicts or (elsewhere and may_become_repository(written)):
            return self._run_uncovered(start, end)
        if None in verdicts:
            run = Effect("run", self._show(known, start, end), covering)
            return run, Effect("write", self._workspace, covering)
        return ()

    def _judge_redirections(self, redirections: SequenceOf[Redirection]) -> None:
        for redirection in redirections:
            target, operator = redirection.target, redirection.operator
            if target is None or operator == "<<<":
                continue
            text = target.text
            if text is not None and re.match(r"/dev/(?:tcp|udp)/", text):
                raise UnreadableError("a redirection opens a connection")
            if operator in (">&", "<&") and text is not None and re.fullmatch(r"\d+-?|-", text):
                continue
            if operator == ">&" and (text is None or not _ALIKE_EXPANDED_TWICE.fullmatch(text)):
                # bash expands this target a second time, whatever quotes it stood in: `>&'$(a)'` runs a.
                raise UnreadableError("bash expands the target of >& twice, and this one isn't certain then")
            if operator == "<":
                if text in _HARMLESS_INPUTS:
                    continue
                effects = [
                    Effect("read", path, is_recursive=target.has_pattern)
                    for path in self._effects.locate(target, self._folders)
                ]
            elif operator == "<&":
                raise UnreadableError("a redirection from a descriptor that isn't known")
            else:
                effects = self._effects.find_writes(target, (), self._folders)
            if effects:
                self._add(redirection.start, redirection.end, (), tuple(effects), "redirection")

    def _run_uncovered(self, start: int, end: int, program: Program | None = None) -> tuple[Effect, ...]:
        known = _known(program.words) if program else ()
        return Effect("run", self._show(known, start, end)), Effect("write", self._workspace)

    def _add(
        self, start: int, end: int, words: tuple[str, ...], effects: tuple[Effect, ...], kind: str = "program"
    ) -> None:
        if len(self.parts) >= MAX_PARTS:
            raise UnreadableError(f"it has more than {MAX_PARTS} parts")
        begin, stop = self._span or self._to_characters(start, end)
        self.parts.append(Part(self._text[begin:stop], begin, stop, words, effects, kind))

    def _to_characters(self, start: int, end: int) -> tuple[int, int]:
        if self._characters is None:
            return start, end
        return self._characters[start], self._characters[end]

    def _show(self, known: SequenceOf[str], start: int, end: int) -> str:
        """The words of a program; where one isn't known, its text."""
        return shlex.join(known) if known else self._data[start:end].decode(errors="replace")


def _known(words: SequenceOf[Word]) -> tuple[str, ...]:
    """The words of a program, or nothing if one of them isn't known."""
    texts = tuple(word.text for word in words)
    return () if None in texts else texts  # type: ignore[return-value]


def _find_starts(arguments: SequenceOf[Word]) -> list[Word]:
    found = []
    for word in arguments:
        if word.text in ("-L", "-H", "-P"):
            continue
        if word.text is None or word.text[:1] in ("-", "!", "("):
            break
        found.append(word)
    return found or [Word(".", 0, 0, ".")]


def _map_bytes(text: str) -> list[int]:
    """The character that each byte of a text belongs to, and its length at the end."""
    found = list[int]()
    for index, character in enumerate(text):
        found += [index] * len(character.encode())
    return [*found, len(text)]
