"""The page in a real browser: its script runs without an error, and what one points at is told."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from html_checks import Page

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")

# Runs before the script of the page: every error and every refused address becomes part of the page.
WATCH = """<script>
  window.seen = { errors: [], tips: {}, wide: [] };
  addEventListener("error", (e) => seen.errors.push(String(e.message || e.target.src)), true);
  addEventListener("securitypolicyviolation", (e) => seen.errors.push("fetches " + e.blockedURI));
</script>"""
# Runs after it: point at the middle of every chart, and look for what is wider than the window.
POINT = """<script>
  for (const plot of document.querySelectorAll(".plot")) {
    const box = plot.getBoundingClientRect();
    const at = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, bubbles: true };
    plot.dispatchEvent(new PointerEvent("pointermove", at));
    seen.tips[plot.dataset.chart || plot.dataset.heat] = document.querySelector(".tip").innerText;
    plot.dispatchEvent(new PointerEvent("pointerleave"));
    if (!document.querySelector(".tip").hidden) seen.errors.push("the tip stays");
  }
  for (const e of document.querySelectorAll("main *, header *"))
    if (e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll")) seen.wide.push(e.outerHTML.slice(0, 80));
  if (document.documentElement.scrollWidth > innerWidth) seen.wide.push("the page");
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
</script>"""
POLICY = """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">"""


def opened(run: Path, place: Path, width: int) -> dict[str, object]:
    """What the browser saw; the policy refuses everything the page would fetch."""
    html = (run / "report.html").read_text(encoding="utf-8")
    html = html.replace("<title>", f"{POLICY}{WATCH}<title>", 1).replace("</body>", f"{POINT}</body>")
    watched, frame = place / "watched.html", place / "frame.html"
    watched.write_text(html, encoding="utf-8")
    command = [
        str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
        "--no-first-run", f"--user-data-dir={place / 'profile'}", f"--window-size={max(width, 500)},900",
        "--virtual-time-budget=3000", "--dump-dom", watched.as_uri() if width >= 500 else frame.as_uri(),
    ]  # fmt: skip
    if width < 500:  # no window is that narrow, but a frame is
        frame.write_text(
            f"<body><iframe width={width} height=900 src=watched.html></iframe><pre id=seen></pre><script>"
            'onload = () => document.getElementById("seen").textContent = '
            'document.querySelector("iframe").contentDocument.getElementById("seen").textContent;</script>'
        )
        command.insert(1, "--allow-file-access-from-files")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    start = done.stdout.index('<pre id="seen">') + len('<pre id="seen">')
    return json.loads(Page(done.stdout[start : done.stdout.index("</pre>", start)]).text)


@pytest.mark.parametrize("width", [1280, 390])
def test_images_in_a_browser(digits_run: Path, tmp_path: Path, width: int) -> None:
    seen = opened(digits_run, tmp_path, width)
    assert seen["errors"] == []
    assert seen["wide"] == []
    tips = seen["tips"]
    assert isinstance(tips, dict)
    assert set(tips) == {"loss", "accuracy", "learning_rate", "speed", "gradient_norms", "update_ratios"}
    assert "validation" in tips["accuracy"]
    assert "%" in tips["accuracy"]
    assert all("step" in tip and "epoch" in tip for tip in tips.values())


@pytest.mark.parametrize("width", [1280, 390])
def test_other_kinds_in_a_browser(
    quantities_run: Path, classes_run: Path, text_run: Path, tmp_path: Path, width: int
) -> None:
    for run in (quantities_run, classes_run, text_run):
        seen = opened(run, tmp_path, width)
        assert seen["errors"] == []
        assert seen["wide"] == []
        assert all(seen["tips"].values())  # type: ignore[attr-defined]
