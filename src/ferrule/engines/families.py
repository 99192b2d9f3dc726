"""The families of models that `TransformersEngine` runs, by `model_type`: lists that can be read without torch."""

ATTENTION_FAMILIES = (
    "gemma3",
    "gemma3_text",
    "gpt_oss",
    "llama",
    "nanochat",
    "ovis2",
    "qwen2_5_vl",
    "qwen3",
    "qwen3_vl",
)
"""Their layers attend to earlier positions, all of them or those of a window: many conversations are one batch."""
STATE_FAMILIES = ("lfm2", "qwen3_next")
"""Some of their layers keep a state instead of positions: one conversation is computed after the other."""
RUN_FAMILIES = tuple(sorted((*ATTENTION_FAMILIES, *STATE_FAMILIES)))
"""All of them."""
