"""A model that works on a folder without end, by random calls of the coding agent's tools: see `test_code_killed`."""

from __future__ import annotations

import json
import random
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from checkpoint_trees import read_tree
from openai_server import calls, openai_judge, says, server
from scripted_http import Reply, Request, ScriptedServer

NAMES = ("one.txt", "two.txt", "three.txt")
_FILLING = ("x" * 79 + "\n") * 300
State = dict[str, tuple[int, bytes]]


def make_content(version: int) -> str:
    """A text of which a part is recognized: both ends have the version."""
    return f"version {version}\n{_FILLING}end of {version}\n"


def read_version(path: Path) -> int:
    """The version of a file. Raises `AssertionError` for a file that is a part of one version, or of two."""
    text = path.read_text()
    version = int(text.partition("\n")[0].removeprefix("version "))
    assert text == make_content(version), f"{path} is neither the old nor the new content"
    return version


def read_state(folder: Path) -> State:
    """The workspace without what the sandbox puts there for a while: empty folders at protected paths."""
    while True:
        with suppress(FileNotFoundError):  # one of these, removed at this moment: up to a second after a command
            tree = read_tree(folder)
            break
    parents = {str(Path(path).parent) for path in tree}
    return {
        path: entry
        for path, entry in tree.items()
        if Path(path).name.startswith("made") or path in parents or not stat.S_ISDIR(entry[0])
    }


class EndlessModel:
    """Answers each question by some calls, which change `folder`, and remembers what was there before.

    `marker` is an argument of each process that it starts and that doesn't end by itself; `states` is, by question, the
    workspace as it was before, also of earlier programs.
    """

    def __init__(self, folder: Path, seed: int, states: dict[str, State]) -> None:
        self.folder, self.marker, self.states = folder, f"987654.{seed}", states
        self.questions: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        """What it was asked."""
        self._chance = random.Random(seed)
        self._steps: Iterator[Reply] = iter(())
        self._came = threading.Condition()

    def serve(self) -> ScriptedServer:
        return server(judge=self._answer)

    def wait_for_request(self, number: int, seconds: float) -> None:
        """Wait until that many requests have come, or until `seconds` are over: a command may run for long."""
        with self._came:
            self._came.wait_for(lambda: len(self.bodies) >= number, seconds)

    def _answer(self, request: Request) -> Reply:
        if refusal := openai_judge(request):
            assert request.path == "/v1/models", refusal
            return refusal
        asked = [str(one["content"]) for one in request.body["messages"] if one["role"] == "user"]
        question = next(text for text in reversed(asked) if not text.startswith("[Not from the user"))
        if question.startswith("question ") and question not in self.states:
            self.questions.append(question)
            self.states[question] = read_state(self.folder)
            self._steps = self._work()
        with self._came:
            self.bodies.append(request.body)
            self._came.notify_all()
        return says("As you like.") if question == "go on" else next(self._steps, says("Done."))

    def _work(self) -> Iterator[Reply]:
        actions: list[Callable[[], Iterator[Reply]]] = [self._edit, self._patch, self._write, self._create, self._run]
        for _ in range(self._chance.randrange(1, 4)):
            yield from self._chance.choice(actions)()

    def _call(self, name: str, **arguments: Any) -> tuple[str, str, str]:
        return f"call_{self._chance.randrange(10**9)}", name, json.dumps(arguments)

    def _read(self, *names: str) -> Reply:
        return calls(*(self._call("read_file", path=name, limit=5) for name in names))

    def _edit(self) -> Iterator[Reply]:
        name = self._chance.choice(NAMES)
        yield self._read(name)
        old = read_version(self.folder / name)
        new = self._chance.randrange(10**6)
        pairs = [(f"version {old}\n", f"version {new}\n"), (f"end of {old}\n", f"end of {new}\n")]
        yield calls(self._call("edit_file", path=name, edits=[{"old": one, "new": other} for one, other in pairs]))

    def _write(self) -> Iterator[Reply]:
        name = self._chance.choice(NAMES)
        yield self._read(name)
        yield calls(self._call("write_file", path=name, content=make_content(self._chance.randrange(10**6))))

    def _create(self) -> Iterator[Reply]:
        number = self._chance.randrange(10**6)
        path = f"made/{number}/new.txt"
        yield calls(self._call("write_file", path=path, content=make_content(number)), self._call("list_files"))

    def _patch(self) -> Iterator[Reply]:
        """Change two files, create one and delete another, all in one patch."""
        first, second, _ = self._chance.sample(NAMES, 3)
        yield self._read(first, second)
        number = self._chance.randrange(10**6)
        lines = ["*** Begin Patch"]
        for name in (first, second):
            old = read_version(self.folder / name)
            lines += [f"*** Update File: {name}", "@@", f"-version {old}", f"+version {number}"]
            lines += ["@@", f"-end of {old}", f"+end of {number}"]
        created = make_content(number).splitlines()
        lines += [f"*** Add File: made-{number}.txt", *(f"+{line}" for line in created)]
        if found := sorted(self.folder.glob("made-*.txt")):
            lines += [f"*** Delete File: {found[0].name}"]
        yield calls(self._call("apply_patch", patch="\n".join([*lines, "*** End Patch"])))

    def _run(self) -> Iterator[Reply]:
        sleep = f"sleep {self.marker}"
        commands = [
            "echo line >> made.log; chmod 600 made.log",
            "mkdir -p made/by/command; seq 20000 > made/by/command/made.txt; ln -sf made.txt made/by/command/made-link",
            "rm -rf made made.log",
            "for n in 1 2 3 4 5 6 7 8 9; do echo $n > made-$n.lines; done; rm -f made-3.lines",
            f"({sleep} &) ; setsid {sleep} & (trap '' TERM HUP; {sleep}) & echo x > made.pid; sleep 0.3",
            f"echo x >> made.log; {sleep}",
        ]
        # A job of one turn would change what the next one finds; these only wait.
        jobs = [sleep, f"{sleep} & {sleep}", f"setsid -f {sleep}; exit 3"]
        is_job = self._chance.random() < 0.3
        yield calls(self._call("bash", command=self._chance.choice(jobs if is_job else commands), background=is_job))
