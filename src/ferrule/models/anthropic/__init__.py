"""Claude, by Anthropic's Messages API."""
