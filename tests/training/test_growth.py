"""A run that begins from a model that is there, also from one of fewer layers."""

import subprocess
import sys

import pytest

from ferrule.errors import SettingsError
from ferrule.training.embedded.recipe import Recipe, read_shipped_recipe

torch = pytest.importorskip("torch", reason="torch is not installed")

from ferrule.training.embedded import train as training  # noqa: E402 - only where there is torch
from ferrule.training.embedded.checkpoint import export  # noqa: E402
from ferrule.training.embedded.growing import begin_from, order_layers  # noqa: E402
from ferrule.training.embedded.network import Network, Shape  # noqa: E402


def shape(layers: int, width: int = 32, heads: int = 2, key_value_heads: int = 2) -> Shape:
    return Shape(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=key_value_heads,
        intermediate_size=3 * width,
    )


def recipe(**changes) -> Recipe:
    settings = {"steps": 10, "batch_tokens": 512, "workers": 1, "hidden_size": 32, "layers": 3, "heads": 2}
    return Recipe(**{**settings, "compile": False, **changes})


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    """The folder of a model of two layers."""
    folder = tmp_path_factory.mktemp("start")
    torch.manual_seed(1)
    export(Network(shape(2)), folder)
    return folder


@pytest.fixture(autouse=True)
def _no_cuda(monkeypatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def test_the_middle_is_doubled_first() -> None:
    assert order_layers(5, 5) == [(n, False) for n in range(5)]
    assert [source for source, _ in order_layers(5, 6)] == [0, 1, 2, 2, 3, 4]
    assert [source for source, _ in order_layers(5, 8)] == [0, 1, 1, 2, 2, 3, 3, 4]
    assert [is_copy for _, is_copy in order_layers(2, 4)] == [False, True, False, True]


@pytest.mark.parametrize(
    "grown",
    [
        shape(2),
        shape(3),
        shape(4),
        shape(2, width=64, heads=4),
        shape(3, width=96, heads=6),
        shape(3, width=96, heads=6, key_value_heads=6),
        shape(2, width=128, heads=8, key_value_heads=4),
    ],
)
def test_a_grown_network_computes_what_the_small_one_does(tmp_path, grown) -> None:
    small, large = Network(shape(2)), Network(grown)
    # As large as trained embeddings are, far above the epsilon of the norms, which doesn't grow with the width.
    torch.nn.init.normal_(small.model.embed_tokens.weight)
    export(small, tmp_path)
    begin_from(small, tmp_path)  # as it is rounded there
    begin_from(large, tmp_path)
    ids = torch.randint(0, 272, (2, 30))
    with torch.no_grad():
        assert torch.allclose(small(ids), large(ids), atol=1e-3)


def test_every_part_of_a_grown_network_learns(start) -> None:
    network = Network(shape(4, width=64, heads=4))
    begin_from(network, start)
    ids = torch.randint(0, 272, (4, 30))
    torch.autograd.backward(network.compute_loss(ids[:, :-1], ids[:, 1:]))
    assert network.model.embed_tokens.weight.grad.abs().amax(0).min() > 0
    for block in network.model.layers:
        for projection in (block.self_attn.o_proj, block.mlp.down_proj):
            assert projection.weight.grad.abs().amax(0).min() > 0
    # New features are read at once by later layers that write; those of the last layers count once that has changed.
    assert network.model.layers[0].mlp.down_proj.weight.grad.abs().amax(1).min() > 0


def test_a_run_from_a_model_begins_where_that_stood(start, tmp_path) -> None:
    begun, reports = Network(shape(3)), []
    begin_from(begun, start)
    # At a rate of nothing what comes out is what went in.
    training.train(recipe(start=start, matrix_rate=0.0, other_rate=0.0), tmp_path, reports.append)
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)["network"]
    assert all(torch.equal(state[name], tensor) for name, tensor in begun.state_dict().items())
    assert [report.step for report in reports] == [10]


def test_a_resumed_run_goes_on_from_its_own_checkpoint(start, tmp_path) -> None:
    settings = recipe(start=start)
    training.train(settings, tmp_path, lambda progress: None)
    gone = settings.model_copy(update={"steps": 20, "start": tmp_path / "gone"})
    training.train(gone, tmp_path, lambda progress: None, resume=True)
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["step"] == 20


def test_a_recipe_that_starts_from_a_recipe_runs_both(tmp_path) -> None:
    first = recipe(layers=2, seed=3)
    settings = recipe(start=first, matrix_rate=0.0, other_rate=0.0)
    reports = []
    training.train(settings, tmp_path, reports.append)
    assert [(report.step, report.steps) for report in reports] == [(10, 10), (10, 10)]
    begun = Network(shape(3))
    begin_from(begun, tmp_path / "start" / "model")
    state = torch.load(tmp_path / "checkpoint.pt", weights_only=True)["network"]
    assert all(torch.equal(state[name], tensor) for name, tensor in begun.state_dict().items())
    assert Recipe.model_validate_json((tmp_path / "recipe.json").read_text()) == settings
    with pytest.raises(SettingsError, match="already contains a run"):
        training.train(settings, tmp_path, reports.append)


@pytest.mark.parametrize("lost", ["checkpoint.pt", "start/model/model.safetensors"])
def test_such_a_run_is_resumed_wherever_it_ended(tmp_path, lost) -> None:
    settings = recipe(start=recipe(layers=2), steps=20)
    training.train(settings, tmp_path, lambda progress: None)
    expected = (tmp_path / "model" / "model.safetensors").read_bytes()
    (tmp_path / lost).unlink()
    (tmp_path / "checkpoint.pt").unlink(missing_ok=True)
    training.train(settings, tmp_path, lambda progress: None, resume=True)
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 5}, "has 2 layers, which can't become 5"),
        ({"layers": 1}, "has 2 layers, which can't become 1"),
        ({"start": "."}, "contains no model.safetensors"),
        ({"heads": 4, "key_value_heads": 1}, "a network of other sizes"),
    ],
)
def test_a_start_that_cannot_be_grown_is_refused_before_anything_is_written(start, tmp_path, changes, message) -> None:
    settings = Recipe.model_validate({**recipe(start=start).model_dump(), **changes})
    with pytest.raises(SettingsError, match=message):
        training.train(settings, tmp_path / "run", lambda progress: None)
    assert not (tmp_path / "run").exists()


def test_a_start_that_is_larger_is_refused(tmp_path) -> None:
    export(Network(shape(2, width=64)), tmp_path)
    with pytest.raises(SettingsError, match="a network of other sizes"):
        begin_from(Network(shape(2)), tmp_path)


def test_query_heads_share_their_key_value_heads_evenly() -> None:
    assert training.make_shape(Recipe(heads=6)).num_key_value_heads == 6
    assert training.make_shape(Recipe(heads=6, key_value_heads=2)).num_key_value_heads == 2
    with pytest.raises(ValueError, match=r"key_value_heads\n  Input should be a divisor of 6 \(heads\)"):
        Recipe(heads=6, key_value_heads=4)


def test_a_start_that_is_damaged_is_refused(tmp_path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(SettingsError, match="can't be read"):
        begin_from(Network(shape(2)), tmp_path)


def test_the_command_says_so_in_a_line(tmp_path) -> None:
    command = [sys.executable, "-m", "ferrule", "train", "embedded", "--out", "run", "--set", "start=nowhere"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "start: nowhere contains no model.safetensors" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_recipe_of_the_weights_in_the_package_is_whole() -> None:
    shipped = read_shipped_recipe()
    while shipped.start is not None:
        assert isinstance(shipped.start, Recipe)
        shipped = shipped.start
    shown = subprocess.run(
        [sys.executable, "-m", "ferrule", "train", "embedded", "--out", "run", "--shipped", "--show-settings"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert Recipe.model_validate_json(shown.stdout) == read_shipped_recipe()
