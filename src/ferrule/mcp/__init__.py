"""Floor 7: the Model Context Protocol, through its official SDK: any server's tools in a registry, any registry served.

    async with MCPServer("npx -y @modelcontextprotocol/server-filesystem .", name="files") as files:
        answer = await model("openai:gpt-5").chat("What is in notes.md?").using(files).run()

The SDK is imported when a server is opened or served; it comes with the extra `mcp`.
"""

from ferrule.mcp.client import MCPServer
from ferrule.mcp.serving import serve

__all__ = ["MCPServer", "serve"]
