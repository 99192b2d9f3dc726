"""Functions and methods that become tools, and those that are refused."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import math
import pickle
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest

from ferrule.errors import ToolDefinitionError
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.scope import CallScope
from ferrule.tools.toolset import Toolset
from ferrule.toolspec import Annotations, ToolSpec
from tables import each_case

if TYPE_CHECKING:
    from decimal import Decimal


@tool
def get_weather(city: Annotated[str, "The city to look up"]) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


@tool(
    name="files.delete",
    description="Delete a file.",
    read_only=False,
    destructive=True,
    idempotent=True,
    open_world=False,
    approval="always",
    timeout=2.5,
    isolate="process",
    serial=True,
    retries=2,
)
async def delete(path: str, later: Later | None = None) -> str:
    return f"gone: {path}"


class Later(TypedDict):
    when: str


class Counter(Toolset):
    """Counts."""

    def __init__(self, start: int = 0) -> None:
        self.count = start

    @tool
    def add(self, by: Annotated[int, "How much"] = 1) -> int:
        """Add to the count."""
        self.count += by
        return self.count

    @tool(read_only=True, name="peek")
    async def look(self) -> int:
        """The count."""
        return self.count

    @tool
    @staticmethod
    def double(number: int) -> int:
        """Twice a number."""
        return number * 2

    def untold(self) -> str:
        return self.tools[0].name


def plain(city: str) -> str:
    """A plain function."""
    return city


# ---- what a tool says of itself


def test_a_decorated_function_still_is_one():
    assert get_weather("Paris") == "sunny in Paris"
    assert get_weather(city="Paris") == "sunny in Paris"
    assert asyncio.run(delete("a")) == "gone: a"
    assert str(inspect.signature(get_weather)) == str(inspect.signature(get_weather.function))
    assert get_weather.__doc__ == "The weather in a city."
    assert repr(get_weather) == "<Tool get_weather from code>"


def test_its_data_is_a_spec():
    assert get_weather.spec == ToolSpec(
        "get_weather",
        "The weather in a city.",
        {
            "type": "object",
            "properties": {"city": {"description": "The city to look up", "type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    )


def test_options_are_kept():
    assert delete.spec.annotations == Annotations(read_only=False, destructive=True, idempotent=True, open_world=False)
    assert (delete.name, delete.description, delete.approval) == ("files.delete", "Delete a file.", "always")
    assert (delete.timeout, delete.isolate, delete.serial, delete.retries) == (2.5, "process", True, 2)
    assert delete.is_async
    assert not get_weather.is_async
    assert (get_weather.timeout, get_weather.isolate, get_weather.serial, get_weather.retries) == (None, None, False, 0)
    assert get_weather.intent is None
    assert tool(intent=len)(plain).intent is len


def test_a_name_defined_further_down_is_found_at_the_first_offer():
    assert "Later" in delete.parameters["$defs"]


def test_a_copy_under_another_name_or_origin_leaves_the_tool_as_it_is():
    copied = get_weather.with_name("weather").with_origin("plugin")
    assert (copied.name, copied.origin, copied.spec.origin) == ("weather", "plugin", "plugin")
    assert (get_weather.name, get_weather.origin) == ("get_weather", "code")
    assert copied("Rome") == "sunny in Rome"


def test_annotations_can_be_given_whole():
    made = Tool.from_callable(plain, annotations=Annotations(read_only=True), name="p")
    assert made.annotations.read_only is True
    with pytest.raises(ToolDefinitionError, match="not both"):
        Tool.from_callable(plain, annotations=Annotations(), read_only=True)


def test_a_tool_of_a_module_pickles_by_its_name():
    assert pickle.loads(pickle.dumps(get_weather)) is get_weather
    assert pickle.loads(pickle.dumps(Tool.from_callable(plain)))("x") == "x"
    assert copy.copy(get_weather) is get_weather


# ---- the scope


def test_the_scope_is_hidden_from_the_model():
    @tool
    def index(folder: str, scope: CallScope) -> str: ...

    assert index.scope_parameter == "scope"
    assert list(index.parameters["properties"]) == ["folder"]
    assert index.bind('{"folder": "a"}') == {"folder": "a"}
    assert get_weather.scope_parameter is None


@pytest.mark.parametrize("written", ["CallScope | None", "Optional[CallScope]", "Annotated[CallScope, 'x']"])
def test_an_optional_scope_is_one_too(written):
    namespace: dict[str, Any] = {}
    exec(
        "from typing import Annotated, Optional\nfrom ferrule.tools.scope import CallScope\n"
        f"def f(a: int, s: {written} = None): ...",
        namespace,
    )
    assert tool(namespace["f"]).scope_parameter == "s"


def test_a_scope_imported_for_checkers_alone_is_recognised():
    namespace: dict[str, Any] = {}
    exec("from __future__ import annotations\ndef f(a: int, scope: CallScope): ...", namespace)
    assert tool(namespace["f"]).scope_parameter == "scope"


def test_two_scopes_are_refused():
    @tool
    def twice(a: CallScope, b: CallScope): ...

    with pytest.raises(ToolDefinitionError, match="'a' and 'b' both take the scope"):
        _ = twice.scope_parameter


# ---- what is refused


def no_type(city): ...
def star(*names: str): ...
def keywords(**names: str): ...
def positional(city: str, /): ...
def yields(n: int):
    yield n


async def yields_async(n: int):
    yield n


@each_case(
    ("function", "said"),
    [
        (no_type, "the parameter 'city' has no type; annotate it, for example city: str"),
        (star, r"\*names can't be expressed in a schema; take a list"),
        (keywords, r"\*\*names can't be expressed in a schema"),
        (positional, "'city' is positional-only.*remove the '/'"),
        (yields, "'yields' yields; a tool returns its result, so return a list"),
        (yields_async, "return a list"),
        (lambda: None, "no name of its own; give it one: tool"),
        (int, "'int' is a class"),
        ("text", "can't be called"),
        (get_weather, "is a tool already"),
        (math.hypot, r"\*coordinates|no readable signature"),
        (functools.partial(plain), "no name of its own; give it one: tool"),
    ],
)
def test_what_can_not_be_a_tool_is_refused_at_once(function, said):
    with pytest.raises(ToolDefinitionError, match=said):
        tool(function)


@each_case(
    "options",
    [
        {"name": "with space"},
        {"name": "1st"},
        {"name": "a" * 65},
        {"name": "é"},
        {"name": "a\n"},
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"timeout": "5"},
        {"timeout": True},
        {"retries": -1},
        {"retries": 1.5},
        {"isolate": "thread"},
        {"approval": "sometimes"},
    ],
)
def test_options_that_can_not_be_are_refused(options):
    with pytest.raises(ToolDefinitionError, match="the tool"):
        tool(**options)(plain)


def test_an_option_that_does_not_exist_is_refused():
    with pytest.raises(TypeError, match="unknown option 'readonly'"):
        tool(readonly=True)(plain)


def test_a_type_that_nothing_defines_names_the_parameter():
    @tool
    def f(price: Decimal) -> str: ...

    with pytest.raises(
        ToolDefinitionError, match=r"the type of 'price', Decimal, can't be resolved.*top of the module"
    ):
        _ = f.spec


def test_a_return_type_is_never_looked_at():
    @tool
    def f(a: int) -> Nowhere: ...  # noqa: F821

    assert f.bind('{"a": 1}') == {"a": 1}


# ---- types that live in a function


def test_types_defined_in_the_function_around_are_found():
    @dataclass
    class Inner:
        x: int

    class Entry(TypedDict):
        inner: Inner

    @dataclass
    class Outer:
        inner: Inner
        entries: list[Entry]

    @tool
    def f(outer: Outer): ...

    bound = f.bind('{"outer": {"inner": {"x": "1"}, "entries": [{"inner": {"x": 2}}]}}')
    assert bound == {"outer": Outer(Inner(1), [{"inner": Inner(2)}])}


def test_a_method_in_a_local_class_finds_them_too():
    class Size(TypedDict):
        width: int

    class Local(Toolset):
        @tool
        def draw(self, size: Size) -> int:
            return size["width"]

    assert Local().tools[0].bind('{"size": {"width": 3}}') == {"size": {"width": 3}}


# ---- toolsets


def test_methods_share_their_object_and_never_show_self():
    counter = Counter(10)
    add, peek, double = counter.tools
    assert [add.name, peek.name, double.name] == ["add", "peek", "double"]
    assert add.description == "Add to the count."
    assert add.parameters["properties"] == {"by": {"description": "How much", "type": "integer", "default": 1}}
    assert add(**add.bind('{"by": "5"}')) == 15
    assert asyncio.run(peek()) == 15
    assert peek.is_async
    assert peek.annotations.read_only is True
    assert counter.add(1) == 16
    assert double(**double.bind('{"number": 2}')) == 4
    assert Counter.add(counter, 1) == 17
    assert "self" not in str([one.parameters for one in counter.tools])


def test_each_instance_has_one_barrier():
    one, other = Counter(), Counter()
    assert one.tools[0].barrier is one.tools[1].barrier is one.add.barrier
    assert one.add.barrier is not None
    assert one.add.barrier is not other.add.barrier
    assert get_weather.barrier is None
    assert Tool.from_callable(one.untold, name="untold").barrier is one.add.barrier


def test_a_frozen_dataclass_can_be_a_toolset():
    @dataclass(frozen=True)
    class Shop(Toolset):
        prices: dict[str, int]

        @tool
        def price(self, of: str) -> int:
            return self.prices[of]

    shop = Shop({"tea": 3})
    assert shop.tools[0](of="tea") == 3
    assert shop.tools[0].barrier is shop.price.barrier is not None


def test_inherited_tools_come_first_and_an_override_decides():
    class Base(Toolset):
        @tool
        def one(self) -> str: ...

        @tool
        def two(self) -> str: ...

    class Derived(Base):
        def one(self) -> str:
            return "no tool any more"

        @tool
        def three(self) -> str: ...

        @tool
        def two(self) -> str:
            """Overridden."""
            return "derived"

    tools = Derived().tools
    assert [made.name for made in tools] == ["two", "three"]
    assert tools[0].description == "Overridden."
    assert tools[0]() == "derived"


def test_decorators_in_the_wrong_order_are_refused():
    with pytest.raises(ToolDefinitionError, match="write @tool above @staticmethod"):

        class Wrong(Toolset):
            @staticmethod
            @tool
            def f(a: int, b: int) -> str: ...

    with pytest.raises(ToolDefinitionError, match="class method"):

        class OfClass(Toolset):
            @tool
            @classmethod
            def f(cls, a: int) -> str: ...


def test_static_functions_of_a_class_keep_all_their_parameters():
    class Helpers:
        @staticmethod
        def join(left: str, right: str) -> str:
            return left + right

        @staticmethod
        def now() -> str:
            return "now"

    join = Tool.from_callable(Helpers.join)
    assert join(**join.bind('{"left": "a", "right": "b"}')) == "ab"
    assert Tool.from_callable(Helpers.now)() == "now"


# ---- other callables


def test_bound_methods_partials_and_callable_objects():
    class Greeter:
        def greet(self, name: str, times: int = 1) -> str:
            return f"hello {name}" * times

        async def __call__(self, name: str) -> str:
            return name

    bound = Tool.from_callable(Greeter().greet)
    assert bound(**bound.bind('{"name": "Ada"}')) == "hello Ada"
    partly = Tool.from_callable(functools.partial(plain, city="Rome"), name="rome")
    assert partly(**partly.bind("{}")) == "Rome"
    called = Tool.from_callable(Greeter(), name="greeter")
    assert called.is_async
    assert list(called.parameters["properties"]) == ["name"]


def test_a_wrapped_function_keeps_its_signature():
    def logged(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            return function(*args, **kwargs)

        return inner

    @tool
    @logged
    def shout(word: str) -> str:
        """Shout."""
        return word.upper()

    assert shout(**shout.bind('{"word": "a"}')) == "A"
    assert shout.description == "Shout."


# ---- what importing costs


def test_defining_a_tool_imports_nothing_heavy():
    heavy = ["pydantic", "griffe", "jsonschema", "numpy", "jinja2", "rich", "asyncio"]
    code = (
        "import sys\nfrom ferrule.tools.decorator import tool\nimport ferrule.tools.registry, ferrule.tools.discovery\n"
        "@tool\ndef f(a: int) -> str: ...\n"
        f"sys.exit(str([name for name in {heavy} if name in sys.modules]) if set({heavy}) & set(sys.modules) else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"read_only": "yes"}, "the tool 'add': read_only must be True, False or None, not 'yes'"),
        ({"annotations": Annotations(destructive=1)}, "destructive must be True, False or None, not 1"),
        ({"description": 5}, "the tool 'add': description must be a text, not 5"),
    ],
)
def test_a_hint_or_description_of_another_type_is_refused(options, words) -> None:
    def add(a: int) -> int:
        """Add."""
        return a

    with pytest.raises(ToolDefinitionError, match=words):
        tool(**options)(add)
