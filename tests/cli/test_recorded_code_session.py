"""The session of `ferrule code` that the documents show is what the program shows."""

from __future__ import annotations

import recorded_code_session as recorded


def test_the_documents_show_the_session_as_it_is() -> None:
    session = recorded.record()
    anew = "write it anew: python tests/cli/recorded_code_session.py"
    for page, shown in ((recorded.README, recorded.shorten(session)), (recorded.DOCUMENT, session)):
        assert recorded.insert(page, shown) == page.read_text(encoding="utf-8"), anew
