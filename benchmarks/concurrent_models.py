"""A thousand conversations at once with a slow server that speaks OpenAI's format, against a loop on the bare SDK.

    python benchmarks/concurrent_models.py [--conversations 1000] [--rounds 2] [--json]

Each conversation has four rounds: three tool calls, one after another, and an answer, all streamed. The server is a
process of its own on loopback, which waits 50 ms before it answers. The two sides take turns, each in a process of its
own: a few to warm up, then two batches. Throughput is by the clock, of those that went right, the median over batches
and rounds. Each side keeps its client's connection limits; the tool is async, and the SDK doesn't retry. A
conversation is lost unless its answer and its three results are the right ones. Resident memory is read after each.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

LATENCY = 0.05
# Three, for the model is told when it makes the same call for the third time.
CITIES = ("Reykjavik", "Copenhagen", "Manchester")
RESULTS = [f"rain in {city}" for city in CITIES]
ANSWER = "It rains in Reykjavik, in Copenhagen and in Manchester."
LIMIT = 0.8
WARM_UP, BATCHES = 20, ("first", "second")
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


# The server.


def events(*deltas: dict[str, Any], finish: str) -> bytes:
    """A streamed answer, each of its events a chunk of the transfer."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    choices: list[dict[str, Any]] = [
        *({"delta": delta, "finish_reason": None} for delta in deltas),
        {"delta": {}, "finish_reason": finish},
    ]
    written = [json.dumps({**head, "choices": [{"index": 0, **choice}]}) for choice in choices]
    usage = {"prompt_tokens": 50, "completion_tokens": 20, "total_tokens": 70}
    written += [json.dumps({**head, "choices": [], "usage": usage}), "[DONE]"]
    lines = [f"data: {one}\n\n".encode() for one in written]
    start = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return start + b"".join(b"%x\r\n%s\r\n" % (len(line), line) for line in lines) + b"0\r\n\r\n"


def call_of(number: int, city: str) -> bytes:
    """An answer that is a call, whose arguments come in pieces."""

    def piece(**more: Any) -> dict[str, Any]:
        return {"tool_calls": [{"index": 0, **more}]}

    arguments = json.dumps({"city": city})
    first = piece(id=f"call_{number}", type="function", function={"name": "weather", "arguments": ""})
    rest = [piece(function={"arguments": arguments[at : at + 4]}) for at in range(0, len(arguments), 4)]
    return events({"role": "assistant", "content": None}, first, *rest, finish="tool_calls")


async def serve() -> None:
    """Answer until the process is ended; the port is printed."""
    words = [{"content": f"{word} "} for word in ANSWER.split()]
    replies = [
        *map(call_of, range(len(CITIES)), CITIES),
        events({"role": "assistant", "content": ""}, *words, finish="stop"),
    ]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                body = await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n")[0]))
                await asyncio.sleep(LATENCY)
                writer.write(replies[body.count(b'"tool_call_id"')])
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# The two sides.


async def weather(city: str) -> str:
    """The weather of a city."""
    return f"rain in {city}"


def by_ferrule(address: str) -> tuple[Callable[[], Awaitable[bool]], Callable[[], Awaitable[None]]]:
    """(what has one conversation and tells whether it went right, what closes the client)."""
    from ferrule.agent.pipeline import model
    from ferrule.models.openai.chat import OpenAIChat
    from ferrule.tools.decorator import tool

    asked = OpenAIChat("m", api_key="key", base_url=address)
    pipeline = model(asked).chat("How is the weather?").using(tool(weather))

    async def converse() -> bool:
        run = await pipeline.run()
        results = [message.result.text for message in run.conversation.messages if message.role == "tool"]
        return run.text.strip() == ANSWER and results == RESULTS

    return converse, asked.aclose


def by_hand(address: str) -> tuple[Callable[[], Awaitable[bool]], Callable[[], Awaitable[None]]]:
    """The same on the bare SDK."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key="key", base_url=address, max_retries=0, timeout=None)
    function = {"name": "weather", "description": "The weather of a city.", "parameters": SCHEMA}
    tools: Any = [{"type": "function", "function": function}]
    options: Any = {"model": "m", "stream": True, "stream_options": {"include_usage": True}, "tools": tools}

    async def ask(messages: Any) -> dict[str, Any]:
        """The message that the model answers with."""
        text, calls = "", list[dict[str, Any]]()
        async for chunk in await client.chat.completions.create(messages=messages, **options):
            for choice in chunk.choices:
                text += choice.delta.content or ""
                for piece in choice.delta.tool_calls or ():
                    if piece.index == len(calls):
                        named = {"name": piece.function.name, "arguments": ""}
                        calls.append({"id": piece.id, "type": "function", "function": named})
                    calls[piece.index]["function"]["arguments"] += piece.function.arguments or ""
        message = {"role": "assistant", "content": text or None}
        return {**message, "tool_calls": calls} if calls else message

    async def converse() -> bool:
        messages: list[dict[str, Any]] = [{"role": "user", "content": "How is the weather?"}]
        while "tool_calls" in (message := await ask(messages)):
            messages.append(message)
            for call in message["tool_calls"]:
                result = await weather(**json.loads(call["function"]["arguments"]))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        results = [one["content"] for one in messages if one["role"] == "tool"]
        return message["content"].strip() == ANSWER and results == RESULTS

    return converse, client.close


SIDES = {"ferrule": by_ferrule, "bare SDK": by_hand}


def resident_megabytes() -> float:
    """What of this process lies in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


async def batches(side: str, address: str, conversations: int) -> dict[str, Any]:
    """Two batches of one side: of each how long it took, how many were lost, and the memory after it."""
    converse, close = SIDES[side](address)
    found: dict[str, Any] = {}
    await asyncio.gather(*(converse() for _ in range(WARM_UP)))
    for name in BATCHES:
        start, cpu = time.perf_counter(), time.process_time()
        right = await asyncio.gather(*(converse() for _ in range(conversations)), return_exceptions=True)
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
        lost = [one for one in right if one is not True]
        found[name] = {"seconds": seconds, "cpu_seconds": cpu_seconds, "lost": len(lost)}
        found[name] |= {"why": repr(lost[0])} if lost else {}
        # Memory is what the batch leaves, not what it returned.
        right.clear()
        found[name]["megabytes"] = resident_megabytes()
    await close()
    return found


# What compares them.


def more_files() -> None:
    """Each conversation may need a connection of its own, which is a file."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536) if hard > 0 else 65_536, hard))


def compare(conversations: int, rounds: int) -> dict[str, Any]:
    """Of each side the medians over rounds, and the ratio of throughputs."""
    me = [sys.executable, __file__]
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    with subprocess.Popen([*me, "--serve"], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
            for _ in range(rounds):
                for side, each in found.items():
                    told = ["--side", side, "--address", address, "--conversations", str(conversations)]
                    each.append(json.loads(subprocess.run([*me, *told], stdout=subprocess.PIPE, check=True).stdout))
        finally:
            server.terminate()
    sides = {side: summary(each, conversations) for side, each in found.items()}
    ratio = sides["ferrule"]["a_second"] / sides["bare SDK"]["a_second"]
    return {"sides": sides, "ratio": ratio, "limit": LIMIT, "conversations": conversations}


def summary(rounds: list[dict[str, Any]], conversations: int) -> dict[str, Any]:
    """What is told of one side."""
    timed = [batch for each in rounds for batch in each.values()]
    return {
        "a_second": statistics.median((conversations - batch["lost"]) / batch["seconds"] for batch in timed),
        "cpu_milliseconds": 1000 * statistics.median(batch["cpu_seconds"] for batch in timed) / conversations,
        "lost": sum(batch["lost"] for batch in timed),
        "why": [batch["why"] for batch in timed if "why" in batch][:3],
        "megabytes": {name: statistics.median(each[name]["megabytes"] for each in rounds) for name in BATCHES},
    }


def main() -> int:
    """Measure, print, and give 1 where the limit is missed or a conversation is lost."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--conversations", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--address", help=argparse.SUPPRESS)
    options = parser.parse_args()
    more_files()
    if options.serve:
        asyncio.run(serve())
    if options.side:
        print(json.dumps(asyncio.run(batches(options.side, options.address, options.conversations))))
        return 0
    if not importlib.util.find_spec("openai") or not Path("/proc/self/statm").exists():
        print("nothing to compare with: this needs the openai package (pip install openai) and Linux")
        return 0
    found = compare(options.conversations, options.rounds)
    if options.json:
        print(json.dumps(found))
    else:
        show(found)
    return int(found["ratio"] < LIMIT or found["sides"]["ferrule"]["lost"] > 0)


def show(found: dict[str, Any]) -> None:
    """Print it for people."""
    for side, one in found["sides"].items():
        memory = ", ".join(f"{megabytes:.0f}" for megabytes in one["megabytes"].values())
        print(
            f"{side:9} {one['a_second']:6.1f} conversations a second, {one['cpu_milliseconds']:5.1f} ms of CPU each,"
            f" {one['lost']} lost; {memory} MB after each batch"
        )
        for why in one["why"]:
            print(f"          lost: {why}")
    print(f"ferrule has {found['ratio']:.2f} times the throughput (at least {LIMIT})")


if __name__ == "__main__":
    sys.exit(main())
