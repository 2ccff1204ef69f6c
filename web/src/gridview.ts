/** Rows that form a grid (crates/report/src/view/grids.rs). */

import type { Load } from "./view";

/** Rows of one target and profile that differ in at least two axes. */
export interface GridView {
  target: string;
  /** Profile of the study, without the values of its lists. */
  profile: string;
  /** Load, with one client and one request at once. */
  load: Load;
  axes: GridAxis[];
  /** One entry for each row. */
  cells: GridCell[];
}

/** An axis with its values in ascending order. */
export interface GridAxis {
  name: "value_bytes" | "clients" | "pipeline" | "threads";
  values: number[];
}

/** A row in a grid: for each axis the index of its value, and the index in `cells` of the view. */
export interface GridCell {
  at: number[];
  row: number;
}
