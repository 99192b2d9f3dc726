from ferrule import tool


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


print(get_weather(town="Paris"))  # wrong
