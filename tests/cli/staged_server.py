"""A model of an analysis over HTTP that answers by stage, and waits where a test looks at the terminal first."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from openai_server import says, server
from scripted_http import Reply, Request, ScriptedServer

_BEGINNINGS = {
    "complexity": "You assess how complex",
    "candidates": "You plan the analysis",
    "logic_kernel": "You reason step by step",
    "knowledge_retriever": "You recall",
    "synthesis": "You write the answer",
    "focused_answer": "You give the answer",
}
_MOST_WAITED = 60.0


class StagedServer:
    """`answers` are JSON data by stage, or functions of the body; a stage in `held` is answered once it is released."""

    def __init__(self, answers: Mapping[str, Any], held: Sequence[str] = ()) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.stages: list[str] = []
        self.on_request: Callable[[], None] = lambda: None
        self._answers = answers
        self._held = held
        self._gates: defaultdict[str, threading.Semaphore] = defaultdict(lambda: threading.Semaphore(0))

    def serve(self) -> ScriptedServer:
        """The server, which takes one request at a time."""
        return server(judge=self._answer)

    def wait(self, name: str) -> None:
        """Wait until somebody releases it: for answers that are functions."""
        self._gates[name].acquire(timeout=_MOST_WAITED)

    def release(self, name: str) -> None:
        """Let one request of a held stage be answered, or one that waits for this name."""
        self._gates[name].release()

    def _answer(self, request: Request) -> Reply:
        instructions = request.body["messages"][0]["content"]
        stage = next(name for name, words in _BEGINNINGS.items() if instructions.startswith(words))
        self.stages.append(stage)
        self.bodies.append(request.body)
        self.on_request()
        if stage in self._held:
            self.wait(stage)
        answer = self._answers[stage]
        return says(json.dumps(answer(request.body) if callable(answer) else answer))
