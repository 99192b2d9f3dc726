"""A conversation printed, and shown in a notebook: readable, and nothing in it is markup."""

import re
from html.parser import HTMLParser

from markdown_it import MarkdownIt

from ferrule import (
    Conversation,
    Image,
    MalformedCall,
    Message,
    Reasoning,
    ToolCall,
    ToolResult,
    assistant,
    system,
    user,
)
from ferrule.agent.run import Run
from ferrule.conversation import tool_message
from ferrule.transcript import render_html, render_markdown, summarize_result
from tables import each_case

TALK = Conversation(
    (
        system("Be brief."),
        user("What is 12 * 34?"),
        assistant("Let me see.", ToolCall("a", "calculator", '{"expression": "12 * 34"}')),
        tool_message(ToolResult("a", "calculator", "408")),
        assistant(Reasoning("easy"), "It is 408."),
    )
)
EVIL = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "![x](http://evil/?leak)",
    "[click](javascript:alert(1))",
    "http://evil.example www.evil.example a@evil.example",
    "# heading\n- list\n    code\n\n> quote\n\n1. one",
    "`code` *a* _b_ ~~c~~ | d |\n|---|---|",
    "\\(x\\) $x$ $$x$$ \\[x\\]",
    "</div></details></pre></span><b>bold</b>",
    "&lt;script&gt; &#60;script&#62;",
    "\x1b[31m red \u202e desrever",
]


def test_a_printed_conversation_reads_as_one() -> None:
    assert str(TALK) == (
        "system: Be brief.\nuser: What is 12 * 34?\nassistant: Let me see.\n▸ calculator  12 * 34  →  408\n"
        "assistant: It is 408."
    )
    assert str(TALK.messages[1]) == "user: What is 12 * 34?"
    assert repr(TALK).startswith("Conversation(messages=(Message(role='system'")


def test_calls_that_are_open_malformed_or_left_without_their_message_are_printed() -> None:
    talk = Conversation((assistant(ToolCall("a", "now", "{}"), MalformedCall("b", '{"x', "truncated")),))
    assert str(talk) == '▸ now  …  not answered yet\n▸ unreadable call  {"x  …  not answered yet'
    assert str(tool_message(ToolResult("z", "now", "12:00"))) == "▸ now  →  12:00"


def test_each_call_is_printed_with_its_own_result_where_ids_repeat() -> None:
    def adding(number: int) -> ToolCall:
        return ToolCall("a", "add", f'{{"a": {number}}}')

    def answered(number: int) -> Message:
        return tool_message(ToolResult("a", "add", f"sum {number}"))

    talk = Conversation(
        (
            *(assistant(adding(1)), answered(1), assistant(adding(2), adding(3)), answered(2), answered(3)),
            *(answered(4), assistant(adding(5)), user("Wait.")),
        )
    )
    lines = [f"▸ add  a={number}  →  sum {number}" for number in (1, 2, 3)]
    assert str(talk).splitlines() == [*lines, "▸ add  →  sum 4", "▸ add  a=5  …  not answered yet", "user: Wait."]
    for shown in (render_html(talk), MarkdownIt().render(render_markdown(talk))):
        texts = "".join(re.findall(r">([^<]*)", shown))
        assert [one in texts for one in (*lines, "a=5  …  not answered yet")] == [True] * 4


def test_a_run_says_why_it_stopped() -> None:
    run: Run[None] = Run(TALK, stopped="rounds")
    assert str(run) == f"{TALK}\n(rounds)"
    run.stopped = "done"
    assert str(run) == str(TALK)
    assert run._repr_html_() == TALK._repr_html_()


def test_a_terminal_is_not_controlled() -> None:
    shown = str(Conversation((user("\x1b[2J\u202eabc"), assistant(ToolCall("a", "\x1b[1mf", '{"x": "\\u001b[2J"}')))))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\\u202eabc" in shown


def everywhere(text: str) -> Conversation:
    """A conversation with a text in each place that a model or a tool writes."""
    return Conversation(
        (
            system(text),
            user(text, Image(b"\x89PNG", f"image/{text}")),
            assistant(text, Reasoning(text), ToolCall("a", text, {"x": text}), MalformedCall("b", text, "no_name")),
            tool_message(ToolResult("a", text, text)),
            tool_message(ToolResult("b", "", (Image(b"\x89PNG", f"image/{text}"),))),
        )
    )


class Page(HTMLParser):
    """Collects the tags and attributes of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: set[tuple[str, str]] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {(tag, name) for name, _ in attrs} | {(tag, "")}


@each_case("evil", EVIL)
def test_no_text_adds_markup_to_a_page(evil: str) -> None:
    html = everywhere(evil)._repr_html_()
    assert Page(html).found == Page(everywhere("plain")._repr_html_()).found
    assert "\u202e" not in html
    assert "\x1b" not in html


@each_case("evil", EVIL)
def test_no_text_is_markdown(evil: str) -> None:
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    found = Page(reader.render(everywhere(evil)._repr_markdown_())).found
    assert {tag for tag, _ in found} <= {"p", "strong", "br"}
    # A notebook looks for formulas before it reads Markdown.
    assert not re.search(r"\$|\\[\[(]", everywhere(evil)._repr_markdown_())


def test_images_are_shown_as_they_are() -> None:
    shown = Conversation((user("Look:", Image(b"\x89PNG", "image/png")),))
    assert '<img src="data:image/png;base64,iVBORw=="' in shown._repr_html_()
    assert "(data:image/png;base64,iVBORw==)" in shown._repr_markdown_()
    drawn = Conversation((user(Image(b"<svg onload='alert(1)'/>", "image/svg+xml")),))
    assert "<img" not in drawn._repr_html_()
    assert "24 bytes" in drawn._repr_html_()


def test_the_lines_of_an_error_are_joined_and_those_of_other_results_are_marked():
    text = "error: no such file\n  did you mean a.txt?\n"
    assert summarize_result(ToolResult("a", "read", text, "error")) == "error: no such file did you mean a.txt?"
    assert summarize_result(ToolResult("a", "read", "one\ntwo")) == "one\\ntwo"
