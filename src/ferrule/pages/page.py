"""A page that needs nothing but itself: no script, no network, dark and light, on a phone, on paper."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

from markupsafe import Markup

from ferrule.pages.code import highlight_style
from ferrule.pages.elements import Child, escape_text, join

_STYLE: Final = """
:root {
  color-scheme: light dark;
  --text: #1d2636; --quiet: #5b6575; --ground: #ffffff; --raised: #f5f7fa; --line: #d5dbe5; --link: #1c5fb8;
  --good: #1a7f4b; --bad: #b3261e; --warn: #8a5a00; --mark: #fff1c2;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --text: #e4e8ef; --quiet: #9aa5b5; --ground: #14181f; --raised: #1d232d; --line: #343d4b; --link: #7db4ff;
    --good: #5fd08f; --bad: #ff8a80; --warn: #f0b95a; --mark: #4a3c10;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 60rem; color: var(--text); background: var(--ground);
  font: 16px/1.55 system-ui, sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.5rem; line-height: 1.3; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .75rem; border-bottom: 1px solid var(--line); padding-bottom: .25rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 .25rem; }
a { color: var(--link); }
.quiet, .quiet a { color: var(--quiet); font-size: .875rem; }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
pre {
  margin: .5rem 0; padding: .75rem; background: var(--raised); border: 1px solid var(--line); border-radius: 6px;
  font: 13px/1.5 ui-monospace, monospace; overflow-x: auto; white-space: pre; overflow-wrap: normal;
  max-height: 40rem; unicode-bidi: isolate;
}
pre.wrapped { white-space: pre-wrap; overflow-wrap: anywhere; }
code { font-family: ui-monospace, monospace; font-size: .9em; }
img { max-width: 100%; height: auto; background: #ffffff; border-radius: 6px; }
.scrolled { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; margin: .5rem 0; }
th, td { border: 1px solid var(--line); padding: .25rem .6rem; text-align: left; vertical-align: top; }
th, td { unicode-bidi: isolate; overflow-wrap: break-word; }
th { background: var(--raised); white-space: nowrap; }
td code { overflow-wrap: anywhere; }
details { margin: .5rem 0; }
summary { cursor: pointer; color: var(--quiet); }
section.card { border: 1px solid var(--line); border-radius: 8px; padding: .25rem 1rem 1rem; margin: 1rem 0; }
:target { outline: 2px solid var(--link); outline-offset: 4px; }
svg.graph { display: block; max-width: none; margin: 0 auto; }
svg.graph text { font: 13px system-ui, sans-serif; fill: var(--text); }
svg.graph text.quiet { font-size: 11.5px; fill: var(--quiet); }
svg.graph rect { fill: var(--raised); stroke: var(--quiet); stroke-width: 1.2; }
svg.graph .good rect { stroke: var(--good); } svg.graph .bad rect { stroke: var(--bad); }
svg.graph .warn rect { stroke: var(--warn); stroke-dasharray: 4 3; }
svg.graph path { fill: none; stroke: var(--quiet); stroke-width: 1.3; }
svg.graph marker path { fill: var(--quiet); stroke: none; }
svg.graph a:hover rect, svg.graph a:focus rect { stroke-width: 2.5; }
@media print {
  body { max-width: none; font-size: 11pt; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; max-height: none; }
  details::details-content { content-visibility: visible; block-size: auto; height: auto; }
  section.card, img, svg, tr { break-inside: avoid; }
  section.card { break-inside: auto; }
}
"""


def render_page(title: str, *body: Child, style: str = "") -> str:
    """The whole document. `style` is CSS of the caller's own, which no content may be part of.

    The content security policy allows the page's own style sheet, by its hash, and images in the page; no scripts, no
    requests, no forms, no other base for links.
    """
    sheet = f"{_STYLE}{highlight_style()}{style}"
    digest = base64.b64encode(hashlib.sha256(sheet.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    return Markup(
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape_text(title)}</title>\n<style>{sheet}</style>\n</head>\n"
        f"<body>\n{join(body)}\n</body>\n</html>\n"
    )
