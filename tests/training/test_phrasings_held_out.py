"""No template, its slots open, matches a request of the two held-out lists: what the figures on unseen wording rest on.

A failure names template lines and ids, never the requests: whoever writes templates must not learn them here.
"""

import json
from pathlib import Path

import pytest

from ferrule.training.synth import load_shipped_grammar
from ferrule.training.synth.collisions import find_collisions

PHRASINGS = Path(__file__).parents[2] / "src" / "ferrule" / "embedded" / "phrasings"


@pytest.mark.parametrize("name", ["steering", "final"])
def test_no_template_could_have_written_a_held_out_request(name: str) -> None:
    lines = (PHRASINGS / f"{name}.jsonl").read_text("utf-8").splitlines()
    prompts = {entry["id"]: entry["prompt"] for entry in map(json.loads, lines)}
    assert len(prompts) >= 300
    found = [str(collision) for collision in find_collisions(prompts, load_shipped_grammar().sections)]
    count = len(found)
    if count:
        pytest.fail(f"{count} collisions with {name}.jsonl:\n" + "\n".join(found), pytrace=False)
