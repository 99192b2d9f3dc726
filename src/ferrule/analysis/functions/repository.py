"""`FunctionRepository`: finds functions by a question, or by their path."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from ferrule._util.async_closing import AsyncClosing
from ferrule._util.user_folders import find_cache_folder
from ferrule.analysis.functions.document import CuratedFunction, FunctionDoc, load_curated_functions
from ferrule.errors import SettingsError

if TYPE_CHECKING:
    from ferrule.analysis.functions.cache import StoredDocuments
    from ferrule.analysis.functions.search import Embedder, FunctionIndex
    from ferrule.sandbox.python import PythonSandbox

Progress = Callable[[int, str], None]
STEPS: Final = 4
"""Of building: two batches of introspection, the index, the cache."""

_PATH: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_SHORT_NAMES: Final = {
    "np": "numpy",
    "pd": "pandas",
    "plt": "matplotlib.pyplot",
    "sm": "statsmodels.api",
    "smf": "statsmodels.formula.api",
    "tsa": "statsmodels.tsa.api",
    "stats": "scipy.stats",
    "DataFrame": "pandas.DataFrame",
    "Series": "pandas.Series",
    "df": "pandas.DataFrame",
}
"""What people, and models, call packages for short."""


class FunctionRepository(AsyncClosing):
    """What model-written code can call: curated functions first, then what introspection finds.

    It is opened by `open`; `aclose` (or `async with`) ends the sandbox that `look_up` may have started.
    """

    def __init__(self, documents: StoredDocuments, index: FunctionIndex) -> None:
        self._documents = documents
        self._index = index
        self._numbers = {path: number for number, path in enumerate(documents.paths)}
        self._outside: dict[str, FunctionDoc | None] = {}
        self._sandbox: PythonSandbox | None = None
        self._lock = asyncio.Lock()

    @classmethod
    async def open(cls, *, folder: Path | str | None = None, on_progress: Progress | None = None) -> Self:
        """Open the repository: from its cache, or by building it, which takes seconds and calls `on_progress`.

        The cache is in `folder`, by default the user's cache folder, and depends on the versions of the packages; a
        damaged one is built again. Raises `SettingsError` without the extra `ferrule[analysis]`, and
        `SandboxUnavailable` if nothing can be introspected here.
        """
        try:
            from ferrule.analysis.functions.cache import find_cache_file, read_cache
            from ferrule.analysis.functions.vocabulary import split_into_terms

            # Needs the stemmer: better missed now than after seconds of introspection.
            await asyncio.to_thread(split_into_terms, "")
            path = find_cache_file(Path(folder or _find_own_folder()))
            found = await asyncio.to_thread(read_cache, path)
            return cls(*(found or await _build(path, on_progress or _ignore_progress)))
        except ImportError as error:
            missing = (error.name or "a part of it").partition(".")[0]
            raise SettingsError(
                f"the function repository needs {missing}; install it with: pip install 'ferrule[analysis]'"
            ) from error

    @property
    def paths(self) -> Sequence[str]:
        """The paths of all indexed functions, the curated ones first."""
        return self._documents.paths

    def search(self, query: str, limit: int = 5, *, curated_only: bool = False) -> list[FunctionDoc]:
        """Find the functions that fit a question in plain words, the best first, by BM25.

        Curated functions come first where both fit. The list is empty if no word of the question is known.
        """
        if limit < 1:
            raise SettingsError(f"a search needs a limit of at least 1, not {limit}")
        return [self._documents.read(number) for number in self._index.rank(query, limit, curated_only)]

    def search_by_embedding(self, query: str, embed: Embedder, limit: int = 5) -> list[FunctionDoc]:
        """Find functions by the similarity of embeddings, computed by a function of yours.

        All purposes are embedded at each call: keep vectors in `embed` if it is slow.
        """
        import numpy as np

        documents = [self._documents.read(number) for number in range(len(self.paths))]
        vectors = np.asarray(embed([f"{one.path}: {one.purpose}" for one in documents]), dtype=float)
        wanted = np.asarray(embed([query]), dtype=float)[0]
        lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(wanted)
        scores = vectors @ wanted / np.where(lengths == 0, 1, lengths)
        return [documents[int(number)] for number in np.argsort(-scores, kind="stable")[:limit]]

    async def look_up(self, path: str) -> FunctionDoc | None:
        """Find what is known of a function by its path; None if there is no such function.

        One outside the index is introspected in a sandbox. Short names such as `np.mean` are understood.
        """
        full = expand_path(path)
        if full in self._numbers:
            return self._documents.read(self._numbers[full])
        if not _PATH.fullmatch(full) or "." not in full:
            return None
        async with self._lock:
            if full not in self._outside:
                self._outside[full] = await self._introspect(full)
        return self._outside[full]

    def find_nearest(self, path: str, limit: int = 3) -> list[str]:
        """Find the indexed paths that are spelled most like one, those with the same last name first."""
        full = expand_path(path)
        last = full.rpartition(".")[2]
        same = [each for each in self.paths if each.rpartition(".")[2] == last]
        near = get_close_matches(full, self.paths, n=limit, cutoff=0.75)
        names = {each.rpartition(".")[2]: each for each in reversed(self.paths)}
        spelled = [names[name] for name in get_close_matches(last, names, n=limit, cutoff=0.75)]
        return list(dict.fromkeys((*same, *near, *spelled)))[:limit]

    async def aclose(self) -> None:
        """End the sandbox, if one was started. Can be called again."""
        if self._sandbox is not None:
            await self._sandbox.aclose()
            self._sandbox = None

    async def _introspect(self, path: str) -> FunctionDoc | None:
        from ferrule.analysis.functions.introspection import describe_callables, make_sandbox

        self._sandbox = self._sandbox or make_sandbox()
        documents = await describe_callables(self._sandbox, (), (), (path,))
        return documents[0] if documents else None


def _find_own_folder() -> Path:
    try:
        return find_cache_folder() / "functions"
    except RuntimeError as error:
        raise SettingsError(f"there is no folder for the function repository: {error}; set HOME") from error


def expand_path(path: str) -> str:
    """Write a path in full: `np.mean` as `numpy.mean`; the parentheses of a call are dropped."""
    first, dot, rest = path.strip().partition("(")[0].partition(".")
    return f"{_SHORT_NAMES.get(first, first)}{dot}{rest}"


async def _build(path: Path, on_progress: Progress) -> tuple[StoredDocuments, FunctionIndex]:
    from ferrule.analysis.functions.cache import StoredDocuments, write_cache
    from ferrule.analysis.functions.introspection import describe_installed
    from ferrule.analysis.functions.search import FunctionIndex

    curated = await asyncio.to_thread(load_curated_functions)
    steps = iter(range(1, STEPS + 1))
    on_progress(0, "describing the installed packages")
    installed = await describe_installed(
        [one.path for one in curated], lambda: on_progress(next(steps), "describing the installed packages")
    )

    def index_all() -> tuple[StoredDocuments, FunctionIndex]:
        # What an older version of a package lacks is left out.
        known = [one for one in curated if one.path in installed]
        ours = [_join_curated(one, installed.pop(one.path)) for one in known]
        documents = [*ours, *installed.values()]
        texts = [_list_search_text(document) for document in documents]
        for number, one in enumerate(known):
            texts[number] = " ".join((texts[number], *one.asks))
        return StoredDocuments.store(documents), FunctionIndex.build(texts, len(ours))

    built = await asyncio.to_thread(index_all)
    on_progress(next(steps), "keeping the index")
    await asyncio.to_thread(write_cache, path, *built)
    on_progress(next(steps), "")
    return built


def _join_curated(curated: CuratedFunction, document: FunctionDoc) -> FunctionDoc:
    return replace(
        document,
        purpose=curated.purpose,
        signature=curated.signature or document.signature,
        returns=curated.returns or document.returns,
        examples=tuple(filter(None, (curated.example, *document.examples))),
        origin="curated",
    )


def _list_search_text(document: FunctionDoc) -> str:
    from ferrule.analysis.functions.vocabulary import split_path_into_words

    return f"{split_path_into_words(document.path)} {document.purpose}"


def _ignore_progress(done: int, note: str) -> None:
    """Show nothing."""
