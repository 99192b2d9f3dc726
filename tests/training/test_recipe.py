"""A training run from nothing to a model that others load, on a network so small that it takes seconds."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.errors import SettingsError
from ferrule.toolspec import render_openai_tool
from ferrule.training.embedded.recipe import Recipe

torch = pytest.importorskip("torch", reason="torch is not installed")

from ferrule.training.embedded import batches  # noqa: E402 - only where there is torch
from ferrule.training.embedded import train as training  # noqa: E402
from ferrule.training.embedded.checkpoint import write_embedded_tokenizer  # noqa: E402
from ferrule.training.embedded.network import Network  # noqa: E402

STEPS, CHECKPOINT = 40, 35
PATIENCE = 300.0


def tiny(**changes) -> Recipe:
    settings = {
        "steps": STEPS,
        "batch_tokens": 1024,
        "workers": 1,
        "hidden_size": 32,
        "layers": 1,
        "heads": 2,
        "checkpoint_every": CHECKPOINT,
        "compile": False,
    }
    return Recipe(**{**settings, **changes})


@pytest.fixture(autouse=True)
def _no_cuda(monkeypatch) -> None:
    """What is checked here is the path that every machine has."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> tuple[Path, list[training.Progress]]:
    """An uninterrupted run of one worker: its folder, and what it reported."""
    folder = tmp_path_factory.mktemp("run")
    reports: list[training.Progress] = []
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CUDA_VISIBLE_DEVICES", "")
        assert training.train(tiny(), folder, reports.append) == folder / "model"
    return folder, reports


def exported_network(folder: Path) -> Network:
    state = torch.load(folder / "checkpoint.pt", weights_only=True)
    network = Network(training.make_shape(tiny()))
    # The export is in float16.
    network.load_state_dict({name: tensor.half() for name, tensor in state["network"].items()})
    return network


def test_a_run_reports_its_steps_and_the_loss_falls(run) -> None:
    _, reports = run
    assert [report.step for report in reports] == [10, 20, 30, 40]
    assert reports[-1].loss < reports[0].loss - 0.3
    assert all(report.tokens_per_second > 0 for report in reports)


def test_a_run_that_was_interrupted_goes_on_to_the_very_same_weights(run, tmp_path) -> None:
    def interrupt(progress: training.Progress) -> None:
        if progress.step == STEPS:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train(tiny(), tmp_path, interrupt)
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["step"] == CHECKPOINT
    assert not (tmp_path / "model").exists()
    reports: list[training.Progress] = []
    training.train(tiny(), tmp_path, reports.append, resume=True)
    assert [report.step for report in reports] == [STEPS]
    ours, uninterrupted = (folder / "model" / "model.safetensors" for folder in (tmp_path, run[0]))
    assert ours.read_bytes() == uninterrupted.read_bytes()


@pytest.mark.slow  # where the processor has no bfloat16
def test_a_run_in_bfloat16_learns_and_goes_on_to_the_very_same_weights(tmp_path) -> None:
    settings = tiny(precision="bfloat16")
    reports: list[training.Progress] = []
    training.train(settings, tmp_path / "whole", reports.append)
    assert reports[-1].loss < reports[0].loss - 0.3
    saved = torch.load(tmp_path / "whole" / "checkpoint.pt", weights_only=True)
    assert {tensor.dtype for tensor in saved["network"].values()} == {torch.float32}

    def interrupt(progress: training.Progress) -> None:
        if progress.step == STEPS:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        training.train(settings, tmp_path / "cut", interrupt)
    training.train(settings, tmp_path / "cut", lambda progress: None, resume=True)
    ours, whole = (tmp_path / name / "model" / "model.safetensors" for name in ("cut", "whole"))
    assert ours.read_bytes() == whole.read_bytes()


def test_a_network_in_bfloat16_computes_nearly_the_same() -> None:
    torch.manual_seed(0)
    network = Network(training.make_shape(tiny()))
    ids = torch.randint(0, 256, (2, 48))
    exact, rounded = (
        one.compute_hidden(ids, one.get_mask(ids.shape[1])) for one in (network, network.copy_in_bfloat16())
    )
    assert rounded.dtype == torch.bfloat16
    assert torch.allclose(exact, rounded.float(), atol=0.1)


def test_a_folder_in_use_is_refused_unless_its_run_is_to_be_resumed(run, tmp_path) -> None:
    with pytest.raises(SettingsError, match="--resume"):
        training.train(tiny(), run[0], lambda progress: None)
    with pytest.raises(SettingsError, match="no checkpoint"):
        training.train(tiny(), tmp_path, lambda progress: None, resume=True)
    with pytest.raises(SettingsError, match="other sizes"):
        training.train(tiny(layers=2), run[0], lambda progress: None, resume=True)
    assert Recipe.model_validate_json((run[0] / "recipe.json").read_text()) == tiny()


@pytest.mark.parametrize("changes", [{}, {"batch_tokens": 256, "workers": 2}], ids=["usual", "longer than a batch"])
def test_batches_from_any_step_are_those_of_an_uninterrupted_run(tmp_path, changes) -> None:
    drawn = batches.Batches(tiny(**changes), write_embedded_tokenizer(tmp_path), worker=0)
    expected = list(islice(drawn.iterate_from(0), 70))
    for step in (1, 31, 32, 33, 64):
        for (ids, targets), (expected_ids, expected_targets) in zip(
            islice(drawn.iterate_from(step), 3), expected[step:], strict=False
        ):
            assert torch.equal(ids, expected_ids)
            assert torch.equal(targets, expected_targets)


def test_batches_keep_to_their_tokens_and_train_what_follows_a_trained_place(tmp_path) -> None:
    recipe = tiny(batch_tokens=2048)
    tokenizer = write_embedded_tokenizer(tmp_path)
    for ids, targets in islice(batches.Batches(recipe, tokenizer, worker=0).iterate_from(0), 20):
        assert ids.numel() <= recipe.batch_tokens
        is_target = targets != batches.IGNORED
        assert torch.equal(targets[:, :-1][is_target[:, :-1]], ids[:, 1:][is_target[:, :-1]])
        ends = tokenizer.control["<|assistant_end|>"]
        assert torch.equal((ids == ends).sum(), (targets == ends).sum())
        assert not (targets == tokenizer.control["<|output_start|>"]).any()


def test_the_parts_of_a_batch_give_the_gradients_of_the_whole() -> None:
    torch.manual_seed(3)
    network = Network(training.make_shape(tiny()))
    ids, targets = torch.randint(0, 272, (2, 7, 48))
    targets[torch.rand(targets.shape) < 0.6] = batches.IGNORED
    targets[:3] = batches.IGNORED
    network.compute_loss(ids, targets).backward()
    whole = [parameter.grad.clone() for parameter in network.parameters()]
    network.zero_grad()
    parts = list(batches.split_batch(ids, targets, tokens=100))
    # The first part, of three rows, has no targets, and is left out.
    assert [len(part.ids) for part in parts] == [2, 2]
    assert sum(part.weights.sum() for part in parts) == pytest.approx(1)
    for part in parts:
        hidden = network.compute_hidden(part.ids, network.get_mask(48))
        has_target = part.targets != batches.IGNORED
        (network.compute_target_losses(hidden, part.targets) * part.weights[has_target]).sum().backward()
    for parameter, gradient in zip(network.parameters(), whole, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-6)


def test_blocks_of_queries_give_what_one_gives(monkeypatch) -> None:
    torch.manual_seed(4)
    network = Network(training.make_shape(tiny(layers=2)))
    ids = torch.randint(0, 272, (2, 45))
    in_blocks = network(ids)
    monkeypatch.setattr("ferrule.training.embedded.network._QUERY_BLOCKS", 1)
    torch.testing.assert_close(network(ids), in_blocks, rtol=1e-4, atol=1e-5)


def test_what_decides_counts_more(tmp_path) -> None:
    tokenizer = write_embedded_tokenizer(tmp_path)

    def encode(text: str) -> list[int]:
        pieces = re.split(r"(<\|\w+\|>)", text)
        return [one for piece in pieces for one in ([tokenizer.control[piece]] if "<|" in piece else piece.encode())]

    asked = "<|user_start|>go<|user_end|><|assistant_start|>"
    called = "<|python_start|>add(a=(1))<|python_end|>"
    answer = called + "<|output_start|>1<|output_end|>Done.<|assistant_end|>"
    with_call, without = encode(asked + answer + asked + answer), encode(asked + "None fits.<|assistant_end|>")
    ids = torch.tensor([row + [0] * (200 - len(row)) for row in (with_call, without)])
    weights = batches.weigh_choices(ids, 4.0)
    targets = [row.roll(-1)[weight > 1].tolist() for row, weight in zip(ids, weights, strict=True)]
    assert targets == [2 * encode(called), encode("N")]
    assert weights.unique().tolist() == [1, 4]


def test_the_context_counts_a_little_and_padding_nothing() -> None:
    ids = torch.tensor([[257, 5, 6, 258, 7, 8, 0, 0], [257, 9, 258, 7, 0, 0, 0, 0]])
    targets = torch.full_like(ids, batches.IGNORED)
    targets[0, 3:5], targets[1, 2] = torch.tensor([7, 8]), 7
    (part,) = batches.split_batch(ids, targets, context_weight=0.1)
    assert part.targets[0].tolist() == [5, 6, 258, 7, 8, *[batches.IGNORED] * 3]
    torch.testing.assert_close(part.weights[0], torch.tensor([0.1, 0.1, 0.1, 1, 1, 0, 0, 0]) / 3)
    torch.testing.assert_close(part.weights[1], torch.tensor([0.1, 0.1, 1, 0, 0, 0, 0, 0]) / 3)
    assert part.is_trained.tolist() == (targets != batches.IGNORED).tolist()
    (alone,) = batches.split_batch(ids, targets)
    assert torch.equal(alone.targets, targets)


def test_the_loss_that_is_reported_leaves_the_context_out(tmp_path) -> None:
    losses = []
    for weight in (0.0, 0.5):
        recipe = tiny(steps=10, workers=1, context_weight=weight, matrix_rate=0.0, other_rate=0.0)
        training.train(recipe, tmp_path / str(weight), lambda progress: losses.append(progress.loss))
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize("longest", [64, 400, 2000])
def test_conversations_of_any_length_can_be_asked_for(longest: int, tmp_path) -> None:
    tokenizer = write_embedded_tokenizer(tmp_path)
    recipe = tiny(longest=longest, batch_tokens=max(512, 2 * longest), short=0.0)
    drawn = batches.Batches(recipe, tokenizer, 0).iterate_from(0)
    assert max(ids.shape[1] for ids, _ in islice(drawn, 10)) <= longest + 16


def test_conversations_are_as_long_as_they_may_be(tmp_path) -> None:
    """Once their limit was counted in characters where the recipe's is tokens: training saw no offer of eight tools."""
    tokenizer = write_embedded_tokenizer(tmp_path)
    recipe = Recipe(tools=1.0, short=0.0)
    drawn = islice(batches.Batches(recipe, tokenizer, 0).iterate_from(0), 32)
    rows = [row.tolist() for ids, _ in drawn for row in ids]
    end, control = tokenizer.control["<|tools_end|>"], set(tokenizer.control.values())
    offers = [[token for token in row[: row.index(end)] if token not in control] for row in rows]
    assert max(b"".join(map(tokenizer.decode_token, offer)).count(b"\n") + 1 for offer in offers) == 8
    assert max(sum(token != 0 for token in row) for row in rows) > 0.9 * recipe.longest


@pytest.mark.parametrize("line", [{"messages": [{"role": "user", "content": "Hi"}]}, None], ids=["no answer", "empty"])
def test_a_file_that_trains_nothing_is_refused(tmp_path, line) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text("" if line is None else json.dumps(line) + "\n")
    with pytest.raises(SettingsError, match="has nothing to train"):
        training.train(tiny(data=data), tmp_path / "run", lambda progress: None)


def test_workers_draw_different_batches(tmp_path) -> None:
    tokenizer = write_embedded_tokenizer(tmp_path)
    first, second = (next(batches.Batches(tiny(), tokenizer, worker).iterate_from(0))[0] for worker in (0, 1))
    assert first.shape != second.shape or not torch.equal(first, second)


def test_the_export_has_the_same_logits_in_transformers_in_our_engine_and_in_torch(run) -> None:
    from ferrule.engines.config import read_config
    from ferrule.engines.decoder import TransformerDecoder
    from ferrule.engines.kv_cache import KeyValueCache
    from ferrule.engines.weights import fold_weights, read_safetensors

    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    folder = run[0] / "model"
    network = exported_network(run[0])
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    config = read_config(folder / "config.json")
    decoder = TransformerDecoder(config, fold_weights(config, read_safetensors(folder / "model.safetensors")))
    cache = KeyValueCache(config)
    cache.reserve(1, 128, [])
    ids = torch.randint(0, 272, (1, 60), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = network(ids)[0].numpy()
        np.testing.assert_allclose(theirs(ids).logits[0].numpy(), expected, atol=1e-4, rtol=0)
    for position, token in enumerate(ids[0].tolist()):
        logits = decoder.decode(cache, [token], [position])
        np.testing.assert_allclose(logits[0], expected[position], atol=1e-4, rtol=0)


def test_the_exported_tokenizer_and_template_give_the_ids_that_training_saw(run) -> None:
    from ferrule.formats.nanochat import get_offered_tools, load
    from ferrule.training.embedded.rendering import render_conversation
    from ferrule.training.synth import Mix, draw_examples, to_json

    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    theirs = transformers.AutoTokenizer.from_pretrained(run[0] / "model")
    ours = write_embedded_tokenizer(run[0])
    for example in draw_examples(3, 60, mix=Mix(tools=0.7)):
        if not all(turn.is_trained for turn in example.turns):
            continue  # the template has no way to say that a message was written in the model's place
        conversation = load(to_json(example))
        messages = []
        for message in conversation.messages:
            if message.role == "tool":
                messages.append({"role": "tool", "content": message.result.text})
                continue
            calls = [{"function": {"name": c.name, "arguments": json.loads(c.arguments)}} for c in message.calls]
            messages.append({"role": message.role, "content": message.text, **({"tool_calls": calls} if calls else {})})
        tools = [render_openai_tool(spec) for spec in get_offered_tools(conversation) or ()]
        found = theirs.apply_chat_template(
            messages, tools=tools or None, return_assistant_tokens_mask=True, return_dict=True
        )
        trace = render_conversation(conversation, ours)
        assert found["input_ids"] == list(trace.ids)
        if theirs.decode(found["input_ids"]).isascii():
            # Of a character that takes several tokens at the end of a `generation` block, only the first is marked.
            assert [bool(one) for one in found["assistant_masks"]] == [bool(one) for one in trace.mask]


@given(
    steps=st.integers(1, 500),
    warmup=st.floats(0, 1),
    decay=st.floats(0, 1),
)
def test_rates_stay_within_the_peak(steps, warmup, decay) -> None:
    recipe = Recipe(steps=steps, warmup=warmup, decay=decay)
    assert all(0 < recipe.compute_rate(step) <= 1 for step in range(steps))


def test_rates_rise_stay_and_fall() -> None:
    recipe = Recipe(steps=1000, warmup=0.02, decay=0.4)
    rates = [recipe.compute_rate(step) for step in range(1000)]
    assert rates[0] == pytest.approx(1 / 20)
    assert rates[:20] == sorted(rates[:20])
    assert set(rates[20:600]) == {1.0}
    assert rates[600:] == sorted(rates[600:], reverse=True)
    assert rates[-1] == pytest.approx(1 / 400)


SCRIPT = """\
import sys
from pathlib import Path
from ferrule.training.embedded.recipe import Recipe
from ferrule.training.embedded.train import train

if __name__ == "__main__":
    recipe = Recipe.model_validate_json(sys.argv[1])
    train(recipe, Path(sys.argv[2]), lambda progress: print(progress.step, flush=True))
"""


class Started:
    """A training run of two workers in a process group of its own, as a shell starts it."""

    def __init__(self, folder: Path, recipe: Recipe) -> None:
        script = folder / "script.py"
        script.write_text(SCRIPT)
        self.folder = folder / "run"
        self.process = subprocess.Popen(
            [sys.executable, str(script), recipe.model_dump_json(), str(self.folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def members(self) -> list[int]:
        """The processes of the group that still run; what is dead and unreaped doesn't count."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    state, _, group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
                except OSError:
                    continue
                if int(group) == self.process.pid and state != "Z":
                    found.append(int(entry.name))
        return found

    def wait_until_all_ended(self) -> None:
        until = time.monotonic() + PATIENCE
        while self.members():
            assert time.monotonic() < until, "processes are left"
            time.sleep(0.05)


@pytest.fixture
def endless(tmp_path) -> Iterator[Started]:
    """A run that would go on for hours and saves at every step."""
    started = Started(tmp_path, tiny(steps=10**6, workers=2, batch_tokens=512, checkpoint_every=1))
    with started.process:
        try:
            yield started
        finally:
            for member in started.members():
                os.kill(member, signal.SIGKILL)


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc")


@needs_proc
@pytest.mark.slow
def test_a_killed_run_leaves_no_workers_behind(endless) -> None:
    assert endless.process.stdout.readline() == "10\n"
    assert len(endless.members()) >= 3
    endless.process.kill()
    endless.process.wait()
    endless.wait_until_all_ended()


@needs_proc
@pytest.mark.slow
def test_ctrl_c_leaves_a_checkpoint_and_nothing_half_written(endless) -> None:
    assert endless.process.stdout.readline() == "10\n"
    os.killpg(endless.process.pid, signal.SIGINT)
    _, errors = endless.process.communicate(timeout=PATIENCE)
    assert errors.count("KeyboardInterrupt") == 1, errors
    endless.wait_until_all_ended()
    assert torch.load(endless.folder / "checkpoint.pt", weights_only=True)["step"] >= 9
    names = {path.name for path in endless.folder.rglob("*")}
    assert names == {"checkpoint.pt", "recipe.json", "tokenizer.json"}


@pytest.mark.slow
def test_two_workers_make_one_model(tmp_path, monkeypatch) -> None:
    from ferrule.models.checkpoints.loading import load_local_model

    reports: list[training.Progress] = []
    monkeypatch.chdir(tmp_path)
    run = Path("the first run?")  # relative, and no path of a URL
    folder = training.train(tiny(steps=6, workers=2), run, reports.append)
    assert [report.step for report in reports] == [6]
    assert load_local_model(folder).name == f"local:{folder}"
    assert {path.name for path in run.iterdir()} == {"checkpoint.pt", "model", "recipe.json", "tokenizer.json"}
