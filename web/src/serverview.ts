/** Servers of a target over time, around a fault (crates/report/src/view/servers.rs). */

/** CPU use and roles of servers around a fault. */
export interface ServerCharts {
  /** Length of an interval of `cpu_share`, seconds. */
  interval_s: number;
  /** The block, from 0, in which clients were affected longest. */
  worst: number;
  /** In the order of `by_block`, by name. */
  blocks: ServerCourse[][];
}

/** One server in one block. */
export interface ServerCourse {
  /** Its address, as in events. */
  name: string;
  /** Share of one CPU in each interval; null while it does not run. */
  cpu_share: (number | null)[];
  roles: RoleSpan[];
}

/** A server's role in a span of time, seconds since the start of the measurement. */
export interface RoleSpan {
  from_s: number;
  to_s: number;
  role: ServerRole;
}

/** Role of a server, or why it has none. */
export type ServerRole = "primary" | "replica" | "behind" | "sentinel" | "gone" | "hangs" | "unknown";
