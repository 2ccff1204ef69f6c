/** Reads the data of a page and rejects anything that is not a view. */

import { VIEW_FORMAT, type View } from "./view";

/** The data is not a view that this page can show. The message is one line. */
export class ViewError extends Error {}

type Shape = "string" | "number" | "array" | "object";

const VIEW_SHAPE: Record<string, Shape> = {
  run: "string",
  study: "string",
  title: "string",
  question: "string",
  source: "string",
  scale: "string",
  profiles: "array",
  answer: "object",
  sheet: "array",
  validity: "string",
  reasons: "array",
  unsteady: "array",
  status: "string",
  stopped_because: "string",
  started_unix_ms: "number",
  took_s: "number",
  blocks: "number",
  seed: "number",
  tool: "string",
  command: "array",
  equivalence_zone: "number",
  fewest_blocks: "number",
  generation: "object",
  targets: "array",
  cells: "array",
  comparisons: "array",
  claims: "array",
  advice: "array",
  advice_weights: "object",
  rankings: "array",
  failures: "array",
  noise: "array",
  conditions: "object",
  footnotes: "array",
  rules: "array",
};

const ROW_SHAPE: Record<string, Shape> = {
  target: "string",
  workload: "string",
  operation: "string",
  load: "object",
  blocks: "number",
  compared_by: "string",
  metrics: "object",
  counts: "object",
  footnotes: "array",
};

function isObject(data: unknown): data is Record<string, unknown> {
  return typeof data === "object" && data !== null && !Array.isArray(data);
}

function requireShape(data: Record<string, unknown>, shape: Record<string, Shape>, where: string): void {
  for (const [key, expected] of Object.entries(shape)) {
    const value = data[key];
    const actual = Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
    if (actual !== expected) {
      throw new ViewError(`\`${where}${key}\` is ${actual}, expected ${expected}: write the report again`);
    }
  }
}

/** True for a template without a report. */
export function isPlaceholder(data: unknown): boolean {
  return isObject(data) && data["placeholder"] === true;
}

/** `{"at_least": …}` as a value without an interval, marked as a bound. */
function bound(_key: string, value: unknown): unknown {
  const is = isObject(value) && typeof value["at_least"] === "number" && Object.keys(value).length === 1;
  return is ? { center: value["at_least"], lo: null, hi: null, at_least: true } : value;
}

/**
 * Reads the data of a page; null for a template without data.
 *
 * Throws a `ViewError` for text that is not JSON, another format version, or a missing key.
 */
export function parseView(text: string): View | null {
  let data: unknown;
  try {
    data = JSON.parse(text, bound);
  } catch {
    throw new ViewError("the data in this page is not JSON, expected a view: write the report again");
  }
  if (isPlaceholder(data)) return null;
  if (!isObject(data)) throw new ViewError("the data in this page is not an object, expected a view");
  if (data["format"] !== VIEW_FORMAT) {
    const found = JSON.stringify(data["format"]) ?? "none";
    throw new ViewError(
      `the data has format \`${found}\`, expected ${VIEW_FORMAT}: write the report with a matching version of cachedyno`,
    );
  }
  requireShape(data, VIEW_SHAPE, "");
  (data["cells"] as unknown[]).forEach((row, i) => {
    if (!isObject(row)) throw new ViewError(`\`cells[${i}]\` is not an object, expected a row`);
    requireShape(row, ROW_SHAPE, `cells[${i}].`);
  });
  data["seed"] = exactSeed(text) ?? String(data["seed"]);
  return data as unknown as View;
}

/** The seed's digits as written, since JavaScript rounds numbers above 2^53. */
function exactSeed(text: string): string | undefined {
  return /(?<!\\)"seed"\s*:\s*(\d+)/.exec(text)?.[1];
}
