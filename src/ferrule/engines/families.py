"""The families of models that `TransformersEngine` runs, by `model_type`: a list that can be read without torch."""

RUN_FAMILIES = ("llama", "nanochat", "ovis2", "qwen2_5_vl", "qwen3", "qwen3_vl")
"""Every layer of these attends to all earlier positions."""
