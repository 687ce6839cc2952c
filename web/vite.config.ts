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

/** The other entries, and the helper of dynamic imports that they share with the app. */
const FRAMES = /diagram|service-worker|preload-helper/;

export default defineConfig({
  base: "./", // scripts and styles find each other wherever the app is published; `pack.mjs` completes the page
  plugins: [{ ...onlyWoff2(), enforce: "pre" }],
  build: {
    outDir: "../src/holdfast/server/static/app",
    emptyOutDir: true,
    rolldownOptions: {
      input: { index: "index.html", diagram: "diagram.html", "service-worker": "src/service-worker/main.ts" },
      // A service worker is known by its address, and is updated there.
      output: {
        // One script for the first load: parts that lazy chunks share would become some twenty scripts. Not for what the
        // frame of diagrams shares: it must not run the app.
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [{ name: "app", tags: ["$initial"], test: (id: string) => !FRAMES.test(id) }],
        },
        entryFileNames: ({ name }) => (name === "service-worker" ? "[name].js" : "assets/[name]-[hash].js"),
      },
    },
    target: "es2022",
    assetsInlineLimit: 0, // the content security policy allows no data: fonts
    modulePreload: {
      polyfill: false,
      // What lazy parts share is mostly there: listing it would make the first load longer.
      resolveDependencies: (_, dependencies, { hostType }) =>
        hostType === "html" ? dependencies : dependencies.filter((name) => name.endsWith(".css")),
    },
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
