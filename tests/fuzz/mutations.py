"""Strategies that take a sound file and make it unsound: JSON, tensors, safetensors headers, bytes.

Each draws the changed content; what was changed shows in the content that hypothesis prints.
"""

import copy
import hashlib
import json
import math

import torch
from hypothesis import strategies as st

# Strings that break lines, command a terminal, turn text around, climb out of folders, run as code.
HOSTILE = (
    "\x1b[31mred\x1b]0;title\x07",
    "a\u202eb\u2066c",
    "\0",
    "one\r\ntwo\nthree\nfour\nfive",
    "\u2028\x85\x0c\v",
    "../../evil",
    "/etc/passwd",
    "__import__('os').system('touch evil')",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}{% for i in range(10**9) %}x{% endfor %}",
    "[bold red]$\\frac{1}{2}$<script>alert(1)</script>",
    "\ud800",
    "x" * 3000,
    "é" * 300,
)
_NUMBERS = (0, 1, -1, 2, 3, 7, 2**31, 2**63, -(2**63), 10**30, 10**400, 0.5, -0.0, 1e308, 1e-320)
_NO_NUMBERS = (math.nan, math.inf, -math.inf)


def _nested(depth):
    found = "x"
    for _ in range(depth):
        found = [found]
    return found


JUNK = st.one_of(
    st.sampled_from([None, True, False, "", [], {}, [[]], [None], {"": None}, _nested(40)]),
    st.sampled_from(_NUMBERS + _NO_NUMBERS),
    st.sampled_from(HOSTILE),
    st.integers(-5, 400),
    st.floats(width=32),
    st.text(max_size=6),
    st.lists(st.integers(-3, 40), max_size=4),
    st.dictionaries(st.sampled_from(("a", "text", "shape")), st.integers(), max_size=2),
).map(copy.deepcopy)
"""A value that has no business where it is put, or just might have."""


@st.composite
def json_values(draw, document, most=2):
    """A JSON document of which one or two values are others, elsewhere, or gone."""
    changed = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, most))):
        changed = _change_value(draw, changed)
    return changed


@st.composite
def json_texts(draw, document):
    """The bytes of a JSON file: its values are changed, or its text is no JSON any more."""
    if draw(st.integers(0, 3)):
        return Content(json.dumps(draw(json_values(document))).encode())
    text = json.dumps(document)
    kind = draw(st.sampled_from(sorted(_TEXTS)))
    return Content(_TEXTS[kind](draw, text))


def _change_value(draw, document):
    places = list(_places(document)) if isinstance(document, dict | list) else []
    if not places:
        return draw(JUNK)
    inside, key = draw(st.sampled_from(places))
    what = draw(st.sampled_from(("junk", "junk", "near", "drop", "rename", "add", "swap", "wrap")))
    if what == "drop":
        del inside[key]
    elif what == "rename" and isinstance(inside, dict):
        inside[draw(st.sampled_from(HOSTILE) | st.text(max_size=5))] = inside.pop(key)
    elif what == "add" and isinstance(inside, dict):
        inside[draw(st.sampled_from((*HOSTILE, "auto_map", "_attn_implementation")))] = draw(JUNK)
    elif what == "add":
        inside.append(draw(JUNK))
    elif what == "swap":
        other, at = draw(st.sampled_from(places))
        inside[key], other[at] = other[at], inside[key]
        if len(repr(inside[key])) > 100_000:
            inside[key] = None
    elif what == "wrap":
        inside[key] = draw(st.sampled_from(([inside[key]], {"x": inside[key]}, str(inside[key]))))
    elif what == "near" and isinstance(inside[key], int | float):
        inside[key] = inside[key] * draw(st.sampled_from((2, -1, 0, 0.5, 1.0))) + draw(
            st.sampled_from((0, 1, -1))
        )
    else:
        inside[key] = draw(JUNK)
    return document


def _places(document):
    """(container, key) of every value inside of a document that is no loop."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in list(items):
        yield document, key
        if isinstance(value, dict | list) and len(repr(value)) < 100_000:
            yield from _places(value)


def _twice(draw, text):
    """A key that is there twice, the second with another value."""
    fields = json.loads(text)
    if not isinstance(fields, dict) or not fields:
        return b"{}"
    key = draw(st.sampled_from(sorted(fields)))
    return (text.rstrip()[:-1] + f", {json.dumps(key)}: {json.dumps(draw(JUNK))}}}").encode()


_TEXTS = {
    "cut": lambda draw, text: text[: draw(st.integers(0, len(text) - 1))].encode(),
    "deep": lambda draw, text: b"[" * draw(st.sampled_from((500, 100_000))),
    "deep inside": lambda draw, text: text[:-1].encode() + b', "x": ' + b'{"x":' * 50_000,
    "deep and whole": lambda draw, text: (
        text[:-1].encode() + b', "x": ' + b"[" * 900 + b"]" * 900 + b"}"
    ),
    "mark": lambda draw, text: b"\xef\xbb\xbf" + text.encode(),
    "utf-16": lambda draw, text: text.encode("utf-16"),
    "empty": lambda draw, text: draw(st.sampled_from((b"", b" ", b"\n", b"null", b"[]", b'"x"'))),
    "zeros": lambda draw, text: b"\0" * 100,
    "latin-1": lambda draw, text: text.encode().replace(b"a", b"\xe9", 1),
    "digits": lambda draw, text: text[:-1].encode() + b', "n": ' + b"9" * 6000 + b"}",
    "twice": _twice,
    "two": lambda draw, text: (text + text).encode(),
}


class Content(bytes):
    """Bytes that hypothesis prints in few words where they are many."""

    def __repr__(self):
        if len(self) <= 3000:
            return super().__repr__()
        return f"<{len(self)} bytes, SHA-256 {hashlib.sha256(self).hexdigest()}>"


@st.composite
def damaged(draw, content, beginnings=2000):
    """Bytes with some flipped, cut out, put in, moved or gone, more often near the beginning."""
    return Content(_damage(draw, content, beginnings))


def _damage(draw, content, beginnings):
    at = st.integers(0, max(len(content) - 1, 0))
    at = draw(st.integers(0, max(min(beginnings, len(content) - 1), 0)) | at)
    kind = draw(st.sampled_from(("flip", "flip", "byte", "cut", "out", "in", "zeros", "twice")))
    if kind == "flip":
        bit = 1 << draw(st.integers(0, 7))
        return content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]
    if kind == "byte":
        return content[:at] + bytes([draw(st.integers(0, 255))]) + content[at + 1 :]
    if kind == "cut":
        return content[:at]
    length = draw(st.integers(1, 40))
    if kind == "out":
        return content[:at] + content[at + length :]
    if kind == "in":
        return content[:at] + draw(st.binary(min_size=1, max_size=20)) + content[at:]
    if kind == "zeros":
        return content[:at] + b"\0" * length + content[at + length :]
    return content[:at] + content[at : at + length] + content[at:]


def split_safetensors(content):
    """The header of a safetensors file as a dict, and the bytes behind it."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def join_safetensors(header, data, length=None):
    """The file of a header, as a dict or as bytes, and data; its length told truly or not."""
    written = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(written) if length is None else length).to_bytes(8, "little") + written + data


_DTYPE_NAMES = (
    "F32", "F16", "BF16", "F64", "I64", "U8", "BOOL", "F8_E4M3", "F4", "C64", "Q4", "f32", "", None,
)  # fmt: skip


@st.composite
def headers(draw, content):
    """A safetensors file whose header tells something else about the same bytes."""
    return Content(_retold(draw, content))


def _retold(draw, content):
    header, data = split_safetensors(content)
    names = [name for name in header if name != "__metadata__"]
    kind = draw(
        st.sampled_from(
            ("json", "text", "dtype", "offsets", "shape", "length", "overlap", "trade", "rename",
             "twice", "metadata")
        )
    )  # fmt: skip
    one, other = draw(st.sampled_from(names)), draw(st.sampled_from(names))
    entry = header[one]
    if kind == "json":
        header = draw(json_values(header))
    elif kind == "text":
        return join_safetensors(draw(json_texts(header)), data)
    elif kind == "dtype":
        entry["dtype"] = draw(st.sampled_from(_DTYPE_NAMES))
    elif kind == "offsets":
        shift = draw(st.sampled_from((4, -4, 1, -1, 2**40, -(2**40), 2**64)))
        entry["data_offsets"][draw(st.integers(0, 1))] += shift
    elif kind == "shape":
        entry["shape"] = draw(st.sampled_from(_shapes(entry["shape"])))
    elif kind == "length":
        return join_safetensors(header, data, draw(st.sampled_from(_LENGTHS)))
    elif kind == "overlap":
        entry["data_offsets"] = list(header[other]["data_offsets"])
    elif kind == "trade":
        header[one], header[other] = header[other], header[one]
    elif kind == "rename":
        header[draw(st.sampled_from(HOSTILE))] = header.pop(one)
    elif kind == "metadata":
        header["__metadata__"] = draw(JUNK)
    else:
        written = json.dumps(header)[:-1] + f", {json.dumps(one)}: {json.dumps(header[other])}}}"
        return join_safetensors(written.encode(), data)
    return join_safetensors(header, data)


_LENGTHS = (0, 1, 2, 7, 100, 10**6, 10**8, 2**31, 2**63, 2**64 - 1)


def _shapes(shape):
    """Shapes that are nearly, or not at all, that one."""
    size = math.prod(shape)
    return (
        shape[::-1], [size], [1, *shape], [size, 1], [], [0], [-1, size], [2**32, 2**32],
        [2**63, 0], [1] * 3000, [n + (i == 0) for i, n in enumerate(shape)], [*map(float, shape)],
        "x", None,
    )  # fmt: skip


DTYPES = (
    "float16", "bfloat16", "float64", "int8", "uint8", "int32", "int64", "bool", "complex64",
    "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip


class Tensors(dict):
    """Tensors by name, printed without their numbers."""

    def __repr__(self):
        return repr({name[:60]: (list(t.shape)[:6], t.dtype) for name, t in self.items()})


@st.composite
def tensors(draw, sound, most=2, dtypes=DTYPES):
    """Tensors by name of which one or two are others: in name, shape, number format or numbers."""
    found = dict(sound)
    for _ in range(draw(st.integers(1, most))):
        if not found:
            return Tensors()
        _change_tensor(draw, found, dtypes)
    return Tensors({name: tensor.contiguous() for name, tensor in found.items()})


def _change_tensor(draw, found, dtypes):
    name = draw(st.sampled_from(sorted(found)))
    kind = draw(st.sampled_from(("drop", "add", "rename", "trade", "shape", "cut", "dtype",
                                 "fill", "one", "one", "scale")))  # fmt: skip
    tensor = found[name]
    if kind == "drop":
        del found[name]
    elif kind == "add":
        new = draw(st.sampled_from(_NEW_NAMES) | st.sampled_from(HOSTILE[:5]))
        found[new] = torch.zeros(draw(st.sampled_from(((), (1,), (16,), (1, 1, 32, 32)))))
    elif kind == "rename":
        found[draw(st.sampled_from(_NEW_NAMES))] = found.pop(name)
    elif kind == "trade":
        other = draw(st.sampled_from(sorted(found)))
        found[name], found[other] = found[other].clone(), tensor.clone()
    elif kind == "shape":
        found[name] = draw(
            st.sampled_from((tensor.T if tensor.ndim == 2 else tensor[None], tensor.flatten(),
                             tensor[:0], tensor.flatten()[:1]))
        ).clone()  # fmt: skip
    elif kind == "cut" and tensor.ndim:
        found[name] = torch.cat([tensor, tensor])[: draw(st.integers(0, len(tensor) + 1))]
    elif kind == "dtype":
        real = tensor.real if tensor.is_complex() else tensor  # Or torch warns.
        found[name] = real.to(getattr(torch, draw(st.sampled_from(dtypes))))
    elif kind == "scale" and tensor.is_floating_point():
        # By way of float64: eight bits do not multiply.
        scaled = tensor.double() * draw(st.sampled_from((0.0, -1.0, 1e-6, 100.0, 1e-42)))
        found[name] = scaled.to(tensor.dtype)
    elif tensor.numel() and tensor.is_floating_point():
        value = draw(st.sampled_from((math.nan, math.inf, -math.inf, 0.0, 1e-42, 1.0, 3e4)))
        # What was transposed has no flat view otherwise.
        changed = tensor.clone(memory_format=torch.contiguous_format)
        if kind == "fill":
            changed[...] = value
        else:
            changed.view(-1)[draw(st.integers(0, tensor.numel() - 1))] = value
        found[name] = changed


_NEW_NAMES = (
    "evil", "h.0.attn.bias", "transformer.h.1.attn.masked_bias", "transformer.h.9.ln_1.weight",
    "lm_head.weight", "score.weight", "wte.weight", "transformer.h.0.attn.c_attn.lora_A.weight",
    "transformer.h.999999999999.mlp.c_fc.weight", "h.\u0661.ln_1.weight", "", ".", "lm_head.bias",
    "transformer.transformer.wpe.weight",
)  # fmt: skip
