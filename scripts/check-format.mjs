// Fails if a record contains a key that docs/FORMAT.md does not name.
//
//   node scripts/check-format.mjs RECORD
import { readFileSync } from "node:fs";
import { join } from "node:path";

const FORMAT = new URL("../docs/FORMAT.md", import.meta.url);
const FILES = ["header.json", "targets.jsonl", "trials.jsonl", "seal.json", "summary.json"];
// Maps whose keys are names: of users, of servers, of profiles, of files.
const NAMED = new Set(["settings", "sizes", "weights", "mix", "generation", "data", "errors_by_class", "sha256"]);

const words = new Set(readFileSync(FORMAT, "utf8").match(/[a-z0-9_]+/g));

/** True for a word of the page, or a time prefix and its suffix, such as `service_ns_` and `p50`. */
function isNamed(key) {
  const parts = key.match(/^(service_ns_|response_ns_|lag_ns_)(.+)$/);
  return words.has(key) || (parts !== null && words.has(parts[1]) && words.has(parts[2]));
}

function* keys(value) {
  if (value === null || typeof value !== "object") return;
  for (const [key, inner] of Object.entries(value)) {
    if (!Array.isArray(value)) yield key;
    if (!NAMED.has(key)) yield* keys(inner);
  }
}

const [record] = process.argv.slice(2);
let checked = 0;
const unnamed = new Set();
for (const file of FILES) {
  const text = readFileSync(join(record, file), "utf8");
  const values = file.endsWith("l") ? text.trimEnd().split("\n").map((line) => JSON.parse(line)) : [JSON.parse(text)];
  for (const key of values.flatMap((value) => [...keys(value)])) {
    checked += 1;
    if (!isNamed(key)) unnamed.add(`${file}: key \`${key}\` is not in docs/FORMAT.md: describe it there`);
  }
}
for (const line of unnamed) console.error(line);
console.log(`${checked} keys of ${FILES.length} files looked up`);
process.exitCode = unnamed.size > 0 || checked === 0 ? 1 : 0;
