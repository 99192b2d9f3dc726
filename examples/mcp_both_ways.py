"""Tools of a server, and tools served: this program is an MCP server and the client of it. Needs `ferrule[mcp]`.

Any other client can use the server at the same address, and `MCPServer` takes the command or address of any other
server.

    $ python examples/mcp_both_ways.py
    offered: convert
    origin:  mcp:units
    result:  2.54
    answer:  An inch has 2.54 cm.
"""

import asyncio

from ferrule import Policy, ScriptedModel, ToolCall, ToolRegistry, model, tool
from ferrule.mcp import MCPServer, serve

CENTIMETRES = {"inch": 2.54, "foot": 30.48}


@tool(read_only=True)
def convert(unit: str, count: float = 1) -> float:
    """Convert a length to centimetres."""
    return count * CENTIMETRES[unit]


async def main() -> None:
    """Serve `convert` on a free port of this machine, and let a model call it through the protocol."""
    address = asyncio.get_running_loop().create_future()
    server = asyncio.create_task(serve(ToolRegistry([convert]), transport="http", on_ready=address.set_result))

    async with MCPServer(await address, name="units") as units:
        print("offered:", *units.registry.names)
        print("origin: ", units.registry.get("convert").origin)
        script = ScriptedModel(ToolCall("call_1", "convert", '{"unit": "inch"}'), "An inch has 2.54 cm.")
        # What a server says about its tools counts only if its origin is trusted; otherwise somebody is asked.
        policy = Policy(trusted=(units.origin,))
        run = await model(script).chat("How long is an inch?").using(units, policy=policy).run()
        print("result: ", run.conversation.messages[2].result.text)
        print("answer: ", run.text)

    server.cancel()
    await asyncio.wait({server})


if __name__ == "__main__":
    asyncio.run(main())
