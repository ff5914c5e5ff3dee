# SPDX-License-Identifier: Apache-2.0
"""The report's page in a browser without a screen: on a phone, on a desk and on paper.

Its screenshots and its printed form stay in build/page-test/. Tests that need a browser are skipped, and
named so, where there is none: `make page-test` installs one. The sizes of letters are looked at without.
"""

import json
import re
import shutil
import struct
import subprocess
import zlib
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from matplotlib.text import Text
from tombolo.scc import catalogue, chip_picture, draw, report, statistics, store
from tombolo.scc.catalogue import Experiment
from tombolo.scc.native import Setting
from tombolo.scc.verdicts import Measured

ROOT = Path(__file__).resolve().parent.parent.parent
KEPT = ROOT / "build" / "page-test"
BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium")
SHOWN = ("calibration", "passive-target", "ft")  # lines, bars and stacked bars, long legends
PHONE, DESK = 390, 1280
SECONDS = 300
LEGIBLE = 7.5  # pixels of a letter
MARGINS = 2 * 15  # of the page on a phone, pixels
CHIP_PT = 6  # letters in the picture of the chip, which is not made smaller

# Written into a copy of the page: the page itself has no script.
LOOK = """
<script>
addEventListener('load', () => {
  const images = [...document.images].map(i => ({
    alt: i.alt, loaded: i.complete && i.naturalWidth > 0, width: i.getBoundingClientRect().width,
    narrow: i.currentSrc != i.src, scrolls: i.closest('.scroll') !== null,
    scale: i.getBoundingClientRect().width / i.naturalWidth}));
  const boxes = [...document.querySelectorAll('h1, h2, p, li, figure, figcaption, summary, .cards td')];
  const seen = {
    window: innerWidth, page: document.documentElement.scrollWidth,
    height: document.documentElement.scrollHeight, images,
    outside: boxes.filter(b => b.getBoundingClientRect().right > innerWidth + 1)
                  .map(b => b.textContent.slice(0, 60)),
    heads: document.querySelectorAll('.cards th').length,
    hidden: [...document.querySelectorAll('.cards th')].filter(t => t.offsetParent === null).length,
  };
  document.documentElement.setAttribute('data-seen', encodeURIComponent(JSON.stringify(seen)));
});
</script>
"""

needs_browser = pytest.mark.skipif(BROWSER is None, reason="no browser here: make page-test installs one")


def lines(experiment: Experiment) -> list[dict]:
    """A few values for each series, at the papers' places of x or at places of a plain axis."""
    made = []
    for figure in experiment.figures:
        for number, series in enumerate(figure.series, 1):
            papers = [n.x for n in experiment.numbers if n.series == series.name]
            for x in figure.x.categories or papers or (2, 4, 8, 48):
                line = {"series": series.name, "x": x, "value": 3.0 * number, "unit": figure.y.unit}
                made.append({**line, "experiment": experiment.name, "kind": "sample", "point": "p"})
    return made


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of a few experiments, with values from nowhere."""
    folder = tmp_path_factory.mktemp("page")
    known = catalogue.load()
    few = catalogue.Catalogue({name: known.experiments[name] for name in SHOWN}, known.reasons)
    file = folder / "values.jsonl"
    with file.open("w") as out:
        for name in SHOWN:
            values = lines(few.experiments[name])
            done = {"kind": "done", "experiment": name, "point": "p", "lines": len(values), "time": "t"}
            out.writelines(json.dumps(each) + "\n" for each in [*values, done])
    results = store.read([file])
    made = replace(report.gather(few, results, Setting()), statistics=[of_a_chip(folder)])
    return report.write(made, results, folder / "report")


def of_a_chip(folder: Path) -> tuple[statistics.Run, Path]:
    """A run of which the statistics were kept."""
    parts = [{"part": "interface", "x": x, "y": y, "number": 0, "served": 1, "utilisation": 0.5,
              "mean_wait_ns": 2.0} for x in range(6) for y in range(4)]  # fmt: skip
    line = {"statistics": "p", "experiment": "gats", "chip": "scc", "columns": 6, "rows": 4, "end_us": 1.0}
    run = statistics.read({**line, "parts": parts, "cores": []})
    file = folder / "gats-p.json"
    file.write_text("[]")
    file.with_suffix(".svg").write_bytes(chip_picture.svg(run))
    return run, file


def pixels(points: float) -> float:
    return points / 0.75


def letters(drawn) -> list[float]:
    """The sizes of all letters of a drawing, in points."""
    return [text.get_fontsize() for text in drawn.findobj(Text) if text.get_text().strip()]


@pytest.mark.parametrize("name", [e.name for e in catalogue.load().experiments.values()])
def test_no_letter_is_too_small_for_a_phone(name: str) -> None:
    """Of every figure; a matrix is as wide as any."""
    experiment = catalogue.load().experiments[name]
    measured = Measured(experiment, lines(experiment))
    for figure in experiment.figures:
        drawn = draw.picture(experiment, figure, measured, narrow=True)
        shrunk = min(1, (PHONE - MARGINS) / pixels(72 * drawn.get_size_inches()[0]))
        sizes = letters(drawn)
        draw.pyplot.close(drawn)
        assert min(sizes) >= draw.SMALLEST_PT, figure.name
        assert pixels(min(sizes)) * shrunk >= LEGIBLE, figure.name


def test_no_letter_of_the_chip_is_too_small(tmp_path: Path) -> None:
    drawn = chip_picture.picture(of_a_chip(tmp_path)[0])
    sizes = letters(drawn)
    draw.pyplot.close(drawn)
    assert min(sizes) >= CHIP_PT and pixels(min(sizes)) >= LEGIBLE


def browse(address: Path, folder: Path, *options: str) -> str:
    told = subprocess.run(
        [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         f"--user-data-dir={folder / 'profile'}", *options, address.as_uri()],
        capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    return told.stdout


def seen(written: Path, folder: Path, width: int) -> dict:
    """The findings of the script at that width."""
    looked = folder / f"looked-{width}.html"
    looked.write_text(written.read_text().replace("</body>", LOOK + "</body>"))
    shown = browse(looked, folder, f"--window-size={width},900", "--virtual-time-budget=20000", "--dump-dom")
    (found,) = re.findall(r"data-seen=\"([^\"]*)\"", shown[:100_000])
    return json.loads(unquote(found))


def rows_of(png: Path) -> tuple[int, list[bytes]]:
    """The width, and the filtered rows, of a picture of 8 bits and three or four channels."""
    content, at, packed = png.read_bytes(), 8, b""
    while at < len(content):
        length, kind = struct.unpack(">I4s", content[at : at + 8])
        data = content[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, _, color = struct.unpack(">IIBB", data[:10])
        if kind == b"IDAT":
            packed += data
        at += 12 + length
    step = 1 + width * {2: 3, 6: 4}[color]
    raw = zlib.decompress(packed)
    return width, [raw[row * step : (row + 1) * step] for row in range(height)]


@needs_browser
@pytest.mark.parametrize(("width", "narrow", "name"), [(PHONE, True, "phone"), (DESK, False, "desk")])
def test_the_page_fits_and_shows_all_pictures(
    written: Path, tmp_path: Path, width: int, narrow: bool, name: str
) -> None:
    found = seen(written, tmp_path, width)
    assert found["window"] == width
    assert found["page"] <= width, f"the page is {found['page']} wide"
    assert not found["outside"]
    chips = [image for image in found["images"] if image["scrolls"]]  # too wide for a phone
    assert len(chips) == 1 and len(found["images"]) >= 13
    for image in found["images"]:
        smallest = CHIP_PT if image["scrolls"] else draw.SMALLEST_PT
        assert image["loaded"] and pixels(smallest) * image["scale"] >= LEGIBLE, image
        assert image in chips or (image["narrow"] is narrow and image["width"] <= width), image
    assert found["hidden"] == (found["heads"] if narrow else 0)
    KEPT.mkdir(parents=True, exist_ok=True)
    shot = KEPT / f"{name}.png"
    height = min(found["height"], 12_000)
    browse(written, tmp_path, f"--window-size={width},{height}", f"--screenshot={shot}")
    across, rows = rows_of(shot)
    assert across == width and len(rows) == height
    assert len(set(rows)) > 500  # text and pictures, and no blank sheet


@needs_browser
def test_the_page_prints(written: Path, tmp_path: Path) -> None:
    """Tables that a click opens are on paper, and links to data are not; either would fail without its rule."""
    pages, data = printed(written, KEPT / "page.pdf", tmp_path)
    assert pages >= len(SHOWN) and data == 0
    closed, shown = tmp_path / "closed.html", "details::details-content"
    closed.write_text(written.read_text().replace(shown, "none").replace(".data { display: none; }", ""))
    fewer, data = printed(closed, tmp_path / "closed.pdf", tmp_path)
    assert fewer < pages and data > 0


def printed(address: Path, file: Path, folder: Path) -> tuple[int, int]:
    """Prints a page into a file; its sheets, and its links to data."""
    file.parent.mkdir(parents=True, exist_ok=True)
    browse(address, folder, "--no-pdf-header-footer", f"--print-to-pdf={file}")
    content = file.read_bytes()
    assert content.startswith(b"%PDF")
    return len(re.findall(rb"/Type ?/Page\b", content)), content.count(b"/URI (data:")


@needs_browser
def test_a_page_that_is_too_wide_is_noticed(written: Path, tmp_path: Path) -> None:
    """The check itself: a line that cannot wrap makes the page wider than its window."""
    wide = tmp_path / "wide.html"
    long = "<p style='white-space: nowrap'>" + "long " * 400 + "</p>"
    wide.write_text(written.read_text().replace("</body>", long + "</body>"))
    assert seen(wide, tmp_path, PHONE)["page"] > PHONE
