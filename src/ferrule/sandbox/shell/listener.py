"""Run inside of a sandbox, before the command: listens on its loopback, hands that socket out, becomes the command.

Its arguments: the descriptor of the socket to hand it over by, the port, the command. The proxy outside accepts from
the listening socket directly, so that nothing of ours stays inside. Given to Python as text, with nothing to import
from ferrule, because the sandbox may not see where ferrule lies.
"""

import os
import socket
import sys


def main() -> None:
    """Listen, hand over, become the command."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    with socket.create_server(("127.0.0.1", int(sys.argv[2])), backlog=64) as server:
        socket.send_fds(channel, [b"listening"], [server.fileno()])
    channel.close()
    os.execv(sys.argv[3], sys.argv[3:])


if __name__ == "__main__":
    main()
