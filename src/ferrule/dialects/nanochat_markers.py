"""The nine control tokens of the nanochat dialect, which its writer and its reader share."""

from __future__ import annotations

BOS = "<|bos|>"
USER_START, USER_END = "<|user_start|>", "<|user_end|>"
ASSISTANT_START, ASSISTANT_END = "<|assistant_start|>", "<|assistant_end|>"
PYTHON_START, PYTHON_END = "<|python_start|>", "<|python_end|>"
OUTPUT_START, OUTPUT_END = "<|output_start|>", "<|output_end|>"
CONTROL_TOKENS = (
    BOS,
    USER_START,
    USER_END,
    ASSISTANT_START,
    ASSISTANT_END,
    PYTHON_START,
    PYTHON_END,
    OUTPUT_START,
    OUTPUT_END,
)

STOPS = (ASSISTANT_END, PYTHON_END)
STRAYS = (OUTPUT_START, OUTPUT_END, BOS, USER_START, USER_END, ASSISTANT_START)
