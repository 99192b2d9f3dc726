from ferrule import Toolset, tool


class Notes(Toolset):
    """Notes in memory."""

    @tool
    def write(self, path: str, text: str) -> str:
        """Write a note."""
        return f"{path}: {text}"


print(Notes().write(path="a", txt="b"))  # wrong
