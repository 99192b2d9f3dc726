"""Reads the chat template and the special tokens in a model's folder, and makes a dialect from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ferrule.dialects.catalogue import get_notation
from ferrule.dialects.template.dialect import TemplateDialect, make_template_dialect
from ferrule.errors import TokenizerError

_TOKENS = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token")


def load_dialect(folder: Path, *, family: str | None = None) -> TemplateDialect:
    """The dialect of a model's folder, from the chat template in it.

    Its `certainty` is that of the family's detection; naming a `family` makes it certain. If the template writes no
    calls, or writes them like no known family, tools are refused when they are used. Raises `TokenizerError` if there
    is no template, `DialectError` if it can't be rendered.
    """
    settings = _read_settings(folder / "tokenizer_config.json")
    templates = _list_templates(folder, settings)
    if not templates:
        raise TokenizerError(
            f"{folder} has no chat template: neither chat_template.jinja or chat_template.json nor one in "
            "tokenizer_config.json; add one, or use one of ferrule's own dialects "
            "(`ferrule.dialects.get_dialect`)"
        )
    named = {name: text for name in _TOKENS if (text := _get_text(settings.get(name))) is not None}
    template = templates.get("tool_use") or templates.get("default")
    if template is None:
        names = ", ".join(templates)
        raise TokenizerError(f"{folder} has chat templates for {names}, but no default and none for tools")
    default = templates.get("default") if "tool_use" in templates else None
    if family is not None:
        return TemplateDialect(get_notation(family), template, special_tokens=named, without_tools=default)
    return make_template_dialect(template, special_tokens=named, without_tools=default)


def has_chat_template(folder: Path) -> bool:
    """Whether a folder has a chat template. Raises `TokenizerError` for invalid files."""
    return bool(_list_templates(folder, _read_settings(folder / "tokenizer_config.json")))


def find_template_file(folder: Path) -> Path | None:
    """The file that the chat template of a folder is in; None without one. Raises `TokenizerError`."""
    settings = _read_settings(folder / "tokenizer_config.json")
    if not _list_templates(folder, settings):
        return None
    for path in (*_list_template_files(folder), folder / "chat_template.jinja"):
        if path.is_file():
            return path
    return folder / ("tokenizer_config.json" if settings.get("chat_template") else "chat_template.json")


def _list_template_files(folder: Path) -> list[Path]:
    """The files of named templates, the one for tools first: it is the one that is used."""
    return sorted((folder / "additional_chat_templates").glob("*.jinja"), key=lambda path: path.stem != "tool_use")


def _read_settings(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TokenizerError(f"{path} can't be read: {error}") from error
    if not isinstance(settings, dict):
        raise TokenizerError(f"{path} can't be read: expected a JSON object")
    return settings


def _list_templates(folder: Path, settings: dict[str, Any]) -> dict[str, str]:
    """The templates by name, including `default` and `tool_use`: separate files override the configuration, which
    overrides the file for image processors."""
    found = {}
    for path in (*_list_template_files(folder), folder / "chat_template.jinja"):
        if path.is_file():
            try:
                found["default" if path.parent == folder else path.stem] = path.read_text(encoding="utf-8")
            except (OSError, ValueError) as error:
                raise TokenizerError(f"{path} can't be read: {error}") from error
    return (
        found
        or _read_templates(settings.get("chat_template"))
        or _read_templates(_read_settings(folder / "chat_template.json").get("chat_template"))
    )


def _read_templates(value: Any) -> dict[str, str]:
    """The templates in a configuration: one, a list of them with their names, or an object by name."""
    if isinstance(value, str):
        value = {"default": value}
    elif isinstance(value, list):
        value = {entry.get("name"): entry.get("template") for entry in value if isinstance(entry, dict)}
    items = value.items() if isinstance(value, dict) else ()
    return {str(name): text for name, text in items if isinstance(text, str) and text.strip()}


def _get_text(token: Any) -> str | None:
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) else None
