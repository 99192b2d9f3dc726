"""The numbers of an answer: where they stand in its text, and which output each of them came from."""
