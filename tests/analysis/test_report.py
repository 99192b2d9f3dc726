"""The page of an analysis: what it shows, and that nothing in it acts. In a browser, too, where there is one."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser import measure
from markupsafe import escape
from report_examples import ATTACKS, SCRIPT, make_hostile_result, make_result

from ferrule.analysis.report.html import render_report, write_report
from ferrule.analysis.report.tasks import describe_seconds, show_result
from ferrule.analysis.result import AnalysisResult, OutputEntry, TaskExecution

ALLOWED = set(
    re.findall(
        r"\w+",
        "html head meta title style body header main footer section h1 h2 h3 h4 p span strong em a ul ol li dl dt dd "
        "pre code img table thead tbody tr th td div details summary svg defs marker path g rect text br hr",
    )
)


class Reader(HTMLParser):
    """Collects the elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def find(self, tag: str, class_: str = "") -> list[dict[str, str]]:
        return [at for name, at in self.elements if name == tag and class_ in ["", *at.get("class", "").split()]]


def test_each_number_of_the_answer_links_to_what_made_it() -> None:
    page = Reader(render_report(make_result()))
    links = [at["href"] for at in page.find("a", "number")]
    assert links[:3] == ["#task-t1", "#task-t3", "#task-t1"]
    ids = {at["id"] for _, at in page.elements if "id" in at}
    assert {link.removeprefix("#") for link in links} <= ids
    assert [at["title"] for at in page.find("span", "uncomputed")] == ["not computed: no output has this number"]
    assert page.find("a", "stated")[0]["href"] == "#task-t2"


def test_the_page_shows_all_of_a_task() -> None:
    text = "".join(Reader(render_report(make_result())).texts)
    for shown in (
        "Change of revenue by region",
        "1250340.50",
        "pivot_table",
        "no change is below",
        "KeyError: 'qarter'",
    ):
        assert shown in text
    assert "done, 3.4 s, 1 retry" in text
    assert "The model's answer had no JSON after 3 attempts." in text
    assert "Did you mean 'quarter'?" in text


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.44, "0.4 s"), (12.3, "12 s"), (59.7, "1 min 0 s"), (200, "3 min 20 s")]
)
def test_durations_are_rounded_before_they_are_split(seconds: float, shown: str) -> None:
    assert describe_seconds(seconds) == shown


def test_the_first_line_of_a_table_keeps_its_place() -> None:
    table = "   region  change\n0    West  -0.184"
    task = TaskExecution("t1", "py_executor", "Change", result=f"\n{table}\n\nNote: repaired", notes=("repaired",))
    page = render_report(AnalysisResult("Why?", output_entries=[OutputEntry("task_execution", task)]))
    assert f">{table}</pre>" in page


@pytest.mark.parametrize(
    ("result", "cells"),
    [
        ({"East": {"Q2": 1.50, "Q3": 2}, "West": {"Q2": 3, "Q3": None}}, [["East", "1.5", "2"], ["West", "3", "null"]]),
        (
            {"r2": 0.5, "b": {"x": 1, "y": 2, "z": 3}, "p": {"x": 0.1, "y": 0.2, "z": 1e-30}},
            [["r2", "0.5"], ["x", "1", "0.1"], ["y", "2", "0.2"], ["z", "3", "1e-30"]],
        ),
        ({"best": "West", "ids": [1, 2]}, [["best", "West"], ["ids", "1, 2"]]),
        ({"a": 1, "b": {"c": 2}}, [["a", "1"], ["c", "2"]]),
    ],
)
def test_a_result_with_names_is_a_table(result: dict[str, Any], cells: list[list[str]]) -> None:
    shown = "".join(show_result(f"{json.dumps(result)}\n\nPrinted:\nok"))
    rows = re.findall(r"<tr>(.*?)</tr>", re.sub("<thead>.*?</thead>", "", shown))
    assert [[re.sub("<.*?>", "", cell) for cell in re.findall("<t[hd].*?</t[hd]>", row)] for row in rows] == cells
    assert shown.endswith("<pre>Printed:\nok</pre>")


def test_the_lines_of_a_tool_stay_lines() -> None:
    text = "Conclusion: West.\n1. It fell.\n2. More than all.\nHypothesis (0.9): West\n  for: t1"
    task = TaskExecution("t1", "logic_kernel", "Why?", result=text)
    page = render_report(AnalysisResult("Why?", output_entries=[OutputEntry("task_execution", task)]))
    assert "<li>More than all.</li>" in page
    assert "<p>Hypothesis (0.9): West<br />\nfor: t1</p>" in page


@pytest.mark.parametrize("text", ['{"a": {"b": {"c": 1}}}', "{}", '{"a": 1} and more', "{not JSON", '{"a": [[1]]}'])
def test_another_result_is_shown_as_it_is(text: str) -> None:
    assert re.sub("<.*?>", "", "".join(show_result(text))) == str(escape(text))


def test_a_partial_result_without_anything_is_a_page() -> None:
    text = "".join(Reader(render_report(AnalysisResult("Why?", stopped="The limit of 1 request is reached."))).texts)
    assert "Partial result. The limit of 1 request is reached." in text
    assert "There is no answer." in text


def test_numbers_of_a_limit_are_not_marked() -> None:
    stopped = "the limit of 3 requests to models was reached"
    page = render_report(AnalysisResult("Why?", answer=f"There is no answer: {stopped}.", stopped=stopped))
    assert Reader(page).find("span", "uncomputed") == []


def test_the_same_result_gives_the_same_page() -> None:
    assert render_report(make_result()) == render_report(make_result())


def test_nothing_that_was_written_becomes_an_element() -> None:
    source = render_report(make_hostile_result())
    page = Reader(source)
    assert {tag for tag, _ in page.elements} <= ALLOWED
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name.startswith("on") or name in {"style", "srcdoc", "action"}]
        assert attributes.get("href", "#").startswith("#")
        assert attributes.get("src", "data:image/png;base64,").startswith("data:image/png;base64,")
        assert tag != "meta" or attributes.get("http-equiv", "") in {"", "Content-Security-Policy"}
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b]", source)
    text = "".join(page.texts)
    assert all(attack.splitlines()[0] in text for attack in ATTACKS[:6])


def test_the_policy_allows_no_script_and_no_request() -> None:
    page = render_report(make_result())
    (policy,) = [at["content"] for at in Reader(page).find("meta") if "http-equiv" in at]
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/=]+'; img-src data:; base-uri 'none'; form-action 'none'", policy
    )
    # Attributes such as style="" would need an exception.
    assert " style=" not in page
    assert not re.search(r"https?:(?!//www\.w3\.org)", page)


SEEN = "[page.title, page.scripts.length, page.querySelectorAll('iframe, #attack, base').length]"
FITS = "page.documentElement.scrollWidth <= page.documentElement.clientWidth"
COLOR = "getComputedStyle(page.body).backgroundColor"
FONT = "getComputedStyle(page.querySelector('pre')).fontFamily"
BROKEN = """[...page.querySelectorAll('a.number, .uncomputed, thead th')].filter(one => {
  const range = page.createRange(); range.selectNodeContents(one); return range.getClientRects().length > 1;
}).map(one => one.textContent)"""
FOLLOWED = """(() => { const link = page.querySelector('a.number'); link.click();
  const place = page.querySelector(link.hash).getBoundingClientRect();
  return [frame.contentWindow.location.hash, place.top < 800 && place.bottom > 0]; })()"""


@pytest.fixture(scope="module")
def measures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a browser says of the pages, all in one start of it."""
    folder = tmp_path_factory.mktemp("pages")
    report, hostile, unguarded, control = (folder / f"{name}.html" for name in ("report", "hostile", "bare", "control"))
    write_report(make_result(), report)
    write_report(make_hostile_result(), hostile)
    # Escaping alone must do, so the policy is taken away; the control shows that an attack would be seen.
    unguarded.write_text(re.sub(r'<meta http-equiv="Content[^>]*>', "", hostile.read_text("utf-8")), encoding="utf-8")
    control.write_text(f"<!doctype html><title>x</title>{ATTACKS[1]}", encoding="utf-8")
    cases = {
        "hostile": (hostile, 800, SEEN),
        "unguarded": (unguarded, 800, SEEN),
        "control": (control, 800, SEEN),
        "on a phone": (report, 360, FITS),
        "hostile on a phone": (hostile, 360, FITS),
        "on a wide screen": (report, 1200, FITS),
        "broken on a phone": (report, 360, BROKEN),
        "color": (report, 800, COLOR),
        "font": (report, 800, FONT),
        "followed": (report, 800, FOLLOWED),
    }
    return measure(folder, cases)


def test_no_attack_acts_in_a_browser(measures: dict[str, Any]) -> None:
    assert measures["control"][0] == "attacked"
    for name in ("hostile", "unguarded"):
        title, scripts, others = measures[name]
        assert title.startswith(f"<script>{SCRIPT}")
        assert scripts == others == 0


@pytest.mark.parametrize("screen", ["on a phone", "hostile on a phone", "on a wide screen"])
def test_the_page_fits_its_screen(measures: dict[str, Any], screen: str) -> None:
    assert measures[screen] is True


def test_no_number_and_no_title_of_a_column_is_broken(measures: dict[str, Any]) -> None:
    assert measures["broken on a phone"] == []


def test_the_policy_lets_the_style_of_the_page_through(measures: dict[str, Any]) -> None:
    assert measures["color"] == "rgb(255, 255, 255)"
    assert "monospace" in measures["font"]


def test_a_number_leads_to_its_run(measures: dict[str, Any]) -> None:
    assert measures["followed"] == ["#task-t1", True]


@pytest.mark.slow
def test_the_page_is_dark_where_the_system_is(tmp_path: Path) -> None:
    write_report(make_result(), tmp_path / "report.html")
    cases = {"color": (tmp_path / "report.html", 800, COLOR)}
    assert measure(tmp_path, cases, "--blink-settings=preferredColorScheme=0")["color"] == "rgb(20, 24, 31)"
