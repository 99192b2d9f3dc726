"""The coding agent: file, search and shell tools for one workspace, and the program `ferrule code`.

`tools` offers them to any pipeline. Importing this starts nothing.
"""

from ferrule.coding.registry import tools

__all__ = ["tools"]
