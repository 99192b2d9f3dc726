"""The analysis that the documents show is what the command prints of the recording that ships."""

from __future__ import annotations

import replayed_analysis


def test_the_documents_show_what_is_printed() -> None:
    shown = replayed_analysis.replay()
    for page in replayed_analysis.PAGES:
        assert replayed_analysis.insert(page, shown) == page.read_text(encoding="utf-8")
