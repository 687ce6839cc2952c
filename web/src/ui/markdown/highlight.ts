import type { Root } from "hast";
import { common, createLowlight } from "lowlight";

const lowlight = createLowlight(common);

export function highlight(code: string, language: string): Root | null {
  return lowlight.registered(language) ? lowlight.highlight(language, code) : null;
}
