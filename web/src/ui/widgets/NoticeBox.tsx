import type { ReactNode } from "react";
import { classNames } from "./class-names.ts";
import { Advice } from "./InlineCode.tsx";
import styles from "./NoticeBox.module.css";
import text from "./text.module.css";

export type NoticeKind = "neutral" | "warning" | "error";

/** A short statement about the content next to it; `children` are its actions. */
export function NoticeBox({
  kind,
  text: content,
  children,
}: {
  kind: NoticeKind;
  text: ReactNode;
  children?: ReactNode;
}) {
  return (
    <div className={classNames(styles.notice, styles[kind])} role="note" aria-label="Notice">
      <p>{typeof content === "string" ? <Advice text={content} /> : content}</p>
      {children && <div className={text.row}>{children}</div>}
    </div>
  );
}
