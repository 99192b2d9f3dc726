"""Tools on offer: named, selected, and owned for as long as a run lasts."""

import asyncio
import functools

import pytest

from ferrule.errors import RegistryError, ToolDefinitionError
from ferrule.tools.decorator import Tool, tool
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.toolset import Toolset
from tables import each_case


@tool(read_only=True)
def read_file(path: str) -> str:
    """Read a file."""
    return path


@tool
def write_file(path: str, text: str) -> str:
    """Write a file."""
    return path


def plain(number: int) -> int:
    """A plain function."""
    return number


class Counter(Toolset):
    made = 0

    def __init__(self, start: int = 0) -> None:
        type(self).made += 1
        self.count = start
        self.log: list[str] = []

    async def open(self) -> None:
        self.log.append("open")

    async def close(self) -> None:
        self.log.append("close")

    @tool
    def count_up(self, by: int = 1) -> int:
        """Count."""
        self.count += by
        return self.count

    @tool
    def itself(self) -> "Counter":
        return self


def counter_from_ten() -> Counter:
    return Counter(10)


FILES = ToolRegistry([read_file, write_file])


# ---- what is on offer


def test_items_of_every_kind():
    registry = ToolRegistry([FILES, plain, Counter, ToolRegistry([counter_from_ten]).prefixed("ten_")])
    assert registry.names == (
        "read_file", "write_file", "plain", "count_up", "itself", "ten_count_up", "ten_itself",
    )  # fmt: skip
    assert len(registry) == 7
    assert "plain" in registry
    assert read_file in registry
    assert "nothing" not in registry
    assert [made.name for made in registry] == list(registry.names)
    assert registry.get("read_file") is read_file
    assert registry.get("nothing") is None
    assert [spec.name for spec in registry.specs] == list(registry.names)
    assert registry.get("count_up").parameters["properties"] == {"by": {"type": "integer", "default": 1}}


def test_an_empty_registry_offers_nothing():
    assert ToolRegistry().specs == ()
    assert len(ToolRegistry()) == 0
    assert ToolRegistry().find_nearest("x") == []


def test_add_and_union_give_new_registries():
    assert FILES.add(plain).names == ("read_file", "write_file", "plain")
    assert (FILES | ToolRegistry([plain])).names == ("read_file", "write_file", "plain")
    assert FILES.names == ("read_file", "write_file")
    with pytest.raises(TypeError):
        FILES | [plain]  # type: ignore[operator]


def test_a_name_used_twice_names_both_origins():
    other = Tool.from_callable(plain, name="read_file", origin="mcp:disk")
    with pytest.raises(
        RegistryError, match=r"'read_file': one from code \(.*test_registry\.py:\d+\), one from mcp:disk"
    ):
        FILES.add(other)
    with pytest.raises(RegistryError, match="two tools are named"):
        FILES | FILES


class Plain:
    def look(self, name: str) -> str:
        """Look."""
        return name


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (Counter.count_up, "'count_up' is a method; pass Counter itself"),
        (Plain.look, r"'look' is a method without its object; pass that of an object, as in using\(object.look\)"),
        (Toolset, "has no method marked @tool"),
        (int, "'int' is a class but not a Toolset"),
        (7, "7 is not a tool"),
        ([plain], r"^a list is not a tool; unpack it, as in using\(\*tools\)$"),
        ((), r"^a tuple is not a tool; unpack it"),
    ],
)
def test_what_can_not_be_offered_is_refused(item, said):
    with pytest.raises(RegistryError, match=said):
        ToolRegistry([item])


@pytest.mark.parametrize(("item", "kind"), [(functools.partial(plain), "partial object"), (lambda: 1, "lambda")])
def test_a_function_without_a_name_is_told_how_to_get_one(item, kind):
    with pytest.raises(
        ToolDefinitionError, match=rf'^a {kind} has no name of its own; give it one: tool\(f, name="…"\)'
    ):
        ToolRegistry([item])
    assert ToolRegistry([tool(item, name="named")]).names == ("named",)


def test_a_function_that_can_not_be_a_tool_is_refused():
    with pytest.raises(ToolDefinitionError, match="'a' has no type"):
        ToolRegistry([untyped])


def untyped(a): ...


def test_a_class_that_needs_arguments_is_refused_with_the_cure():
    class Shop(Toolset):
        def __init__(self, key: str) -> None:
            self.key = key

        @tool
        def buy(self) -> str:
            return self.key

    with pytest.raises(RegistryError, match=r"can't be created without key; .*functools\.partial\(Shop, key=\.\.\.\)"):
        ToolRegistry([Shop])
    registry = ToolRegistry([functools.partial(Shop, key="k")])
    assert called(registry, "buy") == "k"


# ---- selection


def test_only_and_without_select_by_pattern():
    registry = FILES.add(plain)
    assert registry.only("read_*").names == ("read_file",)
    assert registry.only("plain", "*_file").names == ("read_file", "write_file", "plain")
    assert registry.without("*_file").names == ("plain",)


@each_case("select", [ToolRegistry.only, ToolRegistry.without])
@each_case(
    ("patterns", "said"),
    [
        (["reed_file"], "no tool matches 'reed_file'; the nearest: read_file"),
        (["read_*", "reads_*"], r"no tool matches 'reads_\*'; the nearest: read_file"),
        (["qqq"], "on offer: read_file, write_file"),
        ([], "at least one"),
    ],
)
def test_a_selection_that_matches_nothing_is_an_error(select, patterns, said):
    with pytest.raises(RegistryError, match=said):
        select(FILES, *patterns)


def test_prefixes_and_new_names():
    assert FILES.prefixed("gh_").names == ("gh_read_file", "gh_write_file")
    assert FILES.renamed({"read_file": "write_file", "write_file": "read_file"}).names == ("write_file", "read_file")
    assert FILES.prefixed("a.").get("a.read_file")("x") == "x"
    with pytest.raises(RegistryError, match="two tools are named 'write_file'"):
        FILES.renamed({"read_file": "write_file"})
    with pytest.raises(RegistryError, match="no tool matches 'read'; the nearest: read_file"):
        FILES.renamed({"read": "x"})
    with pytest.raises(ToolDefinitionError, match="1 to 64"):
        FILES.prefixed("x" * 60)


def test_nearest_names():
    assert FILES.find_nearest("ReadFile")[0] == "read_file"
    assert FILES.find_nearest("file_write")[0] == "write_file"
    assert FILES.find_nearest("zzz") == []


def test_offered_shapes():
    registry = FILES.only("read_file")
    parameters = {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    }
    assert registry.schemas("openai") == [
        {"type": "function", "function": {"name": "read_file", "description": "Read a file.", "parameters": parameters}}
    ]
    assert registry.schemas("anthropic") == [
        {"name": "read_file", "description": "Read a file.", "input_schema": parameters}
    ]
    with pytest.raises(RegistryError, match="unknown shape 'google'"):
        registry.schemas("google")
    with pytest.raises(RegistryError, match=r"contains a '\.'"):
        registry.prefixed("a.").schemas("openai")


def test_an_origin_for_all():
    assert {spec.origin for spec in FILES.with_origin("plugin").specs} == {"plugin"}


# ---- lifetimes


async def _call(registry, *names):
    async with registry.open() as bound:
        return [bound.get(name)() for name in names]


def called(registry, name):
    return asyncio.run(_call(registry, name))[0]


def test_a_class_is_made_anew_for_each_run_and_an_instance_is_shared():
    shared = Counter(100)
    registry = ToolRegistry([Counter]) | ToolRegistry([shared]).prefixed("shared_")
    for expected in (101, 102):
        assert asyncio.run(_call(registry, "count_up", "count_up", "shared_count_up")) == [1, 2, expected]
    assert shared.log == []


def test_a_factory_is_called_for_each_run():
    assert called(ToolRegistry([counter_from_ten]), "count_up") == 11
    assert called(ToolRegistry([functools.partial(Counter, start=20)]), "count_up") == 21


def test_a_factory_may_be_async_or_local():
    class Local(Toolset):
        @tool
        def here(self) -> str:
            return "here"

    async def make() -> "Local":
        return Local()

    assert called(ToolRegistry([make]), "here") == "here"


def test_tools_of_one_class_share_one_object_and_barrier_however_they_are_renamed():
    async def main():
        registry = ToolRegistry([Counter]).renamed({"itself": "me"}).prefixed("c_")
        async with registry.open() as bound:
            assert bound.names == ("c_count_up", "c_me")
            assert bound.get("c_count_up")(by=5) == bound.get("c_me")().count
            barriers = {made.barrier for made in bound.tools}
            assert len(barriers) == 1
            assert None not in barriers
            assert bound.find_nearest("count_up") == ["c_count_up"]
            assert bound.specs == registry.specs
            assert "c_me" in bound
            assert len(bound) == 2
            return bound.get("c_me")()

    assert asyncio.run(main()).log == ["open", "close"]


def test_a_toolset_that_is_wholly_left_out_is_never_made():
    before = Counter.made
    assert called(ToolRegistry([Counter]).add(read_of_nothing).without("count_up", "itself"), "read_of_nothing") == ""
    assert Counter.made == before


def read_of_nothing() -> str:
    return ""


def test_what_was_opened_is_closed_when_another_fails_or_the_run_does():
    made = []

    class Good(Toolset):
        def __init__(self) -> None:
            self.log = []
            made.append(self)

        def open(self) -> None:
            self.log.append("open")

        def close(self) -> None:
            self.log.append("close")

        @tool
        def fine(self) -> str: ...

    class Bad(Toolset):
        async def open(self) -> None:
            raise OSError("no such device")

        async def close(self) -> None:
            raise AssertionError("never opened")

        @tool
        def worse(self) -> str: ...

    with pytest.raises(RegistryError, match="the Toolset Bad can't be opened: OSError: no such device"):
        called(ToolRegistry([Good, Bad]), "fine")
    with pytest.raises(TypeError):
        called(ToolRegistry([Good]), "nothing")
    assert [one.log for one in made] == [["open", "close"]] * 2


def test_tools_named_open_and_close_are_the_models_to_call():
    class Files(Toolset):
        @tool
        def open(self) -> str:
            return "opened by the model"

        @tool
        def close(self) -> str:
            raise AssertionError("closed by nobody")

    assert called(ToolRegistry([Files]), "open") == "opened by the model"
