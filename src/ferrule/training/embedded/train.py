"""`ferrule train embedded`: trains the weights in the package from scratch.

Workers with one thread each average their gradients at every step; the first one writes the checkpoint, from which an
interrupted run continues.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ferrule.errors import ModelError, SettingsError
from ferrule.tokens.word_tokenizer import WordTokenizer
from ferrule.training.embedded.batches import IGNORED, Batches, BatchPart, load_file, split_batch
from ferrule.training.embedded.checkpoint import TOKENIZER, export, write_embedded_tokenizer
from ferrule.training.embedded.growing import begin_from
from ferrule.training.embedded.network import Network, Shape
from ferrule.training.embedded.optimizer import Optimizer
from ferrule.training.embedded.recipe import RECIPE_FILE, Recipe, count_runs, read_recipe

_CHECKPOINT = "checkpoint.pt"
_START = "start"


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run: steps done of all, the recent average loss in nats per trained token, and speed.

    `run` says which of the `runs` of a recipe it is, from 1.
    """

    step: int
    steps: int
    loss: float
    tokens_per_second: float
    run: int = 1
    runs: int = 1


def make_shape(recipe: Recipe) -> Shape:
    """The network's sizes."""
    return Shape(
        hidden_size=recipe.hidden_size,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.key_value_heads or recipe.heads,
        intermediate_size=3 * recipe.hidden_size,
    )


def train(recipe: Recipe, folder: Path, report: Callable[[Progress], None], *, resume: bool = False) -> Path:
    """Train by the recipe and export to `folder / "model"`; returns that folder.

    If the recipe starts from another one, that is trained in `folder / "start"` first. A single worker uses a CUDA
    device if there is one. An interruption leaves the last checkpoint, and no incomplete file.

    Raises `SettingsError` if the folder contains another run and `resume` is not set, or none that this recipe could
    resume, or if the run can't start from `recipe.start`, and `ModelError` if a worker fails.
    """
    _check_folder(recipe, folder, resume)
    if not resume and not isinstance(recipe.start, Recipe):
        _begin(recipe)  # raises an error in `start` here, before anything is written, and not in each worker
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RECIPE_FILE).write_text(recipe.model_dump_json(indent=2) + "\n")
    write_embedded_tokenizer(folder)  # here, not in each worker: one would read what another has half written
    runs = count_runs(recipe)
    if isinstance(recipe.start, Recipe):
        start = _train_start(recipe.start, folder / _START, lambda progress: report(replace(progress, runs=runs)))
        recipe = recipe.model_copy(update={"start": start})

    def report_last(progress: Progress) -> None:
        report(replace(progress, run=runs, runs=runs))

    try:
        if torch.cuda.is_available():
            _train_worker(0, recipe.model_copy(update={"workers": 1}), folder, "cuda", None, report_last)
        elif recipe.workers == 1:
            _train_worker(0, recipe, folder, "cpu", None, report_last)
        else:
            _train_in_parallel(recipe, folder, report_last)
    finally:
        for partial in folder.rglob("*.partial"):
            partial.unlink()
    return folder / "model"


def _train_start(recipe: Recipe, folder: Path, report: Callable[[Progress], None]) -> Path:
    """The folder of the model to start from, which is trained as far as it isn't yet."""
    model = folder / "model"
    if (model / "model.safetensors").exists():
        return model
    return train(recipe, folder, report, resume=_has_begun(folder))


def _has_begun(folder: Path) -> bool:
    return (folder / _CHECKPOINT).exists() or (folder / _START).exists()


def _check_folder(recipe: Recipe, folder: Path, resume: bool) -> None:
    has_begun = _has_begun(folder)
    if has_begun and not resume:
        raise SettingsError(f"{folder} already contains a run: continue it with --resume, or name another folder")
    if resume and not has_begun:
        raise SettingsError(f"{folder} contains no checkpoint to resume from")
    if resume:
        begun = read_recipe(folder)
        if begun is not None and make_shape(begun) != make_shape(recipe):
            raise SettingsError(
                f"{folder} contains the run of a network of other sizes: its settings are in {RECIPE_FILE}"
            )


def _train_in_parallel(recipe: Recipe, folder: Path, report: Callable[[Progress], None]) -> None:
    if recipe.data is not None:
        load_file(recipe.data, WordTokenizer(folder / TOKENIZER), recipe.longest)  # an error once, not in each worker
    # Not in the folder of the run: torch takes this path from a URL, where a relative one would lie in the root folder.
    with tempfile.TemporaryDirectory(prefix="ferrule-train-") as place:
        has_failed = _watch_workers(recipe, folder, Path(place, "rendezvous"), report)
    if has_failed:
        raise ModelError("a training worker failed; see its own message above")


def _watch_workers(recipe: Recipe, folder: Path, rendezvous: Path, report: Callable[[Progress], None]) -> bool:
    """Run all workers; returns whether one has failed, which ends the others."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    arguments = (recipe, folder, rendezvous, queue)
    workers = [
        context.Process(target=_run_worker, args=(rank, *arguments), daemon=True) for rank in range(recipe.workers)
    ]
    for worker in workers:
        worker.start()
    try:
        # A dead worker leaves the others waiting for its gradients, so the first failure ends all.
        while not any(worker.exitcode for worker in workers) and (
            any(worker.is_alive() for worker in workers) or not queue.empty()
        ):
            with contextlib.suppress(Empty):
                report(queue.get(timeout=0.5))
        return any(worker.exitcode for worker in workers)
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join()


def _run_worker(rank: int, recipe: Recipe, folder: Path, rendezvous: Path, queue: Any) -> None:
    # Ctrl-C reaches every process in a terminal: the parent ends its workers itself, without their tracebacks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=recipe.workers)
    try:
        _train_worker(rank, recipe, folder, "cpu", dist.group.WORLD, queue.put)
    finally:
        dist.destroy_process_group()


def _train_worker(
    rank: int, recipe: Recipe, folder: Path, device: str, group: Any, report: Callable[[Progress], None]
) -> None:
    if device == "cpu":
        torch.set_num_threads(1)
    torch.manual_seed(recipe.seed)
    is_resumed = (folder / _CHECKPOINT).exists()
    network = (Network(make_shape(recipe)) if is_resumed else _begin(recipe)).to(device)
    run = _Run(rank, recipe, folder, network, group)
    run.train(Batches(recipe, WordTokenizer(folder / TOKENIZER), rank), report)
    if rank == 0:
        export(network, folder / "model")


def _begin(recipe: Recipe) -> Network:
    network = Network(make_shape(recipe))
    if isinstance(recipe.start, Path):
        begin_from(network, recipe.start)
    return network


class _Run:
    """One worker's share of a training run."""

    def __init__(self, rank: int, recipe: Recipe, folder: Path, network: Network, group: Any) -> None:
        self._rank, self._recipe, self._folder, self._group = rank, recipe, folder, group
        self._network = network
        self._device = next(network.parameters()).device
        precision = torch.bfloat16 if recipe.precision == "bfloat16" else torch.float32
        self._optimizer = Optimizer(
            network, recipe.matrix_rate, recipe.other_rate, recipe.weight_decay, precision, group
        )
        # Small updates would be lost in bfloat16, so the weights themselves stay in float32.
        self._computed = network if precision == torch.float32 else network.copy_in_bfloat16()
        if recipe.compile and _has_compiler():
            self._computed.compile_blocks()

    def train(self, batches: Batches, report: Callable[[Progress], None]) -> None:
        """Run all steps from the checkpoint's on; the first worker reports and saves."""
        start = self._restore()
        drawn = batches.iterate_from(start)
        recent, tokens, since = 0.0, 0, time.monotonic()
        for step in range(start, self._recipe.steps):
            _check_parent()
            ids, targets = next(drawn)
            loss = self._step(step, ids, targets)
            recent = loss if step == start else 0.98 * recent + 0.02 * loss
            tokens += ids.numel() * self._recipe.workers
            if self._rank == 0:
                done = step + 1
                if done % 10 == 0 or done == self._recipe.steps:
                    report(Progress(done, self._recipe.steps, recent, tokens / (time.monotonic() - since)))
                if done % self._recipe.checkpoint_every == 0 or done == self._recipe.steps:
                    self._save(done)

    def _step(self, step: int, ids: Tensor, targets: Tensor) -> float:
        recipe, rate = self._recipe, self._recipe.compute_rate(step)
        parts = split_batch(
            ids.to(self._device), targets.to(self._device), recipe.choice_weight, recipe.context_weight * rate
        )
        loss = sum(map(self._add_gradients, parts))
        self._take_gradients()
        if self._group is not None:
            _average_gradients(self._network, self._recipe.workers)
        self._optimizer.step(rate)
        self._network.zero_grad()
        if self._computed is not self._network:
            self._computed.copy_weights(self._network)
        return loss

    def _add_gradients(self, part: BatchPart) -> float:
        hidden = self._computed.compute_hidden(part.ids, self._computed.get_mask(part.ids.shape[1]))
        has_target = part.targets != IGNORED
        losses = self._computed.compute_target_losses(hidden, part.targets) * part.weights[has_target]
        torch.autograd.backward(losses.sum())
        return losses.detach()[part.is_trained[has_target]].sum().item()

    def _take_gradients(self) -> None:
        """Move the gradients to the weights that the optimizer changes."""
        if self._computed is self._network:
            return
        for own, computed in zip(self._network.parameters(), self._computed.parameters(), strict=True):
            own.grad = None if computed.grad is None else computed.grad.float()
        self._computed.zero_grad()

    def _save(self, step: int) -> None:
        partial = self._folder / f"{_CHECKPOINT}.partial"
        state = {"step": step, "network": self._network.state_dict(), "optimizer": self._optimizer.state_dict()}
        torch.save(state, partial)
        partial.replace(self._folder / _CHECKPOINT)

    def _restore(self) -> int:
        path = self._folder / _CHECKPOINT
        if not path.exists():
            return 0
        state = torch.load(path, weights_only=True)
        self._network.load_state_dict(state["network"])
        self._optimizer.load_state_dict(state["optimizer"])
        if self._computed is not self._network:
            self._computed.copy_weights(self._network)
        return int(state["step"])


def _check_parent() -> None:
    """End a worker whose parent was killed, which would otherwise train on forever."""
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        raise SystemExit(1)


def _has_compiler() -> bool:
    return shutil.which(os.environ.get("CXX", "g++")) is not None


def _average_gradients(network: Network, workers: int) -> None:
    gradients = [p.grad for p in network.parameters() if p.grad is not None]
    flat = torch.cat([g.reshape(-1) for g in gradients])
    dist.all_reduce(flat)
    flat /= workers
    start = 0
    for gradient in gradients:
        gradient.copy_(flat[start : start + gradient.numel()].view_as(gradient))
        start += gradient.numel()
