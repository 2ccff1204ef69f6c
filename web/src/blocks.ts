/** The sheet: sections of typed blocks from the Rust crate `report` (crates/report/src/section.rs). */

/** Style of a cell. */
export type Tone = "plain" | "target" | "best" | "tied" | "good" | "bad" | "doubt";

/** A cell of a table. */
export interface Cell {
  text: string;
  /** Small text below it. */
  about?: string;
  tone?: Tone;
  /** Sort key, if it differs from the text. */
  sort?: number;
  /** Indices of footnotes. */
  notes?: number[];
}

/** A column of a table. */
export interface Column {
  title: string;
  about: string;
  is_number: boolean;
  /** True if each value is drawn as a share of the largest in its group. */
  has_meter: boolean;
}

/** A line of a table. */
export interface Line {
  cells: Cell[];
  /** True for the line with the answer. */
  is_strong: boolean;
}

/** A table; `is_grouped` if lines with the same first cell form a group. */
export interface Table {
  columns: Column[];
  is_grouped: boolean;
  lines: Line[];
}

/** A part that the page renders as a component. */
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
