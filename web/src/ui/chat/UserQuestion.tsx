// Asks the user what the model wants to know. The first answer wins, wherever it is given.

import { type FormEvent, useRef, useState } from "react";
import { escapeInvisible } from "../../core/invisible-characters.ts";
import type { InputAnswer } from "../../core/types.ts";
import type { UserQuestion as Question } from "../../core/user-questions.ts";
import { Button } from "../widgets/buttons.tsx";
import { classNames } from "../widgets/class-names.ts";
import forms from "../widgets/forms.module.css";
import { isSubmitKey } from "../widgets/keyboard.ts";
import text from "../widgets/text.module.css";
import styles from "./Approval.module.css";

interface Props {
  question: Question;
  /** Returns something falsy if the answer could not be sent. */
  onAnswer: (answer: InputAnswer) => Promise<unknown>;
}

/** As `holdfast.core.user_questions.MAX_ANSWER`. */
const MAX_ANSWER = 20_000;

export default function UserQuestion({ question: { question, options, takesText }, onAnswer }: Props) {
  const [sending, setSending] = useState(false);
  const [written, setWritten] = useState("");
  const form = useRef<HTMLFormElement>(null);
  const send = async (answer: InputAnswer) => {
    setSending(true);
    if (!(await onAnswer(answer))) setSending(false);
  };
  const answer = (value: string) => void send({ action: "accept", content: { answer: value } });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (written.trim() && !sending) answer(written);
  };
  return (
    <form ref={form} className={classNames(styles.approval, text.block)} aria-label="Question" onSubmit={submit}>
      <p className={classNames(styles.asked, text.plain)} dir="auto">
        {escapeInvisible(question)}
      </p>
      {options.length > 0 && (
        // biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms
        <div className={text.row} role="group" aria-label="Answers">
          {options.map((option) => (
            <Button key={option} disabled={sending} onClick={() => answer(option)}>
              {escapeInvisible(option)}
            </Button>
          ))}
        </div>
      )}
      {takesText && (
        <label className={styles.field}>
          {options.length > 0 ? "Another answer" : "Your answer"}
          <textarea
            className={forms.field}
            rows={2}
            maxLength={MAX_ANSWER}
            value={written}
            onChange={(event) => setWritten(event.target.value)}
            onKeyDown={(event) => {
              if (!isSubmitKey(event)) return;
              event.preventDefault();
              form.current?.requestSubmit();
            }}
          />
        </label>
      )}
      <div className={text.row}>
        {takesText && (
          <Button type="submit" variant="primary" disabled={sending || !written.trim()}>
            Answer
          </Button>
        )}
        <Button disabled={sending} onClick={() => void send({ action: "decline" })}>
          Skip
        </Button>
      </div>
    </form>
  );
}
