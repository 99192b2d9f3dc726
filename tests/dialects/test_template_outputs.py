"""Whole conversations against what public chat templates write for the same conversations.

`template_outputs.json` has what each template gave for the conversations below, from the user's text on: the texts that
are equal here, and those that are not, which `DIFFERENT` explains. What stands before the user's text is compared in
`test_turn_headers.py`.
"""

import json
from functools import cache
from pathlib import Path

from ferrule.conversation import (
    Conversation,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_message,
    user,
)
from ferrule.dialects import list_dialects
from ferrule.dialects.catalogue import load_families
from ferrule.dialects.framing.dialect import FramedDialect
from tables import each_case

RECORDED = json.loads((Path(__file__).parent / "template_outputs.json").read_text(encoding="utf-8"))
HISTORY = "it writes messages that are earlier, or have no reasoning, otherwise than the prompt opens them"
BESIDE = "it leaves out text beside calls, writes it after the results, or trims the white space between the two"
END = "it leaves out, or writes otherwise, what ends a message, without which a model doesn't learn to stop"
ONE_CALL = "it writes the first of several calls only"
NO_CALLS = "it writes no calls of messages: the model's are to be in the text"
ENGINE = "it is an engine's own, for models whose template has no tools, and writes calls otherwise than they do"
AGAIN = "it opens the assistant's turn again after an answer, or leaves its header out after results"
PYTHON = "before 3.6 it writes true and false as Python does"
# Why a template's text differs where it does, by dialect: more than one reason where conversations differ.
DIFFERENT = {
    "apertus": f"{AGAIN}; {END}",
    "apriel16": f"{HISTORY}; {END}",
    "cohere": f"{AGAIN}; {BESIDE}; {HISTORY}",
    "cohere2": f"{HISTORY}; {BESIDE}",
    "cohere_r_plus": f"{END}; what the model is told before each of its turns has words of our own",
    "deepseek_v3": f"its prompt opens reasoning in some revisions; {BESIDE}; {END}",
    "deepseek_v32": HISTORY,
    "diffusion_gemma": f"{AGAIN}; {BESIDE}",
    "firefunction_v2": f"{AGAIN}; {BESIDE}",
    "functiongemma": ENGINE,
    "gemma4": f"{BESIDE}; some revisions leave out the reasoning of an answer after results",
    "gemma4_tool_turns": f"{BESIDE}; some revisions leave out the reasoning of an answer after results",
    "gigachat3": END,
    "gigachat31": ONE_CALL,
    "glm45": END,
    "glm47": f"{END}; {HISTORY}",
    "glm47_nothink": END,
    "gpt_oss": f"{END}; {HISTORY}; it refuses text beside both reasoning and a call",
    "granite": f"{NO_CALLS}; {ENGINE}",
    "granite_20b_fc": ENGINE,
    "harmony": f"{ONE_CALL}; {END}; it writes the recipient of a call before the channel, as `gpt_oss` does",
    "hermes": "it marks reasoning also where there is none, in the turn that is answered last",
    "hermes3": f"{BESIDE}; it ends results with a line break where an answer follows and not where a prompt does",
    "hunyuan_a13b": f"{BESIDE}; it writes a word before an answer that follows results",
    "hy_v3": END,
    "hy_v3_preview": END,
    "internlm2": ENGINE,
    "jamba": "it writes the tool's name before each result, where a message has one",
    "lfm25": "it escapes nothing in a string, or it writes lists in JSON",
    "lfm2_v1": NO_CALLS,
    "llama3_json": BESIDE,
    "minicpm5_nothink": HISTORY,
    "minicpm5_think": HISTORY,
    "minimax_m1": BESIDE,
    "minimax_m2": HISTORY,
    "minimax_m2_nothink": "its prompts always open the reasoning",
    "mistral_small": BESIDE,
    "mistral_v7": f"it puts the system prompt before the last user's text; {BESIDE}",
    "muse_glimmer": BESIDE,
    "nemotron_super": BESIDE,
    "nemotron_v2": HISTORY,
    "nemotron_v3": HISTORY,
    "nemotron_v3_ultra": HISTORY,
    "olmo3": f"{END}; vLLM's own gives results in turns of a tool, and writes strings in single quotes",
    "poolside_v1": HISTORY,
    "pythonic": ENGINE,
    "qwen35": f"{HISTORY}; {PYTHON}",
    "qwen35_nothink": f"{HISTORY}; {PYTHON}",
    "qwen3_nothink": HISTORY,
    "qwq": HISTORY,
    "reka_edge": HISTORY,
    "solar_open": f"{END}; {BESIDE}",
    "spark": HISTORY,
    "step3p5": HISTORY,
    "xlam": BESIDE,
    "xlam_llama": BESIDE,
}
# Why some dialects are not compared.
NOT_COMPARED = {
    "cwm": "no template was found: its turns are those of its makers' guide to its prompts",
    "deepseek_v41_nothink": "see `deepseek_v41`",
    "deepseek_v41": "no template was found: its turns are DeepSeek V4's, with a token before the system prompt",
    "ernie45": "the template found is of the models without reasoning, which has no place for calls",
    "glm4": "no template with calls was found: its turns are those of its makers' code",
    "inkling": "no template was found",
    "k2_horizon": "no template was found",
    "mimo": "no template was found",
    "nanochat-tools": "its template is the package's own, compared in tests/training/test_recipe.py",
    "ovis": "its turns are the second seed's, which has no template with tools",
    "solar_open2": "no template was found: its turns are those of a port of it",
    "phi4_mini": "the template found is an engine's own",
}
# Cases of one call with other arguments than its place and days. Null isn't among them: where templates write Python's
# values, `null` is written here, since `None` may be a string.
ARGUMENTS = {
    "typed": {"text": 'it\'s "q"\nx', "sure": True, "list": ["a", 1.5, True], "object": {"key": "v"}, "count": -3},
    "no-arguments": {},
}
IDS = {
    **dict.fromkeys(
        ("apriel", "apriel16", "kimi_k2", "kimi_k25", "kimi_k2_instruct", "kimi_k2_thinking", "solar_open"),
        ("functions.get_weather:0", "functions.get_weather:1"),
    ),
    **dict.fromkeys(("mistral", "mistral_small", "mistral_v7"), ("abcdefgh1", "abcdefgh2")),
}


@cache
def framed(name):
    """The dialect made of a family's turns, also where a hand-written one has its name."""
    found = (f for f in load_families().values() if name == f.name or name in dict(f.other_turns))
    return FramedDialect(next(found), name)


def conversation_of(case, dialect, text):
    """The conversation of a case, and whether its prompt was asked for; no reasoning where the template wrote none."""
    ids = IDS.get(dialect.name, ("0", "1"))
    count = 2 if dialect.capabilities.parallel_calls and case in ("results", "done") else 1
    given = ARGUMENTS.get(case, {"city": "Paris", "days": 2})
    calls = [
        ToolCall(i, "get_weather", json.dumps(arguments))
        for i, arguments in list(zip(ids, (given, {"city": "Rome", "days": 1}), strict=True))[:count]
    ]
    results = [
        tool_message(ToolResult(i, "get_weather", (Text(json.dumps({"t": t})),)))
        for i, t in list(zip(ids, (21, 25), strict=True))[:count]
    ]
    thought = (Reasoning("THOUGHT"),) if "THOUGHT" in text else ()
    told = {
        "answer-turn2": (system("SYS"), user("USER"), assistant("ANSWER"), user("AGAIN")),
        "results": (user("USER"), assistant(*thought, *calls), *results),
        **dict.fromkeys(("one-result", *ARGUMENTS), (user("USER"), assistant(*thought, *calls), *results)),
        "done": (user("USER"), assistant(*thought, *calls), *results, assistant(*thought, Text("ANSWER"))),
        "beside": (user("USER"), assistant(*thought, Text("LOOK"), *calls), *results, assistant("ANSWER")),
    }
    return Conversation(told[case]), case not in ("done", "beside")


def written(case, dialect, text):
    """What the dialect writes in a case, from the user's text on."""
    conversation, with_prompt = conversation_of(case, dialect, text)
    if case == "beside" and not dialect.capabilities.text_beside_calls:
        return "refused: there is no place for text beside calls"
    layout = dialect.layout(conversation)
    segments = layout.with_prompt if with_prompt else layout.segments
    return "".join(segment.text for segment in segments).split("USER", 1)[1]


@each_case("record", RECORDED, ids=lambda record: f"{record['dialect']}-{record['templates'][0][:40]}")
def test_a_conversation_is_written_as_public_templates_write_it(record):
    dialect = framed(record["dialect"])
    assert {case: written(case, dialect, text) for case, text in record["equal"].items()} == record["equal"]
    for case, text in record["different"].items():
        # One that is equal by now has to be moved.
        assert written(case, dialect, text) != text


def test_every_dialect_is_compared_or_said_not_to_be():
    compared = {record["dialect"] for record in RECORDED}
    assert {record["dialect"] for record in RECORDED if record["different"]} == set(DIFFERENT)
    assert all(record["equal"] or record["dialect"] in DIFFERENT for record in RECORDED)
    assert compared | set(NOT_COMPARED) | {"nanochat", "qwen25"} >= set(list_dialects())
    assert not compared & set(NOT_COMPARED)


@each_case("record", RECORDED, ids=lambda record: f"{record['dialect']}-{record['templates'][0][:40]}")
def test_a_template_that_is_seen_to_rewrite_history_is_declared_to(record):
    texts = record["equal"] | record["different"]
    if {"results", "done"} <= set(texts) and not texts["done"].startswith(texts["results"]):
        assert framed(record["dialect"]).turns.rewrites_history
