"""Agents as tools: one answers a part of the question, another takes over the conversation.

The model in the package is an agent here, with a tool of its own. Both run under the limits, the policy and the journal
of the run that calls them, whose conversation has a call and a result for each.

    $ python examples/sub_agents.py
    call:   calculate {"task": "What is 12 * 34?"}
    result: 12 × 34 is 408.
    call:   complain {"task": "The bill is 8 too high."}
    result: complain took over the conversation and answered.
    answer: You get 8 back.
    agents: calculate (done), complain (done)
"""

import sys

from ferrule import ScriptedModel, ToolCall, calculator, model

SCRIPT = ScriptedModel(
    ToolCall("call_1", "calculate", '{"task": "What is 12 * 34?"}'),
    ToolCall("call_2", "complain", '{"task": "The bill is 8 too high."}'),
)


def main() -> None:
    """Ask the desk; an argument names another model for it, such as openai:gpt-5."""
    chosen = sys.argv[1] if len(sys.argv) > 1 else SCRIPT
    accountant = model("embedded").using(calculator).as_tool("calculate", "Calculate what is asked in words.")
    manager = model(ScriptedModel("You get 8 back.")).system("You may give refunds.")
    desk = model(chosen).system("You answer questions about bills.").within(rounds=8)
    desk = desk.using(accountant, manager.as_tool("complain", "Hand a complaint over to the manager.", handoff=True))

    run = desk.chat("Twelve camels at 34 each: why is my bill 416?").run_sync()
    for message in run.conversation.messages:
        for call in message.calls:
            print("call:  ", call.name, call.arguments)
        if message.role == "tool":
            print("result:", message.result.text)
    print("answer:", run.text)
    print("agents:", ", ".join(f"{sub.name} ({sub.run.stopped})" for sub in run.sub_runs))


if __name__ == "__main__":
    main()
