"""Describes what is installed: `child.py` runs in a sandbox, since importing packages and reading names runs code.

Docstrings of the scientific packages, in NumPy's style, become the parts of a `FunctionDoc`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from ferrule.analysis.functions import child
from ferrule.analysis.functions.document import FunctionDoc
from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.python import PythonSandbox

_LONGEST_TEXT: Final = 400
_LONGEST_EXAMPLE: Final = 800
_MOST_EXAMPLES: Final = 3
_ROLE: Final = re.compile(r":[a-z:]+:`[~!]?([^`<]+?)(?:\s*<[^`>]*>)?`")
_DIRECTIVE: Final = re.compile(r"^\s*\.\. \w[\w-]*::.*(?:\n(?:[ \t]+\S.*|[ \t]*(?=\n[ \t]+\S)))*", re.MULTILINE)
_SIGNATURE_LINE: Final = re.compile(r"^[\w.]+\(.*\)(\s*->.*)?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DocstringParts:
    """The parts of a docstring that a `FunctionDoc` shows; `signature` is what a first line like `f(x)` says."""

    signature: str
    purpose: str
    parameters: tuple[tuple[str, str], ...]
    returns: str
    examples: tuple[str, ...]


def split_docstring(docstring: str) -> DocstringParts:
    """Split a docstring into its parts; those that it lacks are empty."""
    from griffe import Docstring, parse_numpy

    sections = parse_numpy(Docstring(docstring), warnings=False, warn_unknown_params=False, ignore_init_summary=False)
    parameters, returns, examples = [], [], list[str]()
    text = ""
    for section in sections:
        value: Any = section.value
        match section.kind.value:
            case "text" if not text:
                text = value
            case "parameters" | "other parameters":
                parameters += [(each.name, _describe_value(each)) for each in value]
            case "returns" | "yields":
                returns += [": ".join(filter(None, (each.name, _describe_value(each)))) for each in value]
            case "examples":
                examples += _list_examples(value)
    signature, purpose = _read_summary(text)
    return DocstringParts(signature, purpose, tuple(parameters), "; ".join(returns), tuple(examples[:_MOST_EXAMPLES]))


def _read_summary(text: str) -> tuple[str, str]:
    """The signature, if the first paragraph is one, and the first paragraph of words."""
    signature = ""
    for paragraph in re.split(r"\n\s*\n", _DIRECTIVE.sub("", text).strip()):
        first, _, rest = paragraph.strip().partition("\n")
        if _SIGNATURE_LINE.match(first) and not signature:
            signature = first[first.index("(") :].partition(" ->")[0]
            paragraph = rest  # noqa: PLW2901 - what follows on the next line is the summary
        if paragraph.strip():
            return signature, _join(paragraph)
    return signature, ""


def _describe_value(element: Any) -> str:
    """The type of a parameter or result, and the first paragraph of what is said of it."""
    annotation = str(element.annotation or "")
    description = _join(_DIRECTIVE.sub("", element.description or "").strip().partition("\n\n")[0])
    return ". ".join(filter(None, (_join(annotation), description)))


def _list_examples(parts: Any) -> Iterator[str]:
    """The code of each example with its output, without the prose between."""
    for kind, text in parts:
        if kind.value == "examples" and len(text) <= _LONGEST_EXAMPLE:
            yield text


def _join(text: str) -> str:
    """A paragraph on one line, without the markup of reStructuredText, cut where it is long."""
    line = " ".join(_ROLE.sub(r"\1", text).replace("``", "`").split())
    return line if len(line) <= _LONGEST_TEXT else f"{line[: _LONGEST_TEXT - 1].rstrip()}…"


@dataclass(frozen=True, slots=True)
class Batch:
    """What one run describes: the public functions of modules, and the public methods of owners (classes).

    Both are lists of paths, separated by white space.
    """

    modules: str
    owners: str = ""


_GENERAL_MODULES: Final = """
    math statistics random itertools functools collections datetime decimal fractions re
    numpy numpy.linalg numpy.fft numpy.random numpy.polynomial.polynomial numpy.lib.stride_tricks
    pandas pandas.api.types pandas.plotting matplotlib.pyplot
"""
_GENERAL_OWNERS: Final = """
    numpy.random.Generator pandas.DataFrame pandas.Series pandas.Series.str pandas.Series.dt
    pandas.api.typing.DataFrameGroupBy pandas.api.typing.Rolling pandas.api.typing.Resampler
"""
_SCIENTIFIC_MODULES: Final = """
    scipy.optimize scipy.integrate scipy.interpolate scipy.linalg scipy.ndimage scipy.fft scipy.special
    scipy.sparse scipy.sparse.linalg scipy.sparse.csgraph scipy.spatial scipy.spatial.distance
    scipy.stats scipy.stats.contingency scipy.stats.qmc scipy.signal
    scipy.cluster.hierarchy scipy.cluster.vq
    sklearn.linear_model sklearn.ensemble sklearn.cluster sklearn.neighbors sklearn.manifold
    sklearn.decomposition sklearn.preprocessing sklearn.feature_extraction.text sklearn.feature_selection
    sklearn.neural_network sklearn.svm sklearn.tree sklearn.naive_bayes sklearn.inspection sklearn.mixture
    sklearn.metrics sklearn.metrics.pairwise sklearn.model_selection sklearn.pipeline sklearn.compose
    sklearn.impute sklearn.calibration sklearn.covariance sklearn.discriminant_analysis
    sklearn.gaussian_process sklearn.dummy sklearn.datasets sklearn.isotonic sklearn.multiclass
    sklearn.random_projection sklearn.kernel_ridge sklearn.cross_decomposition
    statsmodels.api statsmodels.formula.api statsmodels.tsa.api statsmodels.stats.api
    statsmodels.tsa.stattools statsmodels.stats.multicomp statsmodels.stats.inter_rater
    statsmodels.stats.outliers_influence statsmodels.nonparametric.api statsmodels.graphics.api
"""

BATCHES: Final = (
    Batch(_GENERAL_MODULES, _GENERAL_OWNERS),
    Batch(_SCIENTIFIC_MODULES),
)
"""Two runs at once. Most of their time is importing, so that what imports scipy is in one."""

_MEMORY: Final = 2 * 1024**3
_TIMEOUT: Final = 120.0


async def describe_installed(paths: Sequence[str], on_batch: Callable[[], None]) -> dict[str, FunctionDoc]:
    """Describe the callables of all batches, and those at `paths`, by path.

    `on_batch` is called after each batch. Raises `SandboxUnavailable` if nothing can be run.
    """
    # What a path's batch has imported is there when the path is described.
    second = [path for path in paths if path.startswith(("scipy.", "sklearn.", "statsmodels."))]
    first = [path for path in paths if path not in set(second)]

    async def describe_batch(batch: Batch, wanted: Sequence[str]) -> list[FunctionDoc]:
        documents = await describe_callables(sandbox, batch.modules.split(), batch.owners.split(), wanted)
        on_batch()
        return documents

    async with make_sandbox() as sandbox:
        each = await asyncio.gather(*map(describe_batch, BATCHES, (first, second)))
    return {document.path: document for documents in each for document in documents}


def make_sandbox() -> PythonSandbox:
    """A sandbox for introspection, which imports packages when they are named."""
    return PythonSandbox(packages=(), memory=_MEMORY)


async def describe_callables(
    sandbox: PythonSandbox, modules: Sequence[str], owners: Sequence[str], paths: Sequence[str]
) -> list[FunctionDoc]:
    """Describe the functions of modules, the methods of owners and what is at paths, in one run."""
    inputs = {"modules": list(modules), "owners": list(owners), "paths": list(paths)}
    run = await sandbox.run(_read_child(), inputs, timeout=_TIMEOUT)
    if run.error is not None or not isinstance(run.value, bytes):
        reason = run.error.message if run.error is not None else "the run returned nothing"
        raise SandboxUnavailable(f"the installed packages can't be described: {reason}")
    return await asyncio.to_thread(lambda: [_make_document(*record) for record in json.loads(run.value)])


@cache
def _read_child() -> str:
    source = Path(child.__file__).read_text(encoding="utf-8")
    return f"{source}\n\ndescribe_all(modules, owners, paths)\n"


def _make_document(path: str, signature: str | None, docstring: str, kind: str) -> FunctionDoc:
    parts = split_docstring(docstring)
    returns = parts.returns
    if kind == "class":
        returns = f"An instance of {path.rpartition('.')[2]}."
    return FunctionDoc(
        path,
        signature or parts.signature or ("" if kind == "attribute" else "(…)"),
        parts.purpose,
        parts.parameters,
        returns,
        parts.examples,
    )
