"""Describes what is installed: `child.py` runs in a sandbox, since importing packages and reading names runs code."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from ferrule.analysis.functions import child
from ferrule.analysis.functions.docstrings import split_docstring
from ferrule.analysis.functions.document import FunctionDoc
from ferrule.errors import SandboxUnavailable
from ferrule.sandbox.python import PythonSandbox


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
