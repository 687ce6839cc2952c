// Which image is shown large, among those of the page.

import { Store } from "../../core/store.ts";

export interface LightboxImage {
  readonly src: string;
  readonly name: string;
}

export const lightbox = new Store<{ readonly images: readonly LightboxImage[]; readonly at: number } | null>(null);

export const closeLightbox = (): void => lightbox.set(null);

/** Shows the image of this button large, and lets people go on to the others of the conversation. */
export function openLightbox(button: HTMLElement): void {
  const buttons = [...document.querySelectorAll<HTMLElement>("button[data-image]")];
  const images = buttons.flatMap((each) => {
    const image = each.querySelector("img");
    return image ? [{ src: image.src, name: image.alt }] : [];
  });
  lightbox.set({ images, at: Math.max(0, buttons.indexOf(button)) });
}
