"""A frame for packed rows whose documents each have one of their own, as if they were alone."""

from collections.abc import Callable

import torch
from torch import Tensor

from longroute.data.documents import by_document, into_rows
from longroute.data.packing import Packing
from longroute.transport.frame import Frame, PairScores


class DocumentFrame:
    """The frames of `packing`'s groups of documents of one length, each begun afresh: a document's bits are its own."""

    pairs: PairScores | None = None
    end: Tensor | None = None  # documents end within the rows: nothing goes on from here

    def __init__(self, steps: Tensor, packing: Packing, frame: Callable[[Tensor], Frame]):
        self.packing = packing
        self.frames = [frame(part) for part in by_document(steps, packing)]

    def pull(self, x: Tensor) -> Tensor:
        parts = by_document(x, self.packing)
        return into_rows([frame.pull(part) for frame, part in zip(self.frames, parts, strict=True)], self.packing)

    def push(self, x: Tensor) -> Tensor:
        parts = by_document(x, self.packing)
        return into_rows([frame.push(part) for frame, part in zip(self.frames, parts, strict=True)], self.packing)

    def at(self, index: Tensor) -> Tensor | None:
        lengths = [torch.arange(length, device=index.device) for _, length in self.packing.groups]
        every = [frame.at(each) for frame, each in zip(self.frames, lengths, strict=True)]
        parts = [part for part in every if part is not None]
        return into_rows(parts, self.packing)[:, :, index] if parts else None
