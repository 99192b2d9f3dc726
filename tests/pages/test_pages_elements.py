"""Elements of pages: what is escaped, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from ferrule.conversation import Image
from ferrule.pages.code import END, START, show_code, show_markdown
from ferrule.pages.elements import element, escape_text, join, make_anchor, show_image
from ferrule.pages.graph import Node, draw_graph


def test_children_are_text_unless_they_are_elements() -> None:
    assert element("p", "<b>", element("em", "&"), None, ["x", "y"]) == "<p>&lt;b&gt;<em>&amp;</em>xy</p>"


@pytest.mark.parametrize("name", ["script", "style", "iframe", "base", "p onclick=x", "P"])
def test_an_element_that_could_act_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="isn't one that a page may have"):
        element(name)


@pytest.mark.parametrize(
    "attributes",
    [
        {"onclick": "x()"},
        {"style": "color: red"},
        {"href": "javascript:x()"},
        {"href": "https://example.com/"},
        {"src": "data:text/html;base64,AA=="},
        {"src": "data:image/svg+xml;base64,AA=="},
        {"srcdoc": "x"},
    ],
)
def test_an_attribute_that_could_act_is_refused(attributes: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="isn't"):
        element("a", **attributes)


@given(st.text())
def test_no_text_becomes_markup(text: str) -> None:
    for shown in (escape_text(text), element("p", title=text)[3:-4]):
        assert "<" not in shown
    assert set(join([text]).unescape()) - set(text) <= set("⟨U+0123456789ABCDEF⟩\n\ufffd")


@given(st.text(alphabet=st.sampled_from("<>&\"'`*_[]()!#|-\\ \n1a/:" + START + END)))
def test_markdown_of_any_text_has_no_link_and_no_html(text: str) -> None:
    shown = show_markdown(f"{text} <script>x</script> [a](javascript:b)", lambda part: element("b", part))
    assert not any(tag in shown for tag in ("<script", "<a", "<img", START, END))


def test_code_is_escaped_and_what_is_hidden_in_it_is_shown() -> None:
    shown = show_code("x = '</pre><script>' # \u202e")
    assert "<script" not in shown
    assert "⟨U+202E⟩" in shown
    for character in "\u180b\u2065\u0338\u20dd\U000e0041\ue000":
        hidden = f"⟨U+{ord(character):04X}⟩"
        assert hidden in show_code(f"'a{character}'")
        assert hidden in element("p", f"a{character}")
        assert character not in show_markdown(f"a{character}")


def test_a_picture_of_another_type_is_described() -> None:
    assert "image/svg+xml" in show_image(Image(b"<svg/>", "image/svg+xml"), "x")
    assert show_image(Image(b"x", "image/png"), '"').startswith('<img src="data:image/png;base64,eA=="')


def test_anchors_of_different_names_differ() -> None:
    names = ["t1", "t 1", "t/1", "a/b:c", "a:b/c", "größe", "grosse", "éè", "èé", "<t1>", ""]
    anchors = {make_anchor("task", name) for name in names}
    assert len(anchors) == len(names)
    assert "task-t1" in anchors


def test_an_edge_over_several_layers_passes_beside_their_nodes() -> None:
    nodes = [Node("a", "a"), Node("b", "b", needs=("a",)), Node("c", "c", needs=("b", "a", "missing"))]
    shown = draw_graph(nodes, "x")
    assert isinstance(shown, Markup)
    assert shown.count("marker-end") == 3
    assert shown.count("<rect") == 3


def test_a_graph_without_nodes_is_empty() -> None:
    assert "<rect" not in draw_graph([], "x")
