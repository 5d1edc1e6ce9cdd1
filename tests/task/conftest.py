"""Made-up text to hide needles in: words of a small invented language, without digits."""

import numpy as np
import pytest

from longroute.data.corpus import Document
from longroute.data.shards import write_shard
from longroute.data.tokenizer import train_tokenizer
from longroute.task import Hay


@pytest.fixture(scope="session")
def hay(tmp_path_factory: pytest.TempPathFactory) -> Hay:
    """Three documents of 3,000 words, and a tokenizer of their own."""
    generator = np.random.default_rng(0)
    syllables = [c + v for c in "bdklmnrst" for v in "aeiou"]
    words = ["".join(generator.choice(syllables, size)) for size in generator.integers(1, 4, 200)]
    documents = [Document(f"d{i}", " ".join(generator.choice(words, 3_000))) for i in range(3)]
    tokenizer = train_tokenizer(documents, vocab_size=400)
    return Hay(write_shard(documents, tokenizer, tmp_path_factory.mktemp("hay") / "shard"), tokenizer)
