"""The values that a JSON Schema allows, as bounded grammars of plain terms: `schema_values.lower_values`.

- `schema_values`: replaces the values in a grammar, and writes as an escape what would end one of them
- `lowering`: the values of one schema, by their types; `containers`, `numbers` and `strings`: those of each type
- `schema_parts`, `references`, `schema_keywords`: what a value must fit at once, as its schema says it
- `patterns`, `text_shapes`: regular expressions, and the texts in which they are found
- `any_values`, `number_ranges`: values without a schema and their limits, and numbers between two bounds
- `terms`: sequences, choices and repetitions in their shortest form
"""
