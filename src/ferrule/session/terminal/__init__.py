"""What a person sees of a session on a terminal, and how they are asked there; the prompt is `coding/terminal/`."""
