"""Models: each writes one assistant message. None of them ever sees an executor."""
