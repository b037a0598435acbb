# SPDX-License-Identifier: BSD-3-Clause
"""Makes of matplotlib's SVG what a page can hold: colours that follow light and dark, the page's font, names of its own for
all that is referred to, and words for those who do not see it.
"""
import re
from xml.etree import ElementTree

import colors

SVG = "http://www.w3.org/2000/svg"
XLINK_HREF = "{http://www.w3.org/1999/xlink}href"
STYLE = "svg.plot *{stroke-linejoin:round;stroke-linecap:butt}"
FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','DejaVu Sans',sans-serif"
VARIABLES = {color: f"var(--{name})" for name, color in colors.LIGHT.items()}


def _restyle(style):
    style = re.sub(r"font: (?:[^;]* )?([\d.]+px) [^;]*", r"font-size: \1", style)
    style = re.sub(r"font-family: [^;]*;? ?", "", style)
    return re.sub(r"#[0-9a-f]{6}", lambda color: VARIABLES.get(color.group(), color.group()), style)


def _rename(element, key):
    """All names begin with the key, as those of several plots on a page may be alike."""
    if "id" in element.attrib:
        element.set("id", f"{key}-{element.get('id')}")
    if XLINK_HREF in element.attrib:
        element.set("href", f"#{key}-{element.attrib.pop(XLINK_HREF)[1:]}")
    if "clip-path" in element.attrib:
        element.set("clip-path", element.get("clip-path").replace("url(#", f"url(#{key}-"))


def _describe(root, key, title, says):
    """The title is the name of the plot, and the sentence what it shows."""
    for number, (tag, text) in enumerate((("title", title), ("desc", says))):
        element = ElementTree.Element(f"{{{SVG}}}{tag}", id=f"{key}-{tag}")
        element.text = text
        root.insert(number, element)
    root.set("role", "img")
    root.set("aria-labelledby", f"{key}-title")
    root.set("aria-describedby", f"{key}-desc")


def _clean(root):
    """Without what only a file of its own needs, and matplotlib's style sheet, which would hold for the whole page."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.endswith(("}metadata", "}style")):
                parent.remove(child)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)


def dress(drawn, key, title, says):
    """Returns: the element as text, to stand in an HTML page.
    drawn: matplotlib's SVG; key: letters, digits and -, another one for each plot of a page."""
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(drawn)
    _clean(root)
    for element in root.iter():
        _rename(element, key)
        if "style" in element.attrib:
            element.set("style", _restyle(element.get("style")))
    _describe(root, key, title, says)
    root.set("class", "plot")
    return ElementTree.tostring(root, encoding="unicode")


def stand_alone(dressed):
    """Returns: the same as a file of its own, with paper behind it."""
    style = f"{colors.stylesheet()}{STYLE}svg{{font-family:{FONT};background:var(--paper)}}"
    head, rest = dressed.split(">", 1)
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', head).groups()
    return f'{head} width="{width}" height="{height}"><style>{style}</style><rect width="100%" height="100%" style="fill:var(--paper)"/>{rest}\n'
