"""A child's channel and output as they are opened in the parent, with the ends that the child is given."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack

from ferrule.sandbox.python.channel import Channel
from ferrule.sandbox.python.output import Output


def opened_ends(ours: ExitStack, theirs: ExitStack, output_limit: int) -> tuple[Channel, Output, list[int]]:
    """The parent's ends, which `ours` closes, and the child's descriptors, which `theirs` closes.

    Raises `OSError` where no descriptors are left; what was opened by then is closed by the two.
    """
    end, other = socket.socketpair()
    ours.callback(end.close)
    theirs.callback(other.close)
    output = Output(output_limit)
    ours.callback(output.close)
    descriptors = [other.fileno()]
    for _ in ("stdout", "stderr"):
        descriptors.append(output.open())
        theirs.callback(os.close, descriptors[-1])
    return Channel(end), output, descriptors
