"""The fifth seed's class tool and its XML exchange: what a model is shown, character for character."""

from __future__ import annotations

from typing import Annotated

import pytest

from ferrule import Toolset, model, tool
from ferrule.conversation import Conversation, ToolCall, assistant, system, user
from ferrule.dialects.catalogue import get_notation
from ferrule.dialects.text_protocol import decode_conversation
from ferrule.models.scripted import ScriptedModel

PROMPT = """\
# Tool Use
In this environment you have access to a set of tools you can use to improve your responses.

## Tool Call Format
<tool-calls>
   <tool-call tool="$TOOL_A" function="$FUNCTION_A">
      <parameter name="$PARAMETER_NAME" />
   </tool-call>
   <tool-call tool="$TOOL_B" function="$FUNCTION_B">
      <parameter name="$PARAMETER_NAME" />
   </tool-call>
</tool-calls>

## Available Tools
<tool-description-list>
   <tool-description name="weather" description="A tool to get the weather for a location">
      <functions>
         <tool-function name="get_for_city" description="">
            <parameters>
               <tool-parameter name="city" type="str" description="The city name to get weather for" />
            </parameters>
         </tool-function>
      </functions>
   </tool-description>
</tool-description-list>

You can use any of the available tools by responding in the call format above. The XML will be
parsed and the tool(s) will be executed with the parameters you provided. The results of each
tool call will be provided back to you before you continue the conversation. You can execute
multiple tool calls by continuing to respond in the format above until you are finished.
Function calls take explicit values and are independent of each other. Tool calls cannot share,
re-use, and transfer values between eachother. The use of placeholders is forbidden.

The user will not see the results of your tool calls, only the final message of your conversation.
Wait to perform your full response until after you have used any required tools. If you intend to
use a tool, please do so before you continue the conversation."""
QUESTION = "What is the weather in London?"
CALL = """\
<tool-calls>
   <tool-call tool="weather" function="get_for_city">
      <parameter name="city">London</parameter>
   </tool-call>
</tool-calls>"""
VALUE = "&#9728;&#65039;   &#127777;&#65039;+57&#176;F &#127788;&#65039;&#8594;2mph"
RESULTS = f"""\
<tool-results>
   <tool-result tool="weather" function="get_for_city" error="false">{VALUE}</tool-result>
</tool-results>"""
SEED_RESULTS = RESULTS.replace(VALUE, f"\n        {VALUE}\n    ")
ANSWER = "The current weather in London is 57°F with a light breeze of 2mph."
WEATHER = "☀️   🌡️+57°F 🌬️→2mph"


class WeatherTool(Toolset):
    name = "weather"
    description = "A tool to get the weather for a location"

    def __init__(self) -> None:
        self.asked: list[str] = []

    @tool
    def get_for_city(self, city: Annotated[str, "The city name to get weather for"]) -> str:
        self.asked.append(city)
        return WEATHER


def said(conversation: Conversation) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in conversation.messages]


async def test_the_exchange_is_the_seeds_message_by_message() -> None:
    weather, scripted = WeatherTool(), ScriptedModel(CALL, ANSWER)
    run = await model(scripted).chat(QUESTION).using(weather, mode="native").run()
    scripted.assert_used_up()
    assert said(scripted.seen[0]) == [("system", PROMPT), ("user", QUESTION)]
    assert said(scripted.seen[1]) == [
        ("system", PROMPT),
        ("user", QUESTION),
        ("assistant", CALL),
        ("user", RESULTS),
    ]
    assert (run.mode, run.stopped, run.text) == ("native", "done", ANSWER)
    [call] = run.conversation.messages[1].calls
    assert (call.name, call.arguments) == ("get_for_city", '{"city": "London"}')
    assert run.conversation.messages[2].result.text == WEATHER
    assert weather.asked == ["London"]


async def test_the_prompt_is_appended_to_a_system_message() -> None:
    scripted = ScriptedModel(ANSWER)
    await model(scripted).system("Be brief.").chat(QUESTION).using(WeatherTool(), mode="native").run()
    assert said(scripted.seen[0])[0] == ("system", f"Be brief.\n\n{PROMPT}")


async def test_a_conversation_that_went_by_an_api_is_written_as_the_seed_writes_it() -> None:
    """There is no text of the model's own to repeat."""
    called = ScriptedModel(ToolCall("c1", "get_for_city", '{"city": "London"}'), ANSWER)
    run = await model(called).chat(QUESTION).using(WeatherTool(), mode="api").run()
    later = ScriptedModel("You are welcome.")
    await model(later).chat(run.conversation).chat("Thanks!").using(WeatherTool(), mode="native").run()
    assert said(later.seen[0])[2:4] == [("assistant", CALL), ("user", RESULTS)]


async def test_state_is_shared_by_an_instance_and_made_anew_for_a_class() -> None:
    weather = WeatherTool()
    for _ in range(2):
        await model(ScriptedModel(CALL, ANSWER)).chat(QUESTION).using(weather, mode="native").run()
    assert weather.asked == ["London", "London"]
    made: list[WeatherTool] = []

    def forecaster() -> WeatherTool:
        made.append(WeatherTool())
        return made[-1]

    scripted = ScriptedModel(CALL, ANSWER, CALL, ANSWER)
    pipeline = model(scripted).chat(QUESTION).using(forecaster, mode="native")
    await pipeline.run()
    await pipeline.run()
    assert [one.asked for one in made] == [["London"], ["London"]]
    assert said(scripted.seen[0])[0] == ("system", PROMPT)


async def test_force_asks_again_until_a_tool_was_called() -> None:
    scripted = ScriptedModel("It rains, I suppose.", CALL, ANSWER)
    run = await model(scripted).chat(QUESTION).using(WeatherTool(), mode="native", force=True).run()
    assert run.text == ANSWER
    assert [message.role for message in run.conversation.messages] == [
        "user", "assistant", "user", "assistant", "tool", "assistant",
    ]  # fmt: skip


@pytest.mark.parametrize("results", [RESULTS, SEED_RESULTS])
def test_the_printed_exchange_is_loaded_with_or_without_the_white_space(results: str) -> None:
    tools = [one.spec for one in WeatherTool().tools]
    printed = Conversation((system(PROMPT), user(QUESTION), assistant(CALL), user(results), assistant(ANSWER)))
    loaded = decode_conversation(get_notation("native"), printed, tools)
    assert [message.role for message in loaded.messages] == ["user", "assistant", "tool", "assistant"]
    result = loaded.messages[2].result
    assert (result.name, result.status, result.text) == ("get_for_city", "ok", WEATHER)


@pytest.mark.parametrize("results", [RESULTS, SEED_RESULTS])
async def test_results_that_the_model_makes_up_are_none(results: str) -> None:
    scripted = ScriptedModel(f"{CALL}\n{results}\n{ANSWER}", ANSWER)
    weather = WeatherTool()
    run = await model(scripted).chat(QUESTION).using(weather, mode="native").run()
    statuses = [message.result.status for message in run.conversation.messages if message.role == "tool"]
    assert statuses == ["ok", "invalid"]
    assert weather.asked == ["London"]


def test_a_message_read_back_says_the_same_without_the_tools() -> None:
    """`ferrule parse`, and files whose tools nobody has: the name is `tool.function`, and is written so again."""
    printed = Conversation((user(QUESTION), assistant(CALL), user(SEED_RESULTS), assistant(ANSWER)))
    loaded = decode_conversation(get_notation("native"), printed)
    [call] = loaded.messages[1].calls
    assert call.name == "weather.get_for_city"
    assert get_notation("native").calls([call]) == CALL
    assert get_notation("native").result(loaded.messages[2].result)[0] == RESULTS
