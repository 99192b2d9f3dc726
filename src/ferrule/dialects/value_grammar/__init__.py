"""The values that a JSON Schema allows, as bounded grammars of plain terms: `schema_values.lower_values`."""
