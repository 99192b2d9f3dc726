from ferrule import ToolRegistry

registry = ToolRegistry.discover(path="tools")  # wrong
