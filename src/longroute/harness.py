"""EleutherAI's lm-evaluation-harness on a trained run: `lm_eval.simple_evaluate(LongrouteLM("runs/one"), tasks=[…])`.

Computed in float32 as `longroute generate` is, whatever a run was trained in: `is_greedy` says what is generated.
"""

from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import torch

from longroute.data.tokenizer import encode, end_of_text_id, load_tokenizer
from longroute.errors import InputError
from longroute.evaluate import load_run
from longroute.model import GenerateSpec, generate
from longroute.model.loss import answer_losses
from longroute.train import RunFolder

try:
    from lm_eval.api.instance import Instance  # pyright: ignore[reportMissingImports]  # an extra
    from lm_eval.api.model import LM  # pyright: ignore[reportMissingImports]
    from lm_eval.api.registry import register_model  # pyright: ignore[reportMissingImports]
except ImportError as error:
    raise InputError("tasks of lm-evaluation-harness need lm_eval: pip install 'longroute[harness]'") from error

_BATCH_TOKENS = 1 << 14
_LOGIT_TOKENS = 1 << 10  # whose logits exist at once
_LIMITS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")  # the harness's names of one thing

Window = tuple[list[int], int]
"""Token ids, and how many of the last are scored."""

Prompt = tuple[list[int], int, list[str]]
"""Token ids to go on from, for how many tokens at most, and the strings that end it sooner."""


class LongrouteLM(LM):
    """A run on text as the harness sees a model: text in; text, or log-likelihoods in nats, out, in order of requests.

    No context is too long, and memory is O(length). With `max_length` the model sees the last so many tokens.
    `batch_size` is the most rows at once ("auto": as 16,384 tokens hold); it changes results by their rounding alone.
    Raises InputError for a run that isn't trained to the end, or is of made-up tokens.
    """

    def __init__(
        self, folder: str | Path, *, max_length: int | None = None, batch_size: int | str = "auto", device: str = ""
    ):
        super().__init__()
        if max_length is not None and max_length < 1:
            raise InputError(f"max_length must be at least 1 token, not {max_length}")
        run = RunFolder(Path(folder))
        if not run.spec().on_text:
            raise InputError(f"{folder}: trained on made-up tokens; the harness needs a run on text")
        self._device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.model, self.tokenizer = load_run(run, self._device), load_tokenizer(run.tokenizer)
        self.max_length, self.end = max_length, end_of_text_id(self.tokenizer)
        self.rows = _BATCH_TOKENS if batch_size == "auto" else int(batch_size)

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """Σ ln p(token | all before) over the continuation of each (context, continuation); whether all are likeliest.

        The continuation is the tokens of the joined text from the first that isn't the context's, whose trailing
        spaces count to the continuation. Without a context, it follows the end-of-text token.
        """
        return self._score([self._pair(*request.args) for request in requests])

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        """Σ ln p(token | all before) over all tokens of each (text,); the first follows the end-of-text token.

        So the harness has it. Training never predicts a document's first token: this one costs about ln(vocabulary).
        """
        texts = [self._encode(request.args[0]) for request in requests]
        return [nats for nats, _ in self._score([([self.end, *ids], len(ids)) for ids in texts])]

    def generate_until(self, requests: list[Instance]) -> list[str]:
        """What greedy decoding writes after each (context, options), up to the first of the strings `until`, left out.

        The end-of-text token ends it too, and `max_gen_toks` tokens (256). Raises InputError for sampling.
        """
        prompts, texts = [self._prompt(*request.args) for request in requests], [""] * len(requests)
        for places in self._batches([len(ids) + tokens for ids, tokens, _ in prompts]):
            for place, text in zip(places, self._write([prompts[place] for place in places]), strict=True):
                texts[place] = text
        return texts

    def _encode(self, text: str) -> list[int]:
        return encode(self.tokenizer, text).tolist()

    def _pair(self, context: str, continuation: str) -> Window:
        ids, before = self._encode(context + continuation), self._encode(context.rstrip())
        shared = len([*takewhile(lambda pair: pair[0] == pair[1], zip(ids, before, strict=False))])
        return ids if shared else [self.end, *ids], len(ids) - shared

    def _prompt(self, context: str, options: dict[str, Any]) -> Prompt:
        if options.get("do_sample") and options.get("temperature") != 0:
            raise InputError("decoding is greedy; take do_sample out of the task's generation_kwargs")
        until = options.get("until") or []
        tokens = next((options[name] for name in _LIMITS if options.get(name) is not None), 256)
        seen = 0 if self.max_length is None else max(1, self.max_length - tokens)  # 0: all
        stops = [stop for stop in ([until] if isinstance(until, str) else until) if stop]
        return (self._encode(context) or [self.end])[-seen:], tokens, stops

    def _batches(self, lengths: list[int]) -> Iterator[list[int]]:
        """Places of like lengths, the longest first: at most `rows`, or 16,384 tokens with padding, or one."""
        order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
        while order:
            rows = max(1, min(self.rows, _BATCH_TOKENS // lengths[order[0]]))
            yield order[:rows]
            order = order[rows:]

    def _score(self, texts: list[Window]) -> list[tuple[float, bool]]:
        """The log-likelihood of each text's scored tokens, and whether all are the likeliest."""
        nats, greedy = [0.0] * len(texts), [True] * len(texts)
        jobs = [(row, window) for row, text in enumerate(texts) for window in windows(*text, self.max_length)]
        for places in self._batches([len(ids) for _, (ids, _) in jobs]):
            chosen = [jobs[place] for place in places]
            for (row, _), (loss, right) in zip(chosen, self._losses([window for _, window in chosen]), strict=True):
                nats[row], greedy[row] = nats[row] - loss, greedy[row] and right
        return list(zip(nats, greedy, strict=True))

    @torch.inference_mode()
    def _losses(self, batch: list[Window]) -> list[tuple[float, bool]]:
        """Each row's loss and whether it is greedy; padding stands behind its tokens, which can't see it."""
        longest = max(len(ids) for ids, _ in batch)
        rows = [ids[:-1] + [self.end] * (longest - len(ids)) for ids, _ in batch]
        hidden, found = self.model.hidden_states(torch.tensor(rows, device=self._device)), []
        for (ids, count), row in zip(batch, hidden, strict=True):
            scored = row[len(ids) - 1 - count : len(ids) - 1].split(_LOGIT_TOKENS)
            targets = torch.tensor(ids[-count:], device=self._device).split(_LOGIT_TOKENS)
            parts = [answer_losses(h, self.model.embedding.weight, t) for h, t in zip(scored, targets, strict=True)]
            found.append((sum(float(nats.double().sum()) for nats, _ in parts), all(hits.all() for _, hits in parts)))
        return found

    def _write(self, prompts: list[Prompt]) -> list[str]:
        """What follows each prompt; a row that has ended is carried along, unread, until all have."""
        written, texts, going = [[] for _ in prompts], [""] * len(prompts), set(range(len(prompts)))
        spec = GenerateSpec(max(limit for _, limit, _ in prompts), temperature=0)
        for tokens in generate(self.model, [ids for ids, _, _ in prompts], spec):
            for row in tuple(going):
                _, limit, stops = prompts[row]
                written[row].append(int(tokens[row]))
                ended = written[row][-1] == self.end
                whole = self.tokenizer.decode(written[row][: -1 if ended else None], skip_special_tokens=False)
                texts[row] = min((whole.split(stop, 1)[0] for stop in stops), key=len, default=whole)
                if ended or texts[row] != whole or len(written[row]) == limit:
                    going.remove(row)
            if not going:
                break
        return texts


register_model("longroute")(LongrouteLM)  # as a decorator it would hide the class from type checkers


def windows(ids: list[int], count: int, longest: int | None) -> Iterator[Window]:
    """The last `count` of `ids`, each once after as many tokens as can be, up to `longest`: the harness's windows."""
    longest, start = longest or len(ids), len(ids) - count
    while start < len(ids):
        end = min(start + longest, len(ids))
        yield ids[max(0, end - 1 - longest) : end], end - start
        start = end
