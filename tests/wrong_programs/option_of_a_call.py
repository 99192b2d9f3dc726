from ferrule import tool


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


weather = tool(get_weather, nme="weather")  # wrong
