import { viteSingleFile } from "vite-plugin-singlefile";
import { defineConfig } from "vitest/config";

// One entry, one output, with every script and style inlined: dist/page.html, and in mode `live`
// dist/live.html beside it.
export default defineConfig(({ mode }) => ({
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  build: {
    target: "es2022",
    modulePreload: false,
    emptyOutDir: mode !== "live",
    rolldownOptions: { input: mode === "live" ? "live.html" : "page.html" },
  },
  test: {
    environment: "jsdom",
    // Charts of a whole page take seconds while other programs use the CPUs.
    testTimeout: 60_000,
    include: ["tests/**/*.test.ts"],
    setupFiles: ["tests/setup.ts"],
  },
}));
