import { type ComponentType, type RefObject, useEffect, useRef, useState } from "react";
import { Link, useTarget } from "../router.tsx";
import { Alert } from "../widgets/Alert.tsx";
import { ScrollingScreen } from "../widgets/Screen.tsx";
import { About } from "./About.tsx";
import { Access } from "./Access.tsx";
import { Appearance } from "./Appearance.tsx";
import { ChatDefaultsForm } from "./ChatDefaultsForm.tsx";
import { Data } from "./Data.tsx";
import { McpServers } from "./McpServers.tsx";
import { Memory } from "./Memory.tsx";
import { Models } from "./Models.tsx";
import { Notifications } from "./Notifications.tsx";
import { Personas } from "./Personas.tsx";
import { Prompts } from "./Prompts.tsx";
import styles from "./Settings.module.css";
import { Sharing } from "./Sharing.tsx";
import { SECTION_NAMES } from "./section-names.ts";
import { Tools } from "./Tools.tsx";
import { Usage } from "./Usage.tsx";
import { type SettingsProps, useSettings } from "./use-settings.ts";

const CONTENT: Readonly<Record<keyof typeof SECTION_NAMES, ComponentType<SettingsProps>>> = {
  models: Models,
  "chat-defaults": ChatDefaultsForm,
  personas: () => <Personas />,
  prompts: Prompts,
  tools: Tools,
  mcp: McpServers,
  memory: () => <Memory />,
  usage: Usage,
  appearance: Appearance,
  notifications: Notifications,
  access: Access,
  sharing: Sharing,
  data: Data,
  about: About,
};
const SECTIONS = Object.entries(SECTION_NAMES).map(
  ([id, name]) => [id, name, CONTENT[id as keyof typeof SECTION_NAMES]] as const,
);

/** How long a section that was navigated to stays in place while the content above it loads. */
const HOLD_MS = 4000;

/** Scrolls to the section that the address names, and keeps it there while content loads, until the user moves on. */
function useSectionInAddress(sections: RefObject<HTMLElement | null>): void {
  const target = useTarget();
  useEffect(() => {
    const box = sections.current;
    const id = target.hash.slice(1);
    if (!box || !id) return;
    const show = () => document.getElementById(id)?.scrollIntoView();
    const observer = new ResizeObserver(show);
    const release = () => observer.disconnect();
    observer.observe(box);
    const timer = setTimeout(release, HOLD_MS);
    const gestures = ["wheel", "touchmove", "keydown", "pointerdown"];
    for (const gesture of gestures) addEventListener(gesture, release, { passive: true });
    return () => {
      release();
      clearTimeout(timer);
      for (const gesture of gestures) removeEventListener(gesture, release);
    };
  }, [target, sections]);
}

/** The id of the section that is being read: the last one that begins in the upper part of the window. */
function useShownSection(sections: RefObject<HTMLElement | null>, loaded: boolean): string | null {
  const [shown, setShown] = useState<string | null>(null);
  useEffect(() => {
    const box = sections.current;
    const scroller = box?.closest("[data-scroll-container]");
    if (!box || !scroller || !loaded) return;
    const look = () => {
      const all = [...box.querySelectorAll("section[id]")];
      const atEnd = scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 2;
      const begun = all.filter((section) => section.getBoundingClientRect().top < innerHeight * READ_FROM);
      // At the end several sections may be short of the upper part: the one that was navigated to counts.
      const named = all.find(({ id }) => id === location.hash.slice(1));
      const last = named && named.getBoundingClientRect().top > 0 ? named : all.at(-1);
      setShown((atEnd ? last : (begun.at(-1) ?? all[0]))?.id ?? null);
    };
    look();
    scroller.addEventListener("scroll", look, { passive: true });
    const observer = new ResizeObserver(look);
    observer.observe(box);
    return () => {
      scroller.removeEventListener("scroll", look);
      observer.disconnect();
    };
  }, [sections, loaded]);
  return shown;
}

const READ_FROM = 0.3;

export default function Settings() {
  const { problem, ...props } = useSettings();
  const sections = useRef<HTMLDivElement>(null);
  useSectionInAddress(sections);
  const current = useShownSection(sections, props.settings !== null);
  const nav = useRef<HTMLElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs when another section is current
  useEffect(() => {
    const link = nav.current?.querySelector<HTMLElement>("[aria-current]");
    if (nav.current && link) nav.current.scrollLeft = link.offsetLeft - nav.current.clientWidth / 3; // on narrow screens
  }, [current]);
  const shown = SECTIONS.filter(([id]) => id !== "memory" || props.settings?.memory);
  return (
    <ScrollingScreen title="Settings">
      <div className={styles.settings}>
        <nav className={styles.nav} aria-label="Settings" ref={nav}>
          {shown.map(([id, name]) => (
            <Link key={id} href={`/settings#${id}`} aria-current={id === current ? "true" : undefined}>
              {name}
            </Link>
          ))}
        </nav>
        <div className={styles.sections} ref={sections}>
          {problem && <Alert text={problem} />}
          {shown.map(([id, name, Body]) => (
            <section key={id} id={id} className={styles.section} aria-label={name}>
              <h2>{name}</h2>
              <Body {...props} />
            </section>
          ))}
        </div>
      </div>
    </ScrollingScreen>
  );
}
