// Shows an image large. The arrow keys lead to the other images of the conversation.

import { type KeyboardEvent, useState } from "react";
import { useStore } from "../context.ts";
import { IconButton, iconButtonClass } from "../widgets/buttons.tsx";
import { Dialog } from "../widgets/Dialog.tsx";
import { Icon } from "../widgets/icons.tsx";
import textStyles from "../widgets/text.module.css";
import styles from "./Lightbox.module.css";
import { closeLightbox, lightbox } from "./lightbox-state.ts";

export default function Lightbox() {
  const shown = useStore(lightbox);
  const [actual, setActual] = useState(false);
  const image = shown?.images[shown.at];
  if (!shown || !image) return null;
  const { images, at } = shown;
  const go = (to: number) => {
    if (!images[to]) return;
    setActual(false);
    lightbox.set({ images, at: to });
  };
  const onKeyDown = ({ key }: KeyboardEvent) => {
    if (key === "ArrowLeft") go(at - 1);
    if (key === "ArrowRight") go(at + 1);
  };
  return (
    <Dialog name={`Image ${image.name}`} className={styles.lightbox} onClose={closeLightbox}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the keys of the buttons below */}
      <div className={styles.content} onKeyDown={onKeyDown}>
        <div className={styles.bar}>
          <span className={textStyles.ellipsis}>{image.name}</span>
          {images.length > 1 && (
            <>
              <IconButton name="Previous image" icon="left" disabled={at === 0} onClick={() => go(at - 1)} />
              <span role="status" className={styles.count}>
                {at + 1}/{images.length}
              </span>
              <IconButton
                name="Next image"
                icon="right"
                disabled={at === images.length - 1}
                onClick={() => go(at + 1)}
              />
            </>
          )}
          <a className={iconButtonClass} href={image.src} download={image.name} aria-label="Download" title="Download">
            <Icon name="download" />
          </a>
          <IconButton name="Close" icon="close" onClick={closeLightbox} />
        </div>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard */}
        <div className={styles.view} tabIndex={0}>
          <button
            type="button"
            className={actual ? styles.actual : styles.fitted}
            aria-label={actual ? "Fit to window" : "Actual size"}
            onClick={() => setActual(!actual)}
          >
            <img src={image.src} alt={image.name} />
          </button>
        </div>
      </div>
    </Dialog>
  );
}
