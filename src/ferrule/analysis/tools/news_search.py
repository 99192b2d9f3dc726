"""`news_search`: recent articles by Tavily's search, where a key for it is configured.

The only tool of the analyst that reaches the network. The key is `TAVILY_API_KEY` of the environment, or saved by
`ferrule keys`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from ferrule._util.pluralize import pluralize
from ferrule.analysis.settings import NEWS
from ferrule.conversation import ToolOutput
from ferrule.errors import ToolFailed
from ferrule.models.http import is_installed
from ferrule.models.keys import read_keys
from ferrule.tools.decorator import Tool

VARIABLE = "TAVILY_API_KEY"
ADDRESS = "https://api.tavily.com"
DESCRIPTION = "Searches current news on the internet: titles, dates, addresses and excerpts of recent articles."
_LONGEST_QUERY = 400
"""Characters: the service refuses longer ones."""
_LONGEST_EXCERPT = 1500
_BEGINNING = 200


class NewsArticle(BaseModel):
    """One article that was found."""

    title: str = ""
    url: str = ""
    content: str = ""
    published_date: str | None = None
    score: float | None = None


class NewsResult(BaseModel):
    """What a search found."""

    results: list[NewsArticle] = Field(default_factory=list)


def find_news_key() -> str:
    """The key of the search; empty if none is configured. Raises `SettingsError` for saved keys that can't be read."""
    return (os.environ.get(VARIABLE) or read_keys().get(VARIABLE, "")).strip()


def make_news_tool(key: str, results: int = 5, address: str = ADDRESS) -> Tool[..., Any]:
    """The tool `news_search`; `results` is how many articles it asks for."""

    async def news_search(query: Annotated[str, "What to search for, in a few words"]) -> ToolOutput:
        answer = await _post(
            f"{address.rstrip('/')}/search",
            {"query": query[:_LONGEST_QUERY], "topic": "news", "max_results": results},
            key,
        )
        try:
            found = NewsResult.model_validate(answer)
        except ValidationError as error:
            raise ToolFailed("the search service answered with something else than a list of articles") from error
        return ToolOutput(_write(found), found.model_dump(mode="json"))

    return Tool.from_callable(
        news_search, name=NEWS, description=DESCRIPTION, read_only=True, idempotent=True, open_world=True
    )


async def _post(url: str, body: Mapping[str, Any], key: str) -> Any:
    """Post JSON, and return the JSON of the answer. Raises `ToolFailed`."""
    if not is_installed():
        raise ToolFailed("the search needs the httpx2 package: pip install 'ferrule[hosted]'")
    import httpx2

    try:
        # No redirects: a key must not go to an address that nobody gave. The executor's timeout ends a slow answer.
        async with httpx2.AsyncClient(timeout=None, follow_redirects=False) as client:
            response = await client.post(url, json=dict(body), headers={"authorization": f"Bearer {key}"})
            if response.status_code in (401, 403):
                raise ToolFailed(f"the search service refused the key: set {VARIABLE}")
            if not response.is_success:
                said = " ".join(response.text.split())[:_BEGINNING].replace(key, "[key]")
                raise ToolFailed(f"the search service answered {response.status_code}: {said}")
            return response.json()
    except httpx2.HTTPError as error:
        raise ToolFailed(f"the search service can't be reached: {type(error).__name__}") from error
    except ValueError as error:
        raise ToolFailed("the search service didn't answer in JSON") from error


def _write(found: NewsResult) -> str:
    if not found.results:
        return "No articles were found."
    lines = [f"{pluralize(len(found.results), 'article')} from a live search:"]
    for number, one in enumerate(found.results, 1):
        date = f", {one.published_date}" if one.published_date else ""
        lines.append(f"{number}. {one.title}{date} ({one.url})\n{one.content[:_LONGEST_EXCERPT]}")
    return "\n".join(lines)
