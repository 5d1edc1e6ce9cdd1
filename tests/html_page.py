"""Reads the project's HTML pages as a test wants to ask about them."""

import re
from html.parser import HTMLParser


class Page(HTMLParser):
    """Collects a page's elements with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def assert_self_contained(html: str) -> Page:
    """Raises unless nothing in the page fetches anything or runs."""
    page = Page(html)
    for tag, attributes in page.elements:
        assert tag not in {"script", "link", "img", "iframe", "object", "embed", "base"}, tag
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in {"src", "href", "xlink:href"}:
                assert (value or "").startswith("#"), (tag, value)
    styles = " ".join(re.findall(r"<style.*?</style>", html, flags=re.DOTALL))
    assert "@import" not in html
    assert all(reference.startswith("#") for reference in re.findall(r"url\(([^)]*)\)", styles))
    return page
