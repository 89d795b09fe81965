"""axe-core finds nothing serious in any tab, in light and in dark."""

from importlib.resources import files

import pytest

AXE = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def serious(page):
    """(rule, element, why) of what axe-core calls serious or critical on the page as it is."""
    found = page.evaluate(
        "axe.run(document, {resultTypes: ['violations']}).then(result => result.violations)"
    )
    return [
        (violation["id"], node["target"], node["failureSummary"][:300])
        for violation in found
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_tab_has_a_serious_violation(open_page, theme):
    page = open_page(theme=theme)
    tabs = page.get_by_role("tab").all_inner_texts()
    assert {"Maps", "Neighbors", "Influence"} <= set(tabs)
    page.add_script_tag(content=AXE)
    found = {}
    for tab in tabs:
        page.get_by_role("tab", name=tab, exact=True).click()
        page.wait_for_timeout(1500)
        if wrong := serious(page):
            found[tab] = wrong
    assert not found
