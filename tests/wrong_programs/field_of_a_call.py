from ferrule import ToolCall

call = ToolCall(id="a", nme="get_weather", arguments="{}")  # wrong
