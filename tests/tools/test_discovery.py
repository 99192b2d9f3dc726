"""Tools found in folders of files."""

import asyncio
import pickle
import textwrap

import pytest

from ferrule.errors import RegistryError, ToolDefinitionError
from ferrule.tools.registry import ToolRegistry


@pytest.fixture
def write(tmp_path):
    def write_file(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "from ferrule.tools.decorator import tool\nfrom ferrule.tools.toolset import Toolset\n"
            + textwrap.dedent(text)
        )
        return path

    return write_file


def test_a_files_own_tools_are_offered(tmp_path, write):
    write(
        "weather_tool.py",
        """
        from ferrule.tools.decorator import Tool
        @tool(read_only=True)
        def forecast(city: str) -> str:
            "The forecast."
            return "sunny in " + city
        again = forecast
        class Counter(Toolset):
            def __init__(self, start: int = 0):
                self.count = start
            @tool
            def count(self) -> int:
                self.count_ = 1
                return self.count_
        class Shared(Toolset):
            def __init__(self, name):
                self.name = name
            @tool
            def name_of(self) -> str:
                return self.name
        shared = Shared("x")
        made = Tool.from_schema("schema_only", "S.", {"type": "object"}, lambda **a: a)
        class _Base(Toolset):
            @tool
            def hidden(self) -> str: ...
        def helper(x: int) -> int: ...
        """,
    )
    found = ToolRegistry.discover(tmp_path)
    assert found.problems == ()
    assert sorted(found.names) == ["count", "forecast", "name_of", "schema_only"]
    assert {spec.origin for spec in found.specs} == {"project"}

    async def main():
        async with found.open() as bound:
            return bound.get("name_of")(), bound.get("count")(), bound.get("forecast")("Rome")

    assert asyncio.run(main()) == ("x", 1, "sunny in Rome")


def test_an_instance_stands_for_its_class(tmp_path, write):
    write(
        "a_tool.py",
        """
        class Counter(Toolset):
            @tool
            def count(self) -> int: ...
        counter = Counter()
        """,
    )
    assert ToolRegistry.discover(tmp_path).names == ("count",)
    assert ToolRegistry.discover(tmp_path).get("count").barrier is not None


def test_files_that_fail_are_reported_and_hide_nothing(tmp_path, write):
    write("a_tool.py", "@tool\ndef works(x: int) -> int: return x")
    reasons = {
        "b_tool.py": ("def f(:", "(line 3)"),
        "c_tool.py": ("import nowhere", "ModuleNotFoundError: No module named 'nowhere' (line 3)"),
        "d_tool.py": ("raise SystemExit(3)", "SystemExit: 3 (line 3)"),
        "e_tool.py": ("\n1/0", "ZeroDivisionError: division by zero (line 4)"),
        "f_tool.py": ("@tool\ndef f(x): ...", "ToolDefinitionError: the tool 'f': the parameter 'x' has no type"),
        "g_tool.py": ("x = 1", "it defines no tool"),
        "h_tool.py": (
            "class Needy(Toolset):\n    def __init__(self, key): ...\n    @tool\n    def f(self) -> str: ...",
            "Needy needs key; make an instance",
        ),
        "i_tool.py": (
            "class T: ...\n@tool\ndef g(x: T): ...\n@tool\ndef fine(x: int): ...",
            "the type of 'x' has no JSON Schema",
        ),
    }  # fmt: skip
    for name, (text, _) in reasons.items():
        write(name, text)
    (tmp_path / "j_tool.py").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "k_tool.py").symlink_to(tmp_path / "gone.py")
    found = ToolRegistry.discover(tmp_path)
    assert found.names == ("works", "fine")
    reported = {problem.path.name: problem.reason for problem in found.problems}
    assert set(reported) == {*reasons, "j_tool.py", "k_tool.py"}
    for name, (_, said) in reasons.items():
        assert said in reported[name]
    assert str(found.problems[0]).startswith(str(tmp_path / "b_tool.py"))
    registry = ToolRegistry.discover(tmp_path)
    assert registry.problems == found.problems
    assert registry.only("works").add(ToolRegistry()).problems == found.problems


def test_imported_names_are_not_offered_again(tmp_path, write):
    write(
        "a_tool.py",
        "@tool\ndef first(x: int) -> int: return x\nclass Set(Toolset):\n    @tool\n    def s(self) -> int: ...",
    )
    write(
        "shared_helper.py",
        "@tool\ndef helped(x: int) -> int: return x\n"
        "class More(Toolset):\n    @tool\n    def m(self) -> int: ...\nmore = More()",
    )
    write(
        "b_tool.py", "from shared_helper import More, helped, more\n@tool\ndef second(x: int) -> int: return helped(x)"
    )
    write("c_tool.py", "from shared_helper import *\n@tool\ndef third(x: int) -> int: return helped(x)")
    registry = ToolRegistry.discover(tmp_path)
    assert registry.problems == ()
    assert registry.names == ("first", "s", "second", "third")
    assert registry.get("second")(3) == 3


def test_a_helper_never_takes_the_place_of_an_installed_module(tmp_path, write):
    write("colorsys.py", "raise AssertionError('imported instead of the standard one')")
    write("a_tool.py", "import colorsys\n@tool\ndef first(x: int) -> str: return colorsys.__name__")
    assert ToolRegistry.discover(tmp_path).problems == ()


def test_subfolders_are_read_in_order_and_hidden_ones_are_not(tmp_path, write):
    for name, tool in {"z_tool.py": "z", "b/x_tool.py": "bx", "a/x_tool.py": "ax", "a/b/x_tool.py": "abx"}.items():
        write(name, f"@tool\ndef {tool}(x: int): ...")
    for name in (".hidden/x_tool.py", "__pycache__/x_tool.py", "a/not_one.py", "a/.x_tool.py"):
        write(name, "@tool\ndef never(x: int): ...")
    assert ToolRegistry.discover(tmp_path).names == ("abx", "ax", "bx", "z")


def test_a_name_in_two_files_is_an_error_that_names_both(tmp_path, write):
    write("a_tool.py", "@tool\ndef same(x: int): ...")
    write("b/b_tool.py", "@tool\ndef same(x: int): ...")
    with pytest.raises(
        RegistryError, match=r"'same': one from project \(.*a_tool\.py:3\), one from project \(.*b_tool"
    ):
        ToolRegistry.discover(tmp_path)


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(RegistryError, match="doesn't exist"):
        ToolRegistry.discover(tmp_path / "gone")
    with pytest.raises(RegistryError, match="doesn't exist"):
        ToolRegistry.discover(str(tmp_path / "gone"))


def test_a_folder_without_tool_files_offers_nothing_and_says_so(tmp_path, write):
    reason = f"{tmp_path}: no file in this folder has a name that ends with _tool.py"
    found = ToolRegistry.discover(tmp_path)
    assert (found.names, list(map(str, found.problems))) == ((), [reason])
    write("paint.py", "@tool\ndef paint(room: str): ...")
    (problem,) = ToolRegistry.discover(tmp_path).problems
    assert str(problem) == f"{reason}; there is paint.py, which can be given by itself"


def test_an_edited_file_is_read_anew_and_nothing_is_left_in_the_folder(tmp_path, write):
    path = write("a_tool.py", "@tool\ndef first(x: int): ...")
    assert ToolRegistry.discover(tmp_path).names == ("first",)
    path.write_text(path.read_text().replace("first", "other"))
    assert ToolRegistry.discover(tmp_path).names == ("other",)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a_tool.py"]


def test_dataclasses_and_pickling_work_in_a_found_file(tmp_path, write):
    write(
        "a_tool.py",
        """
        from __future__ import annotations
        from dataclasses import dataclass
        @dataclass
        class Point:
            x: int
        @tool
        def move(point: Point) -> Point: return Point(point.x + 1)
        """.replace("from __future__ import annotations", ""),
    )
    move = ToolRegistry.discover(tmp_path).get("move")
    moved = move(**move.bind('{"point": {"x": "1"}}'))
    assert pickle.loads(pickle.dumps(moved)) == moved


def test_a_marked_method_of_a_plain_class_is_told_what_its_class_lacks(tmp_path, write):
    write("a_tool.py", "class Notes:\n    @tool\n    def add(self, text: str) -> str: ...")
    (problem,) = ToolRegistry.discover(tmp_path).problems
    assert problem.reason == "Notes.add is marked @tool, but Notes is not a Toolset; write class Notes(Toolset)"


def test_a_tool_that_is_defined_twice_makes_its_file_unusable(tmp_path, write):
    write("a_tool.py", "@tool\ndef f(x: int): ...\n@tool(read_only=True)\ndef f(x: str): ...")
    write("b_tool.py", "import ferrule\n@ferrule.tool\ndef g(x: int): ...\n@ferrule.tool()\nasync def g(x: str): ...")
    methods = "    @tool\n    def m(self, x: int): ...\n"
    write("c_tool.py", f"class Notes(Toolset):\n{methods}{methods}")
    found = ToolRegistry.discover(tmp_path)
    assert found.names == ()
    assert [problem.reason.partition(";")[0] for problem in found.problems] == [
        "the tool 'f' is defined twice, in line 4 and in line 6",
        "the tool 'g' is defined twice, in line 5 and in line 7",
        "the tool 'm' is defined twice, in line 5 and in line 7",
    ]


def test_a_function_of_a_tools_name_that_is_no_tool_does_not_count_as_a_second_one(tmp_path, write):
    write(
        "a_tool.py",
        """
        from typing import overload
        @overload
        def f(x: int) -> int: ...
        @overload
        def f(x: str) -> str: ...
        @tool
        def f(x: int | str) -> int | str: return x
        if f:
            @tool
            def g(x: int): ...
        else:
            @tool
            def g(x: str): ...
        """,
    )
    found = ToolRegistry.discover(tmp_path)
    assert (found.names, found.problems) == (("f", "g"), ())


def test_files_of_tests_are_not_taken_for_tools(tmp_path, write):
    write("stock_tool.py", "@tool\ndef stock(x: int): ...")
    write("test_stock_tool.py", "raise AssertionError('imported')")
    found = ToolRegistry.discover(tmp_path)
    assert (found.names, found.problems) == (("stock",), ())


def test_a_type_without_a_schema_is_reported_with_its_file(tmp_path, write):
    path = write("a_tool.py", "@tool\ndef f(x: 'Undefined') -> int: ...")
    with pytest.raises(ToolDefinitionError, match=r"a_tool\.py: the tool 'f': the type of 'x', Undefined, can't be"):
        ToolRegistry.from_file(path)


def test_a_toolset_whose_methods_cannot_be_tools_hides_no_other_file(tmp_path, write):
    write("a_tool.py", "class Notes(Toolset):\n    def add(self, text): ...")
    write("b_tool.py", "@tool\ndef works(x: int): ...")
    found = ToolRegistry.discover(tmp_path)
    assert found.names == ("works",)
    assert "No method of Notes is marked @tool" in found.problems[0].reason
