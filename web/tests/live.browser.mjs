// The live page in a real browser, through a whole run. Needs a built cachedyno, named by CACHEDYNO, with
// the page built in, and redis-server; Chromium as in browser.test.mjs. CACHEDYNO_SHOTS names a directory
// for screenshots.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { chromium } from "playwright-core";

const PATIENCE_MS = 60_000;
const directory = mkdtempSync(join(tmpdir(), "cachedyno-live-"));
let browser;

before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
});

after(async () => {
  await browser?.close();
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
});

/** A run in progress: its address, and its output at the end. */
async function started(more) {
  const run = spawn(process.env.CACHEDYNO, ["bench", "redis", ...more, "--serve", "127.0.0.1:0", "--out", join(directory, "records")], {
    cwd: directory,
    // Allow other measurements on this machine.
    env: { ...process.env, TMPDIR: directory },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  const ended = new Promise((done) => run.on("exit", (code) => done({ code, said })));
  const address = await new Promise((found, failed) => {
    run.stderr.on("data", (bytes) => {
      said += bytes;
      const match = /watch it live: (http:\/\/\S+)/.exec(said);
      if (match) found(match[1]);
    });
    run.on("exit", () => failed(new Error(said)));
  });
  return { address, ended, kill: () => run.kill("SIGKILL") };
}

/** A separate page, with its console messages and errors. */
async function opened(address, { width = 1280, colorScheme = "light" } = {}) {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
  page.setDefaultTimeout(PATIENCE_MS);
  const said = [];
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(error.message));
  await page.goto(address);
  return { page, said };
}

async function picture(page, name) {
  const shots = process.env.CACHEDYNO_SHOTS;
  if (shots) await page.screenshot({ path: join(shots, `live-${name}.png`), fullPage: true });
}

const overflow = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

describe("a run in progress", () => {
  it("is followed from start to report", async () => {
    const run = await started(["--stages", "3s:2000,3s:4000", "--warmup", "200ms", "--blocks", "2", "--keys", "2000", "--clients", "4"]);
    const { page, said } = await opened(run.address);
    const narrow = await opened(run.address, { width: 390, colorScheme: "dark" });
    const status = page.locator("[role=status]");
    await page.locator("#live-rate svg path[stroke-dasharray]").first().waitFor();
    await page.waitForFunction(() => /phase mixed, stage 2/.test(document.querySelector("[role=status]")?.textContent ?? ""));
    assert.match(await status.innerText(), /running/);
    assert.match(await page.locator(".facts").first().innerText(), /Block\s+1/);
    for (const chart of ["#live-rate", "#live-latency"]) {
      const legend = await page.locator(`${chart} .legend button`).allInnerTexts();
      assert.ok(legend.some((name) => name.startsWith("redis")), `${chart}: ${legend}`);
    }
    for (const [name, shown] of [["1280-light", page], ["390-dark", narrow.page]]) {
      assert.equal(await overflow(shown), 0, `${name} scrolls sideways`);
      await picture(shown, name);
    }
    assert.equal(await narrow.page.locator("html").getAttribute("data-theme"), "dark");
    // The program exits only once its readers have the report.
    await page.locator("a#report").waitFor();
    const { code, said: output } = await run.ended;
    assert.ok(code === 0 || code === 4, `exit code ${code}: ${output}`);
    assert.match(await status.innerText(), /complete\s+The run is over/);
    assert.match(await page.locator("#now .validity .chip").innerText(), code === 0 ? /VALID|UNREPLICATED/ : /INVALID|NOT-STEADY/);
    assert.deepEqual(said, [], "the page wrote to the console");
    await picture(page, "ended");
    await page.locator("a#report").click();
    await page.locator("#answer h1").waitFor();
    assert.match(await page.title(), /Key-value load/);
    assert.ok((await page.locator("#ramps table").count()) > 0, "the report has no ramp");
    await page.close();
    await narrow.page.close();
  });

  it("rejects a reader beyond the maximum, and shows the run once another has left", async () => {
    const run = await started(["--duration", "60s", "--blocks", "1", "--keys", "2000", "--clients", "4"]);
    const others = new AbortController();
    const read = () => fetch(new URL("/events", run.address), { signal: others.signal });
    const answers = await Promise.all(Array.from({ length: 64 }, read));
    assert.ok(answers.every((answer) => answer.status === 200));
    const { page } = await opened(run.address);
    const stands = (word) => page.waitForFunction((w) => document.querySelector("[role=status]")?.textContent?.includes(w), word);
    await stands("too many readers");
    assert.match(await page.locator("#now").innerText(), /once another reader has left/);
    others.abort();
    await stands("running");
    await page.close();
    run.kill();
    await run.ended;
  });

  it("says so when the program is gone", async () => {
    const run = await started(["--duration", "60s", "--blocks", "1", "--keys", "2000", "--clients", "4"]);
    const { page } = await opened(run.address);
    await page.waitForFunction(() => /running/.test(document.querySelector("[role=status]")?.textContent ?? ""));
    run.kill();
    await run.ended;
    await page.waitForFunction(() => /connection lost/.test(document.querySelector("[role=status]")?.textContent ?? ""));
    assert.match(await page.locator("#now").innerText(), /does not answer/);
    await page.close();
  });
});
