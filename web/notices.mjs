// Writes the licenses of the packages in the built app next to it: most of them require to be passed on with it.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";

const web = new URL(".", import.meta.url);
const target = new URL("../src/holdfast/server/static/app/third-party-notices.txt", import.meta.url);
const { packages } = JSON.parse(readFileSync(new URL("package-lock.json", web), "utf8"));

function notice(path, { version, license }) {
  const directory = new URL(`${path}/`, web);
  const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
  const files = readdirSync(directory).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file));
  const texts = files.sort().map((file) => readFileSync(new URL(file, directory), "utf8").trim());
  return [`${name} ${version} (${license ?? "see its license text"})`, ...texts].join("\n\n");
}

const shipped = Object.entries(packages).filter(
  ([path, { dev }]) => path && !dev && !path.includes("/@types/") && existsSync(new URL(`${path}/package.json`, web)),
);
const line = `\n\n${"-".repeat(80)}\n\n`;
const title = "The web app of Holdfast contains code of these packages, under their own licenses.";
writeFileSync(target, `${[title, ...shipped.map(([path, info]) => notice(path, info))].join(line)}\n`);
