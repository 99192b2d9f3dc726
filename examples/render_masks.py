"""A conversation as token ids and a loss mask: what the assistant wrote is trained, what it was shown is not.

The ids and the mask are those that the model sampled: what is trained on is what was written.

    $ python examples/render_masks.py
    not trained: <|bos|><|user_start|>What is 12 * 34?<|user_end|><|assistant_start|>
    trained:     <|python_start|>12 * 34<|python_end|>
    not trained: <|output_start|>408<|output_end|>
    trained:     12 × 34 is 408.<|assistant_end|>
    the run itself: the same ids, the same mask, 23 log-probabilities
"""

from itertools import groupby

from ferrule import Conversation, ToolCall, ToolResult, assistant, calculator, model, user
from ferrule.conversation import Text, tool_message
from ferrule.dialects import get_dialect
from ferrule.embedded import find_embedded_folder
from ferrule.models.checkpoints.loading import read_tokenizer
from ferrule.tokens.render import render

WRITTEN = Conversation(
    (
        user("What is 12 * 34?"),
        assistant(ToolCall("call_1", "calculator", '{"expression": "12 * 34"}')),
        tool_message(ToolResult("call_1", "calculator", (Text("408"),))),
        assistant("12 × 34 is 408."),
    )
)


def main() -> None:
    """Render a written conversation, and compare it with what the model in the package samples."""
    tokenizer = read_tokenizer(find_embedded_folder() / "tokenizer.json")
    trace = render(WRITTEN, get_dialect("nanochat-tools"), tokenizer)
    for trained, pairs in groupby(zip(trace.mask, trace.ids, strict=True), key=lambda pair: pair[0]):
        text = b"".join(tokenizer.decode_token(token) for _, token in pairs).decode()
        print("trained:    " if trained else "not trained:", text)

    run = model("embedded").chat("What is 12 * 34?").using(calculator).run_sync()
    [sampled] = run.traces()  # the ids that the engine received and sampled
    assert (sampled.ids, sampled.mask) == (trace.ids, trace.mask)
    print("the run itself: the same ids, the same mask,", sum(sampled.mask), "log-probabilities")


if __name__ == "__main__":
    main()
