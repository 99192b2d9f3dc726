"""Learns the merges of the vocabulary from training conversations: what lies in `merges.txt`.

    python -m ferrule.training.embedded.vocabulary > merges.txt

The file is a part of every recipe: other merges make another model. Needs `tokenizers`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ferrule.formats.nanochat import load
from ferrule.tokens.word_tokenizer import PATTERN
from ferrule.training.embedded.checkpoint import CONTROL
from ferrule.training.embedded.network import Shape
from ferrule.training.embedded.rendering import list_texts
from ferrule.training.synth import draw_examples, to_json

_CONVERSATIONS = 60_000
_SEED = 99
_DAMPING = 0.6
"""The exponent of a piece's count: the commonest words would else leave no room for those of single templates."""
_LEAST_COUNT = 2


def draw_texts(count: int, seed: int) -> Iterator[str]:
    """The texts between the control tokens of freshly drawn conversations."""
    for example in draw_examples(seed, count):
        yield from list_texts(load(to_json(example)))


def count_pieces(texts: Iterable[str]) -> Counter[str]:
    """How often each piece occurs within which bytes are merged."""
    pieces: Counter[str] = Counter()
    for text in texts:
        pieces.update(re.findall(PATTERN, text))
    return pieces


def learn_merges(pieces: Mapping[str, int], count: int) -> list[tuple[str, str]]:
    """The first `count` merges of byte-pair encoding (Sennrich et al., 2016), or fewer if there are not so many."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    trainer = trainers.BpeTrainer(
        vocab_size=256 + count,
        min_frequency=_LEAST_COUNT,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    repeated = (piece for piece, times in pieces.items() for _ in range(max(1, round(times**_DAMPING))))
    tokenizer.train_from_iterator(repeated, trainer=trainer)
    return [(left, right) for left, right in json.loads(tokenizer.to_str())["model"]["merges"]]


def main() -> None:
    """Print the merges, one a line."""
    count = Shape().vocab_size - 256 - len(CONTROL)
    for left, right in learn_merges(count_pieces(draw_texts(_CONVERSATIONS, _SEED)), count):
        print(left, right)


if __name__ == "__main__":
    main()
