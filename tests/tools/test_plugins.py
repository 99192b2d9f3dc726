"""Tools, models and dialects of an installed package, found by their entry points."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferrule import ToolCall, ToolRegistry, calculator, model
from ferrule.dialects import get_dialect
from ferrule.dialects.catalogue import get_notation
from ferrule.errors import DialectError, ModelError, PluginError, SettingsError
from ferrule.models.scripted import ScriptedModel
from ferrule.tools.plugins import find_plugins, load_plugin_tools
from plugin_packages import MODULES, install


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    install(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for module in MODULES:
        sys.modules.pop(module, None)


def test_plugins_are_listed_without_being_imported(packages: Path) -> None:
    found = find_plugins("models")
    assert [(one.name, one.package, one.target) for one in found] == [
        ("acme", "acme-plugins 1.2", "acme_models:make"),
        ("broken", "acme-plugins 1.2", "acme_broken:make"),
        ("odd", "acme-plugins 1.2", "acme_models:NOT_CALLABLE"),
    ]
    assert not set(MODULES) & set(sys.modules)


def test_tools_are_of_their_own_origin_and_what_fails_takes_nothing_from_the_others(packages: Path) -> None:
    found = {one.plugin.name: one for one in load_plugin_tools(ToolRegistry([calculator]))}
    assert found["acme"].registry.names == ("shout", "count_up")
    assert {spec.origin for spec in found["acme"].registry.specs} == {"plugin"}
    assert found["acme"].problem == ""
    assert "acme-plugins 1.2 can't be imported: RuntimeError: no licence" in found["broken"].problem
    assert "AttributeError" in found["missing"].problem
    assert "two tools are named 'calculator'" in found["thief"].problem
    assert [len(found[name].registry) for name in ("broken", "missing", "thief")] == [0, 0, 0]


async def test_a_plugins_tools_run(packages: Path) -> None:
    (acme, *_) = load_plugin_tools()
    scripted = ScriptedModel(ToolCall("a", "shout", '{"text": "hi"}'), ToolCall("b", "count_up", "{}"), "Done.")
    run = await model(scripted).chat("Hi").using(acme.registry).run()
    results = [message.result for message in run.conversation.messages if message.role == "tool"]
    # Of a plugin nothing is believed, so that even what says that it only reads is asked about.
    assert [result.status for result in results] == ["denied", "denied"]


async def test_a_model(packages: Path) -> None:
    assert (await model("acme:turbo").chat("Hi").run()).text == "hello from turbo"
    assert (await model("acme:turbo", greeting="hey").chat("Hi").run()).text == "hey from turbo"
    with pytest.raises(SettingsError, match=r"acme:turbo.*unexpected keyword argument 'base_url'"):
        model("acme:turbo", base_url="http://127.0.0.1")
    with pytest.raises(PluginError, match=r"'odd' \(models\) of acme-plugins 1.2 is not callable"):
        model("odd:x")
    with pytest.raises(PluginError, match=r"'broken'.*acme-plugins 1.2 can't be imported: RuntimeError: no licence"):
        model("broken:x")
    with pytest.raises(ModelError, match=r"unknown model 'nobody:x'.*acme"):
        model("nobody:x")


async def test_a_dialect(packages: Path) -> None:
    said = '<tool_call>{"name": "calculator", "arguments": {"expression": "6 * 7"}}</tool_call>'
    run = await model(ScriptedModel(said, "42.")).chat("6 * 7?").using(calculator, mode="acmish").run()
    assert (run.mode, run.text) == ("acmish", "42.")
    assert get_dialect("acmish").name == "acmish"
    assert get_dialect("acmic").name == "acmic"
    with pytest.raises(DialectError, match=r"framing included, and not a notation"):
        get_notation("acmic")
    for get in (get_dialect, get_notation):
        with pytest.raises(PluginError, match=r"'broken'.*no licence"):
            get("broken")
        with pytest.raises(DialectError, match=r"'nothing'"):
            get("nothing")


def test_a_name_that_two_packages_have_is_refused(packages: Path) -> None:
    install(packages, "zenith", "[ferrule.models]\nacme = acme_models:make\n")
    with pytest.raises(PluginError, match=r"acme-plugins 1\.2, zenith 1\.2; uninstall all but one"):
        model("acme:turbo")


def test_nothing_is_looked_for_where_the_name_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**_: object) -> None:
        raise AssertionError("entry points were read")

    monkeypatch.setattr("importlib.metadata.entry_points", refused)
    assert model("echo").using(calculator, mode="hermes").model.name == "echo"
    assert get_dialect("qwen25") is not None
    assert get_notation("hermes").name == "hermes"
    with pytest.raises(AssertionError, match=r"were read"):
        model("nobody:x")
