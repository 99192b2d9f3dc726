"""Running the tests of a project, with a structured result."""
