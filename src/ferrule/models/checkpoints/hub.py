"""Finds a checkpoint by the name of its repository: in the cache of Hugging Face's hub, or downloaded into it.

The hub's own client does it, so its cache, its token, `HF_HUB_OFFLINE` and `HF_ENDPOINT` mean what they mean elsewhere.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NoReturn

from ferrule.errors import ModelError, ProviderError

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_WANTED = ["*.json", "*.jinja"]
# Files in folders are the same weights for other programs, but for the templates.
_UNWANTED = ["*/*.json", "*/*.safetensors", "*/*.py", "consolidated*"]
_GATED = (401, 403)
_MISSING = 404


def is_hub_name(name: str) -> bool:
    """Whether a name can be that of a repository, `ORG/NAME`."""
    return _NAME.fullmatch(name) is not None


def fetch_checkpoint(
    name: str, revision: str | None = None, *, with_weights: bool = True, with_code: bool = False
) -> Path:
    """The folder of a repository's files, in the cache: those that are missing are downloaded, with a progress bar.

    `revision` is a branch, a tag or a commit. Weights are fetched as safetensors, `with_code` Python files, too.

    Raises `ModelError` if that fails: `ProviderError` where the hub refused or can't be reached.
    """
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.utils.tqdm import are_progress_bars_disabled
    except ImportError as error:
        raise ModelError(
            f"{name} is no folder here, and a model of that name needs the huggingface_hub package: "
            "pip install 'ferrule[local]'"
        ) from error
    wanted = [*_WANTED, *(["*.safetensors"] if with_weights else ()), *(["*.py"] if with_code else ())]
    keeps_bars = are_progress_bars_disabled() or sys.stderr.isatty()
    with _describe_failures(name, revision), nullcontext() if keeps_bars else _without_progress_bars():
        return Path(snapshot_download(name, revision=revision, allow_patterns=wanted, ignore_patterns=_UNWANTED))


@contextmanager
def _without_progress_bars() -> Iterator[None]:
    """In a log, each step of a bar would be a line."""
    from huggingface_hub.utils.tqdm import disable_progress_bars, enable_progress_bars

    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


@contextmanager
def _describe_failures(name: str, revision: str | None) -> Iterator[None]:
    """Raise what the hub's client raises as one line."""
    from huggingface_hub.errors import (
        EntryNotFoundError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        yield
    except RevisionNotFoundError as error:
        raise ProviderError(f"{name} has no revision {revision!r}", _MISSING) from error
    except LocalEntryNotFoundError as error:
        if isinstance(error.__cause__, HfHubHTTPError):
            _raise_refusal(name, error.__cause__)
        _raise_unreachable(name, error)
    except HfHubHTTPError as error:
        _raise_refusal(name, error)
    except (HFValidationError, EntryNotFoundError) as error:
        raise ModelError(f"{name}: {_get_first_line(error)}") from error
    except OSError as error:
        raise ModelError(f"{name} can't be saved in the hub's cache: {error}") from error


def _raise_unreachable(name: str, error: Exception) -> NoReturn:
    """No answer, and not (all) in the cache."""
    from huggingface_hub import constants

    if constants.is_offline_mode():
        raise ModelError(
            f"{name} is neither a folder here nor completely in the hub's cache ({constants.HF_HUB_CACHE}), and "
            "HF_HUB_OFFLINE forbids downloading it"
        ) from error
    reason = _get_first_line(error.__cause__ or error)
    raise ProviderError(
        f"{name} is neither a folder here nor completely in the hub's cache ({constants.HF_HUB_CACHE}), and "
        f"{constants.ENDPOINT} can't be reached: {reason}"
    ) from error


def _raise_refusal(name: str, error: Any) -> NoReturn:
    """An answer other than the files."""
    from huggingface_hub import constants
    from huggingface_hub.errors import GatedRepoError

    status = error.response.status_code
    page = f"{constants.ENDPOINT}/{name}"
    if isinstance(error, GatedRepoError) or status == 403:
        text = f"{name} is gated: ask for access at {page}, and give your token in HF_TOKEN (or by: hf auth login)"
    elif status in (_MISSING, *_GATED):
        # The hub answers 401 for whatever a token isn't allowed to see, existing or not.
        text = (
            f"{name} is neither a folder here nor a model at {constants.ENDPOINT}; a private one needs your token in "
            "HF_TOKEN (or by: hf auth login)"
        )
    else:
        text = f"{constants.ENDPOINT} answered {status} for {name}; try again later"
    raise ProviderError(text, status) from error


def _get_first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
