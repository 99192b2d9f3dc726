"""The schemas of a benchmark of tool calls, BFCL, in the words of JSON Schema."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from vectors import FOLDER

TYPES = {"dict": "object", "float": "number", "tuple": "array"}


def rename_types(schema: Any) -> Any:
    """The schema with the types of JSON Schema: the benchmark has Python's."""
    if isinstance(schema, list):
        return [rename_types(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    renamed = {}
    for word, value in schema.items():
        if word == "properties":
            renamed[word] = {name: rename_types(one) for name, one in value.items()}
        elif word == "type" and value != "any":
            renamed[word] = TYPES.get(value, value)
        elif word != "type":
            renamed[word] = value if word in ("enum", "default") else rename_types(value)
    return renamed


@cache
def list_schemas() -> tuple[dict[str, Any], ...]:
    """The distinct schemas of the benchmark's functions."""
    schemas = {}
    for name in ("simple_python", "live_simple", "parallel"):
        for line in (FOLDER / "bfcl" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            for function in json.loads(line)["function"]:
                schemas[json.dumps(function["parameters"])] = rename_types(function["parameters"])
    return tuple(schemas.values())
