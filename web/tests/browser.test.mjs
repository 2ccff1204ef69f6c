// The built page in a real browser. Needs dist/page.html (npm run build) and Chromium: CHROMIUM names
// its executable, default /usr/bin/chromium. CACHEDYNO_REPORT names an additional report to test;
// CACHEDYNO_SHOTS names a directory for screenshots.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { sheetOf } from "./sheets.mjs";
import * as variants from "./variants.mjs";

const TEMPLATE = join(import.meta.dirname, "../dist/page.html");
const PLACEHOLDER = '<script type="application/json" id="cachedyno-view">{"placeholder":true}</script>';
const template = readFileSync(TEMPLATE, "utf8");
const directory = mkdtempSync(join(tmpdir(), "cachedyno-page-"));
let browser;

before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
});

after(async () => {
  await browser?.close();
  rmSync(directory, { recursive: true });
});

/** A page with an embedded view, as the crate `report` writes it. */
function written(name, view) {
  const whole = view.targets === undefined ? view : { ...view, sheet: sheetOf(view) };
  const escaped = JSON.stringify(whole).replace(
    /[<>&\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  const path = join(directory, `${name}.html`);
  writeFileSync(path, template.replace('{"placeholder":true}', () => escaped));
  return path;
}

/** Opens a file and passes it to `look`; requests and console messages of the page are failures. */
async function open(path, look, { width = 1280, height = 900, colorScheme = "light" } = {}) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme });
  const asked = [];
  const said = [];
  page.on("request", (request) => asked.push(request.url()));
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(error.message));
  await page.goto(pathToFileURL(path).href);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const result = await look(page);
  await page.close();
  const others = asked.filter((url) => url !== pathToFileURL(path).href && !url.startsWith("data:"));
  assert.deepEqual(others, [], "the page made network requests");
  assert.deepEqual(said, [], "the page wrote to the console");
  return result;
}

const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

/** Milliseconds until the tables exist, and until the charts are drawn. */
async function openTimes(page) {
  await page.waitForFunction(() => [...document.querySelectorAll(".canvas")].every((c) => c.querySelector("svg")));
  return page.evaluate(() => [performance.getEntriesByType("navigation")[0].domComplete, performance.now()]);
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];

/** Moves the pointer over a chart until its tooltip appears; returns its text, or null. */
async function tooltip(page, chart) {
  const canvas = page.locator(`${chart} .canvas`);
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  for (const x of [0.15, 0.3, 0.5, 0.7, 0.85]) {
    for (const y of [0.85, 0.6, 0.4]) {
      await page.mouse.move(box.x + box.width * x, box.y + box.height * y);
      await page.waitForTimeout(60);
      const shown = await page.locator(`${chart} .tip:visible`).allInnerTexts();
      if (shown.length > 0) return shown[0];
    }
  }
  return null;
}

const drawing = (page, chart) => page.locator(`${chart} svg`).evaluate((svg) => svg.outerHTML);

async function zoomRoundTrip(page, chart) {
  await page.mouse.move(0, 0);
  const whole = await drawing(page, chart);
  await page.locator(`${chart} .zoom button`, { hasText: "+" }).click();
  const closer = await drawing(page, chart);
  assert.notEqual(closer, whole, `${chart}: + changed nothing`);
  await page.locator(`${chart} .canvas`).scrollIntoViewIfNeeded();
  const box = await page.locator(`${chart} .canvas`).boundingBox();
  // Above the middle, where the tallest part of a chart is: labels of events are above it, other axes below.
  await page.mouse.move(box.x + box.width / 2, box.y + box.height * 0.4);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -240);
  await page.keyboard.up("Control");
  await page.waitForTimeout(150);
  await page.mouse.move(0, 0);
  await page.waitForTimeout(150);
  assert.notEqual(await drawing(page, chart), closer, `${chart}: Ctrl and the wheel changed nothing`);
  await page.locator(`${chart} .zoom button`, { hasText: "Reset" }).click();
  await page.mouse.move(0, 0);
  await page.waitForTimeout(150);
  // The library may draw labels of events in another order.
  const axis = (svg) => [...svg.matchAll(/<text[^>]*>([^<]*)</g)].map((m) => m[1]).sort();
  assert.deepEqual(axis(await drawing(page, chart)), axis(whole), `${chart}: reset did not bring all back`);
}

describe("the template", () => {
  it("is one file with the placeholder once, before the script", () => {
    assert.equal(template.split(PLACEHOLDER).length, 2);
    assert.ok(template.indexOf(PLACEHOLDER) < template.indexOf('<script type="module"'));
    assert.ok(template.length < 700 * 1024, `${template.length} bytes`);
    assert.ok(!/<(script|link|img)[^>]+(src|href)="(?!data:)/.test(template), "something is loaded from elsewhere");
  });

  it("says that it is a template", async () => {
    const text = await open(TEMPLATE, (page) => page.locator("body").innerText());
    assert.match(text, /^This is the template of a cachedyno report/);
  });

  it("explains data that it cannot read", async () => {
    const path = written("future", { format: 99 });
    const text = await open(path, (page) => page.locator("body").innerText());
    assert.match(text, /the data has format `99`, expected 1/);
  });
});

const reports = [["fixture", () => written("fixture", variants.sessions())]];
if (process.env.CACHEDYNO_REPORT) reports.push(["real report", () => resolve(process.env.CACHEDYNO_REPORT)]);

for (const [name, path] of reports) {
  describe(`the ${name}`, () => {
    it("opens fast", async () => {
      const times = [];
      for (let i = 0; i < 3; i += 1) times.push(await open(path(), openTimes));
      const [complete, drawn] = [0, 1].map((i) => median(times.map((pair) => pair[i])));
      console.log(`${name}: complete after ${complete.toFixed(0)} ms, drawn after ${drawn.toFixed(0)} ms (median of 3)`);
      // The machine may be busy: this limit only detects a hanging page.
      assert.ok(complete < 10_000, `${complete} ms`);
    });

    for (const width of [1280, 390]) {
      for (const colorScheme of ["light", "dark"]) {
        it(`fits ${width} pixels, ${colorScheme}`, async () => {
          await open(path(), async (page) => {
            assert.equal(await overflow(page), 0, "the body scrolls sideways");
            assert.equal(await page.locator("html").getAttribute("data-theme"), colorScheme);
            const shots = process.env.CACHEDYNO_SHOTS;
            if (shots) await page.screenshot({ path: join(shots, `${name}-${width}-${colorScheme}.png`), fullPage: true });
          }, { width, colorScheme });
        });
      }
    }

    it("shows values on hover, with units", async () => {
      await open(path(), async (page) => {
        assert.match(await tooltip(page, "#chart-rates"), /[\d,]+ operations\/s/);
        assert.match(await tooltip(page, "#chart-latency"), /\d (ns|µs|ms|s)\b/);
        assert.match(await tooltip(page, "#chart-time"), /after .* s[^]*[\d,]+ operations\/s/);
      });
    });

    it("zooms in and out", async () => {
      await open(path(), async (page) => {
        for (const chart of ["#chart-latency", "#chart-time"]) {
          await page.locator(`${chart} .canvas`).scrollIntoViewIfNeeded();
          await zoomRoundTrip(page, chart);
        }
      });
    });

    it("has headings in order", async () => {
      const levels = await open(path(), (page) =>
        page.locator("h1, h2, h3").evaluateAll((all) => all.map((e) => Number(e.tagName[1]))),
      );
      assert.equal(levels.filter((level) => level === 1).length, 1);
      levels.reduce((last, level) => (assert.ok(level <= last + 1, `h${level} after h${last}`), level), 0);
    });
  });
}

describe("controls", () => {
  const fixture = () => written("fixture", variants.sessions());

  it("change and remember the theme", async () => {
    await open(fixture(), async (page) => {
      const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const before = await ground();
      const chart = await drawing(page, "#chart-rates");
      await page.locator(".theme-toggle").click();
      assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
      assert.notEqual(await ground(), before);
      assert.notEqual(await drawing(page, "#chart-rates"), chart, "the chart kept its colours");
      await page.reload();
      assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
    });
  });

  it("choose a load by keyboard and hide a store", async () => {
    await open(fixture(), async (page) => {
      const chart = "#chart-rates";
      const first = await drawing(page, chart);
      await page.locator(`${chart} select`).focus();
      await page.keyboard.press("ArrowDown");
      const second = await drawing(page, chart);
      assert.notEqual(second, first, "the other load looks the same");
      const mysql = page.locator(`${chart} .legend button`, { hasText: "mysql" });
      await mysql.focus();
      await page.keyboard.press("Enter");
      assert.equal(await mysql.getAttribute("aria-pressed"), "false");
      assert.ok((await drawing(page, chart)).length < second.length, "the store is still drawn");
    });
  });

  it("choose a block by its number, even if a store lacks that block", async () => {
    await open(written("missing", variants.missingBlock()), async (page) => {
      const blocks = page.locator("#chart-time select[aria-label=Block]");
      await blocks.selectOption("block 2");
      const second = await tooltip(page, "#chart-time");
      assert.match(second, /redis/);
      assert.doesNotMatch(second, /files/);
      await blocks.selectOption("block 3");
      assert.match(await tooltip(page, "#chart-time"), /files/);
    });
  });

  it("show hits over time only if reads missed", async () => {
    await open(written("caches", variants.caches()), async (page) => {
      const tip = await tooltip(page, "#chart-hits");
      assert.match(tip, /[\d.]+ % of reads hit/);
      assert.doesNotMatch(tip, /files/);
    });
    await open(fixture(), async (page) => assert.equal(await page.locator("#chart-hits").count(), 0));
  });

  it("change weights by keyboard, and reset them", async () => {
    await open(fixture(), async (page) => {
      const stores = () => page.locator("#weights .order").first().locator("tbody th .target").allInnerTexts();
      assert.deepEqual(await stores(), ["files", "redis", "mysql"]);
      const slider = page.locator("#weights input[type=range]").nth(1);
      await slider.focus();
      await page.keyboard.press("Home");
      assert.equal(await page.locator("#weight-read").inputValue(), "0");
      assert.deepEqual(await stores(), ["redis", "files", "mysql"]);
      await page.keyboard.press("ArrowRight");
      assert.equal(await page.locator("#weight-read").inputValue(), "0.01");
      const colour = (name) => page.locator(`#weights [data-target=${name}]`).first().evaluate((e) => e.style.getPropertyValue("--target"));
      assert.notEqual(await colour("redis"), await colour("files"));
      await page.locator("#weights button").focus();
      await page.keyboard.press("Enter");
      assert.deepEqual(await stores(), ["files", "redis", "mysql"]);
    });
  });

  it("show the scroll hint only for wide tables", async () => {
    for (const [width, shown] of [[1280, false], [390, true]]) {
      await open(fixture(), async (page) => {
        if (shown) await page.locator(".fold > summary").first().click();
        const box = page.locator(".scroll").first();
        assert.equal(await box.evaluate((e) => e.scrollWidth > e.clientWidth), shown);
        assert.equal(await page.locator(".scroll-hint").first().isVisible(), shown);
      }, { width });
    }
  });

  it("fit the result tables of common runs on a wide page", async () => {
    for (const name of ["sessions", "alone", "killed", "manyProfiles", "caches", "oneBlock"]) {
      await open(written(name, variants[name]()), async (page) => {
        const wide = await page.locator(".scroll > .numbers").evaluateAll((all) => all.map((t) => t.scrollWidth - t.parentElement.clientWidth));
        assert.ok(wide.length > 0 && wide.every((pixels) => pixels <= 0), `${name}: ${wide}`);
      });
    }
  });

  it("fold long tables on a narrow page, and open them on demand, on a wide page and in print", async () => {
    await open(fixture(), async (page) => {
      const folds = page.locator("details.fold");
      const closed = () => page.locator("details.fold:not([open])").count();
      assert.ok((await folds.count()) >= 5);
      assert.equal(await closed(), await folds.count());
      const height = () => page.evaluate(() => document.documentElement.scrollHeight);
      const folded = await height();
      await folds.first().locator("summary").click();
      assert.equal(await page.locator(".numbers").first().isVisible(), true);
      await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
      assert.equal(await closed(), 0);
      assert.ok((await height()) > folded * 1.5, `${folded} of ${await height()}`);
      await page.setViewportSize({ width: 390, height: 901 });
      await page.setViewportSize({ width: 1280, height: 900 });
      assert.equal(await closed(), 0);
      assert.equal(await folds.first().locator("summary").isVisible(), false);
    }, { width: 390 });
    await open(fixture(), async (page) => assert.equal(await page.locator("details.fold:not([open])").count(), 0));
  });

  it("label 100 % on the hits axis, and leave room above", async () => {
    await open(written("caches", variants.caches()), async (page) => {
      await page.locator("#chart-hits .canvas").scrollIntoViewIfNeeded();
      const [whole, none] = await page.locator("#chart-hits svg").evaluate((svg) => {
        const label = (text) => [...svg.querySelectorAll("text")].find((t) => t.textContent === text)?.getBoundingClientRect();
        return [label("100 %"), label("0 %")].map((box) => box && box.y + box.height / 2);
      });
      const top = (await page.locator("#chart-hits .canvas").boundingBox()).y;
      assert.ok(whole !== undefined && none !== undefined && whole < none, `${whole} ${none}`);
      assert.ok(whole > top + 30, "the line at 100 % is at the edge");
    });
  });

  it("draw comparable bars even if blocks differ widely", async () => {
    await open(written("wide", variants.wideBlocks()), async (page) => {
      await page.locator("#chart-rates .canvas").scrollIntoViewIfNeeded();
      const labels = await page.locator("#chart-rates svg text").allTextContents();
      assert.ok(labels.some((text) => /^\d+k$/.test(text)) && !labels.some((text) => /[MG]$/.test(text)), labels.join(" "));
      assert.match(await page.locator("#chart-rates .chart-note").innerText(), /exceeds twice its bar/);
      assert.match(await tooltip(page, "#chart-rates"), /range of blocks <.*>/);
    });
  });

  it("draw the same at a width after any resize", async () => {
    const parts = (page) => page.locator("#chart-rates svg path").evaluateAll((all) => all.map((path) => {
      const { x, width } = path.getBoundingClientRect();
      return `${Math.round(x)} ${Math.round(width)}`;
    }).toSorted());
    const first = await open(fixture(), parts, { width: 390 });
    const later = await open(fixture(), async (page) => {
      await page.setViewportSize({ width: 390, height: 900 });
      await page.waitForTimeout(300);
      return parts(page);
    });
    assert.deepEqual(later, first);
  });

  it("offer only operations of the chosen load", async () => {
    await open(written("many", variants.manyProfiles()), async (page) => {
      const load = page.locator("#chart-latency select[aria-label=Load]");
      await load.selectOption("shop-page · 8 clients on one session");
      const operations = page.locator("#chart-latency select[aria-label=Operation] option");
      assert.deepEqual(await operations.allInnerTexts(), ["page", "open within page", "close within page"]);
      assert.match(await page.locator("#chart-locks").innerText(), /Waiting for a session's lock/);
    });
  });
});

describe("events", () => {
  for (const width of [1280, 390]) {
    it(`are at their times with readable labels, at ${width} pixels`, async () => {
      await open(written("killed", variants.killed()), async (page) => {
        const canvas = page.locator("#chart-time .canvas");
        await canvas.scrollIntoViewIfNeeded();
        const all = await page.locator("#chart-time svg text").evaluateAll((texts) => texts.map((text) => ({ said: text.textContent, ...text.getBoundingClientRect().toJSON() })));
        const words = all.filter(({ said }) => /killed|primary|attached/.test(said));
        assert.equal(words.length, 5, all.map(({ said }) => said).join(", "));
        const box = await canvas.boundingBox();
        const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom - 1 && b.top < a.bottom - 1;
        for (const [i, one] of words.entries()) {
          assert.ok(one.left >= box.x && one.right <= box.x + box.width && one.top >= box.y - 1, `${one.said} leaves the chart`);
          for (const other of all) assert.ok(other === one || !overlap(one, other), `${one.said} overlaps ${other.said}`);
          assert.ok(!words.slice(i + 1).some((other) => overlap(one, other)));
        }
        assert.match(await page.locator("#chart-time .chart-note").innerText(), /Vertical lines: events in the first block/);
        await page.locator("#chart-time .legend button").first().click();
        assert.equal(await page.locator("#chart-time svg text", { hasText: "killed" }).count(), 0, "a hidden store's events stay");
        const shots = process.env.CACHEDYNO_SHOTS;
        if (shots) await page.screenshot({ path: join(shots, `killed-${width}.png`), fullPage: true });
      }, { width });
    });
  }

  it("are separated from the table of statistics", async () => {
    await open(written("killed", variants.killed()), async (page) => {
      const [numbers, events] = await page.locator("#facts table, #facts h3").evaluateAll((parts) => parts.map((t) => t.getBoundingClientRect().toJSON()));
      assert.ok(events.top - numbers.bottom > 20, `${events.top - numbers.bottom} pixels`);
    });
  });
});

describe("the time line of a fault", () => {
  const written_ = () => written("failed-over", variants.failedOver());
  for (const [width, colorScheme] of [[1280, "light"], [390, "dark"]]) {
    it(`has clients, servers and roles on one axis, at ${width} pixels, ${colorScheme}`, async () => {
      await open(written_(), async (page) => {
        const chart = page.locator("#chart-failover");
        await chart.locator(".canvas").scrollIntoViewIfNeeded();
        const texts = await chart.locator("svg text").allTextContents();
        for (const quantity of ["operations/s", "p99", "failed/s", "CPU of each server", "role of each server"]) assert.ok(texts.includes(quantity), `${quantity}: ${texts.join(", ")}`);
        for (const name of [":13500", ":13501", ":13502", "80 %"]) assert.ok(texts.includes(name), `${name}: ${texts.join(", ")}`);
        for (const role of ["primary", "gone", "Sentinel"]) assert.ok(texts.includes(role), `${role}: ${texts.join(", ")}`);
        assert.ok(texts.some((text) => text.startsWith(":13501 promoted to primary in place of")), texts.join(", "));
        const note = await chart.locator(".chart-note").innerText();
        assert.match(note, /:13500: primary until 3\.00 s, gone until 7\.10 s, not in sync until 9\.97 s, then replica\./);
        assert.equal(await chart.locator("select[aria-label=Block]").inputValue(), "block 3 (worst)");
        assert.equal(await overflow(page), 0);
        const shots = process.env.CACHEDYNO_SHOTS;
        if (shots) await chart.screenshot({ path: join(shots, `failover-${width}.png`) });
      }, { width, colorScheme });
    });
  }

  it("tells roles and CPU use at a time, and shows another block by keyboard", async () => {
    await open(written_(), async (page) => {
      const told = await tooltip(page, "#chart-failover");
      assert.match(told, /operations\/s/);
      assert.match(told, /(primary|gone|replica)/);
      await page.locator("#chart-failover select[aria-label=Block]").focus();
      const first = await drawing(page, "#chart-failover");
      await page.keyboard.press("ArrowDown");
      assert.notEqual(await drawing(page, "#chart-failover"), first, "the other block looks the same");
      await zoomRoundTrip(page, "#chart-failover");
    });
  });
});

describe("the heat map of a grid", () => {
  for (const [width, colorScheme] of [[1280, "light"], [390, "dark"]]) {
    it(`has readable figures and selectors for axes, at ${width} pixels, ${colorScheme}`, async () => {
      await open(written("gridded", variants.gridded()), async (page) => {
        const chart = page.locator("#chart-heatmap");
        assert.equal(await overflow(page), 0);
        assert.match(await chart.locator("tbody").innerText(), /not measured/);
        const figures = () => chart.locator("tbody td").allInnerTexts();
        const before = await figures();
        assert.equal(before.length, 9);
        assert.ok(before.every((text) => /^(not measured|[\d.,]+( k| M)?(\/s)?)$/.test(text)), before.join(", "));
        await chart.locator("select[aria-label=Figure]").selectOption("p99");
        assert.ok((await figures()).some((text) => /(µs|ms)$/.test(text)));
        await chart.locator("select[aria-label=Rows]").focus();
        await page.keyboard.press("ArrowDown");
        assert.deepEqual(await chart.locator("tbody th").allInnerTexts(), ["1", "50", "500"]);
        const colours = await chart.locator("tbody td").evaluateAll((cells) => cells.map((cell) => getComputedStyle(cell).backgroundColor));
        assert.ok(new Set(colours).size > 3, colours.join(", "));
        assert.equal(await chart.locator(".legend button").count(), 3);
        await zoomRoundTrip(page, "#chart-heatmap");
        const shots = process.env.CACHEDYNO_SHOTS;
        if (shots) await chart.screenshot({ path: join(shots, `heatmap-${width}.png`) });
      }, { width, colorScheme });
    });
  }
});

describe("paper", () => {
  it("has the study's weights and no controls", async () => {
    await open(written("paper", variants.sessions()), async (page) => {
      await page.locator("#weight-read").fill("0");
      await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
      await page.emulateMedia({ media: "print" });
      assert.equal(await page.locator("#weight-read").inputValue(), "0.7");
      assert.equal(await page.locator("#weights input[type=range]:visible, #weights button:visible").count(), 0);
      assert.equal(await page.locator(".scroll-hint:visible").count(), 0);
    }, { width: 690 });
  });
});

describe("growth", () => {
  it("is a chart with a table for the chosen operation", async () => {
    await open(written("grown", variants.grown()), async (page) => {
      const chart = "#chart-growth";
      assert.match(await tooltip(page, chart), /records[^]*\d (ns|µs|ms|s)\b[^]*75 of a tag/);
      const operation = page.locator(`${chart} select[aria-label=Operation]`);
      const slopes = () => page.locator(`${chart} td[data-label=Slope]`).allInnerTexts();
      const first = await drawing(page, chart);
      const [before] = await slopes();
      await operation.focus();
      await page.keyboard.press("ArrowDown");
      assert.notEqual((await slopes())[0], before, "the table kept its slopes");
      assert.notEqual(await drawing(page, chart), first, "the chart kept its lines");
      const mysql = page.locator(`${chart} .legend button`, { hasText: "mysql" });
      const all = await drawing(page, chart);
      await mysql.focus();
      await page.keyboard.press("Enter");
      assert.ok((await drawing(page, chart)).length < all.length, "the store is still drawn");
      await mysql.press("Enter");
      await zoomRoundTrip(page, chart);
      const name = page.locator(`${chart} .growth-table .target`).first();
      assert.match(await name.evaluate((e) => e.style.getPropertyValue("--target")), /^#/, "a name without its colour");
    });
  });

  it("is absent without sizes", async () => {
    await open(written("fixture", variants.sessions()), async (page) => {
      assert.equal(await page.locator("#chart-growth").count(), 0);
    });
  });
});

describe("ramps", () => {
  it("have charts of latency by rate and over time, in both themes", async () => {
    for (const colorScheme of ["light", "dark"]) {
      for (const width of [1280, 390]) {
        await open(written("ramps", variants.ramps()), async (page) => {
          assert.equal(await overflow(page), 0);
          await page.locator("details").evaluateAll((all) => all.forEach((e) => (e.open = true)));
          assert.equal(await overflow(page), 0, "with open tables");
          const shots = process.env.CACHEDYNO_SHOTS;
          if (shots) await page.screenshot({ path: join(shots, `ramps-${width}-${colorScheme}.png`), fullPage: true });
        }, { width, colorScheme });
      }
    }
  });

  it("show the values of all panels at the same time", async () => {
    await open(written("ramps", variants.ramps()), async (page) => {
      assert.match(await tooltip(page, "#chart-ramp"), /redis[^]* at [\d.]+k\/s/);
      const all = await tooltip(page, "#chart-saturation");
      assert.match(all, /after [\d.]+ s/);
      assert.match(all, /p99[^]*\d (µs|ms)[^]*answered[^]*server[^]*MiB/);
      const store = page.locator("#chart-saturation select[aria-label=Store]");
      const before = await drawing(page, "#chart-saturation");
      await store.focus();
      await page.keyboard.press("ArrowDown");
      assert.notEqual(await drawing(page, "#chart-saturation"), before, "the other store looks the same");
      await page.locator("#chart-saturation select[aria-label=Block]").selectOption("block 2");
      assert.match(await page.locator("#chart-saturation .chart-note").innerText(), /not drawn for this block/);
    });
  });

  it("of two hours open quickly and stay small", async () => {
    const path = written("long", variants.longRamps());
    const size = readFileSync(path).length;
    const times = [];
    for (let i = 0; i < 3; i += 1) times.push(await open(path, openTimes));
    const complete = median(times.map(([time]) => time));
    console.log(`two hours of ramps: ${(size / 1e6).toFixed(2)} MB, complete after ${complete.toFixed(0)} ms (median of 3)`);
    assert.ok(size < 3_000_000, `${size} bytes`);
    assert.ok(complete < 10_000, `${complete} ms`);
  });

  it("show the probes of a search", async () => {
    await open(written("searched", variants.searched()), async (page) => {
      assert.match(await tooltip(page, "#chart-search"), /probe \d, /);
      await zoomRoundTrip(page, "#chart-search");
      const shots = process.env.CACHEDYNO_SHOTS;
      if (shots) await page.locator("#chart-search").screenshot({ path: join(shots, "search.png") });
    });
  });
});

describe("hard views", () => {
  const hard = { ...variants };
  delete hard.HOSTILE;
  for (const [name, make] of Object.entries(hard)) {
    it(`${name} fits both widths without console messages`, async () => {
      const path = written(name, make());
      for (const width of [1280, 390]) {
        await open(path, async (page) => assert.equal(await overflow(page), 0), { width });
      }
    });
  }

  it("does not execute scripts in names", async () => {
    await open(written("hostile", variants.hostile()), async (page) => {
      for (const chart of ["#chart-rates", "#chart-latency", "#chart-time"]) await tooltip(page, chart);
      assert.equal(await page.evaluate(() => globalThis.hit), undefined);
      assert.equal(await page.locator("img").count(), 0);
    });
  });

  it("prints completely and in the light theme, also from the dark one", async () => {
    await open(written("print", variants.sessions()), async (page) => {
      await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
      assert.equal(await page.locator("html").getAttribute("data-theme"), "light");
      assert.equal(await page.locator("details:not([open])").count(), 0);
      await page.emulateMedia({ media: "print" });
      assert.equal(await overflow(page), 0, "paper of A4 is too narrow");
      await page.evaluate(() => dispatchEvent(new Event("afterprint")));
      assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
    }, { colorScheme: "dark", width: 690 });
  });
});
