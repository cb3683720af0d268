"""Whatever a prompt or a vocabulary holds is shown and never run, and nothing leaves the page."""

import json

import pytest
from click.testing import CliRunner

from resid.commands import cli

from ..conftest import tiny_hf, write_checkpoint
from .conftest import PHONE, WIDE

PROMPT = "The capital of France is"
MARKUP = '<script>alert(1)</script> </script><!-- & "quotes"'
# What would turn, hide, move or break text: directions, joiners, control characters, ends of line.
SIGNS = (
    "a\u202eb\u2066c\u2069 \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 "
    "\U0001f917\u200d\ufe0f \u2028 \x01\x1b[31m\r\n\t\u0301\xa0"
)
ATTRIBUTES = "' onerror=alert(2) \"><img src=http://example.org/x onerror=alert(3)> {{7*7}} ${7*7}"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A tiny model with room for a line, and with tokens that are long, markup, or both."""
    folder = write_checkpoint(tmp_path_factory.mktemp("hostile"), tiny_hf(n_positions=128))
    vocabulary = json.loads((folder / "vocab.json").read_text("utf-8"))
    long = ["W" * 60, "</script><script>alert(4)</script>", "<b>bold</b>&amp;", "]]>-->" * 5]
    vocabulary |= {token: 265 + i for i, token in enumerate(long)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    return folder


def input_tokens(report):
    """The prompt's tokens as the grid's last row shows them, as far as they are in sight."""
    row = report.grid().get_by_role("row").last
    return row.get_by_role("columnheader").locator("bdi").all_text_contents()


@pytest.mark.parametrize("size", [PHONE, WIDE])
def test_markup_in_the_prompt_is_text(read, size):
    report = read("-m", "mini", MARKUP, size=size)
    assert report.numbers["reports"][0]["prompt"] == MARKUP
    assert MARKUP in report.page.get_by_role("heading", level=1).inner_text()
    assert MARKUP in report.page.title()
    assert report.page.locator("script").count() == 2
    assert report.page.locator("main script, header script, img").count() == 0
    assert MARKUP.endswith("".join(input_tokens(report)))
    report.grid().evaluate("grid => { grid.scrollLeft = 0; }")
    report.watched.settle()
    assert MARKUP.startswith("".join(input_tokens(report)))
    assert "<script>" in "".join(input_tokens(report))
    assert report.watched.faults() == []


@pytest.mark.parametrize(
    "prompt", [SIGNS, ATTRIBUTES, MARKUP], ids=["signs", "attributes", "markup"]
)
@pytest.mark.parametrize("size", [PHONE, WIDE])
def test_hostile_tokens_stand_as_the_json_has_them(read, hostile, prompt, size):
    report = read("-m", hostile, "--", prompt, size=size)
    printed = CliRunner().invoke(
        cli, ["lens", "-m", str(hostile), "--format", "json", "--", prompt]
    )
    tokens = json.loads(printed.stdout)["source"]["tokens"]
    shown = input_tokens(report)
    assert 3 <= len(shown) <= len(tokens)
    assert shown == tokens[len(tokens) - len(shown) :]
    assert report.watched.faults() == []


@pytest.mark.parametrize("size", [PHONE, WIDE])
def test_long_tokens_and_bytes_do_not_break_the_page(read, hostile, size):
    ids = [*range(260, 269), *range(120, 132), 299]
    report = read("-m", hostile, "--ids", ",".join(map(str, ids)), "--target", "id:265", size=size)
    assert report.watched.faults() == []
    assert "W" * 60 in report.page.text_content("body")
    report.page.keyboard.press("Tab")
    for cell in report.page.get_by_role("gridcell").all()[:6]:
        cell.hover()
        assert report.watched.faults() == []


def test_a_right_to_left_prompt_does_not_turn_the_page(read, hostile):
    report = read("-m", hostile, "\u05e9\u05dc\u05d5\u05dd \u202e the is")
    boxes = [cell.bounding_box()["x"] for cell in report.page.locator(".input [data-j]").all()]
    assert boxes == sorted(boxes)
    assert report.page.evaluate("getComputedStyle(document.body).direction") == "ltr"
    assert report.page.locator("h1").bounding_box()["x"] < 100


@pytest.mark.parametrize(
    ("attempt", "directive"),
    [
        ("new Image().src = 'https://example.org/x.png'", "img-src"),
        ("fetch('https://example.org/').catch(() => 0)", "connect-src"),
        ("navigator.sendBeacon('https://example.org/', 'x')", "connect-src"),
        ("try { new WebSocket('wss://example.org/') } catch {}", "connect-src"),
        ("add('script', 'src', 'https://example.org/x.js')", "script-src"),
        ("add('script', 'textContent', 'alert(5)')", "script-src"),
        ("add('style', 'textContent', 'body { display: none }')", "style-src"),
        ("add('iframe', 'src', 'https://example.org/')", "frame-src"),
        ("add('object', 'data', 'https://example.org/')", "object-src"),
        ("add('video', 'src', 'https://example.org/x.mp4')", "media-src"),
        ("add('link', 'href', 'https://example.org/x.css').rel = 'stylesheet'", "style-src"),
        ("add('form', 'action', 'https://example.org/').submit()", "form-action"),
        ("document.body.setAttribute('onclick', 'alert(6)'); document.body.click()", "script-src"),
        # Later: what the test runs itself, at once, is under no policy.
        ("setTimeout(() => { try { eval('alert(7)') } catch {} })", "script-src"),
    ],
)  # fmt: skip
def test_the_policy_stops_whatever_would_leave_the_page(read, attempt, directive):
    report = read("-m", "mini", PROMPT)
    refused = report.page.evaluate(
        """() => new Promise((done) => {
             const add = (tag, name, value) => document.body.appendChild(
               Object.assign(document.createElement(tag), { [name]: value }));
             document.addEventListener("securitypolicyviolation",
               (event) => done(event.effectiveDirective), { once: true });
             setTimeout(() => done("nothing was refused"), 3000);
             ATTEMPT;
           })""".replace("ATTEMPT", attempt)
    )
    assert refused.startswith(directive)
    told = report.watched.take()
    # Nothing that was asked for was begun.
    assert [line for line in told if not line.startswith("error ")] == report.watched.refused


def test_the_policy_stands_before_all_it_governs_and_the_file_names_no_other(read, made):
    report = read("-m", "mini", PROMPT)
    policy = report.page.locator("meta[http-equiv='Content-Security-Policy']")
    assert policy.get_attribute("content").startswith("default-src 'none';")
    assert "unsafe" not in policy.get_attribute("content")
    text = made("-m", "mini", PROMPT).read_text("utf-8")
    head = text.index("Content-Security-Policy")
    assert head < text.index("<title") and head < text.index("<style") and head < text.index("<scr")
    text = text.replace("http://www.w3.org/2000/svg", "")
    assert [word for word in ("http:", "https:", "//cdn", "@import", "url(") if word in text] == []
