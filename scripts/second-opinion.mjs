// Measures the sessions study with cachedyno and with an equivalent PHP loop, alternating on the same
// fresh servers, and prints the ratios between stores by both.
//
//   node scripts/second-opinion.mjs CACHEDYNO [BLOCKS] [SESSIONS] [inside|outside]
//
// CPUs are divided as cachedyno does on two: clients on 0, server on 1, clients of files on both.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
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

/** Starts a server on CPU 1: its place for the loop, its target, and functions to empty and stop it. */
async function server(kind) {
  if (kind === "files") {
    const clear = (place) => rmSync(place, { recursive: true });
    const place = freshPlace();
    return { place, target: "files", empty: () => {}, stop: () => clear(place) };
  }
  const dir = mkdtempSync(join(work, kind));
  const socket = join(mkdtempSync(join(sockets, "s")), "s");
  const pinned = (command, args) =>
    spawn("taskset", ["-c", "1", command, ...args], { stdio: "ignore" });
  if (kind === "redis") {
    const args = ["--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir];
    const child = pinned("redis-server", args);
    const ask = (what) => spawnSync("redis-cli", ["-s", socket, what]).status === 0;
    await until("redis-server", () => ask("ping"));
    const target = `redis=redis+unix://${socket}`;
    return { place: socket, target, empty: () => ask("flushall"), stop: () => end(child) };
  }
  const data = join(dir, "data");
  const install = ["--no-defaults", `--datadir=${data}`, "--skip-test-db"];
  const auth = "--auth-root-authentication-method=normal";
  execFileSync("mariadb-install-db", [...install, auth], { stdio: "ignore" });
  const args = ["--no-defaults", "--user=root", `--datadir=${data}`, `--socket=${socket}`];
  const child = pinned("mariadbd", [...args, "--skip-networking", "--innodb-buffer-pool-size=1G"]);
  const client = ["--no-defaults", "-u", "root", "-S", socket, "-e"];
  const say = (sql) => spawnSync("mariadb", [...client, sql]).status === 0;
  const sql =
    "CREATE DATABASE IF NOT EXISTS own; CREATE DATABASE IF NOT EXISTS so; " +
    "CREATE TABLE IF NOT EXISTS so.sessions " +
    "(name VARCHAR(128) PRIMARY KEY, value TEXT, created TIMESTAMP NULL) ENGINE=InnoDB";
  await until("mariadbd", () => say(sql));
  const empty = () => say("TRUNCATE so.sessions");
  const target = `mysql=mysql+unix://${socket}?database=own&user=root`;
  return { place: `${socket}:so`, target, empty, stop: () => end(child) };
}

/** The fastest of eight directories spread over an ext4 disk, as cachedyno chooses it. */
function freshPlace() {
  const top = mkdtempSync(join(work, "files"));
  spawnSync("chattr", ["+T", top]);
  const probe = () => {
    const place = mkdtempSync(join(top, "p"));
    const begun = performance.now();
    for (let n = 0; n < 16; n++) writeFileSync(join(place, `probe${n}`), "");
    return { place, took: performance.now() - begun };
  };
  const tried = Array.from({ length: 8 }, probe).sort((a, b) => a.took - b.took);
  for (let n = 0; n < 16; n++) rmSync(join(tried[0].place, `probe${n}`));
  return tried[0].place;
}

function end(child) {
  return new Promise((done) => {
    child.on("exit", done);
    child.kill("SIGKILL");
  });
}

/** Microseconds per operation in the PHP loop, from the first start to the last end. */
async function php(kind, place, clients) {
  const cpus = kind === "files" ? "0,1" : "0";
  const gate = mkdtempSync(join(work, "gate"));
  const one = (client) =>
    new Promise((done, fail) => {
      const which = [kind, place, sessions, String(client), String(clients), gate, drawing];
      const command = ["-c", cpus, "php", loop, ...which];
      const child = spawn("taskset", command, { stdio: ["ignore", "pipe", "inherit"] });
      let text = "";
      child.stdout.on("data", (part) => (text += part));
      child.on("close", (code) => (code === 0 ? done(text) : fail(new Error(`php ended ${code}`))));
    });
  const lines = await Promise.all(Array.from({ length: clients }, (_, i) => one(i + 1)));
  const spans = lines.map((line) => line.trim().split(" ").map(Number));
  if (spans.some((s) => s[6] > 0)) throw new Error("the loop missed sessions");
  const each = 1e6 / (clients * Number(sessions));
  return operations.map((_, o) => {
    const begun = Math.min(...spans.map((s) => s[2 * o]));
    const ended = Math.max(...spans.map((s) => s[2 * o + 1]));
    return (ended - begun) * each;
  });
}

/** Microseconds per operation with cachedyno, from one block. */
function cachedyno(kind, target, clients) {
  const sets = ["profile=maxcluster-2019", `sessions=${sessions}`, `generation=${drawing}`];
  sets.push("blocks_min=1", "blocks_max=1", `clients=${clients}`);
  const args = ["run", "sessions", "--scale", "quick", "--format", "json", "--out", work];
  args.push("--target", target, ...sets.flatMap((set) => ["--set", set]));
  const cpus = kind === "files" ? "0,1" : "0";
  const settings = { cwd: work, encoding: "utf8", maxBuffer: 1 << 28 };
  const done = spawnSync("taskset", ["-c", cpus, program, ...args], settings);
  // 4: measured but not valid, for example because of steal, which affects both sides here.
  if (![0, 4].includes(done.status)) throw new Error(`cachedyno: ${done.status} ${done.stderr}`);
  const { cells, reasons } = JSON.parse(done.stdout);
  for (const reason of reasons) console.error(`cachedyno on ${kind}: ${reason}`);
  const rate = (name) => cells.find((c) => c.operation === name).metrics.rate_per_s.center;
  return operations.map((name) => 1e6 / rate(name));
}

const kinds = ["files", "redis", "mysql"];
const logs = {};
const note = (pair, who, value) => ((logs[pair] ??= {})[who] ??= []).push(value);

/** Measures both on the same server, alternating which one goes first. */
async function both(kind, clients, block) {
  const { place, target, empty, stop } = await server(kind);
  const ways = [
    ["php", () => php(kind, place, clients)],
    ["cachedyno", () => cachedyno(kind, target, clients)],
  ];
  if (block % 2 === 1) ways.reverse();
  const by = {};
  try {
    for (const [who, measure] of ways) {
      by[who] = await measure();
      empty();
    }
  } finally {
    await stop();
  }
  return by;
}

try {
  for (let block = 0; block < Number(blocks); block++) {
    for (const clients of loads) {
      const by = {};
      for (const kind of kinds) by[kind] = await both(kind, clients, block);
      operations.forEach((operation, o) => {
        for (const kind of kinds) {
          const [theirs, ours] = ["php", "cachedyno"].map((who) => by[kind][who][o].toFixed(2));
          const which = `block ${block + 1} ${operation} ${clients} ${kind}`;
          console.error(`${which}: PHP ${theirs} us, cachedyno ${ours} us`);
        }
        for (const other of ["files", "mysql"]) {
          const pair = `${operation}, ${clients} clients: redis / ${other}`;
          for (const who of ["php", "cachedyno"])
            note(pair, who, Math.log(by[other][who][o] / by.redis[who][o]));
        }
      });
    }
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
console.log(`values drawn ${drawing} the timer, ${sessions} sessions per client, ${blocks} blocks`);
for (const [pair, by] of Object.entries(logs)) {
  console.log(pair);
  for (const [who, values] of Object.entries(by)) {
    const [center, lo, hi] = interval(values);
    console.log(`  ${who.padEnd(12)}${center} [${lo}, ${hi}]`);
  }
}
