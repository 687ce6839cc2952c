// Line icons. They are decorative: the names are on the buttons.

import styles from "./icons.module.css";

const PATHS = {
  plus: "M12 5v14M5 12h14",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  menu: "M4 7h16M4 12h16M4 17h16",
  sidebar: "M4 5h16v14H4zM10 5v14",
  more: "M6 11.4a.6.6 0 1 0 0 1.2.6.6 0 0 0 0-1.2zM12 11.4a.6.6 0 1 0 0 1.2.6.6 0 0 0 0-1.2zM18 11.4a.6.6 0 1 0 0 1.2.6.6 0 0 0 0-1.2z",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zM20 20l-4-4",
  copy: "M9 9h10v10H9zM5 15V5h10",
  check: "M5 12.5l4.5 4.5L19 7.5",
  retry: "M4 12a8 8 0 1 0 2.5-5.8M4 4v4.5h4.5",
  edit: "M4 20h4L19 9l-4-4L4 16zM13.5 6.5l4 4",
  fork: "M7 4v16M17 4v5c0 4-10 3-10 8",
  undo: "M8 5L4 9l4 4M4 9h10a5 5 0 0 1 0 10h-3",
  redo: "M16 5l4 4-4 4M20 9H10a5 5 0 0 0 0 10h3",
  clip: "M8 12l5-5a3 3 0 0 1 4.5 4L10 18.5A4.5 4.5 0 0 1 3.5 12L11 4.5",
  left: "M14 6l-6 6 6 6",
  right: "M10 6l6 6-6 6",
  up: "M6 14l6-6 6 6",
  quote: "M5 7h5v5c0 3-2 5-5 5M14 7h5v5c0 3-2 5-5 5",
  printer: "M7 8V4h10v4M7 16H4V8h16v8h-3M7 13h10v7H7z",
  down: "M6 10l6 6 6-6",
  close: "M6 6l12 12M18 6L6 18",
  play: "M8 5l11 7-11 7z",
  pause: "M9 6v12M15 6v12",
  pin: "M9 4h6l-1 6 3 3H7l3-3zM12 13v7",
  archive: "M4 5h16v4H4zM6 9v10h12V9M10 13h4",
  trash: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13",
  tool: "M14 6a4 4 0 0 0-5 5l-6 6 3 3 6-6a4 4 0 0 0 5-5l-3 3-2-1-1-2z",
  letter: "M5 8V5h14v3M12 5v14M9 19h6",
  spark: "M12 3v6M12 15v6M3 12h6M15 12h6",
  compare: "M4 5h7v14H4zM13 5h7v14h-7z",
  activity: "M3 12h4l3-8 4 16 3-8h4",
  gear: "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM12 3v3M12 18v3M3 12h3M18 12h3M5.6 5.6l2.2 2.2M16.2 16.2l2.2 2.2M18.4 5.6l-2.2 2.2M7.8 16.2l-2.2 2.2",
  record: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4l3 2",
  sliders:
    "M4 8h8M18 8h2M4 16h2M12 16h8M15 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM9 13.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z",
  terminal: "M4 5h16v14H4zM8 10l2.5 2L8 14M12.5 15H16",
  folder: "M4 6h6l2 2h8v10H4z",
  project: "M4 9h16v11H4zM6.5 6h11M9 3h6",
  share: "M12 15V4M8 7.5l4-4 4 4M7 11H5v9h14v-9h-2",
  tag: "M4 4h8l8 8-8 8-8-8zM8 8h.01",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  upload: "M12 15V4M7 8.5l5-5 5 5M5 20h14",
  download: "M12 4v11M7 10.5l5 5 5-5M5 20h14",
  brain: "M9 4a4 4 0 0 0-3 6.5A4 4 0 0 0 8 18h1V4zM15 4a4 4 0 0 1 3 6.5A4 4 0 0 1 16 18h-1V4z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className={styles.icon} viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
