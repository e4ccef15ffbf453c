"""Makes docs/images/dashboard.png and its dark sibling: the page of a run that was recorded on real pods.

python -m tools.pictures [FOLDER]

The run, tools/recorded_run.json, is what `minicluster jobs NAME --html` wrote of it. It needs Chromium.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parent.parent
RUN = ROOT / "tools" / "recorded_run.json"
IMAGES = ROOT / "docs" / "images"
#: Window of the browser
WIDTH_PIXELS, HEIGHT_PIXELS = 1280, 1180
SCHEMES: dict[str, Literal["light", "dark"]] = {"dashboard.png": "light", "dashboard-dark.png": "dark"}


def chromium() -> str | None:
    """Return the path of Chromium, None without it."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def recorded() -> dict[str, Any]:
    """Return the recorded run, as `Timeline.snapshot` does."""
    run: dict[str, Any] = json.loads(RUN.read_text(encoding="ascii"))
    return run


def main(folder: Path = IMAGES) -> None:
    """Make the pictures."""
    # Bokeh takes a second to import, and tests need `chromium` alone
    from minicluster.picture import page  # noqa: PLC0415
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - the tests alone have it

    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        path = Path(name, "page.html")
        path.write_bytes(page.as_file("demo", "", recorded()))
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for image, scheme in SCHEMES.items():
            size: Any = {"width": WIDTH_PIXELS, "height": HEIGHT_PIXELS}
            shown = browser.new_page(viewport=size, color_scheme=scheme)
            shown.goto(path.as_uri())
            shown.locator("body[data-bars]").wait_for()
            # Bokeh draws after its sources have changed
            shown.wait_for_timeout(1000)
            shown.screenshot(path=str(folder / image))
        browser.close()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
