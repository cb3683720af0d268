"""A GPT-2 from scratch: the norm, attention, the MLP, the block, and the model that stacks it.

Read from top to bottom. T is the number of tokens, d the width of the residual stream (d_model).
Everything that is called a stream is a tensor [T, d], one row a token, and so is everything that a
part adds to it; whatever lies between is written beside its line. A real GPT-2's weights fit in
unchanged (`resid.lab.pretrained`), and then every number agrees with that model's.

No part knows about batches, dropout or caches: they change what a pass costs, or how weights are
learnt, and nothing in what the trained model says of one prompt.

Source: Radford et al., "Language Models are Unsupervised Multitask Learners" (2019), whose block
is that of Vaswani et al. (1706.03762) with the norm moved into the branch.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

Activation = Callable[[Tensor], Tensor]
"""What a neuron makes of its key score, number by number."""
Note = Callable[[str, Tensor], Tensor]
"""Is told the name of a step and its value, and gives the value back."""


def unnoted(name: str, value: Tensor) -> Tensor:
    """Nobody watches."""
    return value


class LayerNorm(nn.Module):
    """Each token's vector shifted to mean 0, scaled to variance 1, then to a learned gain and bias.

    The statistics run along d, for each token by itself: no token notices its neighbours here.
    """

    def __init__(self, d_model: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """[T, d] -> [T, d]."""
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.pow(2).mean(dim=-1, keepdim=True)  # biased: divided by d, not by d - 1
        return self.gain * centred / torch.sqrt(variance + self.eps) + self.bias


class CausalSelfAttention(nn.Module):
    """Every token gathers from itself and from those before it, in several heads at once.

    This is the only place where tokens meet. A head compares its query with the keys of all tokens
    that are not in the future, makes shares of the comparison, and mixes the values by them.
    """

    def __init__(self, d_model: int, n_heads: int, scale: float | None = None) -> None:
        """Weights that are all zero, to be filled.

        Args:
            d_model: width of the stream.
            n_heads: how many heads share it.
            scale: what scores are multiplied by; None: one over the square root of a head's width,
                so that they are of size 1 where queries and keys are.
        """
        super().__init__()
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.scale = 1 / math.sqrt(self.d_head) if scale is None else scale
        self.W_Q, self.b_Q = _weights(d_model, d_model)
        self.W_K, self.b_K = _weights(d_model, d_model)
        self.W_V, self.b_V = _weights(d_model, d_model)
        self.W_O, self.b_O = _weights(d_model, d_model)

    def forward(self, x: Tensor, note: Note = unnoted) -> Tensor:
        """[T, d] -> [T, d]."""
        q = note("q", self._apart(x @ self.W_Q + self.b_Q))  # [head, T, d_head]
        k = note("k", self._apart(x @ self.W_K + self.b_K))  # [head, T, d_head]
        v = note("v", self._apart(x @ self.W_V + self.b_V))  # [head, T, d_head]

        scores = note("scores", q @ k.transpose(-1, -2) * self.scale)  # [head, T, T]
        n = x.shape[0]
        future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(diagonal=1)
        allowed = scores.masked_fill(future, -math.inf)  # row: who asks; column: who is asked
        weights = note("weights", allowed.softmax(dim=-1))  # [head, T, T], rows sum to 1

        mixed = weights @ v  # [head, T, d_head]
        z = note("z", mixed.transpose(0, 1).flatten(1))  # [T, d], the heads side by side
        return z @ self.W_O + self.b_O

    def _apart(self, x: Tensor) -> Tensor:
        """[T, d] -> [head, T, d_head]: every head gets its own slice of the width."""
        return x.reshape(len(x), self.n_heads, self.d_head).transpose(0, 1)


def gelu_tanh(x: Tensor) -> Tensor:
    """GELU as GPT-2 has it: x times the chance that a standard normal draw lies below x.

    The chance is not computed but imitated by a tanh, which moves the product by 5e-4 at most
    (Hendrycks & Gimpel, 1606.08415).
    """
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x.pow(3))))


class MLP(nn.Module):
    """Every token by itself: out to a wider space, through the activation, and back.

    A column of W_in is a neuron's key, what it looks for; a row of W_out its value, what it writes.
    """

    def __init__(self, d_model: int, d_mlp: int, activation: Activation = gelu_tanh) -> None:
        super().__init__()
        self.W_in, self.b_in = _weights(d_model, d_mlp)
        self.W_out, self.b_out = _weights(d_mlp, d_model)
        self.activation = activation

    def forward(self, x: Tensor, note: Note = unnoted) -> Tensor:
        """[T, d] -> [T, d]."""
        key_scores = note("mlp_pre", x @ self.W_in + self.b_in)  # [T, d_mlp]
        coefficients = note("mlp_post", self.activation(key_scores))  # [T, d_mlp]
        return coefficients @ self.W_out + self.b_out


class Block(nn.Module):
    """One layer: attention adds to the stream, then the MLP does; both read it through a norm.

    Pre-norm: the norms stand in the branches, and from its first point to its last the stream
    itself is only ever added to.
    """

    def __init__(
        self, ln1: LayerNorm, attention: CausalSelfAttention | None, ln2: LayerNorm, mlp: MLP
    ) -> None:
        """A block of parts.

        Args:
            ln1: through which attention reads.
            attention: None takes it away, to see what it does.
            ln2: through which the MLP reads.
            mlp: reads and writes last.
        """
        super().__init__()
        self.ln1, self.attention, self.ln2, self.mlp = ln1, attention, ln2, mlp

    def forward(self, x: Tensor, note: Note = unnoted) -> Tensor:
        """[T, d] -> [T, d]: what goes in can go into another, so that blocks stack."""
        mid = x
        if self.attention is not None:
            normed = note("ln1", self.ln1(x))
            mid = x + note("attn_out", self.attention(normed, note))
        note("mid", mid)
        normed = note("ln2", self.ln2(mid))
        return note("post", mid + note("mlp_out", self.mlp(normed, note)))


class GPT(nn.Module):
    """Embeddings in front, blocks, a last norm, and the way back to words."""

    def __init__(
        self,
        W_E: Tensor,
        W_pos: Tensor,
        blocks: list[Block],
        ln_final: LayerNorm,
        W_U: Tensor | None,
        b_U: Tensor | None = None,
    ) -> None:
        """A model of parts.

        Args:
            W_E: [d_vocab, d] a vector for every token.
            W_pos: [n_ctx, d] a vector for every position.
            blocks: first to last.
            ln_final: the stream left the last block without a norm; this is it.
            W_U: [d, d_vocab] the unembedding, in GPT-2 the token embedding once more; None for a
                model that predicts no words.
            b_U: [d_vocab] its bias, which GPT-2 does not have.
        """
        super().__init__()
        self.W_E, self.W_pos, self.W_U, self.b_U = W_E, W_pos, W_U, b_U
        self.blocks, self.ln_final = nn.ModuleList(blocks), ln_final

    def stream(self, ids: Tensor) -> list[Tensor]:
        """[T] ids -> the stream [T, d] at its points: the embedding, then behind every block."""
        points = [self.W_E[ids] + self.W_pos[: len(ids)]]
        for block in self.blocks:
            points.append(block(points[-1]))
        return points

    def unembed(self, x: Tensor) -> Tensor:
        """[T, d] -> [T, d_vocab]: the last stream as logits for the token that comes next."""
        if self.W_U is None:
            raise ValueError("a model without an unembedding predicts no words")
        logits: Tensor = self.ln_final(x) @ self.W_U
        return logits if self.b_U is None else logits + self.b_U

    def forward(self, ids: Tensor) -> Tensor:
        """[T] ids -> [T, d_vocab] logits."""
        return self.unembed(self.stream(ids)[-1])


def _weights(n_in: int, n_out: int) -> tuple[nn.Parameter, nn.Parameter]:
    """A matrix [in, out] and its bias, all zero: a row vector goes in from the left."""
    return nn.Parameter(torch.zeros(n_in, n_out)), nn.Parameter(torch.zeros(n_out))
