from ferrule import Tool


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


weather = Tool.from_callable(get_weather, time_out=5)  # wrong
