"""The coding agent: file, search and shell tools for one workspace, and the program `ferrule code`."""
