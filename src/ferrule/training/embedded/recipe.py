"""The recipe's settings: all that decides which weights come out, with the values that made those in the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class Recipe(BaseModel):
    """How the embedded model is made."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: Annotated[int, Field(ge=0)] = 7
    """Decides the initial weights and the training data."""
    steps: Annotated[int, Field(gt=0)] = 19_000
    """Optimizer steps."""
    batch_tokens: Annotated[int, Field(ge=256)] = 4_096
    """Tokens of a step, padding included, over all workers together."""
    workers: Annotated[int, Field(ge=1)] = 2
    """Processes of one thread each, whose gradients are averaged: on a CPU faster than one process of many threads."""
    hidden_size: Annotated[int, Field(gt=0, multiple_of=32)] = 128
    """Width."""
    layers: Annotated[int, Field(gt=0)] = 5
    """Depth."""
    start: Path | None = None
    """A folder with a model to go on from; where it has fewer layers, some of them are doubled. None is nothing."""
    heads: Annotated[int, Field(gt=0, multiple_of=2)] = 4
    """Query heads of 32; there are two key-value heads."""
    matrix_rate: float = 0.02
    """Peak learning rate of Muon."""
    other_rate: float = 4e-3
    """Peak learning rate of AdamW, for embeddings and norms."""
    weight_decay: float = 0.05
    """Decoupled weight decay of the matrices."""
    warmup: Annotated[float, Field(ge=0, le=1)] = 0.01158
    """The share of steps over which the rates rise from zero."""
    decay: Annotated[float, Field(ge=0, le=1)] = 0.6
    """The last share of steps, over which the rates fall to zero."""
    short: Annotated[float, Field(ge=0, le=1)] = 0.10537
    """The first share of steps, which see single turns only."""
    longest: Annotated[int, Field(gt=0)] = 512
    """Conversations of more tokens are left out of training."""
    checkpoint_every: Annotated[int, Field(gt=0)] = 250
    """Steps between checkpoints, from which an interrupted run goes on."""
    compile: bool = True
    """Compile the network where a C++ compiler is found: about a sixth faster."""
    data: Path | None = None
    """A JSONL file of `ferrule synth` to train on again and again; None draws fresh conversations for every step."""

    def compute_rate(self, step: int) -> float:
        """The share of the peak rates at a step: a rise, a plateau, and a fall to zero."""
        done = step / self.steps
        if done < self.warmup:
            return min(1.0, (step + 1) / (self.warmup * self.steps))
        return min(1.0, (1 - done) / self.decay) if self.decay else 1.0
