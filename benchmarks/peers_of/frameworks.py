"""One tool call and an answer in one framework, with the in-process model that it offers for tests.

    PYTHON benchmarks/peers_of/frameworks.py NAME [--runs 360]

Run by `peers.py`, with the interpreter of the environment that holds the framework. Prints JSON: its version, and
microseconds of CPU a run, the median over batches. What can be made once (agent, tools) is made before the clock
starts, and what a framework logs, prints or traces by default is turned off. Each tool is async, but for smolagents,
which has none.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from itertools import cycle
from typing import Any

QUESTION, ANSWER, NAME, ARGUMENTS = "Double 7.", "It is 14.", "double", {"number": 7}
BATCH, WARM_UP = 30, 10
called: list[int] = []
Ask = Callable[[], Awaitable[Any]]


async def double(number: int) -> int:
    """Double a number.

    Args:
        number: What to double
    """
    called.append(number)
    return 2 * number


def ferrule(runs: int) -> Ask:
    """The model is the scripted one."""
    from ferrule import ToolCall, model, tool
    from ferrule.models.scripted import ScriptedModel

    script = [ToolCall("call_1", NAME, json.dumps(ARGUMENTS)), ANSWER] * runs
    pipeline = model(ScriptedModel(*script)).using(tool(double))

    async def ask() -> str:
        return (await pipeline.chat(QUESTION).run()).text

    return ask


def pydantic_ai(_: int) -> Ask:
    """The model is a `FunctionModel`."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    turns = cycle((True, False))

    def reply(_messages: Any, _info: Any) -> Any:
        return ModelResponse(parts=[ToolCallPart(NAME, ARGUMENTS) if next(turns) else TextPart(ANSWER)])

    agent: Any = Agent(FunctionModel(reply), tools=[double])

    async def ask() -> Any:
        return (await agent.run(QUESTION)).output

    return ask


def openai_agents(_: int) -> Ask:
    """The model is a `Model`; tracing, which is on by default, is off."""
    from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    text = ResponseOutputText(type="output_text", text=ANSWER, annotations=[])
    said = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
    call = {"type": "function_call", "name": NAME, "arguments": json.dumps(ARGUMENTS)}
    turns, number = cycle((True, False)), iter(range(10**9))

    class Fake(Model):
        async def get_response(self, *_: Any, **__: Any) -> Any:
            # An id must be of one call only, which is checked.
            output = [ResponseFunctionToolCall(call_id=f"call_{next(number)}", **call) if next(turns) else said]
            return ModelResponse(output=output, usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError("it is asked without streaming")

    agent, config = Agent(name="agent", model=Fake(), tools=[function_tool(double)]), RunConfig(tracing_disabled=True)

    async def ask() -> Any:
        return (await Runner.run(agent, QUESTION, run_config=config)).final_output

    return ask


def langchain(_: int) -> Ask:
    """The model is a `GenericFakeChatModel`, the loop `create_agent`'s."""
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool

    turns = cycle((True, False))
    call = {"name": NAME, "args": ARGUMENTS, "id": "call_1", "type": "tool_call"}

    def replies() -> Any:
        while True:
            yield AIMessage(content="", tool_calls=[call]) if next(turns) else AIMessage(content=ANSWER)

    class Fake(GenericFakeChatModel):
        def bind_tools(self, *_: Any, **__: Any) -> Any:
            return self

    agent: Any = create_agent(Fake(messages=replies()), [tool(double)])

    async def ask() -> Any:
        state = await agent.ainvoke({"messages": [{"role": "user", "content": QUESTION}]})
        return state["messages"][-1].content

    return ask


def smolagents(_: int) -> Ask:
    """The model is a `Model`, the loop `ToolCallingAgent`'s, which ends by a call of its own tool `final_answer`."""
    from smolagents import ChatMessage, LogLevel, MessageRole, Model, ToolCallingAgent, tool
    from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction

    turns = cycle(((NAME, ARGUMENTS), ("final_answer", {"answer": ANSWER})))

    class Fake(Model):
        def generate(self, *_: Any, **__: Any) -> Any:
            name, arguments = next(turns)
            function = ChatMessageToolCallFunction(name=name, arguments=arguments)
            calls = [ChatMessageToolCall(id="call_1", type="function", function=function)]
            return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=calls)

    @tool
    def double(number: int) -> int:
        """Double a number.

        Args:
            number: What to double
        """
        called.append(number)
        return 2 * number

    agent = ToolCallingAgent([double], Fake(model_id="fake"), verbosity_level=LogLevel.OFF)

    async def ask() -> Any:
        return agent.run(QUESTION)

    return ask


def rigging(_: int) -> Ask:
    """The model is a `Generator` that takes tools by its API."""
    from rigging import Message, tool
    from rigging.generator import GenerateParams, Generator
    from rigging.generator.base import GeneratedMessage
    from rigging.tools.base import FunctionCall, ToolCall

    turns = cycle((True, False))
    calls = [ToolCall(id="call_1", function=FunctionCall(name=NAME, arguments=json.dumps(ARGUMENTS)))]

    class Fake(Generator):
        async def supports_function_calling(self) -> bool:
            return True

        async def generate_messages(self, messages: Any, params: Any) -> Any:  # noqa: ARG002 - their names are rigging's
            said = Message("assistant", "", tool_calls=calls) if next(turns) else Message("assistant", ANSWER)
            return [GeneratedMessage(message=said)]

    generator, tool_of_it = Fake(model="fake", params=GenerateParams()), tool(double)

    async def ask() -> Any:
        # A pipeline that is run twice offers its tools twice.
        return (await generator.chat(QUESTION).using(tool_of_it).run()).last.content

    return ask


def llm(_: int) -> Ask:
    """The model is an `AsyncModel`."""
    import llm

    turns = cycle((True, False))

    class Fake(llm.AsyncModel):
        model_id = "fake"
        supports_tools = True

        async def execute(self, prompt: Any, stream: Any, response: Any, conversation: Any) -> Any:  # noqa: ARG002
            if next(turns):
                response.add_tool_call(llm.ToolCall(NAME, ARGUMENTS, "call_1"))
            else:
                yield ANSWER

    fake, tools = Fake(), [llm.Tool.function(double)]

    async def ask() -> Any:
        return await fake.chain(QUESTION, tools=tools).text()

    return ask


FRAMEWORKS: dict[str, Callable[[int], Ask]] = {
    "ferrule": ferrule,
    "pydantic-ai-slim": pydantic_ai,
    "openai-agents": openai_agents,
    "langchain": langchain,
    "smolagents": smolagents,
    "rigging": rigging,
    "llm": llm,
}


async def microseconds(make: Callable[[int], Ask], runs: int) -> float:
    """CPU of one run, the median over batches. Raises `SystemExit` where a run did not do what it should."""
    ask = make(runs + WARM_UP)
    for _ in range(WARM_UP):
        await ask()
    called.clear()
    batches: list[float] = []
    answers: list[Any] = []
    for _ in range(runs // BATCH):
        start = time.process_time()
        answers += [await ask() for _ in range(BATCH)]
        batches.append((time.process_time() - start) / BATCH * 1e6)
    if set(answers) != {ANSWER} or called != [ARGUMENTS["number"]] * len(answers):
        raise SystemExit(f"{len(called)} calls in {len(answers)} runs, whose answers were {set(answers)}")
    return statistics.median(batches)


def main() -> None:
    """Measure one framework."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", choices=FRAMEWORKS)
    parser.add_argument("--runs", type=int, default=360)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    found = asyncio.run(microseconds(FRAMEWORKS[options.name], options.runs))
    # Beside ferrule's source there need be no ferrule that is installed.
    known = sys.modules["ferrule"].__version__ if options.name == "ferrule" else version(options.name)
    print(json.dumps({"version": known, "microseconds": found}))


if __name__ == "__main__":
    main()
