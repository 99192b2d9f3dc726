"""What would be chosen for a checkpoint, and why, found without loading its weights: `ferrule models local:FOLDER`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ferrule.conversation import Conversation, ToolCall, user
from ferrule.dialects.catalogue import get_dialect
from ferrule.dialects.notation import infer_spec
from ferrule.dialects.protocol import Dialect
from ferrule.engines.families import RUN_FAMILIES
from ferrule.errors import FerruleError, ModelError, SettingsError
from ferrule.models.checkpoints.engines import (
    check_family,
    choose_engine,
    count_weights,
    find_missing_package,
    find_numpy_obstacle,
)
from ferrule.models.checkpoints.files import (
    CheckpointConfig,
    check_file,
    check_shapes,
    find_weights,
    read_checkpoint_config,
)
from ferrule.models.checkpoints.loading import choose_dialect, find_checkpoint, read_tokenizer
from ferrule.models.checkpoints.options import check_options
from ferrule.tokens.tokenizer import Tokenizer, read_tokenizer_file

_EXAMPLE = ("get_weather", '{"city": "Paris"}')
_CALCULATION = ("calculator", '{"expression": "12 * 34"}')
_STORED = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}


@dataclass(slots=True)
class CheckpointDescription:
    """What a checkpoint is and how it would be run; None, or empty, for what couldn't be found out.

    `problems` say why it can't be loaded as it is; without any, it can.
    """

    name: str
    folder: str | None = None
    family: str | None = None
    architecture: str | None = None
    context_length: int | None = None
    weights: int | None = None
    weights_bytes: int | None = None
    weights_files: int | None = None
    weights_types: tuple[str, ...] = ()
    engine: str | None = None
    engine_reason: str | None = None
    dtype: str | None = None
    device: str | None = None
    tokenizer: str | None = None
    vocabulary_size: int | None = None
    template: str | None = None
    dialect: str | None = None
    notation: str | None = None
    notation_reason: str | None = None
    stops: dict[str, int] = field(default_factory=dict)
    call: str | None = None
    tools: bool | None = None
    parallel_calls: bool | None = None
    reasoning: bool | None = None
    system: bool | None = None
    constrains_calls: bool | None = None
    constrains_reason: str | None = None
    problems: list[str] = field(default_factory=list)

    def forget_abilities(self) -> None:
        """Leave out what a model that isn't run would do."""
        self.call = self.constrains_calls = self.constrains_reason = None
        self.tools = self.parallel_calls = self.reasoning = self.system = None

    @contextmanager
    def collecting_problems(self) -> Iterator[None]:
        """Note what can't be found out, and go on with the rest."""
        try:
            yield
        except FerruleError as error:
            if str(error) not in self.problems:
                self.problems.append(str(error))


def describe_checkpoint(checkpoint: str, options: Mapping[str, Any]) -> CheckpointDescription:
    """What `load_local_model` would choose for a checkpoint and these options of it.

    Of a name on the hub no weights are fetched. Raises `ModelError` if there is no such checkpoint, and
    `SettingsError` for options that no local model has, or of another type.
    """
    check_options(options)
    folder = find_checkpoint(checkpoint, options.get("revision"), with_weights=False)
    found = CheckpointDescription(f"local:{checkpoint}", str(folder))
    config = None
    with found.collecting_problems():
        config = read_checkpoint_config(folder)
        found.family, found.architecture = config.family or None, config.architecture or None
        found.context_length = options.get("context_length") or config.context_length
    with found.collecting_problems():
        if not Path(checkpoint).expanduser().is_dir() and not list(folder.glob("*.safetensors")):
            raise ModelError("the weights are not downloaded yet; they are as soon as the model is used")
        weights = find_weights(folder)
        found.weights, found.weights_bytes = count_weights(weights), weights.size
        found.weights_files, found.weights_types = len(weights.files), weights.dtypes
        if config is not None:
            check_shapes(folder, config, weights)
    with found.collecting_problems():
        _describe_dialect(found, folder, options.get("dialect"))
    if config is not None and found.weights is not None:
        with found.collecting_problems():
            _describe_engine(found, folder, config, options)
    if config is not None and config.family not in RUN_FAMILIES and found.engine != "numpy":
        found.forget_abilities()
    if found.constrains_calls and found.engine == "transformers" and find_spec("llguidance") is None:
        found.constrains_calls, found.constrains_reason = False, "llguidance isn't installed"
    return found


def _describe_dialect(found: CheckpointDescription, folder: Path, named: str | None) -> None:
    """Describe the tokenizer, and how conversations are written."""
    file = read_tokenizer_file(check_file(folder, "tokenizer.json"))
    model = file.settings.get("model") if isinstance(file.settings, dict) else None
    found.tokenizer = str(model.get("type")) if isinstance(model, dict) else None
    tokenizer = read_tokenizer(folder / "tokenizer.json")
    found.vocabulary_size = tokenizer.vocabulary_size
    dialect = choose_dialect(tokenizer, folder) if named is None else get_dialect(named)
    found.dialect = dialect.name
    _describe_notation(found, folder, dialect, is_named=named is not None)
    _describe_abilities(found, dialect, tokenizer)


def _describe_notation(found: CheckpointDescription, folder: Path, dialect: Dialect, *, is_named: bool) -> None:
    from ferrule.dialects.template.dialect import TemplateDialect
    from ferrule.tokens.template_loading import find_template_file

    if not isinstance(dialect, TemplateDialect):
        found.notation = dialect.name
        tokens = ", ".join(marker for marker in dialect.markers[:2])
        found.notation_reason = "it was named" if is_named else f"the tokenizer has its control tokens, as {tokens}"
        return
    template = find_template_file(folder)
    found.template = None if template is None else str(template.relative_to(folder))
    if dialect.learned.no_calls:
        found.notation_reason = dialect.learned.no_calls
        return
    from ferrule.dialects.template.detection import detect_family

    family = detect_family(dialect.template, dialect.variables)
    assert family is not None, "the dialect has a notation, which was detected"
    found.notation = family.name
    markers = ", ".join(family.evidence[:3])
    found.notation_reason = f"it reads the calls that the template writes ({markers}); certainty {family.certainty}"


def _describe_abilities(found: CheckpointDescription, dialect: Dialect, tokenizer: Tokenizer) -> None:
    can = dialect.capabilities
    found.tools, found.parallel_calls = can.tools != (), can.parallel_calls and can.tools != ()
    found.reasoning, found.system = can.reasoning, can.system
    stops = dialect.layout(Conversation((user("Hello"),))).stops
    found.stops = {stop: tokenizer.control[stop] for stop in stops if stop in tokenizer.control}
    if not found.stops:
        found.problems.append(
            f"the tokenizer has no control token for {', '.join(stops)}, which ends a message, so none would end"
        )
    found.constrains_calls = False
    if not found.tools:
        found.constrains_reason = "it makes none"
        return
    call = ToolCall("call_1", *(_CALCULATION if can.tools else _EXAMPLE))
    found.call = dialect.call(call)
    if dialect.grammar((infer_spec(call),), "required") is None:
        found.constrains_reason = f"the dialect {dialect.name} describes no grammar of them"
    else:
        found.constrains_calls = True


def _describe_engine(
    found: CheckpointDescription, folder: Path, config: CheckpointConfig, options: Mapping[str, Any]
) -> None:
    named = options.get("engine")
    if named is None:
        choice = choose_engine(folder, found.dialect or "", options)
        found.engine, found.engine_reason = choice.name, choice.why
    elif named not in ("numpy", "transformers"):
        raise SettingsError(f"engine: {named!r} is neither numpy nor transformers")
    else:
        found.engine, found.engine_reason = str(named), "it was named"
        if named == "numpy" and (obstacle := find_numpy_obstacle(folder, find_weights(folder))) is not None:
            raise ModelError(f"{folder}: {obstacle}")
    if found.engine == "numpy":
        found.dtype, found.device = "float32", "cpu"
        return
    stored = found.weights_types[0] if found.weights_types else ""
    asked = options.get("dtype", "auto")
    found.dtype = str(asked) if asked != "auto" else config.dtype or _STORED.get(stored, stored)
    check_family(folder)
    if find_missing_package() is None:
        from ferrule.engines.torch_loading import choose_device

        device = choose_device(options.get("device_map"))
        found.device = str(options.get("device_map") if device is None else device)
