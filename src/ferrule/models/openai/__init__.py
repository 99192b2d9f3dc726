"""Models behind OpenAI's two APIs, and behind others that speak its chat completions."""
