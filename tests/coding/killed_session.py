"""A program that changes a workspace turn by turn until it is killed, or undoes a turn: see `test_checkpoints_killed`.

    python killed_session.py work|undo WORKSPACE STORE LOG SEED

Before each turn it writes the workspace's whole state to LOG/TURN.pickle.
"""

import asyncio
import hashlib
import itertools
import pickle
import random
import subprocess
import sys
from pathlib import Path

from checkpoint_trees import read_tree

from ferrule import Policy
from ferrule.coding.checkpoints import Checkpoints
from ferrule.coding.files.tools import make_file_tools
from ferrule.coding.workspace import Workspace
from ferrule.execution.executor import call_tool

COMMANDS = [
    "echo $RANDOM >> command.txt; chmod 600 command.txt",
    "mkdir -p made/by/command; head -c 100000 /dev/urandom > made/by/command/large; ln -sf large made/by/command/link",
    "rm -rf made; mv command.txt moved.txt",
    "rm -rf moved.txt; mkdir moved.txt; echo x > moved.txt/y",
    "for n in 1 2 3 4 5 6 7 8 9; do echo $n > many-$n; done; rm -f many-3",
    "git init -q; echo ignored.log > .gitignore; echo x > ignored.log",
]


def make_content(chance: random.Random) -> str:
    """A text whose first line is the hash of the rest, so that a file that isn't whole shows."""
    body = chance.randbytes(chance.choice([10, 20_000, 300_000])).hex()
    return f"{hashlib.sha256(body.encode()).hexdigest()}\n{body}"


async def work(workspace: Path, store: Path, log: Path, seed: int) -> None:
    chance = random.Random(seed)
    checkpoints = Checkpoints(workspace, store)
    async with Workspace(workspace, checkpoints=checkpoints) as used:
        write = {tool.name: tool for tool in make_file_tools(used)}["write_file"]
        print("ready", flush=True)
        for turn in itertools.count(len(list(log.glob("*.pickle")))):
            part = log / "part"
            part.write_bytes(pickle.dumps(read_tree(workspace)))
            part.replace(log / f"{turn}.pickle")
            checkpoints.begin_turn(str(turn))
            for _ in range(chance.randrange(1, 5)):
                if chance.random() < 0.6:
                    name = chance.choice(["tool-1.txt", "tool-2.txt", "new/folder/tool-3.txt"])
                    arguments = {"path": name, "content": make_content(chance)}
                    await call_tool(write, arguments, policy=Policy(profile="all"))
                else:
                    await checkpoints.before_command()
                    subprocess.run(["bash", "-c", chance.choice(COMMANDS)], cwd=workspace, check=False, stderr=-3)
            await checkpoints.end_turn()


async def undo(workspace: Path, store: Path) -> None:
    checkpoints = Checkpoints(workspace, store)
    print("ready", flush=True)
    await checkpoints.undo()


if __name__ == "__main__":
    action, *folders, given = sys.argv[1:]
    places = [Path(folder) for folder in folders]
    asyncio.run(work(*places, int(given)) if action == "work" else undo(*places[:2]))
