"""Opens pages that Sluice writes in a headless browser, for the tests that look at them."""

import html.parser
import shutil
import subprocess

from sluice_run import Skip, require, require_equal

BROWSER_LIMIT_S = 120


class Elements(html.parser.HTMLParser):
    """What a page refers to outside of itself, and which elements run scripts."""

    def __init__(self, text):
        super().__init__()
        self.outside = []
        self.scripts = 0
        self.handlers = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        self.outside += [value for key, value in attrs if key in ("src", "href", "srcset")]
        self.handlers += [key for key, _ in attrs if key.startswith("on")]


# An error in the page is left where a test finds it.
PROBE = """
<script>
addEventListener('error', (event) => { document.documentElement.dataset.error = event.message; });
</script>
"""


def opened(place, page):
    """What a browser made of a page: its elements, and what was said."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise Skip("there is no chromium (apt-get install chromium) to open the page in")
    return subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
         f"--user-data-dir={place / 'browser'}", "--window-size=1400,1000",
         "--virtual-time-budget=5000", "--dump-dom", page.absolute().as_uri()],
        capture_output=True, text=True, errors="replace", timeout=BROWSER_LIMIT_S, check=False)


def require_browser(place):
    """Skips where the browser cannot open a page with nothing in it; of others it must."""
    (place / "empty.html").write_text("<!doctype html><html><body></body></html>")
    done = opened(place, place / "empty.html")
    if done.returncode != 0 or "</html>" not in done.stdout:
        raise Skip(f"the browser does not run here: {done.stderr.strip()[-200:]!r}")


def in_browser(place, name, script):
    """The page's elements after it and `script` ran in a browser."""
    require_browser(place)
    text = (place / name).read_text()
    # The listener comes first in the page, the script last.
    text = text.replace("<body>", "<body>" + PROBE, 1)
    end = text.rindex("</body>")
    page = place / ("opened-" + name)
    page.write_text(text[:end] + script + text[end:])
    done = opened(place, page)
    require_equal(done.returncode, 0, f"exit code of the browser: {done.stderr.strip()[-200:]!r}")
    require("</html>" in done.stdout, "the browser gave no page")
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    require_equal(said, [], "what the page said on its console")
    require("data-error" not in done.stdout, "the page's script failed")
    require('data-drawn="yes"' in done.stdout, "the page was not drawn to its end")
    return done.stdout
