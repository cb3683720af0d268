"""GPT-2 written out once more, in float64 numpy and from raw weights: no hooks, no library calls.

The tests hold resid against this; it shares no line with what it checks.
"""

import numpy as np


class Oracle:
    """The forward pass of a GPT-2, every intermediate vector kept by name."""

    def __init__(self, hf, ids):
        weights = {k: v.detach().cpu().double().numpy() for k, v in hf.state_dict().items()}
        weights = {k.removeprefix("transformer."): v for k, v in weights.items()}
        config = hf.config
        self.weights, self.eps = weights, config.layer_norm_epsilon
        self.activation = config.activation_function
        head = hf.get_output_embeddings()
        self.W_U = head.weight.detach().cpu().double().numpy().T
        self.at = {}
        x = weights["wte.weight"][ids] + weights["wpe.weight"][: len(ids)]
        self.at["embed"] = x
        for layer in range(config.n_layer):
            p = f"h.{layer}."
            attn_out = self._attention(self._norm(x, p + "ln_1"), p + "attn.", config, layer)
            x = x + attn_out
            self.at[f"{layer}.attn_out"], self.at[f"{layer}.mid"] = attn_out, x
            pre = self._linear(self._norm(x, p + "ln_2"), p + "mlp.c_fc")
            post = self._activate(pre)
            mlp_out = self._linear(post, p + "mlp.c_proj")
            x = x + mlp_out
            for name, value in (
                ("mlp_pre", pre),
                ("mlp_post", post),
                ("mlp_out", mlp_out),
                ("post", x),
            ):
                self.at[f"{layer}.{name}"] = value
        self.logits = self.decode(x)

    def decode(self, x):
        """[..., d_vocab] the logits that ln_final and the unembedding make of a stream."""
        return self._norm(x, "ln_f") @ self.W_U

    def _norm(self, x, name):
        centred = x - x.mean(-1, keepdims=True)
        variance = (centred**2).mean(-1, keepdims=True)
        scaled = centred / np.sqrt(variance + self.eps)
        return scaled * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def _linear(self, x, name):
        return x @ self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def _attention(self, x, prefix, config, layer):
        n, d = x.shape
        heads, width = config.n_head, d // config.n_head
        q, k, v = np.split(self._linear(x, prefix + "c_attn"), 3, axis=-1)
        mixed = np.empty_like(x)
        for head in range(heads):
            part = slice(head * width, (head + 1) * width)
            scores = q[:, part] @ k[:, part].T
            if config.scale_attn_weights:
                scores = scores / np.sqrt(width)
            if config.scale_attn_by_inverse_layer_idx:
                scores = scores / (layer + 1)
            scores[np.triu_indices(n, 1)] = -np.inf
            mixed[:, part] = softmax(scores) @ v[:, part]
        self.at[f"{layer}.z"] = mixed
        return self._linear(mixed, prefix + "c_proj")

    def _activate(self, x):
        if self.activation == "relu":
            return np.maximum(x, 0)
        if self.activation == "gelu":
            return x * 0.5 * (1 + np.vectorize(_erf)(x / np.sqrt(2)))
        assert self.activation == "gelu_new", self.activation
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _erf(x):
    import math

    return math.erf(x)


def softmax(x):
    """Along the last axis."""
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def log_softmax(x):
    """Along the last axis."""
    shifted = x - x.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def entropy(log_p):
    """Nats, along the last axis."""
    return -(np.exp(log_p) * log_p).sum(-1)


def kl(log_p, log_q):
    """KL(p || q) in nats, along the last axis."""
    return (np.exp(log_p) * (log_p - log_q)).sum(-1)
