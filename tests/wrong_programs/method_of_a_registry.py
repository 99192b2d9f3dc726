from ferrule import ToolRegistry, calculator

registry = ToolRegistry([calculator]).prefix("my_")  # wrong
