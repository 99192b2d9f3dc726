from ferrule import tool


@tool(approval="allways")  # wrong
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"
