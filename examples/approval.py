"""An agent whose payments need approval: small ones are allowed by a rule, larger ones are asked about.

`Owner` decides here, so that the program runs by itself; `TerminalApprover()` in its place asks the person at the
terminal.

    $ python examples/approval.py
    asked: pay 40 to 'bakery'
    asked: pay 900 to 'casino'
    paid 5 to newsstand
    paid 40 to bakery
    error: denied: not more than 100
    Paid two of the three bills.
"""

import sys

from ferrule import Decision, Policy, Rule, ScriptedModel, ToolCall, model, tool


@tool
def pay(receiver: str, amount: int) -> str:
    """Pay a bill, in whole euros."""
    return f"paid {amount} to {receiver}"


class Owner:
    """Decides as the owner of the account would."""

    async def decide(self, request) -> Decision:
        """Allow up to 100 euros."""
        amount, receiver = request.arguments["amount"], request.arguments["receiver"]
        print(f"asked: {request.tool} {amount} to {receiver!r}")
        if amount > 100:
            return Decision.deny("not more than 100", by="the owner")
        return Decision.allow(by="the owner")


SCRIPT = ScriptedModel(
    [
        ToolCall("call_1", "pay", '{"receiver": "newsstand", "amount": 5}'),
        ToolCall("call_2", "pay", '{"receiver": "bakery", "amount": 40}'),
        ToolCall("call_3", "pay", '{"receiver": "casino", "amount": 900}'),
    ],
    "Paid two of the three bills.",
)


def main() -> None:
    """Run the agent; an argument names another model, such as openai:gpt-5."""
    policy = Policy((Rule("allow", tool="pay", arguments={"amount": "?"}),), profile="ask")
    agent = model(sys.argv[1] if len(sys.argv) > 1 else SCRIPT).using(pay, policy=policy, approver=Owner())
    run = agent.chat("Pay 5 to the newsstand, 40 to the bakery and 900 to the casino.").run_sync()
    for message in run.conversation.messages:
        if message.role == "tool":
            print(message.result.text)
    print(run.text)


if __name__ == "__main__":
    main()
