"""Models behind OpenAI's two APIs, and behind those of all who speak its chat completions."""
