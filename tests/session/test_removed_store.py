"""What the person is told when the store was removed or replaced while a session was using it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferrule.conversation import Conversation, user
from ferrule.session.persistence import StoreOptions, open_autosave


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_conversation_in_a_removed_store_is_not_said_to_be_saved(tmp_path: Path, is_replaced: bool) -> None:
    path, said = tmp_path / "kept.db", list[str]()
    with open_autosave(StoreOptions(path)) as autosave:
        autosave.notify = said.append
        autosave.save(Conversation((user("Hello"),)))
        path.unlink()
        if is_replaced:
            path.write_text("other")
    assert len(said) == 1
    assert said[0].startswith(f"the conversation is not saved: {path}: removed or replaced while it was in use")


def test_a_conversation_in_a_store_that_is_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[str]()
    monkeypatch.chdir(tmp_path)
    with open_autosave(StoreOptions(Path("kept.db"))) as autosave:
        autosave.notify = said.append
        autosave.save(Conversation((user("Hello"),)))
        monkeypatch.chdir("/")
    assert said == [f"saved as {autosave.conversation_id}"]


def test_how_to_go_on_names_the_store_unless_it_is_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for store, command in (
        (tmp_path / "a b.db", f"ferrule code --store '{tmp_path}/a b.db' --continue"),
        (None, "ferrule code --continue"),
    ):
        said = list[str]()
        with open_autosave(StoreOptions(store, True, folder=tmp_path)) as autosave:
            autosave.notify = said.append
            autosave.save(Conversation((user("Hello"),)))
        assert said == [f"saved as {autosave.conversation_id}; `{command}` goes on with it"]
