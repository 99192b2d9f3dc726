"""The command that the conformance suite starts as its client: has the test that runs the suite do the work.

That takes no second to start. The port of the test is its first argument, the server's address its last.
"""

import json
import os
import socket
import sys

with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection, connection.makefile("rw") as lines:
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    print(json.dumps({"scenario": scenario, "context": context, "address": sys.argv[-1]}), file=lines, flush=True)
    print(lines.readline())
