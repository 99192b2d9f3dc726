"""Descriptions from docstrings: three styles, and prose that only looks like one."""

import logging
import subprocess
import sys

import pytest

from ferrule.tools.decorator import tool
from ferrule.tools.docstrings import read_docstring
from tables import each_case

GOOGLE = """Find a town.

    It looks in every register.

    Args:
        city (str): The town's name,
            as on a map.
        *days: How many days.

    Returns:
        The town.
    """
NUMPY = """Find a town.

    It looks in every register.

    Parameters
    ----------
    city : str
        The town's name,
        as on a map.
    days, weeks : int, optional
        How many days.

    Returns
    -------
    str
        The town.
    """
SPHINX = """Find a town.

    It looks in every register.

    :param city: The town's name,
        as on a map.
    :type city: str
    :param int days: How many days.
    :returns: The town.
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_three_styles_say_the_same(text):
    documented = read_docstring(text, ["city", "days"])
    assert documented.description == "Find a town.\n\nIt looks in every register."
    assert documented.parameters == {"city": "The town's name, as on a map.", "days": "How many days."}


def test_numpy_names_that_share_a_text_each_get_it():
    assert set(read_docstring(NUMPY, ["days", "weeks"]).parameters) == {"days", "weeks"}


LOOSE = [
    "Args:\n    x (int) : text x.\n    y : text y.",
    "Args :\n    x (int): text x.\n    y: text y.",
    "args:\n    x (dict[str, int], optional): text x.\n    y: text y.",
    "ARGS:\n    x: text x.\n    y: text y.",
    "Args:\n\n    x: text x.\n\n    y:\n        text y.",
    "Args:\nx: text x.\ny: text y.",
    "Args:\n    - x (int): text x.\n    - y: text y.",
    "Args:\n    x -- text x.\n    y - text y.",
    "Args:\n    `x` (int): text x.\n    **y**: text y.",
    "Args:\n    x（int）：text x.\n    y：text y.",
    "Args:\n    x: text x.\nOther Parameters:\n    y: text\n        y.",
    "Args:\r\n    x: text x.\r\n    y: text y.\r\n",
    "**Args**:\n- `x` (int): text x.\n- `y`: text y.",
    "## Parameters\n- x: text x.\n- y: text y.",
    ":param x : text x.\n:param int y : text y.",
    ":param x - text x.\n:param list[int] y - text\n    y.",
    "@param x: text x.\n@param y text y.\n@return: y",
    "Args\n----\nx : int\n    text x.\ny : str\n    text y.",
    "parameters:\n===========\nx : int\n    text x.\ny : str\n    text y.",
]


@each_case("section", LOOSE)
def test_no_text_of_a_parameter_is_lost_where_it_is_written_differently(section):
    for end in ("", "\n\nReturns:\n    x: text z."):
        documented = read_docstring(f"Do it.\n\n{section}{end}", ["x", "y"])
        assert documented.description == "Do it."
        assert documented.parameters == {"x": "text x.", "y": "text y."}


@pytest.mark.parametrize(
    "text",
    [
        "Compare.\n\nParameters: see the manual.\n\nx - y is what it returns",
        "Compare.\n\nArgs:\nthe usual ones.",
        "Compare.\n\nIt needs: x, y",
    ],
)
def test_prose_stays_in_the_description(text):
    documented = read_docstring(text, ["x", "y"])
    assert documented.description.split() == text.split()
    assert documented.parameters == {}


def test_a_type_is_no_description():
    assert read_docstring("Do.\n\nParameters\n----------\nx : int\ny : str\n    text y.", ["x", "y"]).parameters == {
        "y": "text y."
    }


@each_case(
    ("text", "description"),
    [
        (None, ""),
        ("", ""),
        ("One line.", "One line."),
        (
            "One sentence\n    over two lines.\n\n\n    More,\n    wrapped.",
            "One sentence over two lines.\n\nMore, wrapped.",
        ),
        (
            "Sum: a and b.\n\n    Careful: this is prose: no sections.",
            "Sum: a and b.\n\nCareful: this is prose: no sections.",
        ),
        ("Find.\n:param city: x", "Find."),
        ("Find.\n\nReturns:\n    x", "Find."),
        ("\n    Find.\n\n    Args:\n        city: x\n    ", "Find."),
    ],
)
def test_the_paragraphs_before_the_parameters_are_the_description(text, description):
    assert read_docstring(text, ["city"]).description == description


def test_lists_code_and_notes_before_the_parameters_keep_their_lines():
    """The second seed's docstrings say how a tool is used; the third's descriptions are of several sentences."""
    text = """Crop an image,
    and return it.

    Use it to look closely:
    - at a face
    - at small text

    Usage: <tool_call>Crop [100,100,300,400]</tool_call>

    Example:
        >>> crop([1, 2])

    Parameters
    ----------
    box : list
        Where.

    Returns
    -------
    Image
        What is inside.

    More, which is not for the model.
    """
    parsed = read_docstring(text, ["box"])
    assert parsed.description == (
        "Crop an image, and return it.\n\nUse it to look closely:\n- at a face\n- at small text\n\n"
        "Usage: <tool_call>Crop [100,100,300,400]</tool_call>\n\nExample:\n    >>> crop([1, 2])"
    )
    assert parsed.parameters == {"box": "Where."}
    fenced = "Run it.\n\n```\na\n\nb\nc\n```\n\n:param box: Where."
    assert read_docstring(fenced, ["box"]).description == "Run it.\n\n```\na\n\nb\nc\n```"


def test_a_heading_needs_no_blank_line_before_it():
    documented = read_docstring("Find.\n    Args:\n        city: A city.\n    Returns:\n        x\n    ", ["city"])
    assert (documented.description, documented.parameters) == ("Find.", {"city": "A city."})


def test_a_parameter_that_the_function_lacks_is_ignored():
    assert read_docstring(GOOGLE, ["other"]).parameters == {}


def test_griffe_says_nothing_and_is_imported_only_for_sections(caplog):
    caplog.set_level(logging.DEBUG)
    read_docstring("Find.\n\nArgs:\n    city: a\n    no text here\n", ["city"])
    assert not caplog.records
    code = (
        "import sys; from ferrule.tools.decorator import tool\n"
        "@tool\ndef f(a: int) -> str:\n    '''Do it.'''\n"
        "f.spec; f.bind('{\"a\": 1}'); sys.exit('griffe' in sys.modules or 'jsonschema' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_annotation_says_more_than_the_docstring():
    from typing import Annotated

    from pydantic import Field

    @tool
    def find(a: Annotated[str, "from the annotation"], b: int = Field(default=1, description="field"), c: int = 2):
        """Find.

        Args:
            a: docstring a
            b: docstring b
            c: docstring c
        """

    texts = {name: one["description"] for name, one in find.parameters["properties"].items()}
    assert texts == {"a": "from the annotation", "b": "field", "c": "docstring c"}
