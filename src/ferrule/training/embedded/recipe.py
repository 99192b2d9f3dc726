"""The recipe's settings: everything that determines the weights."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from ferrule.errors import SettingsError
from ferrule.training.synth import FULL

RECIPE_FILE = "recipe.json"
"""The name of a recipe in the folder of its run, and of the package's weights."""


class Recipe(BaseModel):
    """How the embedded model is trained."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seed: Annotated[int, Field(ge=0)] = 7
    """The seed of the initial weights and the training data."""
    steps: Annotated[int, Field(gt=0)] = 15_500
    """Optimizer steps."""
    batch_tokens: Annotated[int, Field(ge=256)] = 4_096
    """Tokens per step, including padding, over all workers."""
    workers: Annotated[int, Field(ge=1)] = 2
    """Processes with one thread each, whose gradients are averaged: on a CPU faster than one process with many
    threads."""
    hidden_size: Annotated[int, Field(gt=0, multiple_of=32)] = 192
    """Width."""
    layers: Annotated[int, Field(gt=0)] = 8
    """Depth."""
    start: Path | Recipe | None = None
    """What to start from: a folder with a model, or the recipe of a run that is made first. It may be a smaller
    network, which is grown. None starts from scratch."""
    heads: Annotated[int, Field(gt=0)] = 6
    """Query heads of size 32."""
    key_value_heads: Annotated[int | None, Field(gt=0)] = None
    """Key-value heads, each of which several query heads share; None is one for each."""
    matrix_rate: float = 0.02
    """Peak learning rate of Muon."""
    other_rate: float = 4e-3
    """Peak learning rate of AdamW, for embeddings and norms."""
    weight_decay: float = 0.05
    """Decoupled weight decay of the matrices."""
    warmup: Annotated[float, Field(ge=0, le=1)] = 0.01158
    """The share of steps in which the rates rise from zero."""
    decay: Annotated[float, Field(ge=0, le=1)] = 0.6
    """The last share of steps, in which the rates fall to zero."""
    short: Annotated[float, Field(ge=0, le=1)] = 0.10537
    """The first share of steps, which use only single turns."""
    longest: Annotated[int, Field(gt=0)] = 600
    """Conversations with more tokens are excluded from training; those with foreign tools are drawn to fit."""
    tools: Annotated[float, Field(ge=0, le=1)] = FULL.tools
    """The share of conversations with foreign tools, after the short ones."""
    choice_weight: Annotated[float, Field(ge=1)] = 2.5
    """How much more a token counts in the loss that decides what is done, than one of the reply that follows from it:
    the first of an answer, which begins a call or doesn't, and those of calls."""
    context_weight: Annotated[float, Field(ge=0)] = 0.07
    """How much a token of what the model only reads, offers and requests, counts of one that it is to write; it falls
    as the rates do. What a request shares with an offer is learned from them too: a network learns to compare sooner.
    The loss that is reported is that of what is to be written."""
    checkpoint_every: Annotated[int, Field(gt=0)] = 250
    """Steps between checkpoints, from which an interrupted run continues."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """The number format of the network's products; the weights are kept in float32. bfloat16 is more than twice as
    fast on a CPU that has it (AMX, or AVX-512 with bfloat16), and slower than float32 on one without."""
    compile: bool = True
    """Compile the network if there is a C++ compiler: about a sixth faster."""
    data: Path | None = None
    """A JSONL file of `ferrule synth` to train on repeatedly; None draws new conversations for every step."""

    @field_validator("key_value_heads")
    @classmethod
    def _check_sharing(cls, value: int | None, others: ValidationInfo) -> int | None:
        heads = others.data.get("heads")
        if value is not None and heads is not None and heads % value:
            raise PydanticCustomError("divisor", "Input should be a divisor of {heads} (heads)", {"heads": heads})
        return value

    def compute_rate(self, step: int) -> float:
        """The share of the peak rates at a step: a rise, a plateau, and a fall to zero."""
        done = step / self.steps
        if done < self.warmup:
            return min(1.0, (step + 1) / (self.warmup * self.steps))
        return min(1.0, (1 - done) / self.decay) if self.decay else 1.0


def count_runs(recipe: Recipe) -> int:
    """How many runs a recipe makes: its own, and those that it starts from."""
    return 1 + (count_runs(recipe.start) if isinstance(recipe.start, Recipe) else 0)


def read_shipped_recipe() -> Recipe:
    """The recipe of the weights in the package, with those of the runs that it starts from."""
    return Recipe.model_validate_json((files("ferrule.embedded") / RECIPE_FILE).read_text("utf-8"))


def read_recipe(folder: Path) -> Recipe | None:
    """The recipe of the run in a folder; None without one. Raises `SettingsError` for one that can't be read."""
    path = folder / RECIPE_FILE
    try:
        return Recipe.model_validate_json(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} can't be read as a recipe: {error}") from error
