/** Claims of the source, judged by these measurements or by the source's own tables. */

import type { Context } from "../context";
import { cards, chip, type Column, fold, h, none, prose, sub } from "../dom";
import * as format from "../format";
import type { ClaimView } from "../view";

function verdict(word: string): HTMLElement {
  if (word === "confirmed") return chip("good", word);
  if (word === "refuted") return chip("bad", word);
  return chip(word === "not run" ? "plain" : "doubt", word);
}

const COLUMNS: readonly Column<ClaimView>[] = [
  ["Statement", ({ id, text, source }) => h("span", { id: `claim-${id}` }, text, sub(source))],
  ["Verdict", (claim) => verdict(claim.verdict)],
  [
    "Expected",
    ({ expected, source_value: value }) => [...prose(expected), value === undefined ? null : sub(`the source: ${value}`)],
  ],
  [
    "Measured",
    ({ shown, workload, of_tables }) => [
      shown === null ? none() : h("span", { class: "nowrap" }, shown),
      of_tables === true ? sub("from the source's tables") : null,
      workload === null ? null : sub(`on ${workload}`),
    ],
  ],
  ["Explanation", ({ note }) => prose(note)],
];

/** Number of claims per verdict, and the table of all claims. */
export function claims(context: Context): HTMLElement[] {
  const all = context.view.claims;
  const tally = ["confirmed", "refuted", "undecided", "not run"]
    .map((word): [string, number] => [word, all.filter((c) => c.verdict === word).length])
    .filter(([, n]) => n > 0)
    .map(([word, n]) => `${n} ${word}`);
  return [
    h("p", { class: "hint" }, `Of ${format.plural(all.length, "statement")}: ${format.list(tally)}.`),
    fold(`Table of ${format.plural(all.length, "statement")}`, cards(COLUMNS, [all], "claims")),
  ];
}
