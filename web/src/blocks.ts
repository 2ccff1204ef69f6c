/** The sheet: sections of typed blocks, as the Rust crate `report` makes them (crates/report/src/section.rs). */

/** How a cell is seen. */
export type Tone = "plain" | "target" | "best" | "tied" | "good" | "bad" | "doubt";

/** A cell of a table. */
export interface Cell {
  text: string;
  /** What stands smaller below it. */
  about?: string;
  tone?: Tone;
  /** What it is sorted by, where that is not its text. */
  sort?: number;
  /** Indices of footnotes. */
  notes?: number[];
}

/** A column of a table. */
export interface Column {
  title: string;
  about: string;
  is_number: boolean;
  /** True where each value is drawn as a share of the largest of its group. */
  has_meter: boolean;
}

/** A line of a table. */
export interface Line {
  cells: Cell[];
  /** True for the line that is the answer. */
  is_strong: boolean;
}

/** A table; `is_grouped` where lines with the same first cell are a group. */
export interface Table {
  columns: Column[];
  is_grouped: boolean;
  lines: Line[];
}

/** What the page shows in its own way. */
export type Part = "answer" | "charts" | "weights" | "claims" | "conditions" | "notes";

/** A part of a section. */
export type Block =
  | { kind: "title"; text: string; notes?: number[] }
  | ({ kind: "table" } & Table)
  | { kind: "item"; text: string }
  | { kind: "note"; text: string }
  | { kind: "part"; part: Part };

/** A section of the sheet. */
export interface Section {
  id: string;
  title: string;
  blocks: Block[];
}
