"""Tencent's Hunyuan: a JSON array between tags (A13B), a name and pairs of tags for keys and values (3 and 4).

Calls are read by `notations/json_array.py` and `notations/key_value.py`.
"""

from __future__ import annotations

from dataclasses import replace

from ferrule.dialects.family import Family
from ferrule.dialects.framing.turns import Turns
from ferrule.dialects.notations.json_array import JsonArray
from ferrule.dialects.notations.key_value import KeyValue
from ferrule.dialects.reader.message import MessageMarkers, Thinking
from ferrule.dialects.wording import PAIRS_FOLLOW, TOOL_LIST, JsonOffer, WrappedResults, offer_array

_THINK = Thinking(after_close="\n")

_HUNYUAN_TURNS = ("<|startoftext|>", "<|extra_0|>", "<|eos|>", "<answer>", "</answer>")


HUNYUAN_A13B = Family(
    name="hunyuan_a13b",
    models="Hunyuan-A13B",
    syntax=JsonArray("<tool_calls>", "</tool_calls>", before=_HUNYUAN_TURNS),
    message=MessageMarkers(
        _THINK, _HUNYUAN_TURNS, ("<tool_response>", "</tool_response>"), before_call="\n", after_calls="\n"
    ),
    results=WrappedResults("<tool_response>", "</tool_response>"),
    offer=offer_array("<tool_calls>", "</tool_calls>"),
    turns=Turns(
        user=("<|startoftext|>", "<|extra_0|>"),
        assistant="",
        end="<|eos|>",
        results=("", "<|extra_0|>"),
        system=("<|startoftext|>", "<|extra_4|>"),
        after_system="",
        each_result=True,
        forbidden_tokens=("<|startoftext|>", "<|extra_0|>"),
    ),
)

_BARE_THINKING = Thinking(after_open="", before_close="", after_close="", may_stay_open=True)


_HUNYUAN_ROLES = ("hy_eos", "hy_User", "hy_Assistant")


def _make_family(name: str, models: str, suffix: str, begin: str, also: KeyValue | None = None) -> Family:
    """Hunyuan 3, with the suffix of each of its tags."""

    def make_pair(tag: str) -> tuple[str, str]:
        return f"<{tag}{suffix}>", f"</{tag}{suffix}>"

    def make_turn(word: str) -> str:
        return f"<｜{word}{suffix}｜>"

    calls, responses, mode = (
        make_pair("tool_calls"),
        make_pair("tool_responses"),
        f"{make_turn('reasoning_mode')}reasoning_effort:high",
    )
    opened, closed = make_pair("tool_call")
    sep, result, eos, user, model = f"<tool_sep{suffix}>", make_pair("tool_response"), *map(make_turn, _HUNYUAN_ROLES)
    key, value, thinking = make_pair("arg_key"), make_pair("arg_value"), make_pair("think")
    return Family(
        name=name,
        models=models,
        syntax=KeyValue(opened, closed, key, value, after_name=sep, wrapper=calls, also=also),
        message=MessageMarkers(
            replace(_BARE_THINKING, open=thinking[0], close=thinking[1]),
            turn_markers=(*responses, eos, user, model),
            result=result,
            before_call="\n",
        ),
        results=WrappedResults(
            f"{result[0]}\n", f"\n{result[1]}", before=f"{responses[0]}\n", after=f"\n{responses[1]}"
        ),
        offer=JsonOffer(
            TOOL_LIST,
            f"{PAIRS_FOLLOW}{calls[0]}\n{opened}name{sep}\n{key[0]}key{key[1]}\n{value[0]}value{value[1]}\n{closed}\n"
            f"{calls[1]}",
        ),
        turns=Turns(
            user=(user, ""),
            assistant=model,
            end=eos,
            results=("", ""),
            system=("", mode),
            begin=begin,
            no_system=mode,
            opens=thinking[0],
            tight_calls=True,
            forbidden_tokens=(user, model),
            rewrites_history=True,
        ),
    )


HY_V3 = replace(
    _make_family(
        "hy_v3",
        "Hunyuan 3, Hunyuan 4",
        ":opensource",
        "<｜hy_begin_of_sentence:opensource｜>",
        KeyValue(after_name="<tool_sep>", wrapper=("<tool_calls>", "</tool_calls>")),
    ),
    aliases=("hy_v4",),
)

# Released checkpoints as in the template of Hy3 that llama.cpp has; the preview as in chat_template.jinja of
# Fisher-Ju/Hy3-preview at f06e5e7.
HY_V3_PREVIEW = _make_family("hy_v3_preview", "Hunyuan 3 Preview", "", "<｜hy_begin▁of▁sentence｜>")

FAMILIES = (
    HUNYUAN_A13B,
    HY_V3,
    HY_V3_PREVIEW,
)
