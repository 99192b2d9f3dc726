"""Images in the layouts of families whose turns have a place for them, and notes in those of all others."""

from dataclasses import replace

import pytest
from template_cases import LLAMA, NAMES, QWEN

from ferrule.conversation import Conversation, Image, Text, ToolCall, ToolResult, assistant, tool_message, user
from ferrule.dialects import get_dialect, list_dialects
from ferrule.dialects.catalogue import get_notation, list_image_placeholders
from ferrule.dialects.segments import Content, Control, ImageSlot
from ferrule.dialects.template.dialect import TemplateDialect
from ferrule.errors import DialectError
from tables import each_case

PICTURE = Image(b"no picture", "image/png")
OTHER = Image(b"another", "image/png")
SHOWN = Conversation((user("This:", PICTURE, "What is it?"),))
# What stands between two texts of a user for the image between them, as each model's own template writes it.
WRITTEN = {
    "apriel": "[IMG]",
    "apriel16": "[IMG]",
    "diffusion_gemma": "<|image|>",
    "gemma4": "<|image|>",
    "gemma4_tool_turns": "\n\n<|image|>\n\n",
    "kimi_k25": "<|media_begin|>image<|media_content|><|media_pad|><|media_end|>\n",
    "minimax_m3": "]<]image[>[",
    "muse_glimmer": "<|patch|>",
    "pythonic": "<|image|>",
    "qwen35": "<|vision_start|><|image_pad|><|vision_end|>",
    "qwen35_nothink": "<|vision_start|><|image_pad|><|vision_end|>",
    "qwen3_vl": "<|vision_start|><|image_pad|><|vision_end|>",
}


def as_template(segments):
    """The text that a template writes: a slot is its placeholder."""
    return "".join(s.placeholder if isinstance(s, ImageSlot) else s.text for s in segments)


@each_case("name", WRITTEN)
def test_an_image_is_written_as_the_models_template_writes_it(name):
    segments = get_dialect(name).layout(SHOWN).segments
    between = as_template(segments).split("This:")[1].split("What is it?")[0]
    assert between == WRITTEN[name]
    slot = next(segment for segment in segments if isinstance(segment, ImageSlot))
    assert slot.image == PICTURE
    assert slot.placeholder in list_image_placeholders()


def test_an_image_has_its_slot_between_the_markers_of_its_family():
    assert get_dialect("qwen35").layout(SHOWN).segments == (
        Control("<|im_start|>user\n"),
        Content("This:"),
        Control("<|vision_start|>"),
        ImageSlot(PICTURE, "<|image_pad|>"),
        Control("<|vision_end|>"),
        Content("What is it?"),
        Control("<|im_end|>\n"),
    )


@each_case("name", list_dialects())
def test_a_slot_is_written_where_users_can_show_images_and_nowhere_else(name):
    dialect = get_dialect(name)
    layout = dialect.layout(SHOWN)
    slots = [segment for segment in layout.segments if isinstance(segment, ImageSlot)]
    assert len(slots) == dialect.capabilities.user_images
    assert bool(slots) == (name == "ovis" or name in WRITTEN)
    assert ["image"] * (not slots) == [loss.kind for loss in layout.losses]


@each_case("name", WRITTEN)
def test_no_model_may_write_a_placeholder(name):
    layout = get_dialect(name).layout(SHOWN)
    assert {slot.placeholder for slot in layout.segments if isinstance(slot, ImageSlot)} <= {*layout.forbidden_tokens}


@pytest.mark.parametrize("name", ["qwen35", "gemma4"])
def test_the_image_of_a_result_is_shown_by_a_user_after_it(name):
    result = ToolResult("call_1", "draw", (Text("drawn"), PICTURE))
    conversation = Conversation((user("Draw."), assistant(ToolCall("call_1", "draw", "{}")), tool_message(result)))
    layout = get_dialect(name).layout(conversation)
    (at,) = [at for at, segment in enumerate(layout.segments) if isinstance(segment, ImageSlot)]
    before = "".join(getattr(segment, "text", "") for segment in layout.segments[:at])
    assert f"drawn\n[image {PICTURE.hash} follows]" in before
    assert f"Image {PICTURE.hash}, from the result of draw:" in before
    assert not layout.losses


def with_images(written):
    """A template in the style of Qwen's whose users may show images, each written so."""
    shown = (
        "{{- '<|im_start|>user\\n' }}{%- for part in ([content] if content is string else content) %}"
        f"{{{{- part if part is string else {written!r} if part.type == 'image' else part.text }}}}"
        "{%- endfor %}{{- '<|im_end|>\\n' }}"
    )
    spoken = "{{- '<|im_start|>user\\n' + content + '<|im_end|>\\n' }}"
    assert spoken in QWEN
    return QWEN.replace(spoken, shown)


def framed_by(template, notation="hermes"):
    return TemplateDialect(get_notation(notation), template, special_tokens=NAMES)


@pytest.mark.parametrize(
    ("written", "placeholder"),
    [
        ("<|vision_start|><|image_pad|><|vision_end|>", "<|image_pad|>"),
        ("[IMG]", "[IMG]"),
        ("<picture>", "<picture>"),
        ("\n\n<|image|>\n\n", "<|image|>"),
        ("<|one|><|two|>", ""),
        ("(an image)", ""),
        ("", ""),
    ],
)
def test_a_template_that_takes_images_has_slots_and_any_other_notes(written, placeholder):
    dialect = framed_by(with_images(written))
    assert dialect.capabilities.user_images == bool(placeholder)
    layout = dialect.layout(Conversation((user("This:", PICTURE, "and", OTHER), assistant("Cats."), user(PICTURE))))
    slots = [segment for segment in layout.segments if isinstance(segment, ImageSlot)]
    assert slots == [ImageSlot(image, placeholder) for image in (PICTURE, OTHER, PICTURE) if placeholder]
    assert ["image"] * (3 - len(slots)) == [loss.kind for loss in layout.losses]
    if placeholder:
        assert as_template(layout.segments) == (
            f"<|im_start|>user\nThis:{written}and{written}<|im_end|>\n<|im_start|>assistant\nCats.<|im_end|>\n"
            f"<|im_start|>user\n{written}<|im_end|>\n"
        )
        assert "".join(segment.text for segment in layout.segments if getattr(segment, "trained", False)) == (
            "Cats.<|im_end|>"
        )
        assert placeholder in layout.forbidden_tokens


def test_a_template_without_a_place_for_images_writes_notes():
    assert not framed_by(QWEN).capabilities.user_images
    assert not framed_by(LLAMA, "llama3_json").capabilities.user_images


def test_content_that_spells_the_placeholder_is_no_image():
    dialect = framed_by(with_images("<|vision_start|><|image_pad|><|vision_end|>"))
    for one in (dialect, get_dialect("qwen35")):
        layout = one.layout(Conversation((user("<|image_pad|>", PICTURE, "<|image_pad|><|image_pad|>"),)))
        assert [type(s) for s in layout.segments if isinstance(s, ImageSlot)] == [ImageSlot]
        assert [s.text for s in layout.segments if isinstance(s, Content)] == [
            "<|image_pad|>",
            "<|image_pad|><|image_pad|>",
        ]


def test_a_template_that_writes_more_images_than_there_are_is_refused():
    template = with_images("<|image_pad|>")
    dialect = framed_by("{% if messages|length > 2 %}{{ '<|image_pad|>' }}{% endif %}" + template)
    assert dialect.layout(SHOWN)
    with pytest.raises(DialectError, match=r"2 times for 1 image"):
        dialect.layout(replace(SHOWN, messages=(*SHOWN.messages, assistant("A cat."), user("Sure?"))))
