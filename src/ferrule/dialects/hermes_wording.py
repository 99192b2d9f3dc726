"""What the Hermes family writes, as data: the markers, the roles, and the words around the offered tools.

All that differs between members of the family stands here; `hermes.py` holds no text of it.
"""

from __future__ import annotations

from dataclasses import dataclass

_TOOLS_BEFORE = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>"""

_TOOLS_AFTER = """
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>"""


@dataclass(frozen=True, slots=True)
class HermesWording:
    """One member of the family.

    `system` is what stands in the system turn where a conversation begins with none; `ends` are the tokens with
    which a turn ends, the first of them the one that is written.
    """

    name: str
    system: str = ""
    tools_before: str = _TOOLS_BEFORE
    tools_after: str = _TOOLS_AFTER
    result_role: str = "user"
    turn_start: str = "<|im_start|>"
    ends: tuple[str, ...] = ("<|im_end|>", "<|endoftext|>")
    call: tuple[str, str] = ("<tool_call>", "</tool_call>")
    result: tuple[str, str] = ("<tool_response>", "</tool_response>")
    reasoning: tuple[str, str] = ("<think>", "</think>")

    @property
    def markers(self) -> tuple[str, ...]:
        """Every marker that a reader knows."""
        return (self.turn_start, *self.ends, *self.call, *self.result, *self.reasoning)


# Qwen 3; Hermes 2 Pro and Hermes 3 write the same calls, but their results in a turn of the role `tool`.
HERMES = HermesWording("hermes")
QWEN25 = HermesWording("qwen25", system="You are Qwen, created by Alibaba Cloud. You are a helpful assistant.")
