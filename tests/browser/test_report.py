"""The report of the README's prompt: what is shown is what the readings say, and all follow."""

import json

import pytest

import resid

from .report_page import shows

PROMPT = "The capital of France is"
MINI = ("-m", "mini", PROMPT)
LAST = 4


@pytest.fixture(scope="module")
def model():
    return resid.load("mini")


@pytest.fixture(scope="module")
def recording(model):
    return resid.record(model, PROMPT, points="all,attn_out,mlp_out,z,mlp_pre,mlp_post")


@pytest.fixture(scope="module")
def lens(model, recording):
    return json.loads(resid.logit_lens(model, recording, top=5).to_json())


def check_detail(found, lens, point, position):
    """The detail says of this cell what the JSON says."""
    i, data = lens["axes"]["point"].index(point), lens["data"]
    assert found["point"] == point
    assert found["where"] == f"position {position}, after {lens['source']['tokens'][position]}"
    assert [token for token, _ in found["tops"]] == data["top_tokens"][i][position]
    for (_, text), value in zip(found["tops"], data["top_probs"][i][position], strict=True):
        assert shows(text, value)
    for name, key in (("entropy", "entropy"), ("KL(final || point)", "kl_to_final")):
        assert shows(found["numbers"][name], data[key][i][position])
    assert shows(found["numbers"]["margin"], data["margin"][i][position])


CELLS = [("embed", 0), ("embed", LAST), ("3.post", 2), ("7.post", 0), ("7.post", LAST)]


@pytest.mark.parametrize("act", ["hover", "focus"])
def test_pointing_at_a_cell_tells_the_numbers_of_the_json(read, lens, act):
    report = read(*MINI)
    check_detail(report.detail(), lens, "7.post", LAST)
    for point, position in CELLS:
        getattr(report.cell(point, position), act)()
        check_detail(report.detail(), lens, point, position)
    if act == "hover":
        report.page.get_by_role("heading", level=1).hover()
        check_detail(report.detail(), lens, "7.post", LAST)


def test_every_cell_names_its_token_and_probability(read, lens):
    report = read(*MINI)
    for i, point in enumerate(lens["axes"]["point"]):
        for position in range(LAST + 1):
            cell = report.cell(point, position)
            (token,) = cell.locator("bdi").all_text_contents()
            assert token == lens["data"]["top_tokens"][i][position][0]
            value = lens["data"]["top_probs"][i][position][0]
            assert shows(cell.locator(".value").text_content(), value)
            assert f'"{token}"' in cell.get_attribute("aria-label")


@pytest.mark.parametrize(
    ("name", "key"), [("entropy", "entropy"), ("KL to final", "kl_to_final"), ("rank", None)]
)
def test_the_colour_can_be_another_quantity(read, model, recording, lens, name, key):
    report = read(*MINI)
    before = report.state()
    report.page.get_by_role("radio", name=name).check()
    assert report.state() != before
    table = lens["data"][key] if key else resid.logit_lens(model, recording, own=True).own.rank
    dark = {}
    for i, point in enumerate(lens["axes"]["point"]):
        cell = report.cell(point, LAST)
        assert shows(cell.locator(".value").text_content(), table[i][LAST])
        channels = cell.evaluate("cell => getComputedStyle(cell).backgroundColor.match(/\\d+/g)")
        dark[float(table[i][LAST])] = sum(map(int, channels))
    # The surer, the darker: small values of all three.
    assert [dark[value] for value in sorted(dark)] == sorted(dark.values())
    weakest = report.page.locator(".legend .ends").evaluate("ends => ends.firstChild.textContent")
    assert shows(weakest, max(max(row) for row in table))
    report.page.get_by_role("radio", name="probability").check()
    assert report.state() == before


def headings_of(report):
    """What every panel says it is about."""
    return {
        "answer": report.page.locator(".answer").text_content(),
        "norms": report.panel("How does the stream grow").inner_text(),
        "attribution": report.panel("Which part of the network").inner_text(),
        "memory": report.panel("Which neurons").inner_text(),
    }


@pytest.mark.parametrize("way", ["click", "enter", "input row"])
def test_choosing_a_position_turns_every_panel_to_it(read, model, recording, lens, way):
    report = read(*MINI, "--neurons", "3")
    before = headings_of(report)
    position = 2
    if way == "click":
        report.cell("3.post", position).click()
    elif way == "enter":
        report.cell("3.post", position).focus()
        report.page.keyboard.press("Enter")
    else:
        report.page.get_by_role("columnheader", name=f"{position} ").click()
    after = headings_of(report)
    assert all(after[name] != before[name] for name in before)
    says = lens["data"]["top_tokens"][-1][position][0]
    assert after["answer"].startswith(f"After position {position}, ")
    assert f" says {says} (" in after["answer"]
    assert f"at position {position}" in after["norms"]
    assert f"of {says} after position {position}" in after["attribution"]
    assert report.detail()["where"].startswith(f"position {position}, ")

    memory = resid.mlp_memory(model, recording, positions=[position], neurons=3)
    rows = report.panel("Which neurons").locator("tbody tr").all()
    shown = [row.locator("th").text_content() for row in rows]
    assert shown == [f"L{at}N{n}" for at, n in zip(memory.layer, memory.neuron, strict=True)]
    for row, coefficient in zip(rows, memory.coefficient, strict=True):
        assert shows(row.locator("td").first.text_content(), coefficient)


def test_the_attribution_is_the_readings(read, model, recording):
    report = read(*MINI)
    found = resid.attribution(model, recording, target=" Paris", heads=True)
    panel = report.panel("Which part of the network")
    direct = dict(zip(found.components, found.direct, strict=True))
    rows = [row.inner_text().split() for row in panel.get_by_role("listitem").all()]
    named = [row for row in rows if row[0] in direct]
    assert len(named) >= 8
    for name, number in named:
        assert shows(number, direct[name])
    biggest = max(direct, key=lambda name: abs(direct[name]))
    assert named[0][0] == biggest
    shown = sum(float(row[-1].replace("−", "-")) for row in rows)
    assert shown == pytest.approx(found.logit - found.remainder, abs=0.01 * len(rows))


def test_a_token_can_be_followed_across_the_grid(read, lens, model, recording):
    report = read(*MINI)
    before = report.state()
    follow = report.page.get_by_role("combobox", name="follow")
    button = report.page.locator(".detail").get_by_role("button", name=" Paris")
    button.click()
    assert follow.input_value() == " Paris"
    assert button.get_attribute("aria-pressed") == "true"
    track = resid.logit_lens(model, recording, target=" Paris").target
    for i, point in enumerate(lens["axes"]["point"]):
        text = report.cell(point, LAST).locator(".value").text_content()
        if text.startswith("<"):
            assert pytest.approx(float(text[1:]), rel=0.5) >= 2.718281828 ** track.logprob[i][LAST]
        else:
            assert shows(text, 2.718281828459045 ** track.logprob[i][LAST])
    assert report.state() != before
    assert " Paris" in report.page.locator(".legend").text_content()
    report.page.keyboard.press("Escape")
    assert follow.input_value() == ""
    assert report.state() == before
    follow.select_option(label='" Paris"')
    assert report.state() != before


def test_the_keyboard_moves_through_the_grid(read):
    report = read(*MINI)
    press = report.page.keyboard.press
    report.page.locator("#follow").focus()
    press("Tab")
    assert report.focused().startswith(f"7.post, position {LAST}:")
    # Key, and where it leads.
    for key, point, position in [
        ("ArrowDown", "6.post", LAST),
        ("ArrowLeft", "6.post", LAST - 1),
        ("ArrowUp", "7.post", LAST - 1),
        ("ArrowUp", "7.post", LAST - 1),
        ("ArrowRight", "7.post", LAST),
        ("ArrowRight", "7.post", LAST),
        ("Home", "7.post", 0),
        ("Control+End", "embed", LAST),
        ("ArrowDown", "embed", LAST),
        ("Control+Home", "7.post", 0),
        ("End", "7.post", LAST),
    ]:
        press(key)
        assert report.focused().startswith(f"{point}, position {position}:"), key
        assert report.detail()["point"] == point
    # One stop for the whole grid, both ways.
    press("Tab")
    assert "position" not in (report.focused() or "")
    press("Shift+Tab")
    assert report.focused().startswith(f"7.post, position {LAST}:")


def test_the_page_holds_the_checks_the_versions_and_its_command(read, lens):
    report = read(*MINI)
    certificate = report.panel("Can these numbers be trusted").inner_text()
    for words in ("last point = logits", "sum of steps", "parts = distinct parameters", "holds"):
        assert words in certificate
    assert "FAILED" not in certificate
    for name, version in lens["source"]["versions"].items():
        assert f"{name} {version}" in report.page.locator("footer").inner_text()
    command = report.page.locator("#command").text_content()
    assert command.startswith("resid report ") and PROMPT in command and "mini" in command


def test_no_value_is_missing_from_the_text(read):
    text = read(*MINI).page.inner_text("body")
    assert [word for word in ("null", "undefined", "NaN", "[object") if word in text] == []


def test_the_parameters_add_up_to_the_total(read):
    rows = read(*MINI).panel("Where are the parameters").locator("tr").all_inner_texts()
    numbers = [int(row.split("\t")[1].replace(",", "")) for row in rows[1:] if "tied" not in row]
    assert numbers[-1] == sum(numbers[:-1]) == resid.param_count("mini").total
