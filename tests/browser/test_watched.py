"""What the watch over a page tells, shown on small pages that are wrong in one way each."""

import pytest

from .conftest import PHONE, WIDE

GOOD = """<!doctype html><title>t</title><style>body{font:16px/1.2 sans-serif;margin:8px}</style>"""


@pytest.mark.parametrize(
    ("markup", "told"),
    [
        ("<img src='http://example.org/a.png'>", "request http://example.org/a.png"),
        ("<link rel=stylesheet href='https://example.org/a.css'>", "request https://example.org/a"),
        ("<script>fetch('http://example.org/b').catch(() => 0)</script>", "request http://example"),
        ("<script src='beside.js'></script>", "beside.js"),
        ("<script>new WebSocket('ws://example.org/c')</script>", "socket ws://example.org/c"),
        ("<script>console.error('bad')</script>", "error bad"),
        ("<script>console.warn('odd')</script>", "warning odd"),
        ("<script>null.x</script>", "error Cannot read properties"),
        ("<script>Promise.reject(new Error('lost'))</script>", "error lost"),
        ("<script>alert(1)</script>", "dialog 1"),
        ("<script>window.open('about:blank')</script>", "opened about:blank"),
    ],
)
def test_everything_that_a_page_should_not_do_is_told(visit, tmp_path, markup, told):
    file = tmp_path / "page.html"
    file.write_text(GOOD + markup, encoding="utf-8")
    watched = visit(file)
    found = watched.take()
    assert any(told in line for line in found), found


def test_a_quiet_page_tells_nothing(visit, tmp_path):
    file = tmp_path / "page.html"
    data = "<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw=' alt=''>"
    file.write_text(GOOD + data + "<p>quiet<script>console.log(1)</script>", encoding="utf-8")
    watched = visit(file)
    watched.page.reload()
    assert watched.page.inner_text("p") == "quiet"
    assert watched.told == []


FAULTS = {
    "overlap": "<p>under<p style='margin-top:-2.2em'>above it",
    "overlap, absolute": "<p>under<b style='position:absolute;left:12px'>over</b>",
    "overlap, svg": "<svg width=90 height=40><text y=20>one</text><text y=24 x=9>two</text></svg>",
    "cut at the side": "<p style='width:4em;overflow:hidden;white-space:nowrap'>much too long",
    "cut at the side, outside": "<div style='width:4em;overflow-x:clip'><p style='width:20em'>"
    "a sentence that is far too long for it</div>",
    "cut at the side, svg": "<svg width=20 height=40><text y=20>label</text></svg>",
    "cut in height": "<p style='height:1.5em;width:4em;overflow:hidden'>more than one line of it",
    "covered": "<p>hidden<div style='background:gray;margin-top:-2em;height:3em;"
    "position:relative'></div>",
    "beyond the edge": "<p style='position:absolute;left:-900px'>nowhere",
    "tiny": "<p style='font-size:6px'>small print",
    "contrast": "<p style='color:#999'>pale",
    "contrast, faded": "<p style='opacity:.4'>faded",
    "contrast, on a cell": "<p style='background:rgb(0 0 60 / .9)'>dark on dark",
    "the page is": "<p style='width:2000px'>wide",
    "the page is, by a word": "<p>" + "unbroken" * 90,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_seen(visit, fault):
    found = visit(markup=GOOD + FAULTS[fault]).faults()
    assert [line.split(":")[0].split(",")[0][: len(fault.split(",")[0])] for line in found] == [
        fault.split(",")[0]
    ], found


@pytest.mark.parametrize(
    "markup",
    {
        "plain": "<h1>Head</h1><p>several words in lines " + "that go on and on " * 40,
        "ellipsis": "<p title='all of it' style='width:4em;overflow:hidden;text-overflow:ellipsis;"
        "white-space:nowrap'>much too long",
        "scrolls": "<div style='width:9em;height:3em;overflow:auto;white-space:nowrap'>"
        "far too long for a line<br>2<br>3<br>4<br>5</div><p>after",
        "sticky": "<div style='height:5em;overflow:auto'><p style='position:sticky;top:0;"
        "background:#fff;margin:0'>head<p style='margin-top:-1em'>under the head<p>1<p>2</div>",
        "for ears": "<p>seen<span style='position:absolute;width:1px;height:1px;overflow:hidden'>"
        "heard only, at length</span>",
        "not shown": "<p hidden>a<p style='visibility:hidden'>b<details><summary>c</summary>d"
        "</details><script type='application/json'>{}</script><template>e</template>",
        "light on dark": "<p style='background:#003;color:#fff'>read me",
        "svg": "<svg width=90 height=40><text y=15>one</text><text y=34 x=9>two</text></svg>",
    }.values(),
)
@pytest.mark.parametrize("size", [PHONE, WIDE])
def test_what_is_meant_is_no_fault(visit, markup, size):
    assert visit(markup=GOOD + markup, size=size).faults() == []


def test_windows_are_what_was_asked_for(visit):
    markup = GOOD + "<p style='color:CanvasText'>text"
    dark = "<meta name=color-scheme content='light dark'>"
    phone = visit(markup=markup + dark, size=PHONE, color_scheme="dark", reduced_motion="reduce")
    ask = "query => matchMedia(query).matches"
    for query in ("(width: 390px)", "(prefers-color-scheme: dark)"):
        assert phone.page.evaluate(ask, query)
    assert phone.page.evaluate(ask, "(prefers-reduced-motion: reduce)")
    assert phone.faults() == []
    wide = visit(markup=markup, forced_colors="active")
    assert wide.page.evaluate(ask, "(width: 1600px) and (forced-colors: active)")
    assert not wide.page.evaluate(ask, "(prefers-color-scheme: dark)")
    assert not wide.page.evaluate("navigator.onLine")
