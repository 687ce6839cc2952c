import { useState } from "react";
import { useStore } from "./context.ts";
import { type Question, question } from "./shell.ts";
import { Dialog } from "./widgets.tsx";

export function QuestionDialog() {
  const asked = useStore(question);
  return asked && <Asked key={asked.title} asked={asked} />;
}

function Asked({ asked }: { asked: Question }) {
  const [value, setValue] = useState(asked.value);
  const done = (answer: string | null) => {
    question.set(null);
    asked.answer(answer);
  };
  return (
    <Dialog name={asked.title} onClose={() => done(null)}>
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault();
          done(value);
        }}
      >
        <h2>{asked.title}</h2>
        {asked.detail && <p>{asked.detail}</p>}
        {asked.field && (
          <label>
            {asked.field}
            <input
              type={asked.secret ? "password" : "text"}
              autoComplete="off"
              value={value}
              onChange={(event) => setValue(event.target.value)}
            />
          </label>
        )}
        {asked.option && (
          <label className="check">
            <input
              type="checkbox"
              checked={value !== ""}
              onChange={(event) => setValue(event.target.checked ? "ticked" : "")}
            />
            {asked.option}
          </label>
        )}
        <div className="row end">
          <button type="button" className="button" onClick={() => done(null)}>
            Cancel
          </button>
          <button type="submit" className={asked.field ? "button primary" : "button primary danger"}>
            {asked.action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
