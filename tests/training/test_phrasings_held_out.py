"""No template, its slots open, matches a request of the lists by hand: what the figures on unseen wording rest on.

A failure names template lines and ids, never the requests: whoever writes templates must not learn them here.
"""

import json
from pathlib import Path

import pytest

from ferrule.training.synth import load_shipped_grammar
from ferrule.training.synth.collisions import find_collisions

PHRASINGS = Path(__file__).parents[2] / "src" / "ferrule" / "embedded" / "phrasings"


LISTS = {
    "steering": 300,
    "final": 300,
    "open_calculator": 300,
    "held_out_calculator": 300,
    "open_declined": 150,
    "held_out_declined": 150,
}


QUICK = ("steering", "held_out_declined")
"""The lists that are compared in a quick run, of each kind one."""


@pytest.mark.parametrize(
    ("name", "fewest"),
    [pytest.param(*entry, marks=[] if entry[0] in QUICK else pytest.mark.slow) for entry in LISTS.items()],
)
def test_no_template_could_have_written_a_held_out_request(name: str, fewest: int) -> None:
    lines = (PHRASINGS / f"{name}.jsonl").read_text("utf-8").splitlines()
    # Of several turns the last is what is measured; those before it are ordinary requests such as "12*12".
    prompts = {
        entry["id"]: entry["prompts"][-1] if "prompts" in entry else entry["prompt"] for entry in map(json.loads, lines)
    }
    assert len(prompts) >= fewest
    found = [str(collision) for collision in find_collisions(prompts, load_shipped_grammar().sections)]
    count = len(found)
    if count:
        pytest.fail(f"{count} collisions with {name}.jsonl:\n" + "\n".join(found), pytrace=False)
