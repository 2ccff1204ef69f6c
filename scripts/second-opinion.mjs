// Measures the sessions study with cachedyno and with a PHP loop of the same operations in turn,
// block by block, and prints the ratios of the stores by both.
//
//   node scripts/second-opinion.mjs CACHEDYNO [BLOCKS] [SESSIONS] [inside|outside]
//
// CPUs are divided as cachedyno does on two: clients on 0, server on 1, clients of files on both.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [program, blocks = "6", sessions = "2000", drawing = "outside"] = process.argv.slice(2);
if (!program) throw new Error("give the path of the cachedyno program");
const loop = join(dirname(fileURLToPath(import.meta.url)), "session-loop.php");
const operations = ["write", "read", "change"];
const loads = [1, 8];
const work = mkdtempSync(join(process.cwd(), "second-opinion-"));
const sockets = mkdtempSync(join(tmpdir(), "so-"));
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function until(what, works) {
  for (let tries = 0; tries < 600; tries++) {
    if (works()) return;
    await sleep(50);
  }
  throw new Error(`${what} did not start`);
}

/** Starts a fresh server on CPU 1; gives the place for the loop, and how to end it. */
async function server(kind) {
  const dir = mkdtempSync(join(work, kind));
  if (kind === "files") return [dir, () => {}];
  const socket = join(mkdtempSync(join(sockets, "s")), "s");
  const pinned = (command, args) =>
    spawn("taskset", ["-c", "1", command, ...args], { stdio: "ignore" });
  if (kind === "redis") {
    const args = ["--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir];
    const child = pinned("redis-server", args);
    const ping = () => spawnSync("redis-cli", ["-s", socket, "ping"]).status === 0;
    await until("redis-server", ping);
    return [socket, () => end(child)];
  }
  const data = join(dir, "data");
  const install = ["--no-defaults", `--datadir=${data}`, "--skip-test-db"];
  const auth = "--auth-root-authentication-method=normal";
  execFileSync("mariadb-install-db", [...install, auth], { stdio: "ignore" });
  const args = ["--no-defaults", "--user=root", `--datadir=${data}`, `--socket=${socket}`];
  const child = pinned("mariadbd", [...args, "--skip-networking", "--innodb-buffer-pool-size=1G"]);
  const sql =
    "CREATE DATABASE IF NOT EXISTS so; CREATE TABLE IF NOT EXISTS so.sessions " +
    "(name VARCHAR(128) PRIMARY KEY, value TEXT, created TIMESTAMP NULL) ENGINE=InnoDB";
  const client = ["--no-defaults", "-u", "root", "-S", socket, "-e", sql];
  await until("mariadbd", () => spawnSync("mariadb", client).status === 0);
  return [`${socket}:so`, () => end(child)];
}

function end(child) {
  return new Promise((done) => {
    child.on("exit", done);
    child.kill("SIGKILL");
  });
}

/** Rates of the PHP loop by operation: all sessions from the first start to the last end. */
async function php(kind, clients) {
  const [place, stop] = await server(kind);
  const cpus = kind === "files" ? "0,1" : "0";
  const gate = mkdtempSync(join(work, "gate"));
  const one = (client) =>
    new Promise((done, fail) => {
      const which = [kind, place, sessions, String(client), String(clients), gate, drawing];
      const child = spawn("taskset", ["-c", cpus, "php", loop, ...which], { stdio: ["ignore", "pipe", "inherit"] });
      let text = "";
      child.stdout.on("data", (part) => (text += part));
      child.on("close", (code) => (code === 0 ? done(text) : fail(new Error(`php ended ${code}`))));
    });
  const lines = await Promise.all(Array.from({ length: clients }, (_, i) => one(i + 1)));
  await stop();
  const spans = lines.map((line) => line.trim().split(" ").map(Number));
  if (spans.some((s) => s[6] > 0)) throw new Error("the loop missed sessions");
  return operations.map((_, o) => {
    const begun = Math.min(...spans.map((s) => s[2 * o]));
    const ended = Math.max(...spans.map((s) => s[2 * o + 1]));
    return (clients * Number(sessions)) / (ended - begun);
  });
}

/** Rates of cachedyno: one block of all cells. */
function cachedyno() {
  const sets = ["profile=maxcluster-2019", `sessions=${sessions}`, `generation=${drawing}`];
  const counts = ["blocks_min=1", "blocks_max=1"];
  const args = ["run", "sessions", "--scale", "quick", "--format", "json", "--out", work];
  for (const set of [...sets, ...counts]) args.push("--set", set);
  const done = spawnSync(program, args, { cwd: work, encoding: "utf8", maxBuffer: 1 << 28 });
  const view = JSON.parse(done.stdout);
  return (kind, clients, operation) =>
    view.cells.find(
      (c) => c.target === kind && c.load.clients === clients && c.operation === operation,
    ).metrics.rate_per_s.center;
}

const kinds = ["files", "redis", "mysql"];
const logs = { php: {}, cachedyno: {} };
const note = (who, pair, value) => (logs[who][pair] ??= []).push(value);

try {
  for (let block = 0; block < Number(blocks); block++) {
    const own = cachedyno();
    const theirs = {};
    for (const clients of loads)
      for (const kind of kinds) theirs[`${kind}/${clients}`] = await php(kind, clients);
    for (const clients of loads)
      operations.forEach((operation, o) => {
        for (const other of ["files", "mysql"]) {
          const pair = `${operation}, ${clients} clients: redis / ${other}`;
          const loopRate = (kind) => theirs[`${kind}/${clients}`][o];
          note("php", pair, Math.log(loopRate("redis") / loopRate(other)));
          const ratio = own("redis", clients, operation) / own(other, clients, operation);
          note("cachedyno", pair, Math.log(ratio));
        }
        for (const kind of kinds) {
          const rate = Math.round(theirs[`${kind}/${clients}`][o]);
          const ours = Math.round(own(kind, clients, operation));
          console.error(`block ${block + 1} ${operation} ${clients} ${kind}: ${rate} ${ours}`);
        }
      });
  }
} finally {
  for (const made of [work, sockets]) rmSync(made, { recursive: true, force: true });
}

// Student's t for 95 %, by degrees of freedom.
const T = [NaN, 12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.2];
const interval = (values) => {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  const variance = values.reduce((a, b) => a + (b - mean) ** 2, 0) / (values.length - 1);
  const half = T[Math.min(values.length - 1, 11)] * Math.sqrt(variance / values.length);
  return [mean, mean - half, mean + half].map((x) => Math.exp(x).toFixed(2));
};
console.log(`values drawn ${drawing} the timer, ${sessions} sessions a client, ${blocks} blocks`);
console.log("operation                               PHP loop                cachedyno");
for (const pair of Object.keys(logs.php)) {
  const text = (who) => {
    const [center, lo, hi] = interval(logs[who][pair]);
    return `${center} [${lo}, ${hi}]`.padEnd(24);
  };
  console.log(`${pair.padEnd(40)}${text("php")}${text("cachedyno")}`);
}
