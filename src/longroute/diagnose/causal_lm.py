"""Any causal language model of transformers, looked at through the library's attention interface or by hooks."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longroute.data.windows import IGNORED
from longroute.diagnose.attention_tap import AttentionTap, active_tap, require_transformers, tapped
from longroute.diagnose.biased_attention import bias_for, biased_layers
from longroute.diagnose.edit import Edit, attention
from longroute.diagnose.heads import Heads
from longroute.diagnose.rotary_step import SHIFT, FixedSteps, rotary_frequencies, step_matrix
from longroute.diagnose.traced import Anatomy, Visit, weights_digest
from longroute.errors import InputError
from longroute.model import token_losses

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_TRIAL_TOKENS = 12
_LENGTH_KEYS = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length", "n_ctx")
_TABLES = ("embed_positions", "pos_encoding")  # of sinusoids, GPT-J's and CTRL's
_LOGITS_AT_ONCE = 1 << 25


class CausalLM:
    """A `PreTrainedModel` with its tokenizer, in the precision and on the device that it is on.

    A trial on 12 tokens at construction decides two things. The heads are traced if they give back every layer's own
    output, and the model its own logits; if not, `anatomy.untraced` says why, and `losses` works without visit and
    edit. And losses are made in pieces from the hidden states and the output embedding if these give the model's own
    logits to the bit; if not (scaled or capped logits), a window's whole logits exist at once.

    The heads are those of the code that runs: the model's own sdpa call, or BLOOM's and MPT's own attention. Windows
    are read from the masks. Nothing stays on the model between calls.

    Raises InputError if the model isn't causal, or if neither `train_length` nor its configuration says how long the
    windows were that it was trained on.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str,
        train_length: int | None = None,
    ):
        require_transformers()
        self.model, self.tokenizer, self.device = model.eval(), tokenizer, model.device
        self._biased = biased_layers(model)
        config = model.config.get_text_config()
        positions = next((n for key in _LENGTH_KEYS if isinstance(n := getattr(config, key, None), int)), None)
        length = positions if train_length is None else train_length
        if length is None:
            raise InputError(f"{name}: config.json doesn't say how long training windows were; give --train-length")
        longest = None if positions is None or not _has_position_table(model, positions) else positions
        inputs = _trial_inputs(model, min(_TRIAL_TOKENS, longest or _TRIAL_TOKENS)).to(self.device)
        logits = self._logits(inputs)
        _check_causal(name, logits)
        self._weight = self._output_weight(inputs, logits)
        heads, untraced = self._trial(inputs, logits)
        self.anatomy = Anatomy(
            name=name,
            kind=model.config.model_type,
            train_length=length,
            layers=config.num_hidden_layers,
            heads=heads[0].query.shape[1] if heads else getattr(config, "num_attention_heads", 0),
            kv_heads=heads[0].key.shape[1] if heads else _kv_heads(config),
            head_dim=heads[0].query.shape[3] if heads else _head_dim(config),
            weights=weights_digest(model),
            longest=longest,
            untraced=untraced,
        )

    def encode(self, text: str) -> Tensor:
        """Token ids without any that the tokenizer would add at the ends, (time) int64.

        Raises InputError for a token that the embedding has no row for.
        """
        ids = torch.tensor(
            self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"], dtype=torch.int64
        )
        rows = self.model.config.get_text_config().vocab_size
        for token in ids[ids >= rows][:1].tolist():
            has = f"the text has {self.tokenizer.convert_ids_to_tokens(token)!r} (token {token})"
            raise InputError(f"{self.anatomy.name}: {has}, but the embedding has only {rows} rows")
        return ids

    @torch.inference_mode()
    def losses(
        self, inputs: Tensor, targets: Tensor, *, visit: Visit | None = None, edit: Edit | None = None
    ) -> Tensor:
        """-ln p(target) in nats, (window time) float32, for token ids (window time).

        Raises InputError for windows longer than `anatomy.longest`, for visit or edit of an untraced model, and where
        a mask turns out to be neither causal nor a sliding window.
        """
        anatomy, time = self.anatomy, inputs.shape[1]
        if anatomy.longest is not None and time > anatomy.longest:
            raise InputError(f"{anatomy.name} has positions for {anatomy.longest} tokens, not for {time}")
        if anatomy.untraced is not None and not (visit is None and edit is None):
            raise InputError(f"{anatomy.name}: {anatomy.untraced}")
        inputs, targets = inputs.to(self.device), targets.to(self.device)
        with self._traced(visit, None if edit is None else self._framed(edit)):
            if self._weight is None:
                return _logit_losses(self._logits(inputs), targets)
            hidden = self._hidden(inputs)
        # a bias of the output embedding is one more column of its weight
        hidden = F.pad(hidden, (0, self._weight.shape[1] - hidden.shape[2]), value=1)
        return token_losses(hidden, self._weight, targets, chunk=max(1, _LOGITS_AT_ONCE // len(self._weight)))

    def steps(self, inputs: Tensor) -> list[Tensor | None]:
        """Every layer's step, a rotation by -inv_freq, (window kv_head time dim dim) float64, expanded from one matrix.

        None where nothing moves, and where the rotation couldn't be confirmed: a shift of all positions must rotate
        queries and keys by it. So it is for planes of neighbouring dimensions (GPT-J), and for untraced models.
        """
        windows, time = inputs.shape
        shape = (windows, self.anatomy.kv_heads, time, -1, -1)
        return [None if matrix is None else matrix.expand(shape) for matrix in self._step_matrices]

    def _framed(self, edit: Edit) -> Edit:
        """The edit, shown heads that know what they were rotated by."""
        frames = [None if step is None else FixedSteps(step) for step in self._step_matrices]
        return lambda layer, heads: edit(layer, replace(heads, frame=frames[layer]))

    @functools.cached_property
    def _step_matrices(self) -> list[Tensor | None]:
        frequencies = rotary_frequencies(self.model)
        if self.anatomy.untraced is not None or not frequencies:
            return [None] * self.anatomy.layers
        inputs = _trial_inputs(self.model, _TRIAL_TOKENS).to(self.device)
        positions = torch.arange(inputs.shape[1], device=self.device).expand_as(inputs)
        here, _ = self._visited(inputs, position_ids=positions)
        there, _ = self._visited(inputs, position_ids=positions + SHIFT)
        return [step_matrix(a, b, frequencies) for (a, _), (b, _) in zip(here, there, strict=True)]

    @torch.inference_mode()
    def _logits(self, inputs: Tensor, **options: Tensor) -> Tensor:
        with bias_for(self.model, inputs.shape[1]):
            return self.model(input_ids=inputs, use_cache=False, **options).logits

    def _hidden(self, inputs: Tensor) -> Tensor:
        with bias_for(self.model, inputs.shape[1]):
            return self.model.base_model(input_ids=inputs, use_cache=False).last_hidden_state

    @torch.inference_mode()
    def _output_weight(self, inputs: Tensor, logits: Tensor) -> Tensor | None:
        """The output embedding with its bias as last column, if hidden states and it give the logits to the bit."""
        output = self.model.get_output_embeddings()
        if not isinstance(output, nn.Linear) or self.model.base_model is self.model:
            return None
        if not torch.equal(F.linear(self._hidden(inputs), output.weight, output.bias), logits):
            return None
        return output.weight if output.bias is None else torch.cat([output.weight, output.bias[:, None]], 1)

    def _trial(self, inputs: Tensor, logits: Tensor) -> tuple[list[Heads], str | None]:
        """Every layer's heads, and why they aren't what the model computes with, None if they are."""
        kind, layers = self.model.config.model_type, self.model.config.get_text_config().num_hidden_layers
        if self._biased is None and not self.model._can_set_attn_implementation():
            return [], f"{kind} doesn't go through transformers' attention interface, so its heads can't be looked at"
        try:
            seen, traced_logits = self._visited(inputs)
        except InputError as error:
            return [], str(error)
        heads = [heads for heads, _ in seen]
        if len(seen) != layers:
            return heads, f"{kind} has {layers} layers with {len(seen)} attention calls, so not each can be traced"
        if len({(h.query.shape, h.key.shape) for h in heads}) > 1:
            return heads, f"{kind} has layers with heads of different numbers or sizes, which isn't supported"
        for layer, (h, output) in enumerate(seen):
            if not _agree(attention(h, lambda rows: rows.scores), output):
                return heads, f"{kind}'s attention in layer {layer} isn't a softmax of what its heads show"
        if not _agree(traced_logits, logits):
            return heads, f"{kind} has something in its attention beyond queries, keys, values and a mask"
        return heads, None

    def _visited(self, inputs: Tensor, **options: Tensor) -> tuple[list[tuple[Heads, Tensor]], Tensor]:
        """Heads and own output of every layer, and the logits."""
        seen: list[tuple[Heads, Tensor]] = []
        with self._traced(lambda layer, heads, output: seen.append((heads, output)), None):
            logits = self._logits(inputs, **options)
        return seen, logits

    @contextmanager
    def _traced(self, visit: Visit | None, edit: Edit | None) -> Iterator[None]:
        """The model with its attention tapped; without visit and edit untouched, also inside another's visit."""
        tap = None if visit is None and edit is None else AttentionTap(self.model.config.model_type, visit, edit)
        token = active_tap.set(tap)
        try:
            with tapped(self.model, self._biased, tap):
                yield
        finally:
            active_tap.reset(token)


def _trial_inputs(model: PreTrainedModel, tokens: int) -> Tensor:
    """Two windows of the same random tokens but for the last, (2 tokens)."""
    vocabulary = model.config.get_text_config().vocab_size
    inputs = torch.randint(vocabulary, (1, tokens), generator=torch.Generator().manual_seed(0)).repeat(2, 1)
    inputs[1, -1] = (inputs[1, -1] + 1) % vocabulary
    return inputs


def _check_causal(name: str, logits: Tensor) -> None:
    """Raises InputError if another last token changes what comes before it, or if logits aren't finite."""
    if not torch.isfinite(logits).all():
        raise InputError(f"{name}: its predictions aren't finite numbers in {logits.dtype}")
    if not _agree(logits[0, :-1], logits[1, :-1]):
        raise InputError(f"{name} isn't a causal language model: its predictions depend on later tokens")


def _agree(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors differ by at most 1e-4 of the other's largest entry, or 3e-2 in half precision."""
    one, other, half = one.double(), other.double(), other.dtype in (torch.float16, torch.bfloat16)
    return bool((one - other).abs().max() <= (3e-2 if half else 1e-4) * other.abs().max())


def _has_position_table(model: PreTrainedModel, positions: int) -> bool:
    """Whether a learned or stored table has one row a position (OPT: and two more), so that it ends somewhere."""
    tokens = model.get_input_embeddings()
    tables = [m.weight for m in model.modules() if isinstance(m, nn.Embedding) and m is not tokens]
    tables += [buffer for name, buffer in model.named_buffers() if name.endswith(_TABLES)]
    return any(positions <= len(table) <= positions + 2 for table in tables)


def _kv_heads(config: Any) -> int:
    return getattr(config, "num_key_value_heads", None) or getattr(config, "num_attention_heads", 0)


def _head_dim(config: Any) -> int:
    return getattr(config, "head_dim", None) or config.hidden_size // getattr(config, "num_attention_heads", 1)


def _logit_losses(logits: Tensor, targets: Tensor) -> Tensor:
    """`token_losses` from logits that are there, (batch time vocabulary)."""
    pieces = zip(logits.flatten(0, 1).split(4096), targets.flatten().split(4096), strict=True)
    losses = [F.cross_entropy(x.float(), t, reduction="none", ignore_index=IGNORED) for x, t in pieces]
    return torch.cat(losses).view_as(targets)
