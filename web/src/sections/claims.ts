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

/** `Of 3 statements: 2 confirmed and 1 refuted.`; empty without statements. */
function tally(claims: readonly ClaimView[], about: string): string {
  const counts = ["confirmed", "refuted", "undecided", "not run"]
    .map((word): [string, number] => [word, claims.filter((c) => c.verdict === word).length])
    .filter(([, n]) => n > 0)
    .map(([word, n]) => `${n} ${word}`);
  return claims.length === 0 ? "" : `Of ${format.plural(claims.length, "statement")}${about}: ${format.list(counts)}.`;
}

/** Number of claims per verdict, those about the source's own tables apart, and the table of all claims. */
export function claims(context: Context): HTMLElement[] {
  const all = context.view.claims;
  const ofTables = all.filter((c) => c.of_tables === true);
  const measured = all.filter((c) => c.of_tables !== true);
  const hints = [tally(measured, ""), tally(ofTables, " about the source's own tables")].filter((text) => text !== "");
  return [
    h("p", { class: "hint" }, hints.join(" ")),
    fold(`Table of ${format.plural(all.length, "statement")}`, cards(COLUMNS, [all], "claims")),
  ];
}
