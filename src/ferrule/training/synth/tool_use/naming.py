"""The names under which tools and parameters are offered: snake_case, camelCase, PascalCase, prefixes, opaque names."""

import random

from ferrule.embedded.missing import split_name
from ferrule.training.synth.wheel import pick
from ferrule.training.synth.words import draw_pseudo_word

_PREFIXES = ("my_", "do_", "api_", "tool_", "app_", "user_", "x_", "fn_", "svc_", "v2_")
_SUFFIXES = ("_tool", "_v2", "_api", "_now", "_fn", "_2", "_action", "_command", "_service")


def style_name(rng: random.Random, name: str) -> str:
    """A tool's name in another style, at times with a prefix or a suffix."""
    form = rng.random()
    if form < 0.08:
        name = pick(rng, _PREFIXES) + _join_snake(name)
    elif form < 0.16:
        name = _join_snake(name) + pick(rng, _SUFFIXES)
    style = rng.random()
    if style < 0.6:
        return name
    if style < 0.75:
        return _join_snake(name)
    return join_camel(name, is_pascal=style > 0.93)


def style_parameter(rng: random.Random, name: str, camel: bool) -> str:
    """A parameter's name; a tool with `camel` names has camelCase for its parameters too."""
    return join_camel(name, is_pascal=False) if camel and rng.random() < 0.8 else name


def _join_snake(name: str) -> str:
    return split_name(name).replace(" ", "_")


def join_camel(name: str, *, is_pascal: bool) -> str:
    """`get_weather` as `getWeather`, or `GetWeather`."""
    words = split_name(name).split(" ")
    joined = "".join(word[:1].upper() + word[1:] for word in words)
    return joined if is_pascal else words[0] + joined[len(words[0]) :]


def draw_opaque_name(rng: random.Random) -> str:
    """A name that says nothing about what the tool does: `zx_tool`, `do_it2`, `api_v2_fetch`."""
    form = rng.random()
    if form < 0.3:
        return f"{draw_pseudo_word(rng)}_{pick(rng, ('tool', 'fn', 'run', 'call', 'op', 'api', 'job'))}"
    if form < 0.5:
        verb = pick(rng, ("do_it", "run", "call", "fetch", "execute", "process", "handle", "action"))
        return f"{verb}{1 + int(rng.random() * 9)}"
    if form < 0.7:
        end = pick(rng, ("fetch", "call", "post", "query", "do"))
        return f"{pick(rng, ('api', 'svc', 'sys', 'ext', 'int'))}_v{1 + int(rng.random() * 4)}_{end}"
    if form < 0.85:
        letters = "".join(pick(rng, "abcdefghijklmnopqrstuvwxyz") for _ in range(2 + int(rng.random() * 2)))
        return f"{letters}_{pick(rng, ('tool', 'x', 'main', 'step'))}"
    return join_camel(f"{draw_pseudo_word(rng)}_{draw_pseudo_word(rng)}", is_pascal=form > 0.93)
