from ferrule import Tool


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
weather = Tool.from_schema("weather", "The weather in a city.", SCHEMA, get_weather, retry=2)  # wrong
