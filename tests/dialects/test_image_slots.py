"""Images in the layouts of families whose turns have a place for them, and notes in those of all others."""

from dataclasses import replace

import pytest

from ferrule.conversation import Conversation, Image, user
from ferrule.dialects import get_dialect, list_dialects
from ferrule.dialects.catalogue import load_families
from ferrule.dialects.framing.dialect import FramedDialect
from ferrule.dialects.segments import Content, Control, ImageSlot

PICTURE = Image(b"no picture", "image/png")
SHOWN = Conversation((user("This:", PICTURE, "What is it?"),))


def test_an_image_has_its_slot_between_the_markers_of_its_family():
    family = load_families()["hermes"]
    turns = replace(family.turns, image=("<|vision_start|>", "<|vision_end|>"))
    segments = FramedDialect(replace(family, turns=turns)).layout(SHOWN).segments
    assert segments == (
        Control("<|im_start|>user\n"),
        Content("This:"),
        Control("<|vision_start|>"),
        ImageSlot(PICTURE),
        Control("<|vision_end|>"),
        Content("What is it?"),
        Control("<|im_end|>\n"),
    )


@pytest.mark.parametrize("name", list_dialects())
def test_a_slot_is_written_where_users_can_show_images_and_nowhere_else(name):
    dialect = get_dialect(name)
    layout = dialect.layout(SHOWN)
    slots = [segment for segment in layout.segments if isinstance(segment, ImageSlot)]
    assert len(slots) == dialect.capabilities.user_images
    assert bool(slots) == (name == "ovis")
    assert ["image"] * (not slots) == [loss.kind for loss in layout.losses]
