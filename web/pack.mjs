// Writes compressed copies next to the built files and the notices: the server sends them as they are.
import "./notices.mjs";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const root = new URL("../src/holdfast/server/static/app", import.meta.url).pathname;
// The page is served at many paths, so its own references are absolute; the server adds its root path to them.
const page = join(root, "index.html");
writeFileSync(page, readFileSync(page, "utf8").replaceAll('="./', '="/static/app/'));
for (const name of readdirSync(root, { recursive: true })) {
  const path = join(root, name);
  if (!/\.(js|css|html|svg|txt|webmanifest)$/.test(name) || !statSync(path).isFile()) continue;
  const plain = readFileSync(path);
  writeFileSync(`${path}.gz`, gzipSync(plain, { level: 9 }));
  writeFileSync(`${path}.br`, brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 10 } }));
}
