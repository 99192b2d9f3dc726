"""The dialect of a model's folder: its chat template, the family that the template is of, its special tokens' names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ferrule.dialects.catalogue import get_notation
from ferrule.dialects.chat_template import TemplateDialect
from ferrule.dialects.recognise import for_template
from ferrule.errors import DialectError, TokenizerError

_NAMED = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token")


def dialect_for_tokenizer(folder: Path, *, family: str | None = None) -> TemplateDialect:
    """The dialect that a folder's `chat_template.jinja` or `tokenizer_config.json` describes.

    Its `certainty` says how sure it is that the family was told rightly; `family` names it instead, and is certain.
    Raises `TokenizerError` where there is no template, `DialectError` where no family is recognised.
    """
    settings = _settings(folder / "tokenizer_config.json")
    template = _template(folder, settings)
    if template is None:
        raise TokenizerError(
            f"{folder} has no chat template: neither chat_template.jinja nor one in tokenizer_config.json; "
            "put one there, or use one of ferrule's own dialects (`ferrule.dialects.get_dialect`)"
        )
    named = {name: text for name in _NAMED if (text := _text(settings.get(name))) is not None}
    if family is not None:
        return TemplateDialect(get_notation(family), template, special_tokens=named)
    recognised = for_template(template)
    if recognised is None:
        raise DialectError(
            f"the chat template in {folder} holds the markers of no family that is known, so its calls can't be read; "
            "if you know the family, name it: dialect_for_tokenizer(folder, family=…); `ferrule dialects` lists them"
        )
    return TemplateDialect(
        get_notation(recognised.name), template, special_tokens=named, certainty=recognised.certainty
    )


def has_chat_template(folder: Path) -> bool:
    """Whether a folder says how its model frames a conversation. Raises `TokenizerError` for files that are broken."""
    return _template(folder, _settings(folder / "tokenizer_config.json")) is not None


def _settings(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TokenizerError(f"{path} can't be read: {error}") from error
    if not isinstance(settings, dict):
        raise TokenizerError(f"{path} can't be read: it holds no JSON object")
    return settings


def _template(folder: Path, settings: dict[str, Any]) -> str | None:
    """The template: a file of its own comes before the configuration; of several, the one for tools."""
    for path in (folder / "additional_chat_templates" / "tool_use.jinja", folder / "chat_template.jinja"):
        if path.is_file():
            try:
                return path.read_text(encoding="utf-8")
            except (OSError, ValueError) as error:
                raise TokenizerError(f"{path} can't be read: {error}") from error
    found = settings.get("chat_template")
    if isinstance(found, list):
        several = {entry.get("name"): entry.get("template") for entry in found if isinstance(entry, dict)}
        found = several.get("tool_use") or several.get("default")
    return found if isinstance(found, str) and found.strip() else None


def _text(token: Any) -> str | None:
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None
