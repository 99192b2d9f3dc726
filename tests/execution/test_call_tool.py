"""One call of one tool, as a model would make it."""

import pytest

from ferrule import Policy, Rule, ToolRegistry, Toolset, tool
from ferrule.errors import RegistryError
from ferrule.execution import Decision, call_tool


@tool
async def halve(number: int) -> float:
    """Halve a number."""
    return number / 2


class Counter(Toolset):
    def __init__(self) -> None:
        self.count = 0

    @tool
    def add(self, by: int = 1) -> int:
        """Count."""
        self.count += by
        return self.count

    @tool
    def read(self) -> int:
        """Tell the count."""
        return self.count


async def test_arguments_are_values_or_what_a_model_would_write() -> None:
    assert (await call_tool(halve, {"number": 3})).text == "1.5"
    assert (await call_tool(halve, '{"number": "3"}')).status in ("ok", "invalid")
    wrong = await call_tool(halve, '{"numbr": 3}')
    assert (wrong.status, "numbr" in wrong.text) == ("invalid", True)
    assert (await call_tool(halve, "{")).status == "invalid"


async def test_a_plain_function_is_a_tool() -> None:
    def double(number: int) -> int:
        """Double a number."""
        return number * 2

    assert (await call_tool(double, {"number": 4})).text == "8"


async def test_one_of_several_is_named() -> None:
    counter = Counter()
    assert (await call_tool(counter, {"by": 2}, name="add")).text == "2"
    assert (await call_tool(ToolRegistry([counter]), name="read")).text == "2"
    assert (await call_tool(counter, name="raed")).status == "unknown_tool"
    with pytest.raises(RegistryError, match="needs the name of one of the tools add, read"):
        await call_tool(counter)


async def test_the_policy_is_applied() -> None:
    policy = Policy((Rule("deny", tool="halve", reason="no halves"),))
    assert (await call_tool(halve, {"number": 3}, policy=policy)).text == "error: denied: no halves"
    asking = Policy((Rule("ask", tool="*"),))
    assert (await call_tool(halve, {"number": 3}, policy=asking)).status == "denied"

    class Allows:
        async def decide(self, request):
            return Decision.allow()

    assert (await call_tool(halve, {"number": 3}, policy=asking, approver=Allows())).text == "1.5"
