"""A tool of your own, used by the model in the package: without a key and without a network.

    $ ferrule ask "What's the weather in Paris tomorrow?" --tools examples/weather_tool.py
    ▸ get_weather  city="Paris", day="tomorrow"  →  Light rain, 14 degrees.
    Light rain, 14 degrees.

The call, its result and the answer are shown; with `--json` also how sure the model was of its call.
"""

from typing import Literal

from ferrule import ToolFailed, tool

FORECASTS = {
    "Paris": {"today": "Sunny, 19 degrees.", "tomorrow": "Light rain, 14 degrees."},
    "Oslo": {"today": "Fog, 4 degrees.", "tomorrow": "Snow, 1 degree below zero."},
    "Cairo": {"today": "Sunny, 27 degrees.", "tomorrow": "Sunny, 29 degrees."},
}


@tool(read_only=True)
def get_weather(city: str, day: Literal["today", "tomorrow"] = "today") -> str:
    """Weather forecast for a city.

    Args:
        city: Its name in English.
        day: Which day.
    """
    if city not in FORECASTS:
        raise ToolFailed(f"no forecast for {city}")
    return FORECASTS[city][day]
