import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** Leaves fonts in older formats out of the package: every browser that runs this app supports woff2. */
function onlyWoff2(): Plugin {
  return {
    name: "only-woff2",
    transform(code, id) {
      if (!id.includes("katex") || !id.split("?")[0]?.endsWith(".css")) return null;
      return code.replace(/,url\([^)]*\.(woff|ttf)\)\s*format\(["'][a-z]+["']\)/g, "");
    },
  };
}

export default defineConfig({
  base: "./", // scripts and styles find each other wherever the app is published; `pack.mjs` completes the page
  plugins: [{ ...onlyWoff2(), enforce: "pre" }],
  build: {
    outDir: "../src/holdfast/server/static/app",
    emptyOutDir: true,
    rolldownOptions: { input: ["index.html", "diagram.html"] },
    target: "es2022",
    assetsInlineLimit: 0, // the content security policy allows no data: fonts
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1500,
  },
  server: { proxy: { "/api": "http://127.0.0.1:8484", "/static/icon.svg": "http://127.0.0.1:8484" } },
  // One worker imports each module once. The time limit is for a busy machine: tests of speed measure CPU time.
  test: {
    include: ["test/**/*.test.ts"],
    environment: "node",
    isolate: false,
    maxWorkers: 1,
    testTimeout: 120_000,
  },
});
