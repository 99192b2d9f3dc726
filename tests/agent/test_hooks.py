"""Hooks steer the loop: what a request shows and offers, when to ask again or stop, with which tools and policy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferrule.agent.hooks import Hooks, RunState
from ferrule.agent.pipeline import model
from ferrule.agent.run import Run
from ferrule.builtin_tools import calculator
from ferrule.conversation import Conversation, Message, ToolCall, assistant, user
from ferrule.errors import RegistryError, SettingsError, ToolRequired
from ferrule.events import LossesReported, MessageFinished
from ferrule.execution import Policy, Rule
from ferrule.models.scripted import ScriptedModel
from ferrule.tools.decorator import Tool, tool

CALL = ToolCall("c1", "double", '{"n": 7}')


@tool
async def double(n: int) -> int:
    """Double a number."""
    return 2 * n


@tool
async def halve(n: int) -> int:
    """Halve a number."""
    return n // 2


def roles(conversation: Conversation) -> str:
    return " ".join(message.role for message in conversation.messages)


async def test_what_a_hook_shows_is_not_recorded() -> None:
    class Remind(Hooks):
        async def before_request(self, state: RunState) -> None:
            state.request.conversation = state.request.conversation.add(user("Be brief."))
            state.request.offered = ()

    scripted = ScriptedModel("14.")
    run = await model(scripted).chat("?").using(double).hook(Remind).run()
    assert roles(scripted.seen[0]) == "user user"
    assert roles(run.conversation) == "user assistant"
    assert [offer.tools for offer in run.offers] == [()]


async def test_a_hook_may_change_settings_for_one_request() -> None:
    class Warm(Hooks):
        async def before_request(self, state: RunState) -> None:
            seen.append(state.request.settings.temperature)
            state.change_settings(temperature=0.5 + state.rounds)
            changed.append(state.request.settings.temperature)

    seen: list[float] = []
    changed: list[float] = []
    await model(ScriptedModel(CALL, "14.")).chat("?").using(double).hook(Warm()).run()
    assert (seen, changed) == ([0.0, 0.0], [0.5, 1.5])


async def test_a_hook_may_ask_again_and_its_question_is_recorded() -> None:
    class Doubt(Hooks):
        def __init__(self) -> None:
            self.asked = 0

        async def after_message(self, state: RunState) -> None:
            if not state.open_calls and not self.asked:
                self.asked += 1
                state.say("Are you sure?")

    scripted = ScriptedModel(CALL, "14.", "Yes.", CALL, "14.", "Yes.")
    pipeline = model(scripted).chat("?").using(double).hook(Doubt)
    for _ in range(2):  # a class is called for each run
        run = await pipeline.run()
        assert roles(run.conversation) == "user assistant tool assistant user assistant"
    scripted.assert_used_up()


async def test_hooks_given_as_an_object_are_shared_by_runs() -> None:
    class Count(Hooks):
        rounds = 0

        async def before_request(self, state: RunState) -> None:
            self.rounds += 1
            if self.rounds > 2:
                state.stop("enough")

    count = Count()
    pipeline = model(ScriptedModel("a", "b")).chat("?").hook(count)
    assert [(await pipeline.run()).stopped for _ in range(3)] == ["done", "done", "enough"]


async def test_a_stop_answers_the_open_calls() -> None:
    class Stop(Hooks):
        async def after_message(self, state: RunState) -> None:
            state.stop("seen enough")

    run = await model(ScriptedModel(CALL)).chat("?").using(double).hook(Stop).run()
    assert run.stopped == "seen enough"
    assert run.conversation.messages[-1].result.status == "cancelled"
    run.conversation.check()


async def test_after_results_tools_and_policy_may_change() -> None:
    class Narrow(Hooks):
        async def after_results(self, state: RunState) -> None:
            if state.calls == 1:
                state.tools = [one for one in (double, halve) if isinstance(one, Tool)]
            elif state.calls == 2:
                state.policy = Policy((Rule("deny", tool="double"),))

    calls = [ToolCall(f"c{number}", name, '{"n": 8}') for number, name in enumerate(("double", "halve", "double"))]
    run = await model(ScriptedModel(*calls, "Done.")).chat("?").using(double).hook(Narrow).run()
    results = [message.result for message in run.conversation.messages if message.role == "tool"]
    assert [result.status for result in results] == ["ok", "ok", "denied"]
    assert [(offer.at, [spec.name for spec in offer.tools]) for offer in run.offers] == [
        (1, ["double"]),
        (3, ["double", "halve"]),
    ]


async def test_hooks_see_a_message_that_is_not_whole_and_may_have_it_continued() -> None:
    class Continue(Hooks):
        async def after_message(self, state: RunState) -> None:
            if state.stop_reason == "length":
                state.say("Go on.")

    scripted = _Ending("length", "Once upon", "a time.")
    run = await model(scripted).chat("Tell.").hook(Continue).run()
    assert (run.stopped, roles(run.conversation)) == ("done", "user assistant user assistant")
    callbacks: list[str] = []
    cut = await model(_Ending("length", "Once upon")).chat("Tell.").then(lambda run: callbacks.append(run.text)).run()
    assert (cut.stopped, cut.text, callbacks) == ("length", "Once upon", [])


async def test_hooks_run_in_their_order_and_the_first_that_asks_again_is_the_last_of_its_round() -> None:
    seen: list[str] = []

    class Ask(Hooks):
        async def after_message(self, state: RunState) -> None:
            seen.append("ask")
            if state.rounds == 1:
                state.say("Again.")

    class Watch(Hooks):
        async def after_message(self, state: RunState) -> None:
            seen.append(state.run.text)

    await model(ScriptedModel("a", "b")).chat("?").hook(Ask, Watch).run()
    assert seen == ["ask", "ask", "b"]


async def test_a_forced_call_comes_before_the_callbacks_that_stand_after_the_tools() -> None:
    seen: list[str] = []

    def note(run: Run[object]) -> None:
        seen.append(roles(run.conversation))

    run = await model(ScriptedModel("14.", CALL, "14.")).chat("?").using(double, force=True).then(note).run()
    assert seen == ["user assistant user assistant tool assistant"]
    assert run.stopped == "done"
    with pytest.raises(ToolRequired):
        await model(ScriptedModel("14.")).chat("?").using(double, force=True).within(rounds=1).run()


class _Ending(ScriptedModel):
    """A scripted model whose messages but the last end for a given reason."""

    def __init__(self, reason: str, *script: str) -> None:
        super().__init__(*script)
        self._reason = reason
        self._cut = max(1, len(script) - 1)

    async def stream(self, conversation, tools, settings):  # type: ignore[no-untyped-def]
        is_cut = len(self.seen) < self._cut
        async for event in super().stream(conversation, tools, settings):
            yield replace(event, stop=self._reason) if is_cut and isinstance(event, MessageFinished) else event


def conversation(turns: int, length: int = 4) -> Conversation:
    messages: list[Message] = []
    for number in range(turns):
        messages += [user(f"Question {number}? " + "x" * length), assistant(f"Answer {number}.")]
    return Conversation(tuple(messages)).add(user("And now?"))


async def test_a_conversation_that_outgrows_its_model_is_shortened_by_whole_turns() -> None:
    scripted = _Ending("context", "I beg", "Now.")
    async with model(scripted).chat(conversation(4)).stream() as run:
        events = [event async for event in run]
    assert (run.stopped, run.text) == ("done", "Now.")
    kept = run.conversation.messages
    assert [message.text.partition("?")[0] for message in kept] == [
        "Question 2", "Answer 2.", "Question 3", "Answer 3.", "And now", "Now.",
    ]  # fmt: skip
    assert kept[0].extra == {"ferrule": {"dropped_messages": 4}}
    (loss,) = run.losses
    assert loss.kind == "turns"
    assert loss.detail.startswith("the oldest 2 turns (4 messages) left out")
    assert [event.losses for event in events if isinstance(event, LossesReported)] == [(loss,)]


async def test_shortening_again_counts_what_was_dropped_before() -> None:
    run = await model(_Ending("context", "I beg", "I beg", "Now.")).chat(conversation(6)).run()
    assert [message.text for message in run.conversation.messages] == [
        "Question 5? xxxx",
        "Answer 5.",
        "And now?",
        "Now.",
    ]
    assert run.conversation.messages[0].extra == {"ferrule": {"dropped_messages": 10}}


async def test_one_turn_can_not_be_shortened() -> None:
    run = await model(_Ending("context", "I beg", "never")).chat("?").run()
    assert (run.stopped, run.text) == ("context", "I beg")
    assert run.losses == ()


async def test_a_model_that_can_count_is_asked_only_what_fits() -> None:
    class Counting(ScriptedModel):
        context_length = 100

        def count_tokens(self, conversation: Conversation, tools: object = ()) -> int:
            return sum(len(message.text) for message in conversation.messages)

    scripted = Counting("Now.")
    run = await model(scripted).chat(conversation(5)).run()
    assert run.stopped == "done"
    (seen,) = scripted.seen
    assert scripted.count_tokens(seen) <= 75
    assert seen.messages == run.conversation.messages[:-1]
    assert seen.messages[-1].text == "And now?"
    # What fits stays whole.
    short = Counting("Now.")
    await model(short).chat(conversation(2)).run()
    assert len(short.seen[0].messages) == 5


async def test_the_embedded_model_goes_on_with_a_conversation_that_is_too_long_for_it() -> None:
    long = Conversation((user("word " * 2000), assistant("Indeed.")))
    async with model("embedded") as pipeline:
        run = await pipeline.chat(long).chat("What is 12 * 34?").using(calculator).run()
    assert (run.stopped, run.text) == ("done", "12 × 34 is 408.")
    assert [loss.kind for loss in run.losses] == ["turns"]
    assert roles(run.conversation) == "user assistant tool assistant"
    assert [offer.at for offer in run.offers] == [1]


def test_what_has_no_hook_is_refused_when_it_is_added() -> None:
    class Misspelt(Hooks):
        async def before_reqest(self, state: RunState) -> None: ...

    class Sync:
        def after_message(self, state: RunState) -> None: ...

    pipeline = model(ScriptedModel("x"))
    for wrong in (Misspelt, Misspelt(), "text", None):
        with pytest.raises(SettingsError, match="defines none of before_request, after_message, after_results"):
            pipeline.hook(wrong)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match=r"Sync\.after_message must be async"):
        pipeline.hook(Sync())  # type: ignore[arg-type]


async def test_a_function_that_makes_no_hooks_is_refused_when_it_is_called() -> None:
    with pytest.raises(SettingsError, match="int can't be used as hooks"):
        await model(ScriptedModel("x")).chat("?").hook(lambda: 3).run()  # type: ignore[arg-type, return-value]


async def test_a_hook_can_not_offer_two_tools_of_one_name_and_may_offer_a_function() -> None:
    class Twice(Hooks):
        async def after_results(self, state: RunState) -> None:
            state.tools = [*state.tools, halve, halve]

    def triple(n: int) -> int:
        """Triple a number."""
        return 3 * n

    class Once(Hooks):
        async def after_results(self, state: RunState) -> None:
            if len(state.tools) == 1:
                state.tools = [*state.tools, triple]  # type: ignore[list-item]

    with pytest.raises(RegistryError, match="'halve'"):
        await model(ScriptedModel(CALL, "14.")).chat("?").using(double).hook(Twice).run()
    other = ToolCall("c2", "triple", '{"n": 3}')
    run = await model(ScriptedModel(CALL, other, "9.")).chat("?").using(double).hook(Once).run()
    assert [message.result.text for message in run.conversation.messages if message.role == "tool"] == ["14", "9"]


async def test_where_the_last_turn_takes_most_of_the_context_all_others_are_dropped() -> None:
    class Counting(_Ending):
        context_length = 100

        def count_tokens(self, conversation: Conversation, _tools: object = ()) -> int:
            return 80 if len(conversation.messages) <= 2 else 85

    run = await model(Counting("context", "I beg", "Now.")).chat(conversation(4)).run()
    assert (run.stopped, run.text) == ("done", "Now.")
    assert [message.text for message in run.conversation.messages] == ["And now?", "Now."]


async def test_a_hook_that_sets_a_wrong_type_is_named() -> None:
    class ShowList(Hooks):
        async def before_request(self, state: RunState) -> None:
            state.request.conversation = [user("Hi")]  # type: ignore[assignment]

    class SetDict(Hooks):
        async def before_request(self, state: RunState) -> None:
            state.request.settings = {"temperature": 1}  # type: ignore[assignment]

    class RecordList(Hooks):
        async def after_message(self, state: RunState) -> None:
            state.conversation = [user("Hi")]  # type: ignore[assignment]

    for hook, said in (
        (ShowList, r"ShowList.before_request set state.request.conversation to a list; it must be a Conversation"),
        (SetDict, r"SetDict.before_request set state.request.settings to a dict; .*change_settings"),
        (RecordList, "state.conversation must be a Conversation, not list"),
    ):
        with pytest.raises(SettingsError, match=said):
            await model(ScriptedModel("Hello.")).chat("Hi").hook(hook).run()


def test_a_system_text_that_takes_no_state_is_refused_when_it_is_added() -> None:
    with pytest.raises(
        SettingsError, match=r"system\(\) takes functions of a run's state, and .*lambda.* can't be called"
    ):
        model(ScriptedModel("Hello.")).system(lambda: "Be brief.")  # type: ignore[arg-type, misc]


async def test_a_stream_that_is_left_at_once_is_cancelled() -> None:
    async with model(ScriptedModel("Hello.")).chat("Hi").stream() as run:
        pass
    assert run.stopped == "cancelled"
