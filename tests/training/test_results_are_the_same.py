"""I10: a result's text is the same in training data and at run time."""

import asyncio
import itertools

from ferrule.builtin_tools import calculator
from ferrule.conversation import ToolCall
from ferrule.execution import Executor
from ferrule.formats.nanochat import load
from ferrule.tools.registry import ToolRegistry
from ferrule.tools.scope import CallScope
from ferrule.training.synth import CALCULATOR_ALONE, draw_examples, to_json


def test_every_output_in_the_training_data_is_what_the_executor_answers():
    async def check():
        async with ToolRegistry([calculator]).open() as registry:
            executor = Executor(registry)
            answered = 0
            for example in draw_examples(11, 600, mix=CALCULATOR_ALONE):
                messages = load(to_json(example)).messages
                for asked, told in itertools.pairwise(messages):
                    for call in asked.calls:
                        assert isinstance(call, ToolCall)
                        result = await executor.run(call, CallScope())
                        assert (result.text, result.status) == (told.result.text, told.result.status)
                        answered += 1
            return answered

    assert asyncio.run(check()) > 400
